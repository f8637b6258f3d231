#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""summary.py [--failed=N] LOG...: adds up what `meson test` wrote to its JSON logs, for run-tests.

Says which tests were skipped and why, prints the output of those that failed, and ends with the line
"N passed, N failed, N skipped". The name of a log stands before its tests, but for the log "plain".

summary.py --figures COMMIT LOG: the results of one log as lines to keep.
"""
import json
import os
import sys

TAIL = 80  # lines of a failed test that are shown; the log has the rest
PASSED = {"OK", "EXPECTEDFAIL"}


def read(path):
    """The tests of one log; a line each."""
    with open(path, encoding="utf-8", errors="replace") as f:
        return [json.loads(line) for line in f if line.strip()]


def name_of(test):
    """kvpool:unit+slow / x -> x"""
    return test["name"].split(" / ")[-1]


def lines_of(test):
    return [line for part in ("stdout", "stderr") for line in (test.get(part) or "").splitlines() if line.strip()]


def reason_of(test):
    """Why it was skipped: the line that says so, or else the last one."""
    lines = lines_of(test)
    for line in lines:
        if line.lower().startswith(("skipped:", "skip:")):
            return line.split(":", 1)[1].strip()
    return lines[-1].strip() if lines else "it does not say why"


def print_failure(label, test):
    lines = lines_of(test)
    print(f"\n---- {label}{name_of(test)}: {test['result'].lower()} after {test['duration']:.1f} s"
          f" (exit status {test['returncode']})")
    if len(lines) > TAIL:
        print(f"[{len(lines) - TAIL} lines before these]")
    print("\n".join(lines[-TAIL:]) or "[no output]")
    print(f"---- again: {' '.join(test['command'])}")


def report(logs):
    """Prints what there is to say. Returns how many passed, failed and were skipped."""
    passed, failed, skipped = [], [], []
    for label, tests in logs:
        for test in tests:
            kind = passed if test["result"] in PASSED else skipped if test["result"] == "SKIP" else failed
            kind.append((label, test))
    if skipped:
        print("\nSkipped:")
        for label, test in skipped:
            print(f"  {label}{name_of(test)}: {reason_of(test)}")
    for label, test in failed:
        print_failure(label, test)
    if failed:
        print("\nFailed:")
        for label, test in failed:
            print(f"  {label}{name_of(test)}: {test['result'].lower()}")
    return len(passed), len(failed), len(skipped)


def figures(commit, path):
    """A line for each test, to keep: which commit, what came of it, how long it took, and its last words."""
    for test in read(path):
        last = (lines_of(test) or ["-"])[-1].strip()
        print(f"{commit} {name_of(test)} {test['result']} {test['duration']:.0f} s {last}")
    return 0


def main():
    """The option --failed=N counts what failed outside of the logs: a build."""
    if sys.argv[1:2] == ["--figures"]:
        return figures(*sys.argv[2:4])
    outside = sum(int(a[len("--failed="):]) for a in sys.argv[1:] if a.startswith("--failed="))
    logs = []
    for path in (a for a in sys.argv[1:] if not a.startswith("--failed=")):
        stem = os.path.basename(path)[:-len(".json")]
        logs.append(("" if stem == "plain" else f"{stem}: ", read(path)))
    passed, failed, skipped = report(logs)
    failed += outside
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
