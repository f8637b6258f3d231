# SPDX-License-Identifier: Apache-2.0
"""Frames and messages of kvpool, by doc/protocol.md alone.

A message is a table of fields: name -> (number, kind). Kinds: u a varint, b bytes, s text, f packed fixed32, v packed
varints, and a table for messages within a message, of which there may be several.
"""
import array
import collections
import os
import socket
import struct

HEADER = struct.Struct("<4sHHQQ")
MAGIC = b"KVP1"
FRAME_MAX = 65536
FDS_MAX = 4
REPLY, ERROR = 1, 2

HELLO, NS_OPEN, RESERVE, COMMIT, ABORT, WAIT, TOUCH, LOCATE, REPORT, PING, BYE, NS_CLOSE, HINT = range(1, 14)
STOPPING = 32
VERSION, STATUS, NAMESPACES, CLIENTS, FLUSH = range(64, 69)
PIN, UNPIN = 76, 77
REQUESTS = 81

GRANTED, PRESENT, BUSY, FULL, NO_PARENT, COMMITTED, STALE, NOT_OWNER, FREED = range(1, 10)

E_FRAME, E_MESSAGE, E_FIELD, E_OPERATION, E_STATE, E_VERSION, E_DENIED, E_LIMIT, E_NAMESPACE, E_DESCRIPTORS = range(1, 11)

ERROR_FIELDS = {"code": (1, "u"), "text": (2, "s"), "field": (3, "s")}
KEYS_OF_NS = {"ns": (1, "u"), "keys": (2, "b")}
PRESENT_ONLY = {"present": (1, "u")}
VERDICT_ONLY = {"verdict": (1, "b")}
REQUEST_ITEM = {"number": (1, "u"), "ago_ns": (2, "u"), "session": (3, "u"), "client": (4, "s"), "ns": (5, "u"),
                "asked_tokens": (7, "u"), "hit_tokens": (8, "u"), "from_token": (9, "u"), "reason": (10, "u"),
                "tail_tokens": (11, "u"), "id": (13, "s")}
CLIENT_ITEM = {"session": (1, "u"), "name": (2, "s"), "pid": (3, "u"), "leases": (6, "u"), "leased_bytes": (7, "u"),
               "writing_blocks": (8, "u"), "cached_blocks": (9, "u"), "asked_tokens": (11, "u"), "hit_tokens": (12, "u"),
               "shared_tokens": (13, "u"), "state": (14, "s"), "unnamed_blocks": (17, "u"), "lookups": (22, "u"),
               "waits": (23, "u")}
STATUS_REPLY = {"pool_bytes": (10, "u"), "pool_handed_bytes": (11, "u"), "cached_bytes": (13, "u"), "leased_bytes": (14, "u"),
                "writing_bytes": (15, "u"), "quarantined_bytes": (16, "u"), "doomed_bytes": (17, "u"),
                "free_bytes": (18, "u"), "blocks": (19, "u"), "max_blocks": (20, "u"), "namespaces": (25, "u"),
                "clients": (26, "u"), "lookups": (30, "u"), "asked_tokens": (31, "u"), "hit_tokens": (32, "u"),
                "miss_tokens": (33, "u"), "shared_tokens": (34, "u"), "evicted_blocks": (40, "u"), "ended_crash": (52, "u"),
                "hints": (71, "u")}

# operation -> fields of the request, fields of the reply
MESSAGES = {
    HELLO: ({"protocol_min": (1, "u"), "protocol_max": (2, "u"), "layout": (3, "u"), "library": (4, "s"), "name": (5, "s"),
             "hazards": (6, "u")},
            {"protocol": (1, "u"), "daemon": (2, "s"), "session": (3, "u"), "domain": (4, "s"), "control_bytes": (5, "u"),
             "pool_bytes": (6, "u"), "region_bytes": (7, "u"), "pool_writable": (8, "u"), "max_keys": (9, "u"),
             "features": (10, "u")}),
    NS_OPEN: ({"descriptor": (1, "b")},
              {"ns": (1, "u"), "created": (2, "u"), "near_field": (3, "s"), "near_here": (4, "s"), "near_there": (5, "s")}),
    RESERVE: ({"ns": (1, "u"), "parent": (2, "b"), "keys": (3, "b"), "unnamed": (4, "u")},
              {"verdict": (1, "b"), "desc": (2, "f"), "gen": (3, "v"), "slot": (4, "f"), "full": (5, "u")}),
    COMMIT: ({"desc": (1, "f"), "gen": (2, "v"), "crc": (3, "f"), "keys": (4, "b"), "parent": (5, "b")}, VERDICT_ONLY),
    ABORT: ({"desc": (1, "f"), "gen": (2, "v")}, VERDICT_ONLY),
    WAIT: ({**KEYS_OF_NS, "timeout_ms": (3, "u")}, {"present": (1, "u"), "timed_out": (2, "u")}),
    TOUCH: (KEYS_OF_NS, PRESENT_ONLY),
    LOCATE: (KEYS_OF_NS, {"found": (1, "u")}),
    REPORT: ({"desc": (1, "u"), "gen": (2, "u")}, {"doomed": (1, "u")}),
    PING: ({}, {"uptime_ns": (1, "u")}),
    BYE: ({}, {}),
    NS_CLOSE: ({"ns": (1, "u")}, {}),
    HINT: ({"ns": (1, "u"), "key": (2, "b"), "reuse_s": (3, "u"), "ended": (4, "u"), "priority": (5, "u")},
           {"blocks": (1, "u")}),
    STOPPING: ({}, {}),
    VERSION: ({}, {"daemon": (1, "s"), "protocol_min": (2, "u"), "protocol_max": (3, "u"), "layout": (4, "u")}),
    STATUS: ({"raw": (1, "u")}, STATUS_REPLY),
    CLIENTS: ({"after": (1, "u")}, {"items": (1, CLIENT_ITEM), "next": (2, "u")}),
    FLUSH: ({"namespace": (1, "s"), "dry_run": (2, "u")},
            {"namespaces": (1, "u"), "freed_blocks": (2, "u"), "freed_bytes": (3, "u"), "kept_blocks": (4, "u"),
             "voided_blocks": (5, "u")}),
    REQUESTS: ({"session": (1, "u"), "client": (2, "s"), "limit": (3, "u"), "misses": (4, "u"), "before": (5, "u")},
               {"items": (1, REQUEST_ITEM), "next": (2, "u")}),
}


