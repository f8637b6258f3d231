#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kvpoolctl against a daemon of the test's own: every error it can meet, pages, sizes, foreign text.

usage: test_kvpoolctl_fake.py KVPOOLCTL KVPOOL.PROTO
"""
import json
import os
import re
import pty
import select
import shutil
import socket
import subprocess
import sys
import unittest

import schema
import wire
from ctl_case import GIB, KVPOOLCTL, STATUS, Case, client, namespace


class Errors(Case):
    def test_no_socket(self):
        self.fails(3, f"cannot reach kvpoold at {self.path}: there is no such socket (is a kvpoold")

    def test_nobody_listens(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.bind(self.path)
            self.fails(3, "connection refused (is a kvpoold")

    def test_socket_of_another_kind(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.bind(self.path)
            s.listen()
            self.fails(1, "another program's socket")

    @unittest.skipUnless(os.getuid() == 0, "needs root to be somebody else")
    def test_not_permitted(self):
        os.chmod(self.dir, 0o711)
        with self.daemon(lambda *_: STATUS):
            os.chmod(self.path, 0o600)
            # The program may lie where nobody else can go: a copy, where they can.
            program = shutil.copy(KVPOOLCTL, self.dir)
            run = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", program,
                                  "--socket", self.path], capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 77, run.stderr)
            self.assertIn("permission denied (be the user that it runs as, or root)", run.stderr)

    def test_hangs_up(self):
        with self.daemon(lambda *_: None):
            self.fails(1, "went away before it answered")

    def test_does_not_answer(self):
        with self.daemon(lambda *_: None, hold=True):
            self.fails(1, "did not answer within 0.2 s", "--timeout", "200ms")

    def test_does_not_accept(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.bind(self.path)
            s.listen(0)
            waiting = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK) for _ in range(2)]
            for w in waiting:
                w.connect_ex(self.path)
            self.fails(1, "did not answer within 0.2 s", "--timeout", "200ms")
            for w in waiting:
                w.close()

    def test_answers_nonsense(self):
        for packet, why in ((b"hello", "shorter than a header"), (b"x" * 100, "magic number"),
                            (wire.frame(65, wire.REPLY, 1, b"\x0a\xff\xff"), "does not unpack")):
            with self.daemon(lambda *_, packet=packet: packet):
                self.fails(1, why)

    def test_refuses(self):
        for code, status in ((7, 77), (12, 4), (11, 1)):
            with self.daemon(lambda *_, code=code: {"code": code, "text": "flush: no\033[0m, because"}):
                self.fails(status, "refused flush: flush: no?[0m, because", "flush")
        with self.daemon(lambda *_: {"code": 11}):
            self.fails(1, "refused status: ")

    def test_refused_at_the_door(self):
        with self.daemon(None, refuse={"code": 7, "text": "user 7 may not use this socket"}):
            for _ in range(50):  # the answer and the request cross in every way
                self.fails(77, "refused status: user 7 may not use this socket")

    def test_circles(self):
        with self.daemon(lambda *_: {"items": [], "next": 1}):
            self.fails(1, "in circles", "namespaces")
        with self.daemon(lambda *_: {"items": [], "next": 1}):
            self.fails(1, "in circles", "clients")

    def test_cannot_write(self):
        with self.daemon(lambda *_: STATUS), open("/dev/full", "w", encoding="utf-8") as full:
            run = subprocess.run([KVPOOLCTL, "--socket", self.path], stdout=full, stderr=subprocess.PIPE, text=True,
                                 check=False)
            self.assertEqual(run.returncode, 1)
            self.assertIn("cannot write the output", run.stderr)

    def test_help(self):
        whole, pin = self.ctl("--help")[1], self.ctl("pin", "--help")[1]
        self.assertIn("--ttl TIME", pin)
        self.assertEqual(self.ctl("help"), (0, whole, ""))
        self.assertEqual(self.ctl("help", "pin"), (0, pin, ""))
        self.assertIn("One of: f32 f16", self.ctl("capacity", "--help")[1])
        for verb in re.findall(r"^  ([a-z-]+) ", whole.split("\nOptions:")[0], re.M):
            text = self.ctl(verb, "--help")[1]
            self.assertEqual([line for line in (whole + text).splitlines() if len(line) > 80], [])

    def test_usage(self):
        self.fails(2, 'unknown command "stauts": did you mean "status"?', "stauts")
        self.fails(2, 'unknown option "--jsn": did you mean "--json"?', "--jsn")
        self.fails(2, '"ping" takes no argument', "ping", "x")
        self.fails(2, "means nothing to", "ping", "--dry-run")
        self.fails(2, 'column "pod" that there is none of: use all, or of SESSION,NAME,PID', "clients", "-o", "name,pod")


class Output(Case):
    def test_status(self):
        with self.daemon(lambda *_: STATUS):
            status, out, err = self.ctl()
            self.assertEqual((status, err), (0, ""))
            self.assertIn("● kvpoold 0.1.0   private   up 12min 4s   pid 1187   ready\n", out)
            self.assertIn("since start 71% of 418 k tokens", out)
            self.assertTrue(all(len(line) <= 80 for line in out.splitlines()), out)
            self.assertNotIn("\033", out)
            self.assertEqual(self.ctl("-q"), (0, "", ""))

    def test_status_json(self):
        with self.daemon(lambda *_: STATUS):
            status = self.json()
        self.assertEqual(status["schema"], "kvpool.status/1")
        self.assertEqual(status["uptime_seconds"], 724)
        tier = status["tiers"][0]
        self.assertEqual(sum(tier["states"].values()), tier["capacity_bytes"])
        self.assertIsNone(tier["page_size"])

    def test_pages(self):
        def answer(_, request):
            after = request.get("after", 0)
            return {"items": [namespace(after + i, "m\033%d" % (after + i)) for i in (1, 2)],
                    "next": after + 2 if after < 4 else 0}
        with self.daemon(answer) as d:
            status, out, _ = self.ctl("namespaces")
            self.assertEqual(status, 0)
            self.assertEqual([line.split()[0] for line in out.splitlines()[1:-1]], ["m?%d" % i for i in range(1, 7)])
            self.assertTrue(out.endswith("\n6 namespaces.\n"))
            self.assertEqual([r.get("after", 0) for _, r in d.requests], [0, 2, 4])
            listed = self.json("namespaces")["namespaces"]
        self.assertEqual([n["namespace"] for n in listed], [1, 2, 3, 4, 5, 6])
        self.assertEqual(listed[0]["cached_tokens"], 46592)
        self.assertIsNone(listed[0]["idle_seconds"])

    def test_namespaces_table(self):
        with self.daemon(lambda *_: {"items": [namespace(1, "qwen3-8b-bf16")]}):
            _, out, _ = self.ctl("namespaces")
            self.assertEqual(out.splitlines()[0].split(), ["MODEL", "FINGERPRINT", "B/TOKEN", "BLOCKS", "TOKENS",
                                                           "CACHED", "HIT%", "USED"])
            self.assertIn("147 456", out)
            self.assertIn("46 592", out)
            self.assertIn("1 namespace.\n", out)
            _, out, _ = self.ctl("namespaces", "--no-legend", "--bytes", "-o", "number,cached,used")
            self.assertEqual(out, "1 6870269952 -\n")

    def test_clients_table(self):
        items = [client(1, "vllm-chat"), client(2, "", asked_tokens=0, hit_tokens=0, shared_tokens=0, state="idle")]
        with self.daemon(lambda *_: {"items": items}):
            _, out, _ = self.ctl("clients")
            lines = out.splitlines()
            self.assertEqual(lines[0].split(), ["NAME", "PID", "USER", "NAMESPACE", "LEASED", "CACHED", "HIT%", "SHARED",
                                                "AGE", "STATE"])
            self.assertTrue(lines[1].startswith(f"vllm-chat {os.getpid()}"), out)
            self.assertIn("81%", lines[1])
            self.assertIn("62%", lines[1])
            self.assertTrue(lines[2].startswith("- "), out)
            self.assertEqual(lines[2].split()[-4:], ["-", "-", "41min", "idle"])
            _, out, _ = self.ctl("clients", "-o", "hit%,shared", "--no-legend")
            self.assertEqual(out.split(), ["81%", "62%", "-", "-"])
            listed = self.json("clients")["clients"]
        self.assertEqual(listed[0]["uid"], os.getuid())
        self.assertIsNone(listed[1]["name"])

    def test_table_fits_the_terminal(self):
        items = [client(1, "a-program-with-quite-a-long-name", namespace="model/of-somebody/with-a-long-name")]
        with self.daemon(lambda *_: {"items": items}):
            _, out, _ = self.ctl("clients", COLUMNS="80")
            self.assertTrue(all(len(line) <= 80 for line in out.splitlines()), out)
            self.assertIn("…", out)
            _, out, _ = self.ctl("clients")
            self.assertIn("a-program-with-quite-a-long-name", out)

    def test_empty_lists(self):
        with self.daemon(lambda *_: {}):
            self.assertEqual(self.ctl("namespaces"), (0, "0 namespaces.\n", ""))
            self.assertEqual(self.ctl("clients", "--no-legend"), (0, "", ""))
            self.assertEqual(self.json("clients"), {"schema": "kvpool.clients/1", "clients": []})

    def test_ping(self):
        with self.daemon(lambda *_: {"uptime_ns": 5 * 10**9}):
            status, out, _ = self.ctl("ping")
            self.assertEqual(status, 0)
            self.assertRegex(out, r"^kvpoold at .* answered in [0-9.]+ ms, up 5s\n$")
            ping = self.json("ping")
        self.assertEqual((ping["schema"], ping["uptime_seconds"], ping["socket"]), ("kvpool.ping/1", 5, self.path))
        self.assertTrue(0 < ping["seconds"] < 5)

    def test_version(self):
        with self.daemon(lambda *_: {"daemon": "0.9.1", "protocol_min": 1, "protocol_max": 2, "layout": 3}):
            _, out, _ = self.ctl("version")
            self.assertIn("kvpoold    0.9.1    protocol 1-2, layout 3\n", out)
            version = self.json("version")
        self.assertEqual(version["kvpoold"], {"version": "0.9.1", "protocol_min": 1, "protocol_max": 2, "layout": 3})

    def test_version_without_a_daemon(self):
        status, out, err = self.ctl("version")
        self.assertEqual(status, 3)
        self.assertIn("kvpoold    -\n", out)
        self.assertIn("cannot reach", err)
        status, out, _ = self.ctl("version", "--json")
        self.assertEqual(status, 3)
        self.assertIsNone(json.loads(out)["kvpoold"])
        self.assertEqual(self.ctl("--version")[0], 0)

    def test_ascii_and_foreign_bytes(self):
        with self.daemon(lambda *_: {**STATUS, "daemon": b"0\xff\033]0;x\a"}):
            _, out, _ = self.ctl(LC_ALL="C")
            self.assertTrue(out.isascii(), out)
            self.assertIn("* kvpoold 0??]0;x?", out)
            self.assertEqual(self.json()["version"], "0??]0;x?")

    def test_pretty(self):
        with self.daemon(lambda *_: STATUS):
            _, out, _ = self.ctl("--json=pretty")
            self.assertGreater(out.count("\n"), 20)
            self.assertEqual(json.loads(out)["pid"], 1187)
            self.assertEqual(self.ctl("-j")[1].count("\n"), 1)


class Schemas(unittest.TestCase):
    """The check itself must find what it is for."""

    def test_differences(self):
        good = {"schema": "kvpool.ping/1", "socket": "/x", "seconds": 0.5, "uptime_seconds": 3}
        self.assertEqual(schema.check(good), [])
        for bad, why in (({"seconds": "0.5"}, "another type"), ({"seconds": True}, "another type"),
                         ({"seconds": None}, "another type"), ({"more": 1}, "not in the schema"),
                         ({"schema": "kvpool.pong/1"}, "no schema")):
            self.assertIn(why, "".join(schema.check({**good, **bad})))
        del good["socket"]
        self.assertEqual(schema.check(good), ["kvpool.ping/1.socket: is missing"])
        listed = {"schema": "kvpool.clients/1", "clients": [1]}
        self.assertEqual(schema.check(listed), ["kvpool.clients/1.clients[0]: 1 has another type"])


class Flush(Case):
    DONE = {"namespaces": 1, "freed_blocks": 1204, "freed_bytes": GIB}

    def test_all(self):
        with self.daemon(lambda *_: self.DONE) as d:
            self.assertEqual(self.ctl("flush"), (0, "dropped 1 204 blocks (1.0 GiB) of 1 namespace\n", ""))
            self.assertEqual(d.requests, [("flush", {})])

    def test_one(self):
        with self.daemon(lambda *_: {**self.DONE, "voided_blocks": 3}) as d:
            _, out, _ = self.ctl("flush", "--namespace", "tiny", "--dry-run")
            self.assertEqual(out, "would drop 1 204 blocks (1.0 GiB) of 1 namespace, void 3 reserved ones\n")
            self.assertEqual(d.requests, [("flush", {"namespace": "tiny", "dry_run": 1})])

    def test_pinned(self):
        with self.daemon(lambda *_: {**self.DONE, "kept_blocks": 7}):
            status, out, err = self.ctl("flush", "--yes")
            self.assertEqual((status, err), (5, ""))
            self.assertIn("\n7 blocks are being read", out)
            status, out, _ = self.ctl("flush", "--json")
            self.assertEqual(status, 5)
            self.assertEqual(json.loads(out)["kept_blocks"], 7)

    def test_no_such_namespace(self):
        with self.daemon(lambda *_: {"code": 12, "text": "there is none, see kvpoolctl namespaces"}):
            self.fails(4, "refused flush of x: there is none", "flush", "--namespace", "x")

    def test_name_that_does_not_fit(self):
        with self.daemon(lambda *_: self.DONE):
            self.fails(2, "does not fit", "flush", "--namespace", "x" * 70000)


class Terminal(Case):
    """On a terminal: colours, and a question before flush."""

    def on_terminal(self, *args, answer="", **env):
        """Status and all that a terminal of 80 columns was sent."""
        pid, fd = pty.fork()
        if pid == 0:
            keep = {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
            os.execve(KVPOOLCTL, [KVPOOLCTL, "--socket", self.path, *args],
                      {"LC_ALL": "C.UTF-8", "TERM": "xterm", **keep, **env})
        out = b""
        while True:
            if answer and out.endswith(b"[y/N] "):
                os.write(fd, answer.encode())
                answer = ""
            self.assertTrue(select.select([fd], [], [], 20)[0], out)
            try:
                chunk = os.read(fd, 4096)
            except OSError:  # how Linux tells the end of a terminal
                break
            if not chunk:
                break
            out += chunk
        os.close(fd)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), out.decode()

    def test_colours(self):
        with self.daemon(lambda *_: STATUS):
            self.assertIn("\033[32mok\033[0m", self.on_terminal()[1])
            self.assertNotIn("\033", self.on_terminal(NO_COLOR="1")[1])
            self.assertNotIn("\033", self.on_terminal(TERM="dumb")[1])
            self.assertIn("\033", self.on_terminal(NO_COLOR="")[1])

    def test_json_is_pretty(self):
        with self.daemon(lambda *_: STATUS):
            self.assertGreater(self.on_terminal("-j")[1].count("\n"), 20)

    def test_flush_asks(self):
        with self.daemon(lambda *_: Flush.DONE) as d:
            status, out = self.on_terminal("flush", answer="y\n")
            self.assertEqual(status, 0, out)
            self.assertIn("Drop 1 204 blocks (1.0 GiB) of 1 namespace? [y/N] ", out)
            self.assertEqual([r.get("dry_run", 0) for _, r in d.requests], [1, 0])

    def test_flush_is_refused(self):
        with self.daemon(lambda *_: Flush.DONE) as d:
            for answer in ("n\n", "\n", "\x04"):
                status, out = self.on_terminal("flush", answer=answer)
                self.assertEqual(status, 1, out)
                self.assertIn("nothing was done", out)
            self.assertEqual([r.get("dry_run", 0) for _, r in d.requests], [1, 1, 1])

    def test_others_ask(self):
        """Kick, unpin --all and a resize that evicts ask; a resize that evicts nothing does not."""
        answers = {"clients": {"items": [client(7, "a")]}, "kick": {"name": "a"}, "unpin": {"pins": 2}, "status": STATUS,
                   "resize": {"was_bytes": 8 * GIB, "now_bytes": GIB, "handed_bytes": GIB, "evict_blocks": 12}}
        with self.daemon(lambda name, _: answers[name]) as d:
            for args, question in ((("kick", "a"), "End session 7 of a (process "), (("unpin", "--all"), "Take back every pin? "),
                                   (("resize", "1G"), "Make the pool smaller, 8.0 GiB to 1.0 GiB, and evict 12 blocks? ")):
                status, out = self.on_terminal(*args, answer="n\n")
                self.assertEqual(status, 1, out)
                self.assertIn(question, out)
                self.assertIn("nothing was done", out)
                self.assertEqual([r for name, r in d.requests if name == args[0] and not r.get("dry_run")], [])
                self.assertEqual(self.on_terminal(*args, answer="y\n")[0], 0)
                self.assertNotIn("[y/N]", self.on_terminal(*args, "--yes")[1])
                d.requests.clear()
            answers["resize"]["evict_blocks"] = 0
            self.assertNotIn("[y/N]", self.on_terminal("resize", "1G")[1])
            self.assertNotIn("[y/N]", self.on_terminal("unpin", "--label", "x")[1])

    def test_full_names(self):
        """A table is cut for the terminal, unless --full is given."""
        with self.daemon(lambda *_: {"items": [client(1, "n" * 60, namespace="m" * 60)]}):
            self.assertNotIn("n" * 60, self.on_terminal("clients")[1])
            self.assertIn("n" * 60, self.on_terminal("clients", "-l")[1])

    def test_flush_does_not_ask(self):
        with self.daemon(lambda *_: Flush.DONE) as d:
            self.assertNotIn("?", self.on_terminal("flush", "--yes")[1])
            self.assertNotIn("?", self.on_terminal("flush", "--dry-run")[1])
            self.assertEqual([r.get("dry_run", 0) for _, r in d.requests], [0, 1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
