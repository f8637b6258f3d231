# SPDX-License-Identifier: Apache-2.0
"""What tests of kvpoolctl against a daemon of the test's own share. sys.argv: KVPOOLCTL, KVPOOL.PROTO."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import schema
import wire
from fake_daemon import FakeDaemon

KVPOOLCTL, PROTO = sys.argv[1:3]
TYPES = wire.load(PROTO)
GIB = 1 << 30

STATUS = {
    "daemon": "0.1.0", "instance": "private", "domain": "default", "pid": 1187, "uptime_ns": 724 * 10**9,
    "ready": True, "epoch": 7, "pool_bytes": 8 * GIB, "pool_handed_bytes": 5 * GIB, "cached_bytes": 3 * GIB,
    "leased_bytes": GIB, "free_bytes": 2 * GIB, "blocks": 1204, "max_blocks": 1048576, "namespaces": 2, "clients": 3,
    "lookups": 200, "asked_tokens": 418000, "hit_tokens": 296780, "miss_tokens": 121220, "shared_tokens": 112776,
}


def namespace(number, model="tiny", **more):
    return {"ns": number, "model": model, "fingerprint": "%064x" % number, "block_tokens": 16,
            "block_bytes": 16 * 147456, "blocks": 2912, "asked_tokens": 100, "hit_tokens": 74, **more}


def client(session, name="worker", **more):
    return {"session": session, "name": name, "pid": os.getpid(), "uid": os.getuid(), "connected_ns": 41 * 60 * 10**9,
            "leased_bytes": GIB, "cached_bytes": 2 * GIB, "asked_tokens": 100, "hit_tokens": 81, "shared_tokens": 50,
            "state": "active", "namespace": "tiny", **more}


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="kvpool-test-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.path = os.path.join(self.dir, "admin.sock")

    def daemon(self, answer, **more):
        return FakeDaemon(TYPES, self.path, answer, **more)

    def ctl(self, *args, socket_path=None, **env):
        """Status, stdout and stderr of kvpoolctl."""
        clean = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **env}
        keep = {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
        run = subprocess.run([KVPOOLCTL, "--socket", socket_path or self.path, *args], capture_output=True,
                             text=True, env={**clean, **keep}, stdin=subprocess.DEVNULL, timeout=30, check=False)
        return run.returncode, run.stdout, run.stderr

    def json(self, *args):
        status, out, err = self.ctl(*args, "--json=short")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out.count("\n"), 1)
        document = json.loads(out)
        self.assertEqual(schema.check(document), [])
        return document

    def fails(self, status, text, *args, **more):
        """Failing says who, why and what next in one line, and prints nothing else."""
        got, out, err = self.ctl(*args, **more)
        self.assertEqual(got, status, err)
        self.assertEqual(out, "")
        self.assertTrue(err.startswith("kvpoolctl: "), err)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertIn(text, err)
