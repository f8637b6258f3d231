#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""layout.py ROOT COMPILER...: doc/shm-layout.md says what shm/layout.h says: every size and offset in its tables, and
every field of the header that is not padding, has a row.
"""
import os
import re
import subprocess
import sys

STRUCT = re.compile(r"^### struct (\w+), (\d+) bytes$", re.M)
ROW = re.compile(r"^\| (\d+) \| (\d+) \| (\w+) \|", re.M)
PADDING = re.compile(r"^zero\d*$")


def rows(text):
    """[(struct, size, [(offset, size, field)])] of the page."""
    heads = list(STRUCT.finditer(text))
    for head, after in zip(heads, heads[1:] + [None]):
        part = text[head.end():after.start() if after else len(text)]
        yield head.group(1), int(head.group(2)), [(int(o), int(n), f) for o, n, f in ROW.findall(part)]


def fields(header, struct):
    """Names of the members of a struct in the header."""
    body = re.search(rf"^struct {struct} {{(.*?)^}};", header, re.M | re.S).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    return [re.match(r"(\w+)", name.strip()).group(1) for line in body.split(";") if line.strip()
            for name in re.sub(r"^\s*(struct\s+)?\w+\s+", "", line).split(",")]


def assertions(tables):
    """A C file that compiles only if the tables are right."""
    out = ['#include "shm/layout.h"']
    for struct, size, members in tables:
        out.append(f'static_assert(sizeof(struct {struct}) == {size}, "struct {struct}");')
        for offset, n, field in members:
            member = f"((struct {struct} *)0)->{field}"
            out.append(f'static_assert(offsetof(struct {struct}, {field}) == {offset}, "{struct}.{field}");')
            out.append(f'static_assert(sizeof({member}) == {n}, "{struct}.{field}");')
    return "\n".join(out) + "\n"


def missing(header, tables):
    """Structs and fields that the page does not have."""
    told = {struct: {f for _, _, f in members} for struct, _, members in tables}
    for struct in re.findall(r"^struct (\w+) {$", header, re.M):
        if struct == "block_key":
            continue  # four words, told as one field
        if struct not in told:
            yield f"struct {struct}"
            continue
        for field in fields(header, struct):
            if field not in told[struct] and not PADDING.match(field):
                yield f"struct {struct}, field {field}"


def main():
    root, compiler = sys.argv[1], sys.argv[2:]
    with open(os.path.join(root, "doc/shm-layout.md"), encoding="utf-8") as f:
        tables = list(rows(f.read()))
    with open(os.path.join(root, "shm/layout.h"), encoding="utf-8") as f:
        header = f.read()
    absent = list(missing(header, tables))
    print("\n".join(f"doc/shm-layout.md has no row for {what}" for what in absent))
    run = subprocess.run(compiler + ["-std=gnu17", "-fsyntax-only", f"-I{root}", "-x", "c", "-"],
                         input=assertions(tables), text=True, check=False)
    print(f"{len(tables)} structs, {sum(len(members) for _, _, members in tables)} fields compared")
    return 1 if absent or run.returncode or not tables else 0


if __name__ == "__main__":
    sys.exit(main())
