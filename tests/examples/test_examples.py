#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_examples.py SOURCE BUILD KVPOOLD SANITIZE CC...: installs the build into a folder, compiles each program of
examples/ with what pkg-config says of it and the installed header alone, and runs it beside a daemon of its own. The
header must do for C99 without extensions and for C++ as well.
"""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD, KVPOOLD, SANITIZE = sys.argv[1:5]
CC = sys.argv[5:]
EXAMPLES = os.path.join(SOURCE, "examples")
LINES_MAX = 150
FLAGS = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-missing-field-initializers", "-O1", "-g"]
if SANITIZE != "none":
    FLAGS += [f"-fsanitize={SANITIZE}", "-Wno-error"]
# Beside kvpool, from the system.
NEEDS = {"async_sdevent": ["libsystemd"], "async_uv": ["libuv"]}
OPTIONS = {"threads": ["-pthread"]}

ROOT = tempfile.mkdtemp(prefix="kvpool-examples-")


def run(*command, **options):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


def setUpModule():
    run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", ROOT)


def tearDownModule():
    shutil.rmtree(ROOT)


def installed(name):
    """The one file of that name below ROOT."""
    found = glob.glob(os.path.join(ROOT, "**", name), recursive=True)
    assert len(found) == 1, f"{name}: {found}"
    return found[0]


def kvpool_flags():
    env = dict(os.environ, PKG_CONFIG_SYSROOT_DIR=ROOT, PKG_CONFIG_LIBDIR=os.path.dirname(installed("kvpool.pc")),
               PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1", PKG_CONFIG_ALLOW_SYSTEM_LIBS="1")
    return run("pkg-config", "--cflags", "--libs", "kvpool", env=env).split()


def build(name):
    """Compiles an example far from the source tree. Returns the program."""
    program = os.path.join(ROOT, name)
    source = shutil.copy(os.path.join(EXAMPLES, name + ".c"), ROOT)
    flags = kvpool_flags()
    for package in NEEDS.get(name, []):
        flags += run("pkg-config", "--cflags", "--libs", package).split()
    run(*CC, *FLAGS, *OPTIONS.get(name, []), source, *flags, "-o", program, cwd=ROOT)
    return program


class Example(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="kvpool-examples-")
        self.socket = os.path.join(self.dir, "kvpool.sock")
        self.env = dict(os.environ, KVPOOL_SOCKET=self.socket,
                        LD_LIBRARY_PATH=os.path.dirname(os.path.realpath(installed("libkvpool.so"))))
        self.daemon = None

    def tearDown(self):
        self.stop()
        shutil.rmtree(self.dir)

    def start(self):
        self.daemon = subprocess.Popen([KVPOOLD, "--socket", self.socket, "--pool-size", "64M", "--max-blocks", "4096"],
                                       stderr=subprocess.PIPE, text=True)
        for line in self.daemon.stderr:
            if "ready" in line:
                return
        self.fail("kvpoold did not start")

    def stop(self, sig=signal.SIGTERM):
        if self.daemon:
            self.daemon.send_signal(sig)
            self.daemon.communicate()
        self.daemon = None

    def output(self, program, *args):
        return run(program, *args, env=self.env)

    def test_minimal(self):
        program = build("minimal")
        out = self.output(program)
        self.assertIn("0 of 133 tokens are cached: no_daemon\n", out)
        self.assertIn("nothing was stored: cannot reach kvpoold", out)
        self.start()
        out = self.output(program)
        self.assertIn("0 of 133 tokens are cached: not_cached\n", out)
        self.assertIn("computing block 7\n", out)
        self.assertIn("stored 8 blocks\n", out)
        self.assertEqual(self.output(program), "128 of 133 tokens are cached: partial_block\nstored 0 blocks\n")

    def test_async_poll(self):
        program = build("async_poll")
        self.assertEqual(self.output(program), "stored 0 blocks of 8 requests\n")
        self.start()
        self.assertEqual(self.output(program), "stored 32 blocks of 8 requests\n")
        self.assertEqual(self.output(program), "stored 0 blocks of 8 requests\n")

    def test_async_sdevent(self):
        program = build("async_sdevent")
        self.assertRegex(self.output(program), r"^could not ask: -\d+: cannot reach kvpoold at .*\n$")
        self.start()
        self.assertEqual(self.output(program), "blocks stored: 4\n")
        self.assertEqual(self.output(program), "blocks stored: 0\n")

    def test_async_uv(self):
        """The daemon dies under it, and comes back with nothing in it."""
        self.start()
        with subprocess.Popen([build("async_uv")], env=self.env, stdout=subprocess.PIPE, text=True) as p:
            self.assertEqual([p.stdout.readline() for _ in range(2)], ["stored\n", "cached\n"])
            self.stop(signal.SIGKILL)
            self.assertEqual(p.stdout.readline(), "no daemon\n")
            self.start()
            self.assertEqual([p.stdout.readline() for _ in range(2)], ["stored\n", "cached\n"])
            p.terminate()
        self.assertEqual(self.output(os.path.join(ROOT, "async_uv"), "3"), "cached\n")

    def test_threads(self):
        program = build("threads")
        self.start()
        self.assertEqual(self.output(program), "8 threads used 2048 tokens, and computed 16 blocks\n")
        self.assertEqual(self.output(program), "8 threads used 2048 tokens, and computed 0 blocks\n")

    def test_seq(self):
        program = build("seq")
        out = self.output(program)
        self.assertIn("0 tokens of the prompt are cached: no_daemon\n", out)
        self.assertIn("not in the pool: cannot reach kvpoold", out)
        self.start()
        self.assertEqual(self.output(program), "0 tokens of the prompt are cached: not_cached\n"
                         "stored 4 + 3 + 3 blocks: right\n")
        self.assertEqual(self.output(program), "64 tokens of the prompt are cached: partial_block\n"
                         "stored 0 + 0 + 0 blocks: right\n")

    def test_all_are_here(self):
        names = {os.path.basename(p)[:-2] for p in glob.glob(os.path.join(EXAMPLES, "*.c"))}
        self.assertEqual(names, {m[len("test_"):] for m in dir(self) if m.startswith("test_")} & names)
        for name in names:
            with open(os.path.join(EXAMPLES, name + ".c"), encoding="utf-8") as f:
                text = f.read()
            self.assertLess(text.count("\n"), LINES_MAX, name)
            self.assertFalse(re.findall(r'#include "', text), name)

    def test_header(self):
        """As others include it: no extensions, no warnings."""
        flags = [f for f in kvpool_flags() if f.startswith("-I")] + ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        run(*CC, "-std=c99", *flags, "-fsyntax-only", "-x", "c", "-", input="#include <kvpool.h>\n")
        cxx = shutil.which("c++")
        if cxx:
            run(cxx, "-std=c++11", *flags, "-fsyntax-only", "-x", "c++", "-", input="#include <kvpool.h>\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
