#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kvpoolctl against a real daemon with real clients: what it shows is what they did.

usage: test_kvpoolctl.py KVPOOLCTL KVPOOLD CTL_CLIENT
"""
import os
import signal
import subprocess
import sys
import time
import unittest

from ctl_real import BLOCK, KVPOOLCTL, MIB, TOKENS, Real, subprocess_of


class Ctl(Real):
    def test_empty(self):
        s = self.status()
        self.assertEqual((s["schema"], s["instance"], s["pid"]), ("kvpool.status/1", "private", self.daemon.pid))
        self.assertEqual((s["ready"], s["clients"], s["namespaces"], s["blocks"]), (True, 0, 0, 0))
        self.assertEqual(s["tiers"][0]["capacity_bytes"], 64 * MIB)
        self.assertEqual(s["health"], {"level": "ok", "codes": []})
        status, out, _ = self.ctl()
        self.assertEqual(status, 0)
        self.assertIn(f"pid {self.daemon.pid}   ready", out)
        self.assertIn("since start - of 0 tokens", out)
        self.assertEqual(self.ctl("clients"), (0, "0 clients.\n", ""))
        self.assertEqual(self.ctl("flush")[0], 0)

    def test_two_clients(self):
        writer, reader = self.client("writer"), self.client("reader")
        self.assertEqual(writer.do("publish 1 32"), 32)
        self.assertEqual(reader.do("acquire 1 32"), 32)
        self.assertEqual(reader.do("acquire 1 32"), 32)

        [ns] = self.json("namespaces")["namespaces"]
        self.assertEqual((ns["model"], ns["block_tokens"], ns["block_bytes"]), ("tiny", TOKENS, BLOCK))
        self.assertEqual((ns["blocks"], ns["cached_tokens"], ns["cached_bytes"]), (32, 32 * TOKENS, 32 * BLOCK))
        self.assertEqual((ns["leased_blocks"], len(ns["fingerprint"])), (32, 64))
        self.assertLess(ns["idle_seconds"], 60)

        clients = {c["name"]: c for c in self.json("clients")["clients"]}
        self.assertEqual(set(clients), {"writer", "reader"})
        self.assertEqual(clients["writer"]["pid"], writer.pid)
        self.assertEqual((clients["writer"]["uid"], clients["writer"]["namespace"]), (os.getuid(), "tiny"))
        self.assertEqual((clients["writer"]["cached_blocks"], clients["writer"]["cached_bytes"]), (32, 32 * BLOCK))
        got = clients["reader"]
        self.assertEqual((got["leases"], got["leased_bytes"]), (1, 32 * BLOCK))
        self.assertEqual((got["lookup_tokens"], got["hit_tokens"], got["cross_client_hit_tokens"]),
                         (2 * (32 * TOKENS + 1), 2 * 32 * TOKENS, 2 * 32 * TOKENS))

        s = self.status()
        self.assertEqual((s["clients"], s["namespaces"], s["blocks"]), (2, 1, 32))
        self.assertEqual(s["tiers"][0]["states"]["leased"], 32 * BLOCK)
        self.assertEqual(s["counters"]["published_blocks"], 32)
        self.assertEqual(self.ctl("clients")[1].count("\n"), 4)

    def test_writing(self):
        writer = self.client("writer")
        self.assertEqual(writer.do("reserve 1 8"), 8)
        self.assertEqual(self.status()["tiers"][0]["states"]["writing"], 8 * BLOCK)
        self.assertEqual(self.json("clients")["clients"][0]["writing_blocks"], 8)
        self.assertEqual(self.json("flush")["voided_blocks"], 8)

    def test_flush_of_what_is_read(self):
        writer, reader = self.client("writer"), self.client("reader")
        self.assertEqual(writer.do("publish 1 16"), 16)
        self.assertEqual(writer.do("publish 2 16"), 16)
        self.assertEqual(reader.do("acquire 1 16"), 16)
        dry = self.json("flush", "--dry-run", status=5)
        self.assertEqual((dry["freed_blocks"], dry["kept_blocks"]), (16, 16))
        self.assertEqual(self.status()["blocks"], 32)
        done = self.json("flush", status=5)
        self.assertEqual((done["freed_blocks"], done["freed_bytes"], done["kept_blocks"]), (16, 16 * BLOCK, 16))
        self.assertEqual(self.status()["blocks"], 0)
        self.assertEqual(self.status()["tiers"][0]["states"]["doomed"], 16 * BLOCK)
        self.assertEqual(writer.do("acquire 1 16"), 0)
        reader.do("release")
        self.until(lambda: self.status()["tiers"][0]["states"]["doomed"] == 0)
        self.assertEqual(self.json("flush")["freed_blocks"], 0)

    def test_flush_of_one(self):
        one, two = self.client("one", "m-one"), self.client("two", "m-two")
        fingerprint = {n["model"]: n["fingerprint"] for n in self.json("namespaces")["namespaces"]}
        number = {n["model"]: n["namespace"] for n in self.json("namespaces")["namespaces"]}
        for name in ("m-one", fingerprint["m-one"][:12], str(number["m-one"])):
            self.assertEqual((one.do("publish 1 4"), two.do("publish 1 4")), (4, 4))
            self.assertEqual(self.ctl("flush", "--namespace", name)[:2],
                             (0, "dropped 4 blocks (64.0 KiB) of 1 namespace\n"), name)
            self.assertEqual({n["model"]: n["blocks"] for n in self.json("namespaces")["namespaces"]},
                             {"m-one": 0, "m-two": 4})
            self.assertEqual(self.json("flush", "--namespace", "m-two")["freed_blocks"], 4)
        status, out, err = self.ctl("flush", "--namespace", "m-three")
        self.assertEqual((status, out), (4, ""))
        self.assertIn("refused flush of m-three: no namespace has", err)

    def test_many_of_each(self):
        c = self.client("many")
        for i in range(70):
            c.do(f"open model-{i} {BLOCK}")
        c.do("connect 60")
        self.assertEqual(len(self.json("clients")["clients"]), 61)
        models = {n["model"] for n in self.json("namespaces")["namespaces"]}
        self.assertTrue({f"model-{i}" for i in range(70)} <= models, models)

    def test_death_of_a_client(self):
        writer = self.client("writer")
        self.assertEqual(writer.do("publish 1 8"), 8)
        self.assertEqual(writer.do("acquire 1 8"), 8)
        self.assertEqual(writer.end(signal.SIGKILL), -signal.SIGKILL)
        self.until(lambda: self.status()["tiers"][0]["states"]["leased"] == 0)
        s = self.status()
        self.assertEqual((s["clients"], s["draining_clients"], s["blocks"]), (0, 0, 8))
        self.assertEqual(s["counters"]["ended_crash"], 1)

    def test_end_of_a_client(self):
        self.assertEqual(self.client("writer").end(), 0)
        self.until(lambda: self.status()["counters"]["ended_clean"] == 1)
        self.assertEqual(self.json("clients")["clients"], [])

    def test_ping_and_version(self):
        self.assertEqual(self.json("ping")["schema"], "kvpool.ping/1")
        self.assertRegex(self.ctl("ping")[1], r"answered in [0-9.]+ ms")
        version = self.json("version")
        self.assertEqual(version["kvpoold"], version["kvpoolctl"])
        self.assertEqual(self.ctl("version")[0], 0)

    def test_environment(self):
        env = {**os.environ, "KVPOOL_SOCKET": self.socket}
        run = subprocess.run([KVPOOLCTL, "ping", "-q"], env=env, timeout=30, check=False)
        self.assertEqual(run.returncode, 0)

    def test_daemon_is_gone(self):
        self.assertEqual(self.stop(), 0)
        status, out, err = self.ctl()
        self.assertEqual((status, out), (3, ""))
        self.assertIn("cannot reach kvpoold at ", err)

    def test_not_the_socket_of_clients(self):
        """The socket of clients answers, but not this: said plainly."""
        alone = os.path.join(self.dir, "alone.sock")
        os.rename(self.socket, alone)
        status, out, err = subprocess_of(KVPOOLCTL, "--socket", alone)
        self.assertNotEqual(status, 0)
        self.assertEqual(out, "")
        self.assertTrue(err.startswith("kvpoolctl: kvpoold at "), err)

    def test_how_long_it_takes(self):
        """Nothing is judged here; the number is for people."""
        times = []
        for _ in range(20):
            start = time.monotonic()
            self.assertEqual(self.ctl("status")[0], 0)
            times.append(time.monotonic() - start)
        print(f"kvpoolctl status: {1000 * min(times):.1f} ms at best, {1000 * sorted(times)[10]:.1f} ms median")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
