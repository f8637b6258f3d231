# SPDX-License-Identifier: Apache-2.0
"""Descriptors of namespaces and keys of blocks, by doc/keys.md alone."""
import hashlib
import struct

TAGS = {"model": 1, "weights": 2, "adapter": 3, "type_k": 4, "type_v": 5, "layers": 6, "kv_heads": 7, "head_dim_k": 8,
        "head_dim_v": 9, "layout": 10, "rotation": 11, "block_tokens": 12, "block_bytes": 13, "rope_type": 14,
        "rope_freq_base": 15, "rope_freq_scale": 16, "rope_scaling": 17, "tp_rank": 18, "tp_size": 19, "engine": 20,
        "group_rule": 21, "group_n": 22, "group_index": 23, "group_count": 24, "salt": 25, "extra": 26}


def value_bytes(value):
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, int):
        return struct.pack("<Q", value)
    return value


def adapter(content, scale):
    return hashlib.sha256(content).digest() + struct.pack("<d", scale)


def descriptor(**fields):
    """The canonical form; a list is a field that is there several times."""
    items = sorted((TAGS[name], value_bytes(v)) for name, value in fields.items()
                   for v in (value if isinstance(value, list) else [value]))
    return b"".join(struct.pack("<HHI", tag, 0, len(value)) + value for tag, value in items)


def seed(canonical):
    return hashlib.sha256(b"kvpool-ns-1" + canonical).digest()


def chain(key, tokens, block_tokens, extra=None):
    """Keys of the full blocks of tokens; key is the one before, or the seed. extra: number of the block -> bytes."""
    keys = []
    for i in range(len(tokens) // block_tokens):
        block = struct.pack(f"<{block_tokens}I", *tokens[i * block_tokens:(i + 1) * block_tokens])
        key = hashlib.sha256(key + block + (extra or {}).get(i, b"")).digest()
        keys.append(key)
    return keys
