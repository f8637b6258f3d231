#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_config.py KVPOOLD PROTO PAGE EXAMPLE: the configuration of a daemon, from its files to what it does. PROTO is
proto/kvpool.proto, PAGE the source of kvpool.conf(5), EXAMPLE the file to start from.
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import wire

KVPOOLD = PROTO = PAGE = EXAMPLE = None
WAIT = 20
SMALL = "[host]\npool_size = 4M\nmax_blocks = 1024\n"
FOLDERS = {"vendor": "usr/lib/kvpool/kvpool.conf.d", "local": "etc/kvpool/kvpool.conf.d", "runtime": "run/kvpool/kvpool.conf.d"}


def run(*args, env=None):
    return subprocess.run([KVPOOLD, *args], env=env, capture_output=True, text=True, timeout=WAIT, check=False)


def sections(text):
    """{section: {key: value}} of a file of the configuration, comments gone."""
    out, section = {}, None
    for row in text.splitlines():
        row = re.sub(r"(^|\s)#.*", "", row).strip()
        if row.startswith("["):
            section = out.setdefault(row.strip("[]"), {})
        elif row:
            key, value = row.split(" = ")
            section[key] = value
    return out


class Admin:
    """A connection to the admin socket."""

    def __init__(self, path):
        self.types = wire.load(PROTO)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(WAIT)
        self.socket.connect(path)
        self.number = 0

    def ask(self, op, **fields):
        """The fields of the reply, those that are not there left out; of an error, with its code as "error"."""
        name = "".join(part.capitalize() for part in op.split("_"))
        self.number += 1
        self.socket.send(wire.frame(wire.OPS[op], 0, self.number, wire.encode(self.types, name, fields), 0))
        packet = self.socket.recv(65536)
        _, _, flags, number, _ = wire.HEADER.unpack(packet[:wire.HEADER.size])
        assert number == self.number, number
        error = flags & wire.ERROR
        reply = wire.decode(self.types, "Error" if error else name + "Reply", packet[wire.HEADER.size:])
        return {"error": reply["code"], "text": reply["text"]} if error else reply

    def keys(self):
        """{key: item} of the whole configuration."""
        items, after = {}, 0
        while True:
            reply = self.ask("config", after=after)
            items.update((i["key"], i) for i in reply.get("items", []))
            after = reply.get("next", 0)
            if not after:
                return items


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kvpool-config-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = os.path.join(self.folder, "etc/kvpool/kvpool.conf")
        for folder in FOLDERS.values():
            os.makedirs(os.path.join(self.folder, folder))

    def put(self, text, where=None, name="a.conf"):
        path = os.path.join(self.folder, FOLDERS[where], name) if where else self.file
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path


