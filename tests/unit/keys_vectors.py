#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test vectors of doc/keys.md, from the definition there and nothing of kvpool.

keys_vectors.py           prints them: what it is, a number (of a byte or a block), hex
keys_vectors.py --check F fails when F does not hold each of those lines
"""
import hashlib
import struct
import sys

TEXT, BYTES, NUMBER, DOUBLE = range(4)


def digest(name):
	return hashlib.sha256(name.encode()).digest()


def adapter(name, scale):
	return digest(name) + struct.pack('<d', scale)


# tag, kind, value; in no order, because sorting is part of the definition
MINIMAL = [
	(20, TEXT, 'example-1'),
	(1, TEXT, 'tiny'),
	(2, BYTES, digest('weights')),
	(4, TEXT, 'f16'),
	(5, TEXT, 'f16'),
	(6, NUMBER, 2),
	(7, NUMBER, 1),
	(8, NUMBER, 64),
	(9, NUMBER, 64),
	(10, TEXT, 'token-major'),
	(12, NUMBER, 16),
	(13, NUMBER, 8192),
]

FULL = [
	(26, TEXT, 'vision=off'),
	(26, TEXT, 'flash_attn=1'),
	(25, BYTES, b'team-7'),
	(24, NUMBER, 2),
	(23, NUMBER, 1),
	(22, NUMBER, 128),
	(21, NUMBER, 1),
	(20, TEXT, 'example-1'),
	(19, NUMBER, 4),
	(18, NUMBER, 3),
	(17, TEXT, 'yarn factor=4'),
	(16, DOUBLE, 0.25),
	(15, DOUBLE, 500000.0),
	(14, TEXT, 'neox'),
	(13, NUMBER, 2 << 20),
	(12, NUMBER, 32),
	(11, TEXT, 'hadamard-64'),
	(10, TEXT, 'layer-major'),
	(9, NUMBER, 128),
	(8, NUMBER, 128),
	(7, NUMBER, 8),
	(6, NUMBER, 32),
	(5, TEXT, 'q4_0'),
	(4, TEXT, 'q8_0'),
	(3, BYTES, adapter('style', 0.5)),
	(3, BYTES, adapter('domain', 1.0)),
	(2, BYTES, digest('weights')),
	(1, TEXT, 'mod\u00e8le 8B'),
]


def value_bytes(kind, value):
	if kind == TEXT:
		return value.encode()
	if kind == NUMBER:
		return struct.pack('<Q', value)
	if kind == DOUBLE:
		return struct.pack('<d', value)
	return value


def canonical(fields):
	items = sorted((tag, value_bytes(kind, value)) for tag, kind, value in fields)
	return b''.join(struct.pack('<HHI', tag, 0, len(v)) + v for tag, v in items)


def tokens(n):
	return [i * 2654435761 % 2**32 % 32000 for i in range(n)]


def chain(seed, block_tokens, blocks, extra=None):
	"""The keys of a prompt; extra: number of the block -> bytes."""
	key, keys, ids = seed, [], tokens(block_tokens * blocks)
	for i in range(blocks):
		block = ids[i * block_tokens:(i + 1) * block_tokens]
		block = struct.pack('<%dI' % block_tokens, *block)
		key = hashlib.sha256(key + block + (extra or {}).get(i, b'')).digest()
		keys.append(key)
	return keys


def vectors():
	for name, fields, block_tokens in (('minimal', MINIMAL, 16), ('full', FULL, 32)):
		descriptor = canonical(fields)
		seed = hashlib.sha256(b'kvpool-ns-1' + descriptor).digest()
		for at in range(0, len(descriptor), 32):
			yield '%s descriptor %d %s' % (name, at, descriptor[at:at + 32].hex())
		yield '%s seed 0 %s' % (name, seed.hex())
		for i, key in enumerate(chain(seed, block_tokens, 4)):
			yield '%s key %d %s' % (name, i, key.hex())
		for i, key in enumerate(chain(seed, block_tokens, 3, {1: b'image-1'})):
			yield '%s key-with-extra %d %s' % (name, i, key.hex())


def check(path):
	with open(path, encoding='utf-8') as f:
		there = set(f.read().splitlines())
	missing = [v for v in vectors() if v not in there]
	for v in missing:
		print('%s lacks: %s' % (path, v))
	return 1 if missing else 0


if len(sys.argv) == 3 and sys.argv[1] == '--check':
	sys.exit(check(sys.argv[2]))
print('\n'.join(vectors()))
