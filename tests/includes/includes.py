#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""includes.py ROOT: reads every #include of the tree and fails on one that the folder rules do not allow.

The rules are the table below; doc/architecture.md shows them. Paths are written from the root of the tree, so that a
line tells which folder it reaches for.
"""
import os
import re
import sys

# Folder -> folders that its files may include from, beside itself.
ALLOWED = {
    "base": set(),
    "shm": {"base"},
    "proto": {"base"},
    "policy": {"base"},
    "kernels": {"base"},
    "daemon": {"base", "shm", "proto", "policy", "kernels"},
    "client": {"base", "shm", "proto", "kernels"},
    "client/llama": {"base", "shm", "proto", "kernels"},
    "tools": {"base", "shm", "proto", "policy", "client", "client/llama", "kernels"},
    "examples": set(),
    "tests": None,  # anything
}
# Single files of other folders that a folder may include.
PUBLIC = {
    "client/llama": {"client/kvpool.h"},
}
# Headers as they are installed: for programs that stand outside of the tree.
INSTALLED = {"kvpool.h": "client/kvpool.h", "kvpool-hint.h": "client/kvpool-hint.h",
             "kvpool-seq.h": "client/kvpool-seq.h",
             "kvpool-llama.h": "client/llama/kvpool-llama.h"}
INSTALLED_USERS = {"client/llama", "examples", "tests"}

NOT_C = {"tests/models"}  # Promela is preprocessed too

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include\b[ \t]*(.*?)[ \t]*$', re.M)
TARGET = re.compile(r'^(["<])([^">]+)[">]')


def sources(root):
    for folder, dirs, files in os.walk(root):
        dirs[:] = sorted(d for d in dirs if not d.startswith(".") and d != "__pycache__" and
                         os.path.relpath(os.path.join(folder, d), root) not in NOT_C and
                         not os.path.isdir(os.path.join(folder, d, "meson-private")))
        for name in sorted(files):
            if name.endswith((".c", ".h", ".S", ".cu")):
                yield os.path.relpath(os.path.join(folder, name), root)


def folder_of(path):
    """The row of the table that a file belongs to, or None."""
    parts = os.path.dirname(path).split("/")
    for n in range(len(parts), 0, -1):
        name = "/".join(parts[:n])
        if name in ALLOWED:
            return name
    return None


def exists(root, path):
    """A file of the tree, or one that the build makes of a file of the tree."""
    if os.path.isfile(os.path.join(root, path)):
        return True
    return path.endswith(".pb-c.h") and os.path.isfile(os.path.join(root, path[:-len(".pb-c.h")] + ".proto"))


def check_quoted(root, source, target):
    """What is wrong with #include "target" in source, or None."""
    here = folder_of(source)
    if target.startswith(("/", "./")) or ".." in target.split("/"):
        return "is not written from the root of the tree"
    if not exists(root, target):
        return "is no file of the tree (write it from the root; <> for what others install)"
    there = folder_of(target)
    if there is None:
        return f"lies in a folder without a row in {os.path.basename(__file__)}"
    if there == here or ALLOWED[here] is None or there in ALLOWED[here] or target in PUBLIC.get(here, ()):
        return None
    return f"crosses from {here}/ to {there}/"


def check_installed(source, target):
    """The same for a header by the name that it is installed under, in quotes or not."""
    if folder_of(source) in INSTALLED_USERS or source in INSTALLED.values():
        return None
    return f'is the installed name of "{INSTALLED[target]}"'


def check_angled(root, target):
    """The same for #include <target>."""
    if "/" in target and target.split("/")[0] in ALLOWED and exists(root, target):
        return "is a file of the tree: write it with quotes"
    return None


def check_file(root, source):
    """Lines that say what is wrong with one file."""
    if folder_of(source) is None:
        yield f"{source}: lies in a folder without a row in {os.path.basename(__file__)}"
        return
    with open(os.path.join(root, source), encoding="utf-8") as f:
        text = f.read()
    for m in INCLUDE.finditer(text):
        line = text.count("\n", 0, m.start()) + 1
        target = TARGET.match(m.group(1))
        if not target:
            yield f"{source}:{line}: #include of {m.group(1) or 'nothing'} can't be followed"
            continue
        if target.group(2) in INSTALLED:
            why = check_installed(source, target.group(2))
        elif target.group(1) == '"':
            why = check_quoted(root, source, target.group(2))
        else:
            why = check_angled(root, target.group(2))
        if why:
            yield f"{source}:{line}: {m.group(1)} {why}"


def check_tree(root):
    return [line for source in sources(root) for line in check_file(root, source)]


def main():
    if len(sys.argv) != 2:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    files = list(sources(sys.argv[1]))
    bad = check_tree(sys.argv[1])
    print("\n".join(bad + [f"{len(files)} files, {len(bad)} includes against the rules"]))
    return 1 if bad or not files else 0


if __name__ == "__main__":
    sys.exit(main())