class Commands(Case):
    """What is looked at, and not run."""

    def check(self, *args, status=0, system=True):
        more = ("--system", "--config-root", self.folder) if system else ()
        r = run("--check-config", *more, *args)
        self.assertEqual(r.returncode, status, r.stderr)
        return r.stderr if status else r.stdout

    def test_sound(self):
        self.assertEqual(self.check(), "The configuration is sound: 0 files.\n")
        self.put(SMALL)
        self.assertEqual(self.check(), "The configuration is sound: 1 file.\n")
        self.assertEqual(self.check(self.file, system=False), "The configuration is sound: 1 file.\n")
        self.put("[limits]\nmax_clients = 7\n", "runtime")
        self.assertEqual(self.check(), "The configuration is sound: 2 files.\n")

    def test_everything_that_is_wrong(self):
        self.put("[host]\npool_size = 12GB\n\npool_sizes = 1G\n[hosts]\n")
        vendor = self.put("[limits]\nmax_clients = 0\n", "vendor")
        said = self.check(status=78).splitlines()
        self.assertEqual(len(said), 4, said)
        for row, words in zip(said, ((f"{vendor}:2: limits.max_clients = 0: is too small", "1 to 4096"),
                                     (f"{self.file}:2: host.pool_size = 12GB: has no known unit", "16GiB"),
                                     (f"{self.file}:4: host.pool_sizes: is no key", 'did you mean "pool_size"?'),
                                     (f"{self.file}:5: [hosts]: there is no section", 'did you mean "host"?'))):
            self.assertTrue(row.startswith("kvpoold: " + words[0]), row)
            self.assertIn(words[1], row)
        # The same of one file alone.
        self.assertEqual(len(self.check(vendor, status=78, system=False).splitlines()), 1)

    def test_file_that_is_not_there(self):
        self.assertIn("/nothing: cannot be read: No such file", self.check("/nothing", status=78, system=False))
        self.assertIn("/nothing: cannot be read", self.check("--config", "/nothing", status=78, system=False))

    def test_wrong_option(self):
        self.assertIn("--pool-size 1X", self.check("--pool-size", "1X", status=2))

    def dump(self, *args, env=None):
        r = run("--dump-config", *args, env=env)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        return r.stdout

    def test_dump(self):
        self.put("[host]\npool_size = 4M\n[namespace Qwen2 7B]\nttl = 1h\n")
        self.put("[host]\nnuma = off\n", "local")
        text = self.dump("--system", "--config-root", self.folder, "--max-blocks", "7", "--namespace.*.priority=9")
        local = os.path.join(self.folder, FOLDERS["local"], "a.conf")
        for row in (f"pool_size = 4M # {self.file}:2", f"numa = off # {local}:2", "max_blocks = 7 # command line",
                    "log_level = info # default"):
            self.assertIn(row + "\n", text)
        self.assertIn(f"[namespace Qwen2 7B]\nttl = 1h # {self.file}:4\n", text)
        self.assertIn("[namespace *]\npriority = 9 # command line\n", text)
        # It is a file that says the same.
        again = self.dump("--config", self.put(text))
        self.assertEqual(sections(again), sections(text))

    def test_user(self):
        home = os.path.join(self.folder, "home")
        os.makedirs(os.path.join(home, ".config/kvpool/kvpool.conf.d"))
        with open(os.path.join(home, ".config/kvpool/kvpool.conf"), "w", encoding="ascii") as f:
            f.write("[limits]\nmax_clients = 3\n")
        env = {"HOME": home}
        self.assertEqual(sections(self.dump("--user", env=env))["limits"]["max_clients"], "3")
        # Nothing is read for an instance that nobody else knows of, nor where there is no home.
        for args, more in ((("--socket", "/nowhere/s"), env), (("--user",), {})):
            self.assertNotIn("kvpool.conf", self.dump(*args, env=more))
        env["XDG_CONFIG_HOME"] = os.path.join(home, "elsewhere")
        self.assertNotIn("kvpool.conf", self.dump("--user", env=env))

    def test_page_and_example(self):
        """Both have the keys that there are, with their defaults, and no others."""
        defaults = sections(self.dump("--socket", "/s"))
        rules = {"ttl": "never", "priority": "50"}
        with open(EXAMPLE, encoding="utf-8") as f:
            example = f.read()
        self.put(example)
        self.check()
        # Take the comments away from what can be set.
        values = sections(re.sub(r"^#(\[|[a-z_]+ = )", r"\1", example, flags=re.M))
        self.assertEqual(values, {**defaults, "namespace Qwen2*": rules})
        self.put(re.sub(r"^#(\[|[a-z_]+ = )", r"\1", example, flags=re.M))
        self.check()
        with open(PAGE, encoding="utf-8") as f:
            page = f.read().replace("\\", "").split("# KEYS\n")[1]
        found, section = {}, None
        for row in page.splitlines():
            m = re.match(r"## \[(.*)\]$", row)
            if m:
                section = found.setdefault(m.group(1), {})
            elif re.match(r"\*[a-z_]+\* = ", row):
                key = row.split("*")[1]
            elif section is not None and row.startswith("\t") and "[re" in row:
                m = re.search(r"Default: _(.*?)_\. ", row)
                section[key] = m.group(1) if m else "never"
        self.assertEqual(found, {**defaults, "namespace MODEL": rules})


