#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kvpoolctl steers a real daemon with real clients: pins, sizes, the configuration, kicks, and why lookups missed.

usage: test_kvpoolctl_steer.py KVPOOLCTL KVPOOLD CTL_CLIENT
"""
import os
import re
import subprocess
import sys
import time
import unittest

from ctl_real import BLOCK, KVPOOLCTL, KVPOOLD, MIB, TOKENS, Real, subprocess_of


class Steer(Real):
    def one(self, what, *args):
        [got] = self.json(what, *args)[{"explain": "lookups"}.get(what, what)]
        return got

    def prefix(self):
        """The id of the only prefix that was looked up."""
        return self.one("prefixes")["id"]

    def cached(self):
        w = self.client("writer")
        self.assertEqual(w.do("publish 1 16"), 16)
        self.assertEqual(w.do("acquire 1 16"), 16)
        w.do("release")
        return w

    def test_pin(self):
        w = self.cached()
        done = self.json("pin", self.prefix(), "--label", "sys", "--ttl", "1h")
        self.assertEqual((done["tokens"], done["bytes"]), (16 * TOKENS, 16 * BLOCK))
        pins = self.json("pins")
        self.assertEqual((pins["used_bytes"], pins["pins"][0]["label"]), (16 * BLOCK, "sys"))
        self.assertTrue(3590 < pins["pins"][0]["left_seconds"] <= 3600)
        self.assertEqual(self.json("show", "sys")["kind"], "pin")
        self.assertTrue(self.one("prefixes")["pinned"])
        # Three pools' worth of others do not drive it out.
        for chain in range(2, 2 + 3 * 64 * MIB // (1000 * BLOCK)):
            self.assertEqual(w.do(f"publish {chain} 1000"), 1000)
        self.assertEqual(w.do("acquire 1 16"), 16)
        w.do("release")
        self.assertEqual(self.json("unpin", "sys")["pins"], 1)
        self.assertEqual(self.json("pins")["pins"], [])
        self.assertEqual(self.ctl("unpin", "sys")[0], 4)
        self.assertEqual(self.ctl("pin", "ffffffffff")[0], 4)

    def test_pins_have_a_budget(self):
        w = self.client("writer")
        self.assertEqual(w.do("publish 1 1000"), 1000)
        self.assertEqual(w.do("acquire 1 1000"), 1000)
        got = self.json("pin", self.prefix(), status=5)
        self.assertEqual(got["why"], "budget")
        self.assertLess(got["tokens"], got["asked_tokens"])
        self.assertLessEqual(got["used_bytes"], got["budget_bytes"])
        self.assertEqual(self.json("unpin", "--all")["pins"], 1)

    def test_explain_and_pin_tokens(self):
        w = self.client("writer")
        path = os.path.join(self.dir, "tokens")
        self.assertEqual(w.do(f"tokens 1 4 {path}"), 4 * TOKENS + 1)
        got = self.json("explain", "--tokens", path, "--namespace", "tiny")
        self.assertEqual((got["hit_tokens"], got["reason"], got["tail_tokens"]), (0, "cold", 1))
        self.assertEqual(self.ctl("pin", "--tokens", path, "--namespace", "tiny")[0], 4)
        self.assertEqual(w.do("publish 1 4"), 4)
        got = self.json("explain", "--tokens", path, "--namespace", "tiny")
        self.assertEqual((got["hit_tokens"], got["miss_tokens"], got["reason"]), (4 * TOKENS, 1, "partial_block"))
        self.assertEqual(self.json("pin", "--tokens", path, "--namespace", "tiny")["tokens"], 4 * TOKENS)
        flushed = self.json("flush", "--namespace", "tiny")
        self.assertEqual((flushed["freed_blocks"], flushed["dropped_pins"]), (4, 1))
        got = self.json("explain", "--tokens", path, "--namespace", "tiny")
        self.assertEqual((got["hit_tokens"], got["reason"]), (0, "flushed"))
        self.assertLess(got["reason_ago_seconds"], 60)

    def test_last(self):
        self.cached().do("acquire 1 20")
        got = self.one("explain", "--last")
        self.assertEqual((got["client"], got["hit_tokens"], got["reason"]), ("writer", 16 * TOKENS, "cold"))
        self.assertEqual(got["id"], self.prefix())
        both = self.json("explain", "--last", "-n", "10")["lookups"]
        self.assertEqual([b["lookup"] for b in both], [2, 1])
        # What only its tail missed is no miss that one looks for.
        self.assertEqual(len(self.json("explain", "--last", "-n", "10", "--client", "writer", "--misses")["lookups"]), 1)
        s = self.status()
        self.assertEqual(sum(s["miss_tokens_by_reason"].values()), s["counters"]["miss_tokens"])

    def test_resize(self):
        w = self.client("writer")
        self.assertEqual(w.do("publish 1 1000"), 1000)
        self.assertEqual(w.do("publish 2 1000"), 1000)
        dry = self.json("resize", "16M", "--dry-run")
        self.assertEqual((dry["was_bytes"], dry["now_bytes"]), (64 * MIB, 16 * MIB))
        self.assertEqual(self.status()["tiers"][0]["capacity_bytes"], 64 * MIB)
        self.assertEqual(self.json("resize", "16M", "--wait", "--timeout", "30")["excess_bytes"], 0)
        s = self.status()
        self.assertEqual((s["tiers"][0]["capacity_bytes"], s["tiers"][0]["excess_bytes"]), (16 * MIB, 0))
        self.assertLessEqual(s["blocks"] * BLOCK, 16 * MIB)
        self.assertEqual(self.json("resize", "32M")["was_bytes"], 16 * MIB)
        status, _, err = self.ctl("resize", "900T")
        self.assertEqual(status, 1, err)

    def test_resize_below_what_is_pinned(self):
        """A budget that is a part of the pool gets smaller with it, and says so before it does."""
        w = self.client("writer")
        self.assertEqual(w.do("publish 1 500"), 500)
        self.assertEqual(w.do("acquire 1 500"), 500)
        w.do("release")
        self.until(lambda: self.json("prefixes")["prefixes"])
        self.assertEqual(self.ctl("pin", self.json("prefixes")["prefixes"][0]["id"])[0], 0)
        held = self.status()["pins"]["bytes"]
        dry = self.json("resize", "16M", "--dry-run")
        self.assertEqual((dry["pinned_bytes"], dry["pin_budget_bytes"]), (held, 16 * MIB // 5))
        self.assertEqual(self.status()["pins"]["pins"], 1)
        self.assertIn("pins ended", self.ctl("resize", "16M")[1])
        while self.status()["tiers"][0]["excess_bytes"]:  # the states add up on the way, too
            time.sleep(0.005)
        self.assertEqual(self.status()["pins"], {"pins": 0, "bytes": 0, "budget_bytes": 16 * MIB // 5})

    def test_resize_below_what_is_read(self):
        w = self.client("writer")
        self.assertEqual(w.do("publish 1 1000"), 1000)
        self.assertEqual(w.do("acquire 1 1000"), 1000)
        self.assertGreater(self.json("resize", "8M", status=5)["stuck_bytes"], 0)
        self.assertIn("shrinking", self.status()["health"]["codes"])
        w.do("release")
        self.assertEqual(self.json("resize", "8M", "--wait", "--timeout", "30")["excess_bytes"], 0)

    def test_capacity(self):
        self.cached()
        [got] = self.json("capacity", "--pool-size", "64M")["namespaces"]
        self.assertEqual((got["cached_tokens"], got["empty_tokens"]), (16 * TOKENS, 4096 * TOKENS))
        self.assertEqual(got["resized_tokens"], got["empty_tokens"])
        self.assertEqual(got["free_tokens"], (4096 - 16) * TOKENS)

    def test_kick(self):
        self.client("victim")
        w = self.client("other")
        self.assertEqual(self.json("kick", "victim")["name"], "victim")
        self.until(lambda: self.status()["counters"]["ended_kicked"] == 1)
        self.assertEqual([c["name"] for c in self.json("clients")["clients"] if c["state"] != "draining"], ["other"])
        self.assertEqual(w.do("publish 1 1"), 1)
        self.assertEqual(self.ctl("kick", "nobody")[0], 4)

    def test_stats_reset(self):
        w = self.cached()
        self.assertGreater(self.status()["counters"]["lookups"], 0)
        self.assertLess(self.json("stats", "reset")["counted_seconds"], 60)
        self.assertEqual(self.status()["counters"]["lookups"], 0)
        self.assertEqual(self.json("status", "--raw")["counters"]["lookups"], 1)
        self.assertEqual(w.do("acquire 1 16"), 16)
        self.assertEqual(self.status()["counters"]["lookups"], 1)

    def test_config(self):
        keys = {k["key"]: k for k in self.json("config")["keys"]}
        self.assertEqual((keys["host.pool_size"]["value"], keys["host.pool_size"]["origin"]), ("64M", "command line"))
        self.assertIn("host.pool_size", [k["key"] for k in self.json("config", "diff")["keys"]])
        self.assertEqual(self.ctl("config", "get", "host.pool_size")[:2], (0, "64M\n"))
        self.assertEqual(self.json("config", "set", "cache.pin_budget", "30%")["now"], "30%")
        self.assertEqual(self.json("config", "get", "cache.pin_budget")["origin"], "config set")
        self.assertEqual(self.json("config", "unset", "cache.pin_budget")["now"], "20%")
        self.assertEqual(self.ctl("config", "set", "cache.pin_budget", "much")[0], 78)
        self.assertEqual(self.ctl("config", "get", "host.pool_sise")[0], 4)
        self.assertEqual(self.ctl("reload")[:2], (0, "nothing changed\n"))

    def test_log_level(self):
        self.assertEqual(self.ctl("log-level")[:2], (0, "warning\n"))
        self.assertEqual(self.json("log-level", "error", "--for", "10m"), {
            "schema": "kvpool.log-level/1", "was": "warning", "now": "error", "for_seconds": 600})
        self.assertEqual(self.json("status")["log_level"], "error")
        self.assertEqual(self.ctl("log-level", "loud")[0], 2)
        # Back after a while, unless somebody says otherwise; the configured one needs no end.
        self.assertEqual(self.ctl("log-level", "warning")[:2], (0, "warning, was error\n"))
        self.assertEqual(self.json("log-level", "debug")["for_seconds"], 600)
        self.assertEqual(self.ctl("config", "get", "daemon.log_level")[:2], (0, "warning\n"))
        self.assertIsNone(self.json("log-level", "info", "--for", "forever")["for_seconds"])
        self.assertEqual(self.ctl("config", "get", "daemon.log_level")[:2], (0, "info\n"))

    def test_what_files_say(self):
        """Keys that the files have other values for, before a reload and after it."""
        self.stop()
        path = os.path.join(self.dir, "kvpool.conf")
        with open(path, "w") as f:
            f.write("[host]\npool_size = 64M\n")
        self.daemon = subprocess.Popen([KVPOOLD, "--socket", self.socket, "--config", path])
        self.assertEqual(self.ctl("wait-ready")[0], 0)
        with open(path, "a") as f:
            f.write("huge_pages = never\n[limits]\nmax_clients = 7\n[namespace qwen*]\nttl = 1h\n")

        def says(line):
            return " ".join(line.split())

        lines = [says(line) for line in self.ctl("config", "diff")[1].splitlines()]
        self.assertEqual(lines[0], "KEY VALUE ORIGIN FILE RESTART")
        for line in ("host.huge_pages auto default never yes", "limits.max_clients 256 default 7 no"):
            self.assertIn(line, lines)
        self.assertIn("namespace.qwen*.ttl", self.ctl("config", "diff", "-o", "key", "--no-legend")[1].split())
        with open(path, encoding="utf-8") as f:
            sound = f.read()
        with open(path, "a") as f:
            f.write("[hots]\n")
        self.assertIn("the files have a mistake", self.ctl("config", "diff")[2])
        with open(path, "w") as f:
            f.write(sound)
        self.assertEqual(self.ctl("reload")[0], 0)
        lines = [says(line) for line in self.ctl("config", "diff")[1].splitlines()]
        self.assertIn("host.huge_pages auto default never yes", lines)
        self.assertIn(f"limits.max_clients 7 {path}:5 - no", lines)

    def test_dump(self):
        self.cached()
        d = self.json("dump")
        self.assertEqual((len(d["namespaces"]), len(d["prefixes"]), len(d["lookups"]), d["pins"]), (1, 1, 1, []))
        self.assertEqual((d["namespaces"][0]["layers"], d["namespaces"][0]["type_k"]), (2, "f16"))
        self.assertTrue(d["keys"])

    def test_wait_ready(self):
        self.assertTrue(self.json("wait-ready")["ready"])
        self.stop()
        status, _, err = subprocess_of(KVPOOLCTL, "--socket", self.socket, "wait-ready", "--timeout", "100ms")
        self.assertEqual(status, 3, err)

    def test_show_and_info(self):
        self.cached()
        self.assertEqual(self.json("show", "writer")["object"]["cached_blocks"], 16)
        self.assertEqual(self.json("show", "tiny")["object"]["blocks"], 16)
        self.assertEqual(self.json("show", self.prefix())["object"]["tokens"], 16 * TOKENS)
        self.assertTrue(re.search("^capacity_bytes:67108864$", self.ctl("info", "pool")[1], re.M))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
