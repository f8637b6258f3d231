#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The completions that are made for shells: bash is asked what it offers; the others are parsed where they are installed.

usage: test_kvpoolctl_shells.py KVPOOLCTL KVPOOL.PROTO BASH ZSH FISH
"""
import os
import re
import shutil
import subprocess
import sys
import unittest

from ctl_case import KVPOOLCTL, STATUS, Case, client, namespace

BASH, ZSH, FISH = sys.argv[3:6]


def verbs():
    text = subprocess.run([KVPOOLCTL, "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^  ([a-z][a-z-]+) +[A-Z]", text, re.M))


def own_options(verb):
    """Options of a verb, by its help."""
    text = subprocess.run([KVPOOLCTL, verb, "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^  .. (--[a-z-]+)", text, re.M))


class Bash(Case):
    def offers(self, *words):
        """What bash would offer for the last word."""
        script = f'''source "{BASH}"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kvpoolctl; printf '%s\\n' "${{COMPREPLY[@]}}"'''
        env = {"PATH": os.path.dirname(KVPOOLCTL) + ":" + os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        run = subprocess.run(["bash", "--norc", "-c", script, "bash", "kvpoolctl", *words], capture_output=True, text=True,
                             env=env, timeout=30, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return [line for line in run.stdout.split("\n") if line]

    def test_verbs(self):
        self.assertEqual(set(self.offers("")), verbs())
        self.assertEqual(self.offers("sta"), ["status", "stats"])
        self.assertEqual(self.offers("--json=short", "--timeout", "5", "rel"), ["reload"])

    def test_options(self):
        general = set(self.offers("--"))
        self.assertIn("--json", general)
        for verb in verbs():
            self.assertEqual(set(self.offers(verb, "--")) - general, own_options(verb), verb)

    def test_choices(self):
        self.assertEqual(self.offers("config", ""), ["show", "diff", "get", "set", "unset"])
        self.assertEqual(self.offers("prefixes", "--sort", ""), ["hits", "bytes", "age"])
        self.assertEqual(self.offers("capacity", "--dtype", "q4"), ["q4_1", "q4_0"])
        self.assertIn("HIT%", self.offers("clients", "-o", ""))
        self.assertIn("counters", self.offers("info", ""))
        self.assertEqual(self.offers("log-level", "d"), ["debug"])

    def test_files(self):
        path = os.path.join(self.dir, "tokens.txt")
        with open(path, "w", encoding="utf-8"):
            self.assertEqual(self.offers("explain", "--tokens", self.dir + "/to"), [path])
            self.assertEqual(self.offers("--socket", self.dir + "/to"), [path])

    def test_names(self):
        answers = {"clients": {"items": [client(1, "my client"), client(2, "other")]}, "status": STATUS,
                   "namespaces": {"items": [namespace(1, "tiny"), namespace(2, "big")]},
                   "config": {"items": [{"key": "host.numa"}]}}
        with self.daemon(lambda name, _: answers.get(name, {"code": 4})):
            at = ("--socket", self.path)
            self.assertEqual(self.offers(*at, "kick", ""), ["my client", "other"])
            self.assertEqual(self.offers(*at, "flush", "--namespace", "t"), ["tiny"])
            self.assertEqual(self.offers(*at, "config", "get", ""), ["host.numa"])
            self.assertEqual(self.offers(*at, "show", "b"), ["big"])

    def test_no_daemon(self):
        self.assertEqual(self.offers("--socket", self.path, "kick", ""), [])


class Others(unittest.TestCase):
    def check(self, shell, path, *args):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for verb in verbs():
            self.assertIn(verb, text)
            for option in own_options(verb):
                self.assertIn(option.strip("-"), text)
        program = shutil.which(shell)
        if not program:
            self.skipTest(f"there is no {shell} to parse it")
        run = subprocess.run([program, *args, path], capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_zsh(self):
        self.check("zsh", ZSH, "-n")

    def test_fish(self):
        self.check("fish", FISH, "--no-execute")
        run = subprocess.run(["fish", "-c", f'source "{FISH}"; complete -C "kvpoolctl sta"; complete -C "kvpoolctl info co"'],
                             capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(run.stderr, "")
        self.assertEqual([line.split("\t")[0] for line in run.stdout.splitlines()], ["stats", "status", "counters"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
