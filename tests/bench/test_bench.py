#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""test_bench.py KVPOOL_BENCH KVPOOLD PAGE: what kvpool-bench prints, and what it does not count. PAGE is the source of
its man page. How fast anything is decides nothing here.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

BENCH = KVPOOLD = PAGE = None
WAIT = 100
LOOKUPS = ["lookup/128", "lookup/miss", "lookup/pin", "lookup/1024"]
FULL = ["lookup/socket", "reserve/64", "stress/evict", "clients/64", "overhead/block", "overhead/daemon"]
NUMBERS = ["value", "value_median", "limit_value", "limit_median", "ratio", "bar"]


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_bench(self, *args):
        # Addresses of a user who has no model anywhere.
        env = {**os.environ, "TMPDIR": self.folder, "HOME": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent"}
        env.pop("MODEL", None)
        done = subprocess.run([BENCH, "--daemon", KVPOOLD, *args], env=env, capture_output=True, text=True,
                              timeout=WAIT, check=False)
        left = [f for f in os.listdir(self.folder) if f.startswith("kvpool.")]
        self.assertEqual(left, [], "private daemons leave nothing behind")
        return done

    def results(self, text):
        """The results of a JSON answer by case, after a look at what holds for each."""
        answer = json.loads(text)
        self.assertEqual(answer["schema"], "kvpool.bench/1")
        for r in answer["results"]:
            for name in NUMBERS:
                self.assertGreater(r[name], 0, (r["case"], name))
            self.assertLessEqual(r["value"], r["value_median"])
            self.assertLessEqual(r["limit_value"], r["limit_median"])
            ratio, most = r["value"] / r["limit_value"], r["sense"] == "at_most"
            self.assertAlmostEqual(r["ratio"], ratio if most else 1 / ratio)
            within = r["ratio"] <= r["bar"] if most else r["ratio"] >= r["bar"]
            self.assertEqual(r["holds"], within and "why_not" not in r, r)
            for name in ("descriptors", "writer_pid", "reader_pid", "pool_full", "cpus", "rounds", "page_bytes"):
                self.assertIn(name, r["with"])
        return {r["case"]: r for r in answer["results"]}

    def test_too_small_a_case_does_not_hold(self):
        done = self.run_bench("--rounds", "5", "--descriptors", "20000", "lookup", "hash", "--json")
        self.assertEqual(done.returncode, 3, done.stderr)
        results = self.results(done.stdout)
        self.assertEqual(list(results), LOOKUPS + ["hash/16", "hash/32"] + FULL)
        for name in LOOKUPS + FULL:
            self.assertIs(results[name]["holds"], False)
            self.assertIn("descriptors", results[name]["why_not"])
            ran = results[name]["with"]
            self.assertGreaterEqual(ran["descriptors"], 20000)
            self.assertLess(ran["descriptors"], 30000)
            self.assertGreater(ran["writer_pid"], 0)
            self.assertNotEqual(ran["writer_pid"], ran["reader_pid"])
            self.assertEqual(ran["rounds"], 5)
        for name in ("reserve/64", "stress/evict"):
            self.assertIs(results[name]["with"]["pool_full"], True)
        for name in FULL:
            self.assertEqual(results[name]["sense"], "at_least" if name == "clients/64" else "at_most")
        self.assertEqual(results["overhead/block"]["limit_value"], 128)
        for name in ("lookup/128", "lookup/1024"):
            self.assertEqual(results[name]["with"]["syscalls"], 0)
        for name in ("hash/16", "hash/32"):
            self.assertNotIn("why_not", results[name])

    def test_too_few_rounds_do_not_hold(self):
        file = os.path.join(self.folder, "out.json")
        done = self.run_bench("--rounds", "4", "hash/32", "--json=" + file)
        self.assertEqual((done.returncode, done.stdout), (3, ""), done.stderr)
        with open(file, encoding="utf-8") as f:
            results = self.results(f.read())
        self.assertEqual(list(results), ["hash/16", "hash/32"])
        for r in results.values():
            self.assertIn("rounds", r["why_not"])

    def test_table(self):
        done = self.run_bench("--rounds", "5", "hash", "chain")
        self.assertIn(done.returncode, (0, 3), done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0].split()[:6], ["CASE", "VALUE", "LIMIT", "UNIT", "RATIO", "BAR"])
        self.assertEqual([line.split()[0] for line in lines[1:]], ["hash/16", "hash/32", "chain/turn"])

    def test_llama_asked_for_but_not_to_be_had(self):
        done = self.run_bench("--model", "/nonexistent.gguf", "llama", "--json")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("llama did not run: ", done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["results"], [])
        self.assertEqual([g["group"] for g in answer["not_run"]], ["llama"])

    def test_a_daemon_that_is_not_there(self):
        done = self.run_bench("--daemon", "/nonexistent/kvpoold", "lookup", "--json", "--descriptors", "1024")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nonexistent/kvpoold", done.stderr)
        self.assertEqual(json.loads(done.stdout)["results"], [])

    def test_wrong_use(self):
        for args in (["lookups"], ["lookup/12"], ["--rounds", "0"], ["--rounds", "65"], ["--rounds", "5x"],
                     ["--descriptors", "1"], ["--nonsense"]):
            done = self.run_bench(*args)
            self.assertEqual((done.returncode, done.stdout), (2, ""), args)
            self.assertIn(args[0].lstrip("-"), done.stderr)

    def test_page_has_every_option_and_case(self):
        done = self.run_bench("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        options, groups = done.stdout.split("Groups and their cases:")
        with open(PAGE, encoding="utf-8") as f:
            page = f.read()
        named = re.findall(r"--[a-z]+", options)
        self.assertGreater(len(named), 5)
        for option in named:
            self.assertRegex(page, rf"(?m)^(\*-h\*, )?\*{option}\*")
        cases = [c.strip() for line in groups.split("\n\n")[0].splitlines() if line
                 for c in line.split(None, 1)[1].split(",")]
        self.assertGreater(len(cases), 12)
        for case in cases:
            self.assertIn(f"*{case}*", page)


if __name__ == "__main__":
    BENCH, KVPOOLD, PAGE = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
