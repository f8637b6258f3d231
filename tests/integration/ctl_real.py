# SPDX-License-Identifier: Apache-2.0
"""What tests of kvpoolctl against a real daemon share. sys.argv: KVPOOLCTL, KVPOOLD, CTL_CLIENT."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import schema

KVPOOLCTL, KVPOOLD, CLIENT = sys.argv[1:4]
BLOCK, TOKENS = 16384, 4  # bytes and tokens of a block (pattern.h)
MIB = 1 << 20


class Client:
    """A ctl_client that does what it is told."""

    def __init__(self, socket, name):
        self.run = subprocess.Popen([CLIENT, socket, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.run.pid

    def do(self, command):
        self.run.stdin.write(command + "\n")
        self.run.stdin.flush()
        answer = self.run.stdout.readline()
        if not answer:
            raise AssertionError(f"the client ended at: {command}")
        return int(answer)

    def end(self, sig=None):
        if self.run.poll() is None and sig:
            self.run.send_signal(sig)
        self.run.stdin.close()
        self.run.stdout.close()
        return self.run.wait(20)


class Real(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="kvpool-test-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.socket = os.path.join(self.dir, "kvpool.sock")
        ready, child = os.pipe()
        self.daemon = subprocess.Popen([KVPOOLD, "--socket", self.socket, "--pool-size", "64M", "--max-blocks", "4096",
                                        "--log-level", "warning", "--ready-fd", str(child)], pass_fds=[child])
        os.close(child)
        self.addCleanup(self.stop)
        self.assertEqual(os.read(ready, 1), b"\n", "the daemon did not become ready")
        os.close(ready)

    def stop(self):
        if self.daemon.poll() is None:
            self.daemon.terminate()
        return self.daemon.wait(20)

    def client(self, name, model="tiny"):
        c = Client(self.socket, name)
        self.addCleanup(c.end, signal.SIGKILL)
        c.do(f"open {model} {BLOCK}")
        return c

    def ctl(self, *args):
        run = subprocess.run([KVPOOLCTL, "--socket", self.socket, *args], capture_output=True, text=True,
                             stdin=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C.UTF-8"}, timeout=30, check=False)
        return run.returncode, run.stdout, run.stderr

    def json(self, *args, status=0):
        got, out, err = self.ctl(*args, "--json")
        self.assertEqual(got, status, err)
        document = json.loads(out)
        self.assertEqual(schema.check(document), [])
        return document

    def status(self):
        """The status; its numbers must add up every time that somebody looks."""
        s = self.json("status")
        tier, since = s["tiers"][0], s["counters"]
        self.assertEqual(sum(tier["states"].values()), tier["capacity_bytes"] + tier["excess_bytes"], tier)
        self.assertEqual(since["lookup_tokens"], since["hit_tokens"] + since["miss_tokens"])
        return s

    def until(self, condition):
        """Waits for what the daemon does in its own time."""
        for _ in range(1000):
            if condition():
                return
            time.sleep(0.02)
        self.fail("it never came true")


def subprocess_of(*command):
    run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return run.returncode, run.stdout, run.stderr
