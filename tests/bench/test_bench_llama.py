#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""test_bench_llama.py KVPOOL_BENCH KVPOOLD TINY_MODEL: the llama cases of kvpool-bench, once each, with a model that
tools/llama-tiny-model (TINY_MODEL) makes: who reused how much of what, not how fast.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

BENCH = KVPOOLD = TINY_MODEL = None
TEXT = "/usr/share/common-licenses/GPL-3"
WAIT = 200
# Case: tokens of the prompt, and of them those that whole blocks of 32 can offer.
CASES = {
    "llama/ttft": (2000, 1984),
    "llama/copy": (2000, 1984),
    "llama/overhead": (2000, 1984),
    "llama/ttft-500": (500, 480),
    "llama/ttft-4000": (4000, 3968),
}


class Llama(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        # Its backslash stands in env.sh as a shell would have to read it.
        cls.model = os.path.join(cls.folder.name, "tiny \\ model.gguf")
        subprocess.run([TINY_MODEL, cls.model], check=True)

    def run_bench(self, *args, cache="/nonexistent"):
        env = {**os.environ, "TMPDIR": self.folder.name, "XDG_CACHE_HOME": cache}
        env.pop("MODEL", None)
        return subprocess.run([BENCH, "--daemon", KVPOOLD, "--json", "--rounds", "1", "llama", *args], env=env,
                              capture_output=True, text=True, timeout=WAIT, check=False)

    def test_reuse_between_processes(self):
        cache = os.path.join(self.folder.name, "cache")
        os.makedirs(os.path.join(cache, "kvpool"))
        with open(os.path.join(cache, "kvpool", "env.sh"), "w", encoding="utf-8") as f:
            print("LLAMA_WAY=build\nMODEL=" + self.model.replace("\\", "\\\\").replace(" ", "\\ "), file=f)
        done = self.run_bench(cache=cache)
        # One round is too few for a bar, whatever the numbers are.
        self.assertEqual(done.returncode, 3, done.stderr)
        results = {r["case"]: r for r in json.loads(done.stdout)["results"]}
        self.assertEqual(list(results), list(CASES))
        for name, (tokens, reused) in CASES.items():
            r, ran = results[name], results[name]["with"]
            self.assertEqual((ran["tokens"], ran["reused_tokens"]), (tokens, reused))
            self.assertEqual(ran["model"], "tiny \\ model.gguf")
            self.assertEqual(ran["descriptors"], tokens // 32)
            self.assertEqual(ran["rounds"], 1)
            self.assertGreater(ran["writer_pid"], 0)
            self.assertGreater(ran["reader_pid"], 0)
            self.assertNotEqual(ran["writer_pid"], ran["reader_pid"])
            self.assertGreater(r["value"], 0)
            self.assertGreater(r["limit_value"], 0)
            if "bar" in r:
                self.assertEqual((r["holds"], r["why_not"]), (False, "too few rounds"))
        self.assertEqual(results["llama/ttft"]["sense"], "at_least")
        self.assertAlmostEqual(results["llama/ttft"]["ratio"],
                               results["llama/ttft"]["limit_value"] / results["llama/ttft"]["value"])

    def test_text_that_is_too_short(self):
        text = os.path.join(self.folder.name, "short.txt")
        with open(text, "w", encoding="utf-8") as f:
            f.write("Too short.\n" * 20)
        done = self.run_bench("--model", self.model, "--text", text)
        self.assertEqual(done.returncode, 1)
        self.assertIn("give a longer text", done.stderr)
        self.assertEqual(json.loads(done.stdout)["results"], [])

    def test_model_that_is_none(self):
        done = self.run_bench("--model", TEXT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot load the model", done.stderr)


if __name__ == "__main__":
    BENCH, KVPOOLD, TINY_MODEL = sys.argv[1:]
    if not os.path.isfile(TEXT):
        print(f"skipped: there is no {TEXT} (Debian package base-files)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