class Running(Case):
    """A daemon with that configuration."""

    def start(self, *args, text=SMALL, env=None):
        self.put(text)
        read, write = os.pipe()
        self.path = os.path.join(self.folder, "s")
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.notify.close)
        self.notify.bind(os.path.join(self.folder, "notify"))
        self.notify.settimeout(WAIT)
        env = dict(env or os.environ, NOTIFY_SOCKET=os.path.join(self.folder, "notify"))
        self.process = subprocess.Popen([KVPOOLD, "--system", "--socket", self.path, "--config-root", self.folder,
                                         "--ready-fd", str(write), *args], env=env, pass_fds=(write,),
                                        stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.kill)
        os.close(write)
        self.assertEqual(os.read(read, 1), b"\n")
        os.close(read)
        self.admin = Admin(self.path + ".admin")
        self.addCleanup(self.admin.socket.close)
        self.assertIn("READY=1", self.notify.recv(4096).decode())

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=WAIT)

    def end(self):
        self.process.terminate()
        log = self.process.communicate(timeout=WAIT)[1]
        self.assertEqual(self.process.returncode, 0, log)
        return log

    def hang_up(self):
        """SIGHUP, and until the daemon says that it is ready again."""
        self.process.send_signal(signal.SIGHUP)
        said = ""
        while "RELOADING=1" not in said:
            said = self.notify.recv(4096).decode()
        self.assertRegex(said, r"^RELOADING=1\nMONOTONIC_USEC=\d+$")
        self.assertEqual(self.notify.recv(4096).decode(), "READY=1")

    def value(self, key):
        reply = self.admin.ask("config", key=key)
        return reply["items"][0]["value"] if "items" in reply else None

    def test_wrong_at_the_start(self):
        self.put("[host]\nnuma = mars\n")
        path = os.path.join(self.folder, "s")
        r = run("--system", "--socket", path, "--config-root", self.folder)
        self.assertEqual((r.returncode, r.stdout), (78, ""))
        self.assertIn(f"{self.file}:2: host.numa = mars: is none of the choices: give interleave, ", r.stderr)
        self.assertFalse(os.path.exists(path))

    def test_hang_up(self):
        self.start()
        self.assertEqual(self.value("limits.max_clients"), "256")
        self.put(SMALL + "[limits]\nmax_clients = 9\n")
        self.hang_up()
        self.assertEqual(self.value("limits.max_clients"), "9")
        # One mistake, and nothing of it.
        self.put(SMALL + "[limits]\nmax_clients = 10\nmax_client = 1\n")
        self.hang_up()
        self.assertEqual(self.value("limits.max_clients"), "9")
        os.unlink(self.file)
        self.hang_up()
        self.assertEqual(self.value("limits.max_clients"), "256")
        log = self.end()
        self.assertIn("changed=limits.max_clients", log)
        self.assertIn(f"<3>{self.file}:6: limits.max_client: is no key", log)
        self.assertIn("<3>the configuration stays as it was", log)
        self.assertRegex(log, r"<4>these changes of the configuration need a restart count=1 keys=host.max_blocks")

    def test_reload(self):
        self.start()
        self.assertEqual(self.admin.ask("reload"), {})
        self.put(SMALL.replace("1024", "2048") + "[limits]\nmax_clients = 9\n[namespace *]\nttl = 1h\n")
        reply = self.admin.ask("reload")
        self.assertEqual(reply, {"changed": ["limits.max_clients", "namespace.*.ttl"], "restart": ["host.max_blocks"]})
        item = self.admin.keys()["host.max_blocks"]
        self.assertEqual((item["value"], item["file_value"], item["restart"]), ("1024", "2048", 1))
        self.put("[host]\npool_size = x\nnuma = y\n")
        reply = self.admin.ask("reload")
        self.assertEqual(reply["error"], 14)
        self.assertIn(f"{self.file}:2: host.pool_size = x: is no number", reply["text"])
        self.assertIn("and 1 more", reply["text"])
        self.assertEqual(self.value("limits.max_clients"), "9")
        self.end()

    def test_pool_size(self):
        self.start()
        self.assertEqual(self.admin.ask("status")["pool_bytes"], 4 << 20)
        self.put(SMALL.replace("4M", "8M"))
        self.assertEqual(self.admin.ask("reload"), {"changed": ["host.pool_size"]})
        self.assertEqual(self.admin.ask("status")["pool_bytes"], 8 << 20)
        # More than the machine has: refused, with all else that the files say.
        self.put(SMALL.replace("4M", "8T") + "[limits]\nmax_clients = 9\n")
        reply = self.admin.ask("reload")
        self.assertEqual(reply["error"], 14)
        self.assertIn("host.pool_size: ", reply["text"])
        self.assertEqual(self.value("limits.max_clients"), "256")
        # What an operator asks for is a setting like another.
        self.admin.ask("resize", bytes=2 << 20)
        item = self.admin.keys()["host.pool_size"]
        self.assertEqual((item["value"], item["origin"]), ("2M", "config set"))
        self.admin.ask("config_set", key="host.pool_size", unset=True)
        self.assertEqual(self.admin.ask("status")["pool_bytes"], 8 << 20)
        self.end()

    def test_set(self):
        self.start("--cache.pin_budget=30%")
        reply = self.admin.ask("config_set", key="cache.pin_budget", value="10%")
        self.assertEqual(reply, {"was": "30%", "now": "10%"})
        item = self.admin.ask("config", key="cache.pin_budget")["items"][0]
        self.assertEqual((item["origin"], item["default"], item["file_value"], item["type"]),
                         ("config set", "20%", "20%", "size"))
        self.admin.ask("reload")
        self.assertEqual(self.value("cache.pin_budget"), "10%")
        self.assertEqual(self.admin.ask("config_set", key="cache.pin_budget", unset=True), {"was": "10%", "now": "30%"})
        self.assertEqual(self.admin.ask("config", key="cache.pin_budget")["items"][0]["origin"], "command line")
        # A rule that was not there, and is not there again.
        self.assertEqual(self.admin.ask("config_set", key="namespace.Qwen2.5 7B.ttl", value="2h"), {"now": "2h"})
        self.assertEqual(self.value("namespace.Qwen2.5 7B.ttl"), "2h")
        self.assertEqual(self.admin.ask("config_set", key="namespace.Qwen2.5 7B.ttl", unset=True), {"was": "2h"})
        self.assertEqual(self.admin.ask("config", key="namespace.Qwen2.5 7B.ttl")["error"], 12)
        self.assertIn("<5>configuration set key=cache.pin_budget was=30% now=10% client_pid=", self.end())

    def test_set_refused(self):
        self.start()
        for key, value, code, words in (
                ("host.max_blocks", "7", 14, 'write "max_blocks = 7" below [host]'),
                ("host.pool_sizes", "7", 12, 'did you mean "pool_size"?'),
                ("pool_size", "7", 12, "SECTION.KEY"),
                ("limits.max_clients", "0", 14, "limits.max_clients = 0: is too small: give a number from 1 to 4096"),
                ("limits.max_clients", "", 14, "is empty")):
            reply = self.admin.ask("config_set", key=key, value=value)
            self.assertEqual(reply["error"], code, reply)
            self.assertIn(words, reply["text"])
        self.assertEqual(self.admin.ask("config", key="host.pool_sizes")["error"], 12)
        # They were understood.
        self.assertNotIn("protocol_errors", self.admin.ask("status"))
        self.end()

    def test_all_keys(self):
        self.start(text=SMALL + "".join(f"[namespace {'m' * 150}{i}*]\nttl = {i + 1}h\n" for i in range(200)))
        items = self.admin.keys()
        dumped = sections(run("--dump-config", "--system", "--config-root", self.folder).stdout)
        self.assertEqual({k: i["value"] for k, i in items.items()},
                         {f"{s.replace(' ', '.', 1)}.{k}": v for s, keys in dumped.items() for k, v in keys.items()})
        for item in items.values():
            self.assertTrue(item["type"] and item["choices"] and item["help"] and item["origin"], item)
        self.end()

    def clients(self, n):
        """How many of n connections are let in."""
        taken = []
        for _ in range(n):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.connect(self.path)
            taken.append(s)
        # Answered in order, so that all of them were looked at.
        refused = 0
        self.admin.ask("status")
        for s in taken:
            s.settimeout(0)
            try:
                refused += b"all it takes" in s.recv(4096)
            except BlockingIOError:
                pass
            s.close()
        return n - refused

    def test_limit_of_clients(self):
        self.start()
        self.admin.ask("config_set", key="limits.max_clients", value="2")
        first = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(first.close)
        first.connect(self.path)
        self.until(lambda: self.clients(4) == 1)
        self.admin.ask("config_set", key="limits.max_clients", unset=True)
        self.until(lambda: self.clients(4) == 4)
        self.end()

    @staticmethod
    def until(condition):
        end = time.monotonic() + WAIT
        while not condition():
            if time.monotonic() > end:
                raise AssertionError("it does not come true")
            time.sleep(0.02)

    def test_log_level(self):
        self.start("--log-level", "notice")
        self.assertEqual(self.admin.ask("log_level"), {"was": "notice", "now": "notice"})
        reply = self.admin.ask("log_level", level="debug", for_s=1)
        self.assertEqual((reply["was"], reply["now"], reply["for_s"]), ("notice", "debug", 1))
        self.assertEqual(self.admin.ask("status")["log_level"], "debug")
        self.assertEqual(self.value("daemon.log_level"), "notice")
        self.until(lambda: self.admin.ask("log_level")["now"] == "notice")
        self.assertNotIn("for_s", self.admin.ask("log_level"))
        # The level of the configuration does not have to end.
        self.admin.ask("log_level", level="debug", for_s=1000)
        self.assertEqual(self.admin.ask("log_level", level="notice", for_s=600), {"was": "debug", "now": "notice"})
        # What is to stay is a setting, and ends what was for a while.
        self.admin.ask("log_level", level="debug", for_s=1000)
        self.assertEqual(self.admin.ask("log_level", level="err"), {"was": "debug", "now": "error"})
        self.assertEqual(self.value("daemon.log_level"), "error")
        self.admin.ask("config_set", key="daemon.log_level", unset=True)
        self.assertEqual(self.admin.ask("log_level")["now"], "notice")
        reply = self.admin.ask("log_level", level="loud")
        self.assertEqual(reply["error"], 14)
        self.assertIn("debug, info, notice", reply["text"])
        log = self.end()
        self.assertIn("<5>log level changed was=notice now=debug for_s=1 ", log)
        self.assertIn("<5>log level is back level=notice", log)

    def test_level_for_a_while_is_kept_over_a_reload(self):
        self.start()
        self.admin.ask("log_level", level="debug", for_s=1000)
        self.admin.ask("reload")
        self.assertEqual(self.admin.ask("log_level")["now"], "debug")
        # Unless the reload is about the level.
        self.put(SMALL + "[daemon]\nlog_level = warning\n")
        self.admin.ask("reload")
        self.assertEqual(self.admin.ask("log_level"), {"was": "warning", "now": "warning"})
        self.end()

    def test_log_without_a_journal(self):
        """What the journal does not take goes to stderr."""
        if os.path.exists("/run/systemd/journal/socket"):
            self.skipTest("there is a journal, and nobody asked for lines in it")
        self.start("--log-target", "journal")
        self.assertIn("<5>ready ", self.end())

    def test_status_line(self):
        """It is told when it is another one."""
        self.start(text=SMALL + "[daemon]\nstatus_interval = 1s\n")
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.connect(self.path)
        self.assertEqual(self.notify.recv(4096).decode(), "STATUS=1 client; host 0.0/0.0 GiB")
        s.close()
        self.assertEqual(self.notify.recv(4096).decode(), "STATUS=0 clients; host 0.0/0.0 GiB")
        self.end()


if __name__ == "__main__":
    KVPOOLD, PROTO, PAGE, EXAMPLE = sys.argv[1:5]
    del sys.argv[1:5]
    unittest.main(verbosity=2)
