#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The verbs of kvpoolctl against a daemon of the test's own: what they ask, print and return.

usage: test_kvpoolctl_verbs.py KVPOOLCTL KVPOOL.PROTO
"""
import hashlib
import json
import os
import re
import struct
import subprocess
import sys
import threading
import time
import unittest

import schema
from ctl_case import GIB, KVPOOLCTL, STATUS, TYPES, Case, client, namespace
from fake_daemon import FakeDaemon

SECOND = 10**9
PIN = {"pin": 3, "id": "96a231236c91d696", "ns": 1, "namespace": "tiny", "tokens": 4096, "bytes": GIB,
       "left_ns": 3600 * SECOND, "label": "system", "priority": 50, "age_ns": 60 * SECOND}
PREFIX = {"id": "96a231236c91d696", "ns": 1, "namespace": "tiny", "tokens": 4096, "bytes": GIB, "hits": 41,
          "hit_tokens": 41 * 4096, "readers": 3, "writer": "vllm-chat", "age_ns": 90 * SECOND, "used_ns": SECOND,
          "children": 412, "children_once": 400, "tracked": True}
REQUEST = {"number": 88213, "ago_ns": SECOND, "session": 7, "client": "rag-worker", "ns": 1, "namespace": "tiny",
           "asked_tokens": 4812, "hit_tokens": 96, "reason": 16, "tail_tokens": 12, "id": "96a231236c91d696",
           "children": 412, "children_once": 400, "readers": 3}
KEYS = [
    {"key": "host.pool_size", "value": "8G", "default": "80%", "origin": "/etc/kvpool/kvpool.conf:12", "type": "size",
     "help": "Bytes of the pool"},
    {"key": "daemon.log_level", "value": "info", "default": "info", "origin": "default", "type": "choice",
     "choices": "error, warning, notice, info, debug", "help": "What is logged"},
    {"key": "host.huge_pages", "value": "auto", "default": "auto", "origin": "default", "file_value": "never",
     "restart": True, "type": "choice", "help": "How memory is made"},
]


def reasons():
    """{number: name} of enum miss_reason."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../proto/reason.h")
    with open(path, encoding="utf-8") as f:
        return {int(n): name.lower() for name, n in re.findall(r"MISS_(\w+) = (\d+)", f.read()) if name != "MAX"}


class Verbs(Case):
    """answers: {operation: fields, or a function of the request}."""

    def with_answers(self, **answers):
        def answer(name, request):
            got = answers.get(name, {"code": 4, "text": "no such operation"})
            return got(request) if callable(got) else got
        return self.daemon(answer)

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def prints(self, want, *args, status=0):
        """want: a text that is all of the output, or a compiled pattern."""
        got, out, err = self.ctl(*args)
        self.assertEqual((got, err), (status, ""), out)
        if isinstance(want, str):
            self.assertEqual(out, want)
        else:
            self.assertRegex(out, want)
        return out

    def json_of(self, *args, status=0):
        got, out, err = self.ctl(*args, "--json")
        self.assertEqual((got, err), (status, ""))
        document = json.loads(out)
        self.assertEqual(schema.check(document), [])
        return document


