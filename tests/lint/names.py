#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""names.py ROOT PAGE...: what a page of the manual says about the code is there: every file and folder that it names,
and every function where it says "`function` in `file`".
"""
import os
import re
import sys

PATH = re.compile(r"`((?:[\w-]+/)+[\w.-]*)`")
FUNCTION = re.compile(r"`(\w+)`\s+in\s+`([\w./-]+)`")
LINK = re.compile(r"\]\(([\w./-]+)\)")


def check(root, page):
    with open(os.path.join(root, page), encoding="utf-8") as f:
        text = f.read()
    for path in sorted(set(PATH.findall(text))):
        # What a build makes is not there yet.
        if not path.startswith("build/") and not os.path.exists(os.path.join(root, path)):
            yield f"{page}: there is no {path}"
    for link in sorted(set(LINK.findall(text))):
        if not os.path.exists(os.path.join(root, os.path.dirname(page), link)):
            yield f"{page}: its link to {link} leads nowhere"
    for function, path in sorted(set(FUNCTION.findall(text))):
        source = os.path.join(root, path)
        if not os.path.isfile(source):
            continue  # told above
        with open(source, encoding="utf-8") as f:
            # The definition of a function, in the way that the style asks for.
            if not re.search(rf"^[a-z][^;=#]*\b{function}\([^;]*?\)\n\{{", f.read(), re.M):
                yield f"{page}: {path} does not define {function}"


def main():
    bad = [line for page in sys.argv[2:] for line in check(sys.argv[1], page)]
    print("\n".join(bad + [f"{len(sys.argv) - 2} pages, {len(bad)} names that lead nowhere"]))
    return 1 if bad or len(sys.argv) < 3 else 0


if __name__ == "__main__":
    sys.exit(main())
