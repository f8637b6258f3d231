#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_vectors.py KEYS_MD SHARED_MEMORY_MD: the second client computes what the vectors of the pages say."""
import hashlib
import re
import struct
import sys
import unittest

import frames
import kvpool2
import memory
import names

PAGES = {}


def digest(name):
    return hashlib.sha256(name.encode()).digest()


SHAPES = {
    "minimal": {"model": "tiny", "weights": digest("weights"), "type_k": "f16", "type_v": "f16", "layers": 2, "kv_heads": 1,
                "head_dim_k": 64, "head_dim_v": 64, "layout": "token-major", "block_tokens": 16, "block_bytes": 8192,
                "engine": "example-1"},
    "full": {"model": "mod\u00e8le 8B", "weights": digest("weights"),
             "adapter": [names.adapter(b"domain", 1.0), names.adapter(b"style", 0.5)], "type_k": "q8_0", "type_v": "q4_0",
             "layers": 32, "kv_heads": 8, "head_dim_k": 128, "head_dim_v": 128, "layout": "layer-major",
             "rotation": "hadamard-64", "block_tokens": 32, "block_bytes": 2 << 20, "rope_type": "neox",
             "rope_freq_base": 500000.0, "rope_freq_scale": 0.25, "rope_scaling": "yarn factor=4", "tp_rank": 3,
             "tp_size": 4, "engine": "example-1", "group_rule": 1, "group_n": 128, "group_index": 1, "group_count": 2,
             "salt": b"team-7", "extra": ["flash_attn=1", "vision=off"]},
}


def tokens(n):
    return [i * 2654435761 % 2**32 % 32000 for i in range(n)]


class Vectors(unittest.TestCase):
    def told(self, name, what):
        """{number: bytes} of the page."""
        found = re.findall(rf"^{name} {what} (\d+) ([0-9a-f]+)$", PAGES["keys"], re.M)
        self.assertTrue(found, (name, what))
        return {int(n): bytes.fromhex(value) for n, value in found}

    def test_descriptors_and_seeds(self):
        for name, shape in SHAPES.items():
            canonical = names.descriptor(**shape)
            told = self.told(name, "descriptor")
            self.assertEqual(b"".join(told[at] for at in sorted(told)), canonical)
            self.assertEqual(self.told(name, "seed")[0], names.seed(canonical))

    def test_keys(self):
        for name, shape in SHAPES.items():
            seed, size = names.seed(names.descriptor(**shape)), shape["block_tokens"]
            for what, extra in (("key", {}), ("key-with-extra", {1: b"image-1"})):
                told = self.told(name, what)
                keys = names.chain(seed, tokens(len(told) * size + 1), size, extra)
                self.assertEqual(told, dict(enumerate(keys)))

    def test_index(self):
        told = re.findall(r"^key (\d) buckets (\d+) (\d+) tag (\d+)$", PAGES["memory"], re.M)
        self.assertEqual(len(told), 4)
        keys = names.chain(names.seed(names.descriptor(**SHAPES["minimal"])), tokens(64), 16)
        for number, *places in told:
            self.assertEqual(memory.places(keys[int(number)], (0x0123456789abcdef, 0xfedcba9876543210), 4096),
                             tuple(map(int, places)))

    def test_second_bucket_is_another_one(self):
        """With one bucket less than two there is no other; with two, keys whose hashes meet show it."""
        for n in range(64):
            first, second, _ = memory.places(hashlib.sha256(bytes([n])).digest(), (1, 2), 2)
            self.assertEqual({first, second}, {0, 1})

    def test_checksum(self):
        self.assertEqual(kvpool2.crc32c(b"123456789"), 0xe3069283)

    def test_messages_survive(self):
        values = {"ns": 300, "keys": bytes(range(64)), "parent": b"", "unnamed": 0}
        fields = frames.MESSAGES[frames.RESERVE][0]
        self.assertEqual(frames.unpack(fields, frames.pack(fields, values)), values)
        values = {"verdict": b"\1\2", "desc": [7, 2**32 - 1], "gen": [1, 2**63], "slot": [0, 5], "full": 0}
        fields = frames.MESSAGES[frames.RESERVE][1]
        self.assertEqual(frames.unpack(fields, frames.pack(fields, values)), values)
        for bad in (b"\x80", b"\x08" + b"\xff" * 11, b"\x0a\5abcd", b"\x0b", b"\x2a\1x", b"\x12\3abc"):
            with self.assertRaises((ValueError, struct.error), msg=bad):
                frames.unpack(fields, bad)
        self.assertEqual(frames.unpack(fields, b"\xf8\7\1" + frames.pack(fields, values)), values)  # unknown: left alone


if __name__ == "__main__":
    for page, path in zip(("keys", "memory"), sys.argv[1:]):
        with open(path, encoding="utf-8") as f:
            PAGES[page] = f.read()
    unittest.main(argv=sys.argv[:1], verbosity=1)
