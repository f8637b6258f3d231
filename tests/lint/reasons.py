#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""reasons.py ROOT: doc/reasons.md has every reason of proto/reason.h with its number and the sentence of proto/reason.c,
and no other one."""
import os
import re
import sys

ROW = re.compile(r"^\| (\d+) \| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", re.M)
# Of these the page says why they are in no row.
APART = {"none", "max", "not_cached"}


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


def code(header, source):
    """{name: (number, help)}"""
    numbers = {n.lower(): int(v) for n, v in re.findall(r"^\tMISS_(\w+) = (\d+),", header, re.M)}
    helps = dict(re.findall(r'\{\s*"(\w+)",\s*"([^"]+)"\s*\}', source))
    return {n: (v, helps.get(n)) for n, v in numbers.items() if n not in APART}


def check(page, reasons):
    rows = {name: (int(number), meaning) for number, name, meaning, _ in ROW.findall(page)}
    for name in sorted(set(rows) | set(reasons)):
        if rows.get(name) != reasons.get(name):
            yield f"{name}: the page has {rows.get(name)}, the code {reasons.get(name)}"


def main():
    root = sys.argv[1]
    reasons = code(read(root, "proto/reason.h"), read(root, "proto/reason.c"))
    bad = list(check(read(root, "doc/reasons.md"), reasons))
    if len(reasons) < 15:
        bad.append("the code is not read right")
    print("\n".join(bad + [f"{len(reasons)} reasons, {len(bad)} differences"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