class Refused(Exception):
    """An Error instead of a reply."""

    def __init__(self, op, error):
        super().__init__(f"{error['text']} (operation {op}, error {error['code']}, field {error['field']!r})")
        self.op, self.code, self.text, self.field = op, error["code"], error["text"], error["field"]


class Gone(Exception):
    """The daemon hung up."""


# Protobuf

def put_varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def take_varint(data, at):
    """The number and where the next thing starts."""
    n = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a varint does not end")
        byte = data[at]
        n |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return n & 2**64 - 1, at


def value_bytes(kind, value):
    if kind == "s":
        return value.encode()
    if kind == "f":
        return struct.pack(f"<{len(value)}I", *value)
    if kind == "v":
        return b"".join(map(put_varint, value))
    return bytes(value)


def pack(fields, values):
    """What is 0 or empty is left out, as proto3 has it."""
    out = []
    for name, value in values.items():
        number, kind = fields[name]
        if kind == "u" and value:
            out.append(put_varint(number << 3) + put_varint(int(value)))
        elif kind != "u" and value:
            value = value_bytes(kind, value)
            out.append(put_varint(number << 3 | 2) + put_varint(len(value)) + value)
    return b"".join(out)


def take_value(data, at, wire):
    if wire == 0:
        return take_varint(data, at)
    if wire == 2:
        size, at = take_varint(data, at)
    else:
        size = {1: 8, 5: 4}.get(wire, FRAME_MAX)
    if at + size > len(data):
        raise ValueError("a field does not end")
    return data[at:at + size], at + size


def take_varints(data):
    out, at = [], 0
    while at < len(data):
        n, at = take_varint(data, at)
        out.append(n)
    return out


DEFAULTS = {"u": lambda: 0, "b": bytes, "s": str}


def unpack(fields, data):
    values = {name: DEFAULTS.get(kind if isinstance(kind, str) else "", list)() for name, (_, kind) in fields.items()}
    names = {number: (name, kind) for name, (number, kind) in fields.items()}
    at = 0
    while at < len(data):
        tag, at = take_varint(data, at)
        value, at = take_value(data, at, tag & 7)
        if tag >> 3 not in names:
            continue
        name, kind = names[tag >> 3]
        if (tag & 7) != (0 if kind == "u" else 2):
            raise ValueError(f"field {name} is of another type")
        if kind == "f":
            values[name] += [n for n, in struct.iter_unpack("<I", value)]
        elif kind == "v":
            values[name] += take_varints(value)
        elif isinstance(kind, dict):
            values[name].append(unpack(kind, value))
        else:
            values[name] = value.decode() if kind == "s" else value
    return values


# Frames

class Wire:
    """A connection: requests out, replies in any order."""

    def __init__(self, path, timeout=30):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(timeout)
        try:
            self.socket.connect(path)
        except OSError:
            self.socket.close()
            raise
        self.last_id = self.epoch = 0
        self.replies = {}
        self.fds = []
        self.events = collections.deque()

    def send(self, op, **values):
        """The id by which to receive the reply."""
        self.last_id += 1
        self.send_bytes(HEADER.pack(MAGIC, op, 0, self.last_id, 0) + pack(MESSAGES[op][0], values))
        return self.last_id

    def send_bytes(self, frame, fds=()):
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.socket.sendmsg([frame], ancillary)

    def read_frame(self):
        """(op, flags, id, body) of the next frame; descriptors that came are kept in fds."""
        data, ancillary, flags, _ = self.socket.recvmsg(FRAME_MAX, socket.CMSG_SPACE(4 * FDS_MAX), socket.MSG_CMSG_CLOEXEC)
        for level, kind, payload in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self.fds += [n for n, in struct.iter_unpack("i", payload)]
        if not data:
            raise Gone("the daemon hung up")
        if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC) or len(data) < HEADER.size:
            raise ValueError("no frame")
        magic, op, flags, ident, self.epoch = HEADER.unpack_from(data)
        if magic != MAGIC or flags & ~(REPLY | ERROR):
            raise ValueError("a frame of something else")
        return op, flags, ident, data[HEADER.size:]

    def receive(self, ident):
        """The reply to the request with that id. An error with id 0 is the last thing that a connection says."""
        while ident not in self.replies:
            op, flags, to, body = self.read_frame()
            if not flags & REPLY:
                self.events.append(op)
            elif flags & ERROR:
                error = Refused(op, unpack(ERROR_FIELDS, body))
                if not to:
                    raise error
                self.replies[to] = error
            else:
                self.replies[to] = unpack(MESSAGES[op][1], body)
        reply = self.replies.pop(ident)
        if isinstance(reply, Refused):
            raise reply
        return reply

    def call(self, op, **values):
        return self.receive(self.send(op, **values))

    def close(self):
        for fd in self.fds:
            os.close(fd)
        self.fds = []
        self.socket.close()
