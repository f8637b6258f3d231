#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each check of lint.py must find what it is for, and only that."""
import os
import tempfile
import unittest

import lint

HEAD = "/* SPDX-License-Identifier: Apache-2.0 */\n"


class Lint(unittest.TestCase):
    def found(self, text, path="base/x.c", mode=0o644):
        with tempfile.TemporaryDirectory() as root:
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "wb") as f:
                f.write(text if isinstance(text, bytes) else text.encode())
            os.chmod(full, mode)
            self.assertEqual(list(lint.files(root)), [path])
            return list(lint.check_file(root, path))

    def refused(self, text, why, **kw):
        found = self.found(text, **kw)
        self.assertEqual(len(found), 1, found)
        self.assertIn(why, found[0])

    def test_good(self):
        self.assertEqual(self.found(HEAD + "int x; /* todo lists, forever, mkdtemp XXXXXX */\n"), [])
        self.assertEqual(self.found(HEAD + "int x; /* what it waits for " "now */\n"), [])
        self.assertEqual(self.found("#!/bin/sh\n# " + lint.LICENCE + "\n", path="x/run", mode=0o755), [])

    def test_licence(self):
        self.refused("int x;\n", "SPDX")
        self.refused("\n\n\n" + HEAD, "SPDX")
        self.assertEqual(self.found("text\n", path="x/LICENSE"), [])

    def test_length(self):
        self.assertEqual(self.found(HEAD + "\n" * 899), [])
        self.refused(HEAD + "\n" * 900, "901 lines")

    def test_words(self):
        for word in ("TO" "DO", "FIX" "ME:", "(XX" "X)", "HA" "CK", "for " "now", "For " "now"):
            self.refused(HEAD + f"// {word}\n", "left undone")
        self.refused(HEAD + '"/ho' 'me/me"\n', "somebody's machine")

    def test_blanks(self):
        self.refused(HEAD + "int x; \n", "blanks at its end")
        self.refused(HEAD + "  \tint x;\n", "blanks before a tab")
        self.refused(HEAD + "int x;\r\nint y;\n", "another system")
        self.refused(HEAD + "int x;", "does not end")

    def test_mode(self):
        self.refused("#!/bin/sh\n# " + lint.LICENCE + "\n", "chmod", path="x/run")

    def test_encoding(self):
        self.refused(HEAD.encode() + b"\xff\n", "no UTF-8")

    def test_build_folders_are_left_out(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "out", "meson-private"))
            os.makedirs(os.path.join(root, ".git"))
            for path in ("out/x.c", ".git/x.c", "x.o"):
                open(os.path.join(root, path), "w", encoding="utf-8").close()
            self.assertEqual(list(lint.files(root)), [])


if __name__ == "__main__":
    unittest.main()
