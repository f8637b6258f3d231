# SPDX-License-Identifier: Apache-2.0
"""The protocol of kvpoold for tests in Python: frames, and messages by the names that proto/kvpool.proto gives them.

Knows as much of protobuf as that file uses: scalars, text, bytes, lists of messages one level deep.
"""
import re
import struct

MAGIC = 0x3150564B
HEADER = struct.Struct("<IHHQQ")
REPLY, ERROR = 1, 2
ADMIN = ("version", "status", "namespaces", "clients", "flush", "config", "config_set", "reload", "log_level",
         "stats_reset", "kick", "resize", "pin", "unpin", "pins", "prefixes", "explain", "requests")
OPS = {"ping": 10, **{name: 64 + i for i, name in enumerate(ADMIN)}}
FIELD = re.compile(r"^\s*(repeated\s+)?(\w+)\s+(\w+)\s*=\s*(\d+)\s*;", re.M)
VARINTS = {"uint32", "uint64", "bool"}


class Field:
    def __init__(self, repeated, kind, number):
        self.repeated, self.kind, self.number = bool(repeated), kind, int(number)


def load(path):
    """{message: {field: Field}} of a .proto file."""
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"//.*", "", f.read())
    return {m.group(1): {name: Field(rep, kind, number) for rep, kind, name, number in FIELD.findall(m.group(2))}
            for m in re.finditer(r"^message\s+(\w+)\s*\{(.*?)^\}", text, re.M | re.S)}


def varint(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def with_length(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def encode(types, name, values):
    """The bytes of a message from {field: value}; a list of messages is a list of such dicts."""
    out = b""
    for key, value in values.items():
        field = types[name][key]
        if field.repeated and field.kind in VARINTS:
            out += with_length(field.number, b"".join(varint(v) for v in value))
        elif field.kind in VARINTS:
            out += varint(field.number << 3) + varint(int(value))
        elif field.repeated and field.kind == "string":
            out += b"".join(with_length(field.number, v.encode()) for v in value)
        elif field.kind in types:
            out += b"".join(with_length(field.number, encode(types, field.kind, v)) for v in value)
        else:
            out += with_length(field.number, value if isinstance(value, bytes) else value.encode())
    return out


def read_varint(data, at):
    n = shift = 0
    while True:
        n |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return n, at
        shift += 7


def decode(types, name, data):
    """{field: value} of a message; what is repeated (texts and messages, not numbers) is a list."""
    names = {f.number: (key, f) for key, f in types[name].items()}
    out, at = {}, 0
    while at < len(data):
        tag, at = read_varint(data, at)
        key, field = names[tag >> 3]
        if tag & 7 == 0:
            out[key], at = read_varint(data, at)
        else:
            n, at = read_varint(data, at)
            value, at = data[at:at + n], at + n
            if field.kind in types:
                value = decode(types, field.kind, value)
            elif field.kind == "string":
                value = value.decode()
            if field.repeated:
                out.setdefault(key, []).append(value)
            else:
                out[key] = value
    return out


def frame(op, flags, request_id, body, epoch=1):
    return HEADER.pack(MAGIC, op, flags, request_id, epoch) + body
