#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_daemon_start.py KVPOOLD PAGE: how the daemon starts and stops, and what it says when it does not start. PAGE is the
source of its man page.
"""
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import unittest

KVPOOLD = PAGE = None
SMALL = ["--pool-size", "4M", "--max-blocks", "1024"]
WAIT = 20


class Daemon:
    """One that is ready, at a socket in folder. Its log is read at the end."""

    def __init__(self, folder, *args, env=None, fds=(), prefix=()):
        read, write = os.pipe()
        self.socket = os.path.join(folder, "kvpool.sock")
        if "--user" not in args:
            args = ("--socket", self.socket) + args
        self.process = subprocess.Popen([*prefix, KVPOOLD, *SMALL, *args, "--ready-fd", str(write)], env=env,
                                        pass_fds=(write, *fds), stderr=subprocess.PIPE, text=True)
        os.close(write)
        self.ready = os.read(read, 16)
        # It closes the descriptor, so that a script can wait for the end of the file as well.
        self.more = os.read(read, 16) if self.ready else b""
        os.close(read)

    def end(self, sig=signal.SIGTERM):
        """The exit status and the log."""
        self.process.send_signal(sig)
        log = self.process.communicate(timeout=WAIT)[1]
        return self.process.returncode, log


def run(*args, env=None):
    """A run that ends by itself."""
    return subprocess.run([KVPOOLD, *args], env=env, capture_output=True, text=True, timeout=WAIT, check=False)


def connects(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        try:
            s.connect(path)
        except OSError:
            return False
        return True


class Start(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kvpool-start-")
        self.daemons = []

    def tearDown(self):
        for d in self.daemons:
            if d.process.poll() is None:
                d.process.kill()
            d.process.communicate(timeout=WAIT)
        shutil.rmtree(self.folder)

    def start(self, *args, **more):
        d = Daemon(self.folder, *args, **more)
        self.daemons.append(d)
        self.assertEqual(d.ready, b"\n", d.process.poll())
        self.assertEqual(d.more, b"")
        return d

    def test_without_standard_streams(self):
        """Nothing that it prints gets into a file that it opens."""
        self.start("--log-level", "debug", prefix=("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"))
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.connect(self.daemons[0].socket)
            s.send(b"nonsense")
            self.assertTrue(s.recv(65536).startswith(b"KVP1"))
        locks = [name for name in os.listdir(self.folder) if name.endswith(".lock")]
        self.assertEqual(len(locks), 2)
        for name in locks:
            self.assertEqual(os.path.getsize(os.path.join(self.folder, name)), 0, name)

    def refused(self, status, *args, **more):
        """A start that must fail with that status; what it said."""
        r = run(*SMALL, *args, **more)
        self.assertEqual(r.returncode, status, r.stderr)
        self.assertEqual(r.stdout, "")
        return r.stderr

    def test_version_and_help(self):
        r = run("--version")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertRegex(r.stdout, r"^kvpoold \d+\.\d+\.\d+\n$")
        r = run("--help")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        for option in ("--system", "--user", "--socket", "--admin-socket", "--pool-size", "--max-blocks", "--log-level",
                       "--ready-fd", "--version"):
            self.assertIn(option, r.stdout)
        with open(PAGE, encoding="utf-8") as f:
            paragraphs = {o for line in f if line.startswith("*--") for o in re.findall(r"\*(--[a-z-]+)\*", line)}
        self.assertEqual(paragraphs, set(re.findall(r"^  (--[a-z-]+)", r.stdout, re.M)))

    def test_bad_usage(self):
        for args, words in ((["--nonsense"], "--nonsense"), (["--pool-size", "12GB"], "12GB"), (["extra"], "extra"),
                            (["--log-level", "loud"], "loud"), (["--socket"], "needs an argument")):
            said = self.refused(2, *args)
            self.assertTrue(said.startswith("kvpoold: "), said)
            self.assertIn(words, said)
            self.assertIn("--help", said)

    def test_memory_that_the_machine_does_not_have(self):
        said = self.refused(78, "--socket", os.path.join(self.folder, "s"), "--host.numa", "node:1023")
        self.assertIn("host.numa", said)

    def test_ready_descriptor_that_is_not_open(self):
        said = self.refused(2, "--socket", os.path.join(self.folder, "s"), "--ready-fd", "77")
        self.assertIn("77", said)
        self.assertEqual(os.listdir(self.folder), [])

    def test_stops_when_told(self):
        for sig in (signal.SIGTERM, signal.SIGINT):
            d = self.start()
            self.assertTrue(connects(d.socket))
            self.assertTrue(connects(d.socket + ".admin"))
            status, log = d.end(sig)
            self.assertEqual(status, 0, log)
            self.assertIn("<5>ready ", log)
            self.assertIn("<5>stopped", log)
            self.assertEqual(os.listdir(self.folder), [])

    def test_log_level(self):
        d = self.start("--log-level", "err")
        self.assertEqual(d.end(), (0, ""))

    def test_is_for_its_owner(self):
        d = self.start()
        for path in (d.socket, d.socket + ".admin"):
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        with open(f"/proc/{d.process.pid}/limits", encoding="ascii") as f:
            core = [line.split()[4:6] for line in f if line.startswith("Max core file size")]
        self.assertEqual(core, [["0", "0"]])

    def test_two_at_once(self):
        first = self.start()
        said = self.refused(1, "--socket", first.socket)
        self.assertIn("another kvpoold serves " + first.socket, said)
        self.assertTrue(connects(first.socket))
        self.assertEqual(first.end()[0], 0)

    def test_two_that_share_only_the_admin_socket(self):
        first = self.start()
        said = self.refused(1, "--socket", os.path.join(self.folder, "other"), "--admin-socket", first.socket + ".admin")
        self.assertIn(first.socket + ".admin", said)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "other")))

    def test_what_a_killed_one_left_behind(self):
        self.start().end(signal.SIGKILL)
        self.assertIn("kvpool.sock", os.listdir(self.folder))
        second = self.start()
        self.assertTrue(connects(second.socket))
        status, log = second.end()
        self.assertEqual(status, 0)
        self.assertIn("replaced a socket", log)
        self.assertEqual(os.listdir(self.folder), [])

    def test_many_starts_at_once(self):
        """Of ten that start on what a killed one left behind, one serves."""
        self.start().end(signal.SIGKILL)
        path = os.path.join(self.folder, "kvpool.sock")
        procs = [subprocess.Popen([KVPOOLD, *SMALL, "--socket", path], stderr=subprocess.PIPE, text=True)
                 for _ in range(10)]
        losers = [p for p in procs if self.lost(p)]
        winners = [p for p in procs if p not in losers]
        self.assertTrue(connects(path))
        for p in winners:
            p.terminate()
        logs = [p.communicate(timeout=WAIT)[1] for p in procs]
        self.assertEqual((len(losers), [p.returncode for p in winners]), (9, [0]), logs)
        self.assertEqual({p.returncode for p in losers}, {1})

    @staticmethod
    def lost(p):
        """Whether p ends by itself. The winner says that it is ready, and then nothing more."""
        return "ready" not in next((line for line in p.stderr if "replaced a socket" not in line), "")

    def test_path_that_is_no_socket(self):
        path = os.path.join(self.folder, "precious")
        with open(path, "w", encoding="ascii") as f:
            f.write("data")
        said = self.refused(1, "--socket", path)
        self.assertIn(path + " is there and is no socket", said)
        with open(path, encoding="ascii") as f:
            self.assertEqual(f.read(), "data")

    def test_socket_of_another_program(self):
        for kind in (socket.SOCK_SEQPACKET, socket.SOCK_STREAM):
            path = os.path.join(self.folder, f"taken{int(kind)}")
            with socket.socket(socket.AF_UNIX, kind) as s:
                s.bind(path)
                s.listen()
                said = self.refused(1, "--socket", path)
                self.assertIn("another program listens at " + path, said)
                self.assertTrue(os.path.exists(path))

    def test_folder_that_cannot_be_made(self):
        said = self.refused(1, "--socket", os.path.join(self.folder, "a", "b", "s"))
        self.assertIn(os.path.join(self.folder, "a", "b"), said)

    def test_folder_is_made(self):
        path = os.path.join(self.folder, "new", "s")
        d = self.start("--socket", path)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode), 0o700)
        self.assertTrue(connects(path))
        d.end()

    def test_user_instance(self):
        env = dict(os.environ, XDG_RUNTIME_DIR=self.folder)
        d = self.start("--user", env=env)
        self.assertTrue(connects(os.path.join(self.folder, "kvpool", "kvpool.sock")))
        self.assertTrue(connects(os.path.join(self.folder, "kvpool", "admin.sock")))
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.folder, "kvpool")).st_mode), 0o700)
        self.assertEqual(d.end()[0], 0)

    def test_user_instance_without_a_session(self):
        env = {k: v for k, v in os.environ.items() if k != "XDG_RUNTIME_DIR"}
        self.assertIn("$XDG_RUNTIME_DIR is not set", self.refused(2, "--user", env=env))

    def test_pool_that_is_too_small(self):
        said = self.refused(2, "--socket", os.path.join(self.folder, "s"), "--pool-size", "1")
        self.assertIn("--pool-size 1: is too small: give auto, or a size from 64K", said)
        self.assertEqual(os.listdir(self.folder), [])

    def listening(self, name):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(s.close)
        s.bind(os.path.join(self.folder, name))
        s.listen()
        return s

    def test_sockets_of_the_service_manager(self):
        """They come as descriptors 3 and 4, by name; the files stay when the daemon stops."""
        sockets = [self.listening("from-admin"), self.listening("from-client")]
        passed = [os.dup(s.fileno()) for s in sockets]
        script = f'exec 3<&{passed[0]} 4<&{passed[1]}; LISTEN_PID=$$ exec "$@"'
        env = dict(os.environ, LISTEN_FDS="2", LISTEN_FDNAMES="admin:client")
        # bash: descriptors beyond 9.
        d = self.start(env=env, fds=passed, prefix=("bash", "-c", script, "bash"))
        for fd in passed:
            os.close(fd)
        for s in sockets:
            s.close()
        for name in ("from-admin", "from-client"):
            self.assertTrue(connects(os.path.join(self.folder, name)))
        self.assertEqual(d.end()[0], 0)
        self.assertEqual(sorted(os.listdir(self.folder)), ["from-admin", "from-client"])

    def test_tells_the_service_manager(self):
        path = os.path.join(self.folder, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.bind(path)
            s.settimeout(WAIT)
            d = self.start(env=dict(os.environ, NOTIFY_SOCKET=path))
            said = s.recv(4096).decode()
            self.assertIn("READY=1\n", said)
            self.assertRegex(said, r"STATUS=0 clients; host 0\.0/0\.0 GiB")
            self.assertEqual(d.end()[0], 0)
            self.assertIn("STOPPING=1", s.recv(4096).decode())


if __name__ == "__main__":
    KVPOOLD = sys.argv.pop(1)
    PAGE = sys.argv.pop(1)
    unittest.main(verbosity=2)