class Look(Verbs):
    def test_status_in_full(self):
        full = {**STATUS, "huge_pages": "thp", "numa": "interleave", "pool_max_bytes": 64 * GIB,
                "pool_excess_bytes": GIB, "pins": 1, "pinned_bytes": GIB // 2, "pin_budget_bytes": 2 * GIB,
                "counters_ns": 300 * SECOND, "quota_blocks": 5,
                "miss_reasons": [0, 0, 20, *[0] * 13, 100000, 21200]}
        with self.with_answers(status=full) as d:
            out = self.prints(re.compile("Hits  last 5min 71% of 418 k"))
            self.assertIn("Memory  pages thp  numa interleave", out)
            self.assertIn("shrinking, 1.0 GiB to go", out)
            self.assertIn("Pins 1  (0.5 of 2.0 GiB budget)", out)
            self.assertIn("Misses  cold 82%  evicted 17%  partial_block <1%", out)
            self.assertIn("note: blocks refused because of a quota: 5\n", out)
            self.assertTrue(all(len(line) <= 80 for line in out.splitlines()), out)
            s = self.json_of("status", "--raw")
            self.assertEqual([r for _, r in d.requests], [{}, {"raw": 1}])
        self.assertEqual(s["counters_seconds"], 300)
        self.assertEqual(sum(s["miss_tokens_by_reason"].values()), s["counters"]["miss_tokens"])
        self.assertEqual(set(s["miss_tokens_by_reason"]), set(reasons().values()) - {"none"})
        self.assertEqual(s["health"]["codes"], ["quota", "shrinking"])

    def test_unknown_is_not_zero(self):
        with self.with_answers(status=STATUS):
            s = self.json_of("status")
        self.assertIsNone(s["miss_tokens_by_reason"])
        self.assertIsNone(s["tiers"][0]["huge_pages"])
        self.assertIsNone(s["tiers"][0]["max_bytes"])

    def test_prefixes(self):
        untracked = {"id": "aa", "namespace": "tiny", "tokens": 16, "bytes": 4096, "pinned": True}
        with self.with_answers(prefixes={"items": [PREFIX, untracked], "tracked": 2}) as d:
            out = self.prints(re.compile("2 prefixes.\n$"), "prefixes", "-n", "5", "--sort", "age", "--namespace", "tiny")
            self.assertEqual(d.requests, [("prefixes", {"namespace": "tiny", "limit": 5, "sort": 2})])
            lines = [line.split() for line in out.splitlines()]
            self.assertEqual(lines[0], ["ID", "NAMESPACE", "TOKENS", "SIZE", "HITS", "READERS", "USED", "NEXT", "PINNED"])
            self.assertEqual(lines[2], ["aa", "tiny", "16", "4.0", "KiB", "-", "-", "-", "0", "ever"])
            first, second = self.json_of("prefixes")["prefixes"]
        self.assertEqual((first["hits"], first["writer"], second["hits"], second["age_seconds"]),
                         (41, "vllm-chat", None, None))
        self.fails(2, "--sort size is no order: use hits, bytes or age", "prefixes", "--sort", "size")
        self.fails(2, "--limit 0 is no number from 1", "prefixes", "-n", "0")

    def test_pins(self):
        status = {**STATUS, "pinned_bytes": GIB, "pin_budget_bytes": 2 * GIB}
        forever = {**PIN, "pin": 4, "left_ns": 0, "label": ""}
        with self.with_answers(pins={"items": [PIN, forever]}, status=status):
            out = self.prints(re.compile(r"2 pins, 1\.0 of a budget of 2\.0 GiB\.\n$"), "pins")
            self.assertIn("3 96a231236c91d696 tiny       4 096 1.0 GiB    1h system\n", out)
            self.assertIn(" never -\n", out)
            pins = self.json_of("pins")
        self.assertEqual((pins["used_bytes"], pins["budget_bytes"]), (GIB, 2 * GIB))
        self.assertEqual([p["left_seconds"] for p in pins["pins"]], [3600, None])

    def answers(self):
        return {"clients": {"items": [client(7, "tiny"), client(8, "rag-worker")]},
                "namespaces": {"items": [namespace(1), namespace(7, "big")]},
                "pins": {"items": [PIN]}, "status": STATUS,
                "prefixes": lambda r: {"items": [PREFIX]} if "96a231236c91d696".startswith(r["id"]) else
                {"code": 12, "text": "there is none"}}

    def test_show(self):
        with self.with_answers(**self.answers()):
            self.prints(re.compile("^client\n(?s:.*)\n  leased bytes +1.0 GiB\n"), "show", "rag-worker")
            self.prints(re.compile("^namespace\n"), "show", "big")
            self.prints(re.compile("^namespace\n"), "show", "0" * 63 + "1")
            self.prints(re.compile("^pin\n"), "show", "system")
            self.prints(re.compile("^prefix\n"), "show", "prefix:96a231")
            self.prints(re.compile("^client\n(?s:.*)uid +%d\n" % os.getuid()), "show", "client:tiny")
            shown = self.json_of("show", "pin:3")
            self.assertEqual((shown["kind"], shown["object"]["label"]), ("pin", "system"))

    def test_show_ambiguous(self):
        with self.with_answers(**self.answers()):
            self.fails(4, '"tiny" means 2 objects: client:7 (tiny), namespace:1 (tiny); name one of them', "show", "tiny")
            self.fails(4, '"7" means 2 objects: client:7 (tiny), namespace:7 (big)', "show", "7")
            self.fails(4, '"96a231236c" means 2 objects: pin:3 (system), prefix:96a231236c91d696 (tiny)', "show",
                       "96a231236c")

    def test_show_nothing(self):
        with self.with_answers(**self.answers()):
            self.fails(4, 'there is no client, namespace, pin or prefix "x" (see kvpoolctl clients,', "show", "x")
            self.fails(4, 'there is no client, namespace, pin or prefix "abcdef"', "show", "abcdef")
            self.fails(4, 'there is no pin "pin:tiny"', "show", "pin:tiny")

    def test_dump(self):
        def lookups(fields):
            """Two pages, the older one after the newer one."""
            return {"items": [REQUEST], "next": 0 if fields.get("before") else 5}

        answers = {**self.answers(), "prefixes": {"items": [PREFIX]}, "requests": lookups, "config": {"items": KEYS}}
        with self.with_answers(**answers):
            self.assertEqual(self.ctl("dump")[0], 0)
            d = self.json_of("dump")
        self.assertEqual([len(d[k]) for k in ("clients", "namespaces", "pins", "prefixes", "lookups", "keys")],
                         [2, 2, 1, 1, 2, 3])
        self.assertEqual(d["status"]["pid"], 1187)

    def test_dump_of_an_older_daemon(self):
        with self.with_answers(status=STATUS, namespaces={}, clients={}):
            d = self.json_of("dump")
        self.assertEqual((d["clients"], d["pins"], d["keys"]), ([], None, None))

    def test_info(self):
        with self.with_answers(status={**STATUS, "miss_reasons": [0] * 16 + [7]}):
            out = self.prints(re.compile("^# daemon\nversion:0.1.0\n"), "info")
            self.assertEqual(re.findall("^# (.*)", out, re.M), ["daemon", "pool", "counters", "reasons", "pins", "health"])
            self.assertTrue(all(re.match(r"# |[\w.]+:.+$|$", line) for line in out.splitlines()), out)
            out = self.prints(re.compile("^tier:host\n"), "info", "pool")
            self.assertIn("\nstates.leased:%d\n" % GIB, out)
            self.assertIn("\nhuge_pages:-\n", out)
            self.prints(re.compile("^cold:7$", re.M), "info", "reasons")
            self.assertEqual(set(self.json_of("info", "pins")), {"schema", "pins"})
            self.json_of("info")
            self.fails(4, 'there is no section "pol"', "info", "pol")


