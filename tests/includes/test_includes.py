#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The folder rules must catch what they are for: made-up trees with one wrong edge each."""
import os
import tempfile
import unittest

import includes

GOOD = {
    "base/list.h": "#include <stddef.h>\n",
    "shm/index.h": '#include "base/list.h"\n',
    "proto/kvpool.proto": "",
    "proto/ops.h": "",
    "policy/lru.h": "",
    "kernels/copy.h": "",
    "daemon/main.c": '#include "policy/lru.h"\n#include "proto/kvpool.pb-c.h"\n',
    "client/kvpool.h": "",
    "client/link.h": '#include "kernels/copy.h"\n',
    "client/llama/blob.c": '#include <llama.h>\n#include "client/kvpool.h"\n#include "base/list.h"\n',
    "tools/ctl/main.c": '#include "client/kvpool.h"\n#include "tools/ctl/main.h"\n',
    "tools/ctl/main.h": "",
    "examples/hello.c": "#include <kvpool.h>\n",
    "tests/unit/test.c": '#include "daemon/main.c"\n',
    "build/meson-private/x.c": '#include "nowhere.h"\n',
    ".git/x.c": '#include "nowhere.h"\n',
}


class Includes(unittest.TestCase):
    def check(self, **files):
        """What is found in the good tree with some files replaced: {path with _ for the dots and slashes}."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**GOOD, **files}.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
            return includes.check_tree(root)

    def refused(self, path, text, why):
        found = self.check(**{path: text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(path, found[0])
        self.assertIn(why, found[0])

    def test_good_tree(self):
        self.assertEqual(self.check(), [])

    def test_edges_against_the_table(self):
        edges = {
            "base/bad.c": "shm/index.h", "shm/bad.c": "proto/ops.h", "proto/bad.c": "shm/index.h",
            "policy/bad.c": "shm/index.h", "kernels/bad.c": "shm/index.h", "daemon/bad.c": "client/link.h",
            "client/bad.c": "policy/lru.h", "client/bad.h": "client/llama/blob.c",
            "client/llama/bad.c": "client/link.h", "tools/bad.c": "daemon/main.c",
            "examples/bad.c": "base/list.h",
        }
        for path, target in edges.items():
            self.refused(path, f'#include "{target}"\n', "crosses from")

    def test_line_is_named(self):
        self.refused("base/bad.c", '\n\n  #  include "shm/index.h"\n', "base/bad.c:3:")

    def test_paths_not_from_the_root(self):
        self.refused("base/bad.c", '#include "list.h"\n', "no file of the tree")
        self.refused("base/bad.c", '#include "../shm/index.h"\n', "not written from the root")
        self.refused("base/bad.c", '#include "./base/list.h"\n', "not written from the root")
        self.refused("base/bad.c", '#include "/usr/include/stdio.h"\n', "not written from the root")

    def test_missing_file(self):
        self.refused("daemon/bad.c", '#include "proto/other.pb-c.h"\n', "no file of the tree")

    def test_angles_around_a_file_of_the_tree(self):
        self.refused("base/bad.c", "#include <shm/index.h>\n", "with quotes")

    def test_installed_names_inside_the_tree(self):
        self.refused("daemon/bad.c", "#include <kvpool.h>\n", "installed name")
        self.refused("daemon/bad.c", '#include "kvpool.h"\n', "installed name")
        self.assertEqual(self.check(**{"client/llama/kvpool-llama.h": '#include "kvpool.h"\n'}), [])
        self.assertEqual(self.check(**{"client/kvpool-seq.h": '#include "kvpool.h"\n'}), [])

    def test_include_of_a_macro(self):
        self.refused("base/bad.c", "#include HEADER\n", "can't be followed")

    def test_folder_without_a_row(self):
        self.refused("misc/bad.c", "", "without a row")


if __name__ == "__main__":
    unittest.main()
