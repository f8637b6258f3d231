#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_symbols.py HEADER,... LIBRARY SANITIZED COMPILER...: what the library exports is what its
headers declare, it needs no library but those it may, resolves all symbols when it is loaded, and its
headers compile alone as C99 and as C++.
"""
import re
import shutil
import subprocess
import sys

NEEDED = {"libc.so.6", "libcrypto.so.3", "libprotobuf-c.so.1"}
VERSION = "KVPOOL_0.1"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]


def run(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def declared(header):
    """Functions of the header: names before a parenthesis, outside comments and macros."""
    text = re.sub(r"/\*.*?\*/", "", open(header, encoding="utf-8").read(), flags=re.S)
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    return set(re.findall(r"\b(kvpool_\w+)\s*\(", text))


def exported(library):
    """Defined dynamic symbols without their version, and the versions."""
    names, versions = set(), set()
    for line in run("nm", "-D", "--defined-only", library).stdout.splitlines():
        _, kind, name = line.split()
        name, _, version = name.partition("@@")
        if kind == "A":
            versions.add(name)
        else:
            names.add(name)
            versions.add(version)
    return names, versions


def check_symbols(headers, library):
    want, (have, versions) = set(), exported(library)
    for header in headers:
        functions = declared(header)
        if not functions:
            yield f"{header}: declares nothing that this test understands"
        want |= functions
    for name in sorted(want - have):
        yield f"{name} is declared and not exported"
    for name in sorted(have - want):
        yield f"{name} is exported and not declared"
    if versions != {VERSION}:
        yield f"versions are {sorted(versions)}, expected only {VERSION}"


def check_dynamic(library, sanitized):
    text = run("readelf", "-d", library).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))
    if not sanitized and needed != NEEDED:
        yield f"needs {sorted(needed)}, expected {sorted(NEEDED)}"
    if "BIND_NOW" not in text:
        yield "does not resolve its symbols when it is loaded: a first call would do it"


def check_language(header, command):
    source = f'#include "{header}"\n#include "{header}"\n'
    result = run(*command, *WARNINGS, "-", text=source)
    if result.returncode:
        yield f"{' '.join(command)}: the header does not compile alone\n{result.stderr}"


def main():
    headers, library, sanitized = sys.argv[1].split(","), sys.argv[2], sys.argv[3] != "none"
    compiler = sys.argv[4:]
    cxx = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    wrong = list(check_symbols(headers, library)) + list(check_dynamic(library, sanitized))
    for header in headers:
        wrong += check_language(header, compiler + ["-x", "c", "-std=c99"])
        if cxx:
            wrong += check_language(header, [cxx, "-x", "c++", "-std=c++11"])
    for line in wrong:
        print(line)
    if not wrong and not cxx:
        print("skipped: there is no C++ compiler for the header; the rest is as it should be")
        return 77
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
