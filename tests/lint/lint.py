#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lint.py ROOT: what every file of the tree must be: licensed, of a size to read, finished, and free of places.

Checks text alone; what takes a compiler or a shell's parser has its own tests beside this one.
"""
import os
import re
import sys

LINES_MAX = 900
LICENCE = "SPDX-License-Identifier: Apache-2.0"
LICENCE_LINES = 3  # it stands in one of the first

# The licence itself, and files that have no place for a comment.
WITHOUT_LICENCE = re.compile(r"(^|/)(LICENSE|\.gitignore)$|\.(json|jsonl|txt|csv|gz|bin|gguf|png)$|(^|/)corpus/")
MADE = re.compile(r"<!-- \w+: made by .*?<!-- \w+: end -->", re.S)
BINARY = re.compile(r"\.(gz|bin|gguf|png)$|(^|/)corpus/")
LONG_BY_NATURE = re.compile(r"(^|/)LICENSE$|\.(json|jsonl|txt|csv)$")

# Split so that this file does not find itself.
FORBIDDEN = [
    (r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b", "is left undone: do it, or write down the limit in words"),
    # But somebody may wait for something at this moment.
    (r"(?i)(?<!wait )(?<!waits )\bfor " r"now\b", "is left undone: do it, or write down the limit in words"),
    (r"(?i)\b(dummy implemen" r"tation|not implemented" r" yet)\b", "is left undone"),
    (r"/ho" r"me/|/ro" r"ot/", "is a place on somebody's machine"),
    (r"[ \t]+$", "has blanks at its end"),
    (r"^ +\t", "has blanks before a tab"),
    (r"\r", "ends like a line of another system"),
]


def files(root):
    for folder, dirs, names in os.walk(root):
        dirs[:] = sorted(d for d in dirs if d not in (".git", "__pycache__") and
                         not os.path.isdir(os.path.join(folder, d, "meson-private")))
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), root)
            if not name.endswith((".o", ".pyc", ".trail")) and not os.path.islink(os.path.join(root, path)):
                yield path


def check_lines(path, lines):
    for number, line in enumerate(lines, 1):
        for pattern, why in FORBIDDEN:
            m = re.search(pattern, line)
            if m:
                yield f'{path}:{number}: "{m.group(0).strip()}" {why}'


def written(text):
    """How many lines somebody wrote: what doc/pages.py makes is no more to be split than what it is made from."""
    return len(MADE.sub("", text).split("\n")) - 1


def check_text(path, text):
    """Lines that say what is wrong with one file."""
    lines = text.split("\n")
    if not WITHOUT_LICENCE.search(path) and not any(LICENCE in line for line in lines[:LICENCE_LINES]):
        yield f'{path}: none of its first lines says "{LICENCE}"'
    if written(text) > LINES_MAX and not LONG_BY_NATURE.search(path):
        yield f"{path}: {written(text)} lines, {LINES_MAX} is the most: split it by noun"
    if text and not text.endswith("\n"):
        yield f"{path}: its last line does not end"
    if not LONG_BY_NATURE.search(path):
        yield from check_lines(path, lines)


def check_file(root, path):
    full = os.path.join(root, path)
    if BINARY.search(path):
        return
    try:
        with open(full, encoding="utf-8", newline="") as f:
            text = f.read()
    except UnicodeDecodeError:
        yield f"{path}: is no UTF-8"
        return
    if text.startswith("#!") and not os.access(full, os.X_OK):
        yield f"{path}: starts with #! but can't be run (chmod +x)"
    yield from check_text(path, text)


def main():
    if len(sys.argv) != 2:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    paths = list(files(sys.argv[1]))
    bad = [line for path in paths for line in check_file(sys.argv[1], path)]
    print("\n".join(bad + [f"{len(paths)} files, {len(bad)} things to mend"]))
    return 1 if bad or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
