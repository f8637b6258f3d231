# SPDX-License-Identifier: Apache-2.0
"""A daemon of a test's own, and what the tests of this folder have in common."""
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

WAIT = 30
BLOCK_TOKENS, BLOCK_BYTES = 16, 4096
SHAPE = {"model": "second", "weights": hashlib.sha256(b"weights").digest(), "type_k": "f16", "type_v": "f16", "layers": 1,
         "kv_heads": 1, "head_dim_k": 64, "head_dim_v": 64, "layout": "k v", "block_tokens": BLOCK_TOKENS,
         "block_bytes": BLOCK_BYTES, "engine": "second-1"}


class Daemon:
    """One that is ready, and stops with stop()."""

    def __init__(self, kvpoold, *args):
        self.folder = tempfile.mkdtemp(prefix="kvpool-second-")
        self.path = os.path.join(self.folder, "s")
        self.admin = self.path + ".admin"
        read, write = os.pipe()
        self.process = subprocess.Popen([kvpoold, "--socket", self.path, "--log-level", "warning", "--ready-fd", str(write),
                                         *args], pass_fds=(write,))
        os.close(write)
        ready = os.read(read, 1)
        os.close(read)
        if ready != b"\n":
            self.stop()
            raise AssertionError("kvpoold does not start")

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(timeout=WAIT)
        shutil.rmtree(self.folder)


class Case(unittest.TestCase):
    """One daemon for all tests of the class; each has a namespace of its own by its name."""

    kvpoold = None
    args = ("--pool-size", "64M", "--max-blocks", "4096")

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(cls.kvpoold, *cls.args)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()

    def shape(self, **more):
        return SHAPE | {"model": self.id().rsplit(".", 1)[1]} | more


def content(seed, i, size=BLOCK_BYTES):
    """The bytes of block i of something: every client of these tests can make them."""
    return bytes((seed * 131 + i * 17 + j * 7) & 255 for j in range(256)) * (size // 256)


def skip_unless_able():
    """Exit status 77 where this interpreter is not enough."""
    import mmap
    import socket
    lacks = [name for what, name in ((mmap, "MADV_DONTDUMP"), (mmap, "MADV_DONTFORK"), (socket, "SOCK_SEQPACKET"))
             if not hasattr(what, name)]
    if sys.version_info < (3, 10):
        lacks.append("Python 3.10")
    if sys.byteorder != "little":
        lacks.append("a little-endian machine")
    if lacks:
        print("skipped: this machine lacks " + ", ".join(lacks))
        sys.exit(77)