class Capacity(Verbs):
    def test_of_the_daemon(self):
        items = [namespace(1, "big", free_blocks=100, empty_blocks=3640, block_bytes=16 * 147456), namespace(2, "old")]
        with self.with_answers(namespaces={"items": items}):
            out = self.prints(re.compile("2 namespaces.\n$"), "capacity")
            lines = [re.split("  +| (?=-)", line.strip()) for line in out.splitlines()]
            self.assertIn("147 456 46 592 1 600 58 240", out)
            self.assertTrue(lines[2][-1].endswith("-"), out)
            _, out, _ = self.ctl("capacity", "--pool-size", "12G", "--no-legend")
            self.assertEqual(out.splitlines()[0].split()[-2:], ["86", "016"])
            got = self.json_of("capacity", "--namespace", "big")["namespaces"]
        self.assertEqual([(n["free_tokens"], n["empty_tokens"], n["resized_tokens"]) for n in got], [(1600, 58240, None)])

    def test_of_no_daemon(self):
        out = self.prints(re.compile("^Token   327 680 bytes$", re.M), "capacity", "--layers", "80", "--kv-heads", "8",
                          "--head-dim", "128", "--tokens", "4096")
        self.assertIn("Total   4 096 tokens take 1.2 GiB (1 342 177 280 bytes)\n", out)
        got = self.json_of("capacity", "--layers", "61", "--latent", "512+64", "--tokens", "10", "--pool-size", "1G")
        self.assertEqual((got["bytes_per_token"], got["total_bytes"]), (61 * 576 * 2, 610 * 576 * 2))
        self.assertEqual(got["pool_tokens"] % 16, 0)
        self.assertLessEqual(got["pool_tokens"] * got["bytes_per_token"], GIB)
        got = self.json_of("capacity", "--layers", "32", "--kv-heads", "8", "--head-dim", "128", "--dtype", "q8_0",
                           "--dtype-v", "q4_0")
        self.assertEqual(got["bytes_per_token"], 32 * 8 * 4 * (34 + 18))

    def test_of_a_file(self):
        def text(s):
            return struct.pack("<Q", len(s)) + s.encode()
        pairs = [text("general.architecture") + struct.pack("<I", 8) + text("llama")]
        for key, n in (("block_count", 80), ("embedding_length", 8192), ("attention.head_count", 64),
                       ("attention.head_count_kv", 8)):
            pairs.append(text("llama." + key) + struct.pack("<II", 4, n))
        path = os.path.join(self.dir, "m.gguf")
        with open(path, "wb") as f:
            f.write(b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs))
        got = self.json_of("capacity", "--gguf", path, "--tokens", "4096")
        self.assertEqual((got["architecture"], got["total_bytes"]), ("llama", 1342177280))
        self.fails(1, "is no GGUF file", "capacity", "--gguf", KVPOOLCTL)
        self.fails(1, "cannot open /nonexistent: No such file", "capacity", "--gguf", "/nonexistent")

    def test_refused(self):
        shape = ("--layers", "2", "--kv-heads", "1", "--head-dim", "80")
        for args, text in ((("--layers", "2"), "takes --layers with --kv-heads"),
                           ((*shape, "--dtype", "f17"), "--dtype f17 is no type"),
                           ((*shape, "--dtype", "q8_0"), "q8_0 needs rows of a multiple of 32"),
                           ((*shape, "--namespace", "x"), "leave one out"),
                           ((*shape, "--tokens", "x"), "--tokens x is no number"),
                           ((*shape, "--latent", "5"), "stands for the heads"),
                           (("--layers", "2", "--latent", "5+x"), "--latent 5+x is no number"),
                           ((*shape, "--tokens", str(2**64 - 1)), "more than 64 bits"),
                           (("--pool-size", "5GB"), "--pool-size 5GB ")):
            self.fails(2, text, "capacity", *args)


