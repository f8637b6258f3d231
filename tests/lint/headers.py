#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""headers.py ROOT BUILD [-IDIR]... COMPILER...: every header must compile alone, so that no file depends on the order of
its includes. A header that needs another project's headers (llama.h) is left out, by name, where those are not there.
"""
import concurrent.futures
import os
import re
import subprocess
import sys

FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter",
         "-Wno-unused-function", "-Wno-unused-const-variable", "-fsyntax-only", "-x", "c"]
# Parts of a .c file that is made of several: each says what must be defined before it.
TEMPLATES = {"kernels/fold.h", "kernels/lanes.h", "kernels/words.h", "kernels/x86.h"}
NOT_C = {"tests/models"}  # Promela is preprocessed too
FOREIGN = re.compile(r"fatal error: (llama|ggml)[^:]*\.h: No such file")


def headers(root):
    for folder, dirs, names in os.walk(root):
        dirs[:] = sorted(d for d in dirs if not d.startswith(".") and
                         os.path.relpath(os.path.join(folder, d), root) not in NOT_C and
                         not os.path.isdir(os.path.join(folder, d, "meson-private")))
        for name in sorted(names):
            if name.endswith(".h"):
                yield os.path.relpath(os.path.join(folder, name), root)


def compile_alone(command, header):
    """Returns the compiler's status and what it said. The second inclusion shows that the guard works."""
    text = f'#include "{header}"\n#include "{header}"\n'
    run = subprocess.run(command + ["-"], input=text, capture_output=True, text=True, check=False)
    return run.returncode, run.stderr


def main():
    if len(sys.argv) < 4:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    root, build = sys.argv[1:3]
    includes = [a for a in sys.argv[3:] if a.startswith("-I")]
    compiler = [a for a in sys.argv[3:] if not a.startswith("-I")]
    # Public headers name each other as they are installed.
    command = compiler + FLAGS + [f"-I{root}", f"-I{build}", f"-I{root}/client"] + includes
    paths = [path for path in headers(root) if path not in TEMPLATES]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda h: compile_alone(command, h), paths))
    bad = 0
    for path, (status, said) in zip(paths, results):
        if status and FOREIGN.search(said) and not includes:
            print(f"{path}: left out, {FOREIGN.search(said).group(1)}.h is not there")
        elif status:
            bad += 1
            print(f"{path}: does not compile alone\n{said}")
    print(f"{len(paths)} headers, {bad} that do not compile alone")
    return 1 if bad or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
