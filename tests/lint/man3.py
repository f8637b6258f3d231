#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""man3.py ROOT MAP HEADER=PAGE,PAGE...: each group of a public header has a page that is built, each function of the library
is told on one, and libkvpool(3) names them all.
"""
import importlib.util
import os
import re
import sys


def load(root):
    spec = importlib.util.spec_from_file_location("man3", os.path.join(root, "doc/man3.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def check_header(man3, root, header, built, overview):
    found, where = man3.pages(os.path.join(root, header))
    for name in sorted(set(found) - set(built)):
        yield f"{header}: the page {name} is not in doc/meson.build"
    for name in sorted(set(built) - set(found)):
        yield f"{header}: no group makes the page {name}"
    for name, group in found.items():
        if not re.search(rf"\*{name}\*\(3\)".replace("_", r"\\?_"), overview):
            yield f"doc/libkvpool.3.scd does not name {name}(3)"
        text = man3.page(header, name, group)
        for function in man3.functions(group):
            if function.replace("_", "\\_") not in text:
                yield f"{name}(3) does not tell of {function}"
    print(f"{header}: {len(found)} pages, {len(where)} functions")


def main():
    root, symbols = sys.argv[1:3]
    man3, overview = load(root), read(os.path.join(root, "doc/libkvpool.3.scd"))
    bad, told = [], set()
    for argument in sys.argv[3:]:
        header, built = argument.split("=")
        bad += check_header(man3, root, header, built.split(","), overview)
        told |= set(man3.pages(os.path.join(root, header))[1])
    exported = set(re.findall(r"^\t(\w+);$", read(symbols), re.M))
    bad += [f"no page tells of {name}, which the library has" for name in sorted(exported - told)]
    print("\n".join(bad))
    return 1 if bad or not exported else 0


if __name__ == "__main__":
    sys.exit(main())
