#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ctlpage.py ROOT KVPOOLCTL PAGE: kvpoolctl(1), in scdoc's format, says what the program and its headers say: commands,
options, columns, exit codes, reasons of misses, schemas, findings of health, states of bytes; all of them, no others.
"""
import os
import re
import subprocess
import sys

ROOT, KVPOOLCTL, PAGE = sys.argv[1:4]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def run(*args):
    return subprocess.run([KVPOOLCTL, *args], capture_output=True, text=True, check=True).stdout


def section(page, title):
    m = re.search(rf"^# {title}\n(.*?)(?=^# |\Z)", page, re.M | re.S)
    return m.group(1).replace("\\", "") if m else ""


def block(text, title):
    """The indented lines below a title of the help."""
    m = re.search(rf"^{re.escape(title)}.*?:\n((?:  .*\n)+)", text, re.M)
    return m.group(1) if m else ""


def help_commands(text):
    return {name for group in ("Look", "Understand", "Control", "Run")
            for name in re.findall(r"^  ([a-z-]+) ", block(text, group), re.M)}


def help_options(text):
    return set(re.findall(r"--[a-z-]+|(?<=^  )-[a-z]$", re.sub(r"  +[A-Z].*", "", block(text, "Options")), re.M))


def compare(what, code, page):
    """A line for each name that only one of them has. Nothing at all on either side is an error of this check."""
    if not code or not page:
        yield f"{what}: none found, {len(code)} in the code and {len(page)} in the page"
    for name in sorted(code - page):
        yield f"{what}: the page does not have {name}"
    for name in sorted(page - code):
        yield f"{what}: only the page has {name}"


def check(page):
    whole = run("--help")
    verbs = help_commands(whole)
    helps = {v: run(v, "--help") for v in verbs}
    commands = section(page, "COMMANDS")
    yield from compare("commands", verbs, set(re.findall(r"^\*([a-z-]+)\* ", commands, re.M)))
    for v, text in helps.items():
        args = re.match(rf"kvpoolctl \[OPTIONS\] {v} ?(.*)\n", text).group(1)
        if f"*{v}* {args}\n" not in commands:
            yield f"arguments: the page does not say that {v} takes {args!r}"
    options = {o for text in [whole, *helps.values()] for o in help_options(text)}
    named = set(re.findall(r"\*(--?[a-z-]+)\*", "".join(
        line for line in section(page, "OPTIONS").splitlines(True) if line.startswith("*-"))))
    yield from compare("options", options, named - {"-h", "-q", "-o", "-l", "-n"})
    for v, text in helps.items():
        columns = set(re.findall(r"^  [ *] (\S+) ", block(text, "Columns"), re.M))
        m = re.search(rf"^## {v}\n(.*?)(?=^## |\Z)", section(page, "COLUMNS"), re.M | re.S)
        if columns or m:
            yield from compare(f"columns of {v}", columns, set(re.findall(r"\*(\S+)\*", m.group(1) if m else "")))
    codes = set(re.findall(r"EXIT_\w+ = (\d+)", read("tools/kvpoolctl/exit.h")))
    yield from compare("exit codes", codes, set(re.findall(r"\*(\d+)\*", section(page, "EXIT STATUS"))))
    yield from compare("exit codes of --help", codes, set(re.findall(r"^ +(\d+) ", block(whole, "Exit status"), re.M)))
    reasons = {n.lower() for n in re.findall(r"MISS_(\w+) = \d+,", read("proto/reason.h"))} - {"none", "max"}
    yield from compare("reasons", reasons, set(re.findall(r"\*(\w+)\*", section(page, "REASONS").split("|[", 1)[1])))
    schemas = {re.sub(r"\.(\d+)\.json$", r"/\1", name) for name in os.listdir(os.path.join(ROOT, "doc/schemas"))}
    yield from compare("schemas", schemas, set(re.findall(r"\*(kvpool\.[\w.-]+/\d+)\*", section(page, "JSON"))))
    findings = set(re.findall(r'^\t\{ "(\w+)", HEALTH_', read("tools/kvpoolctl/health.c"), re.M))
    yield from compare("findings of health", findings, set(re.findall(r"\*(\w+)\*\n", section(page, "HEALTH"))))
    states = set(re.findall(r'^\t\t\{ "(\w+)", s->\w+bytes', read("tools/kvpoolctl/status.c"), re.M))
    yield from compare("states of bytes", states, set(re.findall(r"\*(\w+)\*\n", section(page, "STATES"))))


def main():
    with open(PAGE, encoding="utf-8") as f:
        bad = list(check(f.read()))
    print("\n".join(bad + [f"{len(bad)} differences"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