class Explain(Verbs):
    SEED = "1f" * 32

    def answers(self, explain):
        return {"namespaces": {"items": [namespace(5, "tiny", fingerprint=self.SEED, block_tokens=4)]}, "explain": explain}

    def keys(self, ids, block=4):
        key, out = bytes.fromhex(self.SEED), b""
        for i in range((len(ids) - 1) // block):
            key = hashlib.sha256(key + struct.pack(f"<{block}I", *ids[i * block:i * block + block])).digest()
            out += key
        return out

    def test_tokens(self):
        ids = list(range(100, 123))
        path = self.write("t", ",".join(map(str, ids)))
        answer = {"present": 2, "reason": 17, "ago_ns": 600 * SECOND, "id": "ab" * 8, "children": 3}
        with self.with_answers(**self.answers(answer)) as d:
            out = self.prints(re.compile("^namespace tiny   23 tokens asked\n"), "explain", "--tokens", path,
                              "--namespace", "tiny")
            self.assertIn("  hit  8 tokens (2 blocks)   prefix abababababababab\n", out)
            self.assertIn("  miss 15 tokens   evicted at block 2, token 8, 10min ago\n", out)
            self.assertIn("  3 other continuations of token 8 are cached.\n", out)
            self.assertEqual(d.requests[-1], ("explain", {"namespace": "5", "keys": self.keys(ids)}))
            got = self.json_of("explain", "--tokens", path, "--namespace", self.SEED[:12])
        self.assertEqual((got["hit_tokens"], got["miss_tokens"], got["tail_tokens"], got["reason"]), (8, 15, 3, "evicted"))

    def test_all_is_cached(self):
        path = self.write("t", " ".join(map(str, range(9))))
        with self.with_answers(**self.answers({"present": 2})):
            got = self.json_of("explain", "--tokens", path, "--namespace", "tiny")
            self.assertEqual((got["hit_tokens"], got["miss_tokens"], got["reason"]), (8, 1, "partial_block"))
            path = self.write("t", "1 2 3")
            got = self.json_of("explain", "--tokens", path, "--namespace", "tiny")
            self.assertEqual((got["hit_tokens"], got["reason"]), (0, "below_min"))

    def test_more_than_a_request_holds(self):
        ids = [i % 251 for i in range(4 * 2500 + 1)]
        path = self.write("t", "\n".join(map(str, ids)))
        want = self.keys(ids)
        at = []

        def answer(request):
            at.append(want.index(request["keys"]) // 32)
            n = len(request["keys"]) // 32
            return {"present": n if len(at) < 3 else 100, "reason": 16}
        with self.with_answers(**self.answers(answer)):
            got = self.json_of("explain", "--tokens", path, "--namespace", "5")
        self.assertEqual(at, [0, 1024, 2048])
        self.assertEqual((got["hit_tokens"], got["reason"]), (4 * 2148, "cold"))

    def test_stdin(self):
        with self.with_answers(**self.answers({"present": 1})):
            run = subprocess.run([KVPOOLCTL, "--socket", self.path, "explain", "--tokens", "-", "--namespace", "tiny"],
                                 input="1 2 3 4 5", capture_output=True, text=True, timeout=30, check=False)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertIn("hit  4 tokens", run.stdout)

    def test_refused(self):
        path = self.write("t", "1 2\nx")
        with self.with_answers(**self.answers({})):
            self.fails(1, f'{path}, line 2: "x" is no token id', "explain", "--tokens", path, "--namespace", "tiny")
            self.fails(1, "cannot open the token file /nonexistent", "explain", "--tokens", "/nonexistent", "--namespace",
                       "tiny")
            self.fails(4, 'there is no namespace "big" (see kvpoolctl namespaces)', "explain", "--tokens", path,
                       "--namespace", "big")
            self.fails(2, "--tokens needs --namespace", "explain", "--tokens", path)
            self.fails(2, "needs one of --tokens, --last and --diff", "explain")
            self.fails(2, "takes files only with --diff", "explain", "--last", "x")

    def test_last(self):
        answers = {"requests": {"items": [REQUEST]}, "clients": {"items": [client(7, "rag-worker")]}}
        with self.with_answers(**answers) as d:
            out = self.prints(re.compile(r"^lookup 88213   \d\d:\d\d:\d\d   rag-worker   namespace tiny   4 812 tokens asked"),
                              "explain", "--last", "--client", "rag-worker", "--misses")
            self.assertEqual(d.requests[-1], ("requests", {"session": 7, "limit": 1, "misses": 1}))
            self.assertIn("  miss 4 716 tokens   cold at token 96\n", out)
            self.assertIn("Looks like a per-request value: 412 different continuations follow token", out)
            self.assertIn("shared by 3 clients", out)
            self.assertTrue(all(len(line) <= 80 for line in out.splitlines()), out)
            [got] = self.json_of("explain", "--last")["lookups"]
            self.fails(4, 'there is no client "x"', "explain", "--last", "--client", "x")
        self.assertEqual((got["lookup"], got["miss_tokens"], got["reason"]), (88213, 4716, "cold"))

    def test_pages_of_last(self):
        def answer(request):
            top = request.get("before", 301)
            n = min(request["limit"], 100, top - 1)
            return {"items": [{**REQUEST, "number": top - 1 - i} for i in range(n)], "next": top - n if top - n > 1 else 0}
        with self.with_answers(requests=answer) as d:
            got = self.json_of("explain", "--last", "-n", "256")["lookups"]
            self.assertEqual([g["lookup"] for g in got], list(range(300, 44, -1)))
            self.assertEqual([r.get("before", 0) for _, r in d.requests], [0, 201, 101])
        with self.with_answers(requests={}):
            self.prints("No lookup is remembered.\n", "explain", "--last")

    def test_each_reason(self):
        for number, name in reasons().items():
            with self.with_answers(requests={"items": [{**REQUEST, "reason": number}]}):
                self.assertEqual(self.json_of("explain", "--last")["lookups"][0]["reason"], name)
                self.prints(re.compile(rf"{name} at token 96\n  {name}: ."), "explain", "--last")

    def test_diff(self):
        a, b = self.write("a", " ".join(map(str, range(100)))), self.write("b", "\n".join(map(str, [*range(40), 7])))
        out = self.prints(re.compile("^first difference at token 40, in block 2\n"), "explain", "--diff", a, b)
        self.assertIn(f"  {a}: 40 (100 tokens)\n  {b}: 7 (41 tokens)\n", out)
        self.prints(re.compile("in block 5\n"), "explain", "--diff", a, b, "--block", "8")
        self.prints("equal: 100 tokens\n", "explain", "--diff", a, a)
        got = self.json_of("explain", "--diff", a, b)
        self.assertEqual((got["common_tokens"], got["shared_blocks"], got["equal"]), (40, 2, False))
        self.fails(2, "--diff needs two files", "explain", "--diff", a)


class Control(Verbs):
    DONE = {"pin": 9, "id": "ab" * 8, "tokens": 64, "asked_tokens": 64, "bytes": GIB, "budget_bytes": 4 * GIB,
            "used_bytes": 2 * GIB}

    def test_pin_by_id(self):
        with self.with_answers(pin=self.DONE) as d:
            self.prints("pinned 64 tokens as pin 9, 1.0 GiB more; pins hold 2.0 of a budget of 4.0 GiB\n", "pin", "abab",
                        "--ttl", "1h30m", "--priority", "80", "--label", "sys")
            self.assertEqual(d.requests, [("pin", {"id": "abab", "ttl_s": 5400, "priority": 80, "label": "sys"})])
            self.assertEqual(self.json_of("pin", "abab")["pin"], 9)
        for args, text in ((("pin",), "needs an ID or --tokens"), (("pin", "a", "--tokens", "f"), "needs an ID or"),
                           (("pin", "a", "--priority", "100"), "no number from 1 to 99"),
                           (("pin", "a", "--ttl", "0"), "no time from 1s"), (("pin", "zz"), '"zz" is no id: give')):
            self.fails(2, text, *args)

    def test_pin_partly(self):
        with self.with_answers(pin={**self.DONE, "asked_tokens": 96, "why": "budget"}):
            self.prints(re.compile("\n32 of 96 tokens were not: budget \\(unpin something, or config set "
                                   "cache.pin_budget SIZE\\)\n$"), "pin", "abab", status=5)
            self.assertEqual(self.json_of("pin", "abab", status=5)["why"], "budget")
        for code, text in ((12, "no prefix begins so"), (13, "fits several: abab01, abab02")):
            with self.with_answers(pin={"code": code, "text": text}):
                self.fails(4, f"refused pin of abab: {text}", "pin", "abab")

    def test_pin_tokens(self):
        explain = Explain("test_tokens")
        ids = list(range(23))
        path = self.write("t", " ".join(map(str, ids)))
        with self.with_answers(**explain.answers({}), pin={**self.DONE, "tokens": 20, "asked_tokens": 20}) as d:
            self.assertEqual(self.json_of("pin", "--tokens", path, "--namespace", "tiny")["asked_tokens"], 20)
            self.assertEqual(d.requests[-1], ("pin", {"namespace": "5", "keys": explain.keys(ids)}))

    def test_pin_more_than_a_request_holds(self):
        explain = Explain("test_tokens")
        ids = list(range(4 * 1100 + 1))
        path = self.write("t", " ".join(map(str, ids)))

        def present(request):
            n = len(request["keys"]) // 32
            return {"present": n if n == 1024 else 10}
        with self.with_answers(**explain.answers(present), pin={**self.DONE, "tokens": 4 * 1034}) as d:
            self.prints(re.compile("\n264 of 4 400 tokens were not: not cached"), "pin", "--tokens", path, "--namespace",
                        "tiny", status=5)
            self.assertEqual(d.requests[-1][1]["id"], explain.keys(ids)[1033 * 32:1034 * 32].hex())
        with self.with_answers(**explain.answers({})):
            self.fails(4, "nothing of these tokens is cached in tiny", "pin", "--tokens", path, "--namespace", "tiny")

    def test_unpin(self):
        answers = {"pins": {"items": [PIN, {**PIN, "pin": 4, "label": "other"}]}, "unpin": {"pins": 1, "bytes": GIB}}
        with self.with_answers(**answers) as d:
            for args, request in ((("4",), {"pin": 4}), (("system",), {"pin": 3}),
                                  (("--label", "x"), {"label": "x"}), (("--all",), {"all": 1})):
                self.prints("took back 1 pin, 1.0 GiB of the budget\n", "unpin", *args)
                self.assertEqual(d.requests[-1], ("unpin", request))
            self.fails(4, '"96a231236c" means 2 objects: pin:3 (system), pin:4 (other)', "unpin", "96a231236c")
            self.fails(4, 'there is no pin "5" (see kvpoolctl pins)', "unpin", "5")
            self.json_of("unpin", "4")
        self.fails(2, "needs one of an ID, --label TEXT and --all", "unpin")
        self.fails(2, "needs one of", "unpin", "4", "--all")

    def test_kick(self):
        answers = {"clients": {"items": [client(7, "a"), client(8, "b", pid=1), client(9, "b", pid=2)]},
                   "kick": {"name": "a", "pid": 5, "leases": 2}}
        with self.with_answers(**answers) as d:
            out = self.prints(re.compile("^ended session 7 of a"), "kick", "a")
            self.assertIn("2 prefixes stay in the pool until", out)
            self.assertEqual(self.json_of("kick", "client:9")["session"], 9)
            self.assertEqual([r for name, r in d.requests if name == "kick"], [{"session": 7}, {"session": 9}])
            self.fails(4, '"b" means 2 objects: client:8 (b), client:9 (b)', "kick", "b")
            self.fails(4, 'there is no client "c" (see kvpoolctl clients)', "kick", "c")
        with self.with_answers(clients={"items": [client(7, "gone", state="draining", pid=5)]}) as d:
            self.fails(4, "the session of gone has ended already: what it reads stays until process 5", "kick", "gone")
            self.assertNotIn("kick", [name for name, _ in d.requests])
        self.fails(2, '"kick" needs CLIENT', "kick")

    def test_resize(self):
        done = {"was_bytes": 8 * GIB, "now_bytes": 4 * GIB, "handed_bytes": 4 * GIB, "evict_blocks": 12}
        with self.with_answers(status={**STATUS, "pool_max_bytes": 40 * GIB}, resize=done) as d:
            self.prints("the pool has 4.0 GiB, was 8.0 GiB\n12 blocks are evicted\n", "resize", "4G")
            self.prints(re.compile("^the pool would have 4.0 GiB"), "resize", "10%", "--dry-run")
            self.assertEqual([r for name, r in d.requests if name == "resize"],
                             [{"bytes": 4 * GIB}, {"bytes": 4 * GIB, "dry_run": 1}])
            self.fails(2, "the size 4GB ", "resize", "4GB")
            self.json_of("resize", "4G")
        with self.with_answers(status=STATUS, resize={**done, "handed_bytes": 5 * GIB, "stuck_bytes": GIB}):
            self.prints(re.compile("1.0 GiB are pinned, being read or written"), "resize", "4G", status=5)
            self.assertEqual(self.json_of("resize", "4G", status=5)["excess_bytes"], GIB)
            self.prints(re.compile("would"), "resize", "4G", "--dry-run", status=5)
        pins = {**done, "pinned_bytes": 2 * GIB, "pin_budget_bytes": GIB, "note": "max_blocks is 5"}
        with self.with_answers(status=STATUS, resize=pins):
            self.prints(re.compile("\n2.0 GiB were pinned, and the budget is 1.0 GiB: pins ended, low priorities first\n"
                                   "note: max_blocks is 5\n$"), "resize", "4G")
            self.prints(re.compile("would be 1.0 GiB: pins would end"), "resize", "4G", "--dry-run")
            got = self.json_of("resize", "4G")
            self.assertEqual((got["pinned_bytes"], got["pin_budget_bytes"], got["note"]),
                             (2 * GIB, GIB, "max_blocks is 5"))
        with self.with_answers(status=STATUS, resize={"code": 3, "text": "more than 40G"}):
            self.fails(1, "refused resize of 64G: more than 40G", "resize", "64G")

    def test_resize_waits(self):
        left = [GIB, GIB, 0]
        answers = {"status": lambda _: {**STATUS, "pool_excess_bytes": left.pop(0) if len(left) > 1 else left[0]},
                   "resize": {"was_bytes": 8 * GIB, "now_bytes": GIB, "handed_bytes": 2 * GIB}}
        with self.with_answers(**answers):
            self.assertEqual(self.json_of("resize", "1G", "--wait")["excess_bytes"], 0)
        left[:] = [GIB]
        with self.with_answers(**answers):
            self.assertEqual(self.json_of("resize", "1G", "--wait", "--timeout", "100ms", status=5)["excess_bytes"], GIB)

    def test_flush_drops_pins(self):
        with self.with_answers(flush={"namespaces": 1, "freed_blocks": 3, "freed_bytes": GIB, "dropped_pins": 2}):
            self.prints("dropped 3 blocks (1.0 GiB) of 1 namespace, and 2 pins\n", "flush")


class Run(Verbs):
    def test_config(self):
        with self.with_answers(config=lambda r: {"items": [k for k in KEYS if r.get("key", k["key"]) == k["key"]]}):
            out = self.prints(re.compile("3 keys.\n$"), "config")
            self.assertIn("host.pool_size   8G    /etc/kvpool/kvpool.conf:12\n", out)
            self.assertEqual([k["key"] for k in self.json_of("config", "diff")["keys"]],
                             ["host.pool_size", "host.huge_pages"])
            self.assertEqual(self.ctl("config", "diff")[2], "")
            self.prints("8G\n", "config", "get", "host.pool_size")
            self.assertEqual(self.json_of("config", "get", "host.huge_pages")["file_value"], "never")
            self.fails(4, 'there is no key "host.x"', "config", "get", "host.x")
        for args in (("get",), ("set", "a"), ("show", "a"), ("unset",), ("put", "a")):
            self.fails(2, '"config" takes show, diff, get KEY', "config", *args)

    def test_config_of_files_with_a_mistake(self):
        with self.with_answers(config={"items": KEYS, "wrong": "kvpool.conf:3: no key"}):
            status, out, err = self.ctl("config", "diff")
            self.assertEqual(status, 0)
            self.assertIn("host.pool_size", out)
            self.assertIn("the files have a mistake, FILE is what they said before: kvpool.conf:3: no key", err)

    def test_config_set(self):
        with self.with_answers(config_set={"was": "8G", "now": "12G"}) as d:
            self.prints("host.pool_size = 12G, was 8G\n", "config", "set", "host.pool_size", "12G")
            self.json_of("config", "unset", "host.pool_size")
            self.assertEqual(d.requests, [("config_set", {"key": "host.pool_size", "value": "12G"}),
                                          ("config_set", {"key": "host.pool_size", "unset": 1})])
        with self.with_answers(config_set={"code": 14, "text": "host.numa: node:9 is no node"}):
            self.fails(78, "refused config set: host.numa: node:9", "config", "set", "host.numa", "node:9")
        with self.with_answers(config_set={"code": 12, "text": "did you mean host.numa?"}):
            self.fails(4, "did you mean", "config", "set", "host.nuam", "x")

    def test_reload(self):
        with self.with_answers(reload={"changed": ["a.b", "c.d"], "restart": ["e.f"]}):
            self.prints("changed: a.b, c.d\na restart is needed for: e.f\n", "reload")
            self.assertEqual(self.json_of("reload")["restart"], ["e.f"])
        with self.with_answers(reload={}):
            self.prints("nothing changed\n", "reload")
        with self.with_answers(reload={"code": 14, "text": "/etc/kvpool/kvpool.conf:3: no such key"}):
            self.fails(78, "refused reload: /etc/kvpool/kvpool.conf:3: no such key", "reload")

    def test_log_level(self):
        with self.with_answers(log_level={"was": "info", "now": "debug", "for_s": 600}) as d:
            self.prints("debug, was info, for 10min\n", "log-level", "debug", "--for", "10m")
            self.prints("debug, was info, for 10min (--for forever keeps it)\n", "log-level", "debug")
            self.prints(re.compile("^debug"), "log-level", "debug", "--for", "forever")
            self.prints(re.compile("^debug"), "log-level", "debug", "--for", "0")
            self.assertEqual(d.requests, [("log_level", {"level": "debug", "for_s": 600})] * 2 +
                             [("log_level", {"level": "debug"})] * 2)
        with self.with_answers(log_level={"was": "info", "now": "info"}):
            self.prints("info\n", "log-level")
            self.assertIsNone(self.json_of("log-level")["for_seconds"])
        self.fails(2, "--for needs a level", "log-level", "--for", "5m")

    def test_stats(self):
        with self.with_answers(stats_reset={"counters_ns": 90 * SECOND}):
            self.prints("the counters begin at zero; they had counted for 1min 30s\n", "stats", "reset")
            self.assertEqual(self.json_of("stats", "reset")["counted_seconds"], 90)
        self.fails(2, '"stats" takes only "reset"', "stats", "show")
        self.fails(2, '"stats" needs reset', "stats")

    def test_wait_ready(self):
        self.fails(3, "did not come within", "wait-ready", "--timeout", "100ms")
        with self.with_answers(status={**STATUS, "ready": False}):
            self.fails(1, "is not ready after", "wait-ready", "--timeout", "100ms")
        with self.daemon(None, refuse={"code": 7, "text": "not you"}):
            self.fails(77, "refused status: not you", "wait-ready", "--timeout", "30")

    def test_wait_until_it_comes(self):
        """The socket comes late, and the daemon is ready later still."""
        asked = []

        def answer(*_):
            asked.append(1)
            return {**STATUS, "ready": len(asked) > 3}

        def start():
            time.sleep(0.2)
            self.late = FakeDaemon(TYPES, self.path, answer)
        thread = threading.Thread(target=start)
        thread.start()
        try:
            self.assertEqual(self.json_of("wait-ready", "--timeout", "30")["ready"], True)
        finally:
            thread.join()
            self.late.__exit__()
        self.assertGreater(len(asked), 3)

    def test_completion_asks(self):
        answers = {"clients": {"items": [client(1, "a b"), client(2, "x\033")]}, "namespaces": {"items": [namespace(1)]},
                   "pins": {"items": [PIN]}, "prefixes": {"items": [PREFIX]}, "config": {"items": KEYS}}
        with self.with_answers(**answers):
            for kind, names in (("clients", "a b\nx?\n"), ("namespaces", "tiny\n"), ("pins", "3\n"), ("labels", "system\n"),
                                ("prefixes", "96a231236c91d696\n"), ("nonsense", ""),
                                ("keys", "host.pool_size\ndaemon.log_level\nhost.huge_pages\n"),
                                ("objects", "a b\nx?\ntiny\nsystem\n96a231236c91d696\n")):
                self.prints(names, "__complete", kind)
        self.prints("", "__complete", "clients")

    def test_help(self):
        whole = self.prints(re.compile("^kvpoolctl "), "--help")
        self.assertNotIn("__complete", whole)
        verbs = re.findall(r"^  ([a-z][a-z-]+) +[A-Z]", whole, re.M)
        self.assertEqual(len(verbs), 22)
        for verb in verbs:
            out = self.prints(re.compile(rf"^kvpoolctl \[OPTIONS\] {verb}"), verb, "--help")
            self.assertIn("\nExample:\n  kvpoolctl ", out)
            self.assertTrue(all(len(line) <= 100 for line in out.splitlines()), out)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
