#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_alone.py KVPOOLD: the second client and the daemon; what doc/protocol.md and doc/shared-memory.md say."""
import os
import re
import select
import signal
import struct
import sys
import unittest

import daemon
import frames
import kvpool2
import memory
from daemon import content
from frames import BUSY, COMMITTED, FREED, FULL, GRANTED, NO_PARENT, NOT_OWNER, PRESENT, STALE

HELLO = {"protocol_min": 1, "protocol_max": 1, "layout": 2, "library": "l", "name": "n", "hazards": 4}


def fill(seed):
    def write(i, block):
        block[:] = content(seed, i, len(block))
    return write


class Alone(daemon.Case):
    def connect(self, **more):
        c = kvpool2.Client(self.daemon.path, **more)
        self.addCleanup(lambda: c.wire.socket.fileno() < 0 or c.close())
        return c

    def setUp(self):
        self.c = self.connect()
        self.ns = self.c.open(**self.shape())

    def prompt(self, n, blocks):
        return [n * 1000 + i for i in range(blocks * daemon.BLOCK_TOKENS)]

    def other(self):
        """A second session of this process, in the same namespace."""
        return self.connect(name="other").open(**self.shape())

    def admin(self, op, **values):
        wire = frames.Wire(self.daemon.admin)
        self.addCleanup(wire.close)
        return wire.call(op, **values)

    # Sessions

    def test_regions(self):
        for path in ("control", "pool", "session"):
            self.assertGreater(getattr(self.c, path).size, 4096)
        self.assertTrue(self.c.control.active())
        self.assertEqual(self.c.control.pool_bytes, self.c.hello["pool_bytes"])
        self.assertEqual(self.c.session.hazards, 64)
        with self.assertRaises(TypeError):
            self.c.control.words[0] = 1
        with open("/proc/self/smaps", encoding="ascii") as f:
            maps = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", f.read(), flags=re.M)
        flags = [set(re.search(r"^VmFlags:(.*)", m, re.M).group(1).split()) for m in maps if "/memfd:" in m]
        self.assertGreaterEqual(len(flags), 3, flags)
        for kept in flags:
            self.assertLessEqual({"dc", "dd"}, kept)  # not inherited, not dumped

    def test_regions_that_are_not_kvpools(self):
        for at, value in ((0, b"X"), (8, b"\3"), (12, b"\1"), (40, b"\1"), (72, b"\0" * 8), (112, b"\1"), (120, b"\1")):
            fd = os.memfd_create("half-made")
            with open(fd, "r+b", buffering=0) as f:
                f.write(bytes(self.c.control.bytes))
                f.seek(at)
                f.write(value)
                with self.assertRaises(memory.Unfit, msg=at):
                    memory.Control(fd, self.c.control.size)

    def test_session_regions_that_are_not_kvpools(self):
        for at, value in ((0, b"X"), (8, b"\3"), (24, b"\xff" * 8), (32, b"\0\0"), (36, b"\xff" * 4), (44, b"\3\0\0\0")):
            fd = os.memfd_create("half-made")
            with open(fd, "r+b", buffering=0) as f:
                f.write(bytes(self.c.session.bytes))
                f.seek(at)
                f.write(value)
                with self.assertRaises(memory.Unfit, msg=at):
                    memory.Session(fd, self.c.session.size, self.c.number)

    def test_hazards_wanted_and_given(self):
        for wanted, given in ((0, 2), (1, 2), (63, 63), (10**6, 32768)):
            c = self.connect(hazards=wanted)
            self.assertEqual(c.session.hazards, given)
            c.bye()

    def test_replies_in_any_order(self):
        """A wait is answered after what was sent behind it."""
        w = self.ns.reserve(self.ns.keys(self.prompt(1, 1)))
        wire = self.c.wire
        wait = wire.send(frames.WAIT, ns=self.ns.ns, keys=self.ns.keys(self.prompt(1, 1))[0], timeout_ms=60000)
        wire.call(frames.PING)
        self.assertEqual(w.commit(), [COMMITTED])
        self.assertEqual(wire.receive(wait), {"present": 1, "timed_out": 0})

    def test_bye_is_no_crash(self):
        before = self.admin(frames.STATUS)["ended_crash"]
        self.connect().bye()
        self.assertEqual(self.admin(frames.STATUS)["ended_crash"], before)
        c = self.connect(name="hangs up")
        c.close()
        # The admin socket may be served before the hang-up is seen.
        wire = frames.Wire(self.daemon.admin)
        self.addCleanup(wire.close)
        while (now := wire.call(frames.STATUS)["ended_crash"]) == before:
            pass
        self.assertEqual(now, before + 1)

    # What is refused

    def raw(self, frame, hello=True, fds=()):
        """The error that answers a frame, and whether the connection goes on."""
        wire = frames.Wire(self.daemon.path)
        self.addCleanup(wire.close)
        if hello:
            wire.call(frames.HELLO, **HELLO)
        wire.send_bytes(frame, fds)
        op, flags, ident, body = wire.read_frame()
        self.assertEqual(flags, frames.REPLY | frames.ERROR)
        try:
            wire.send_bytes(frames.HEADER.pack(b"KVP1", frames.PING, 0, 77, 0))
            lives = wire.read_frame()[2] == 77
        except (frames.Gone, BrokenPipeError, ConnectionResetError):
            lives = False
        return frames.unpack(frames.ERROR_FIELDS, body)["code"], op, ident, lives

    def test_frames(self):
        def head(magic=b"KVP1", op=frames.PING, flags=0, ident=5):
            return frames.HEADER.pack(magic, op, flags, ident, 0)

        for frame in (head(magic=b"KVP2"), head(flags=1), head(flags=4), head(ident=0), b"KVP1", os.urandom(24),
                      head() + bytes(65536)):
            self.assertEqual(self.raw(frame), (frames.E_FRAME, 0, 0, False), frame[:24])
        with open(os.devnull, "rb") as f:
            self.assertEqual(self.raw(head(), fds=[f.fileno()]), (frames.E_DESCRIPTORS, 0, 0, False))
        for op, body, code in ((99, b"", frames.E_OPERATION), (frames.RESERVE, b"\xff" * 30, frames.E_MESSAGE),
                               (frames.RESERVE, b"", frames.E_FIELD), (frames.STATUS, b"", frames.E_DENIED),
                               (frames.HELLO, frames.pack(frames.MESSAGES[frames.HELLO][0], HELLO), frames.E_STATE)):
            self.assertEqual(self.raw(head(op=op) + body), (code, op, 5, True))

    def test_hello_of_others(self):
        for more, code, field in (({"layout": 3}, frames.E_VERSION, "layout"), ({"layout": 1}, frames.E_VERSION, "layout"),
                                  ({"protocol_min": 2, "protocol_max": 9}, frames.E_VERSION, "protocol_max"),
                                  ({"protocol_min": 0}, frames.E_FIELD, "protocol_min"),
                                  ({"name": "a\nb"}, frames.E_FIELD, "name"), ({"name": "n" * 65}, frames.E_FIELD, "name")):
            wire = frames.Wire(self.daemon.path)
            with self.assertRaises(frames.Refused) as refused:
                wire.call(frames.HELLO, **HELLO | more)
            self.assertEqual((refused.exception.code, refused.exception.field), (code, field))
            with self.assertRaises(frames.Refused) as refused:
                wire.call(frames.PING)
            self.assertEqual(refused.exception.code, frames.E_STATE)
            # Refused requests change nothing: the right one can still be made.
            self.assertEqual(wire.call(frames.HELLO, **HELLO)["protocol"], 1)
            wire.close()

    def test_admin_socket(self):
        self.assertEqual(self.admin(frames.VERSION)["layout"], 2)
        self.admin(frames.PING)
        for op in (frames.HELLO, frames.RESERVE):
            with self.assertRaises(frames.Refused) as refused:
                self.admin(op)
            self.assertEqual(refused.exception.code, frames.E_DENIED)

    def refused_fields(self, *cases):
        for field, op, values in cases:
            with self.assertRaises(frames.Refused, msg=(op, values)) as refused:
                self.c.wire.call(op, **values)
            self.assertEqual((refused.exception.code, refused.exception.field), (frames.E_FIELD, field))

    def test_fields(self):
        ns, key = self.ns.ns, bytes(32)
        self.refused_fields(
            ("keys", frames.RESERVE, {"ns": ns}), ("keys", frames.RESERVE, {"ns": ns, "keys": key * 1025}),
            ("keys", frames.RESERVE, {"ns": ns, "keys": key + b"1"}),
            ("parent", frames.RESERVE, {"ns": ns, "keys": key, "parent": key[1:]}),
            ("unnamed", frames.RESERVE, {"ns": ns, "keys": key, "unnamed": 1}),
            ("unnamed", frames.RESERVE, {"ns": ns, "unnamed": 1025}), ("gen", frames.COMMIT, {"desc": [1], "crc": [1]}),
            ("priority", frames.HINT, {"ns": ns, "key": key, "priority": 100}),
            ("ended", frames.HINT, {"ns": ns, "key": key}))
        with self.assertRaises(frames.Refused) as refused:
            self.c.wire.call(frames.RESERVE, ns=ns + 100, keys=key)
        self.assertEqual(refused.exception.code, frames.E_NAMESPACE)

    def test_descriptors(self):
        def refused(canonical):
            with self.assertRaises(frames.Refused) as error:
                self.c.wire.call(frames.NS_OPEN, descriptor=canonical)
            return error.exception.code, error.exception.field

        good = self.ns.descriptor
        first = 8 + struct.unpack_from("<I", good, 4)[0]
        self.assertEqual(refused(good[:-1])[0], frames.E_FIELD)
        self.assertEqual(refused(good + b"\0")[0], frames.E_FIELD)
        self.assertEqual(refused(good[first:] + good[:first])[0], frames.E_FIELD)
        self.assertEqual(refused(good[first:]), (frames.E_FIELD, "model"))
        self.assertEqual(refused(good + struct.pack("<HHIB", 99, 0, 1, 0))[0], frames.E_FIELD)
        for more in ({"group_rule": 2}, {"block_tokens": 0}, {"tp_rank": 0}, {"rope_freq_base": float("nan")},
                     {"extra": ["a=1", "a=2"]}, {"salt": b""}):
            with self.assertRaises(frames.Refused) as error:
                self.c.open(**self.shape(**more))
            self.assertEqual(error.exception.code, frames.E_FIELD, more)

    def test_namespaces(self):
        again = self.c.open(**self.shape())
        self.assertEqual((again.ns, again.reply["created"]), (self.ns.ns, 0))
        near = self.c.open(**self.shape(type_k="q8_0"))
        self.assertNotEqual(near.ns, self.ns.ns)
        self.assertEqual([near.reply[k] for k in ("created", "near_field", "near_here", "near_there")],
                         [1, "type_k", "q8_0", "f16"])

    # Reading

    def test_nothing_stored(self):
        lease = self.ns.acquire(self.prompt(1, 4))
        self.assertEqual((lease.tokens, lease.hazard), (0, None))

    def test_bytes_in_place(self):
        prompt = self.prompt(1, 5)
        self.assertEqual(self.ns.publish(prompt, fill(3)), 5)
        self.assertEqual(self.ns.publish(prompt, fill(4)), 0)
        lease = self.ns.acquire(prompt + [1])
        self.assertEqual(lease.tokens, 80)
        for i in range(5):
            self.assertEqual(bytes(lease.block(i)), content(3, i))
            self.assertEqual(lease.crc(i), kvpool2.crc32c(lease.block(i)))
        lease.release()
        self.assertEqual(self.ns.acquire(prompt).tokens, 64)
        self.assertEqual(self.ns.acquire(prompt[:40] + [1] * 40).tokens, 32)

    def test_no_hazard_word_left(self):
        prompt = self.prompt(1, 2)
        self.ns.publish(prompt, fill(1))
        c = self.connect(hazards=2)
        ns = c.open(**self.shape())
        leases = [ns.acquire(prompt[:17]) for _ in range(3)]
        self.assertEqual([(le.tokens, le.reason) for le in leases], [(16, memory.COMPLETE)] * 2 + [(0, memory.PINS)])
        self.assertEqual((leases[1].extend(prompt + [1]), leases[1].reason), (16, memory.PINS))
        leases[0].release()
        self.assertEqual((leases[1].extend(prompt + [1]), leases[1].reason), (32, memory.COMPLETE))
        self.assertEqual(leases[2].extend(prompt[:17]), 16)

    def test_lease_that_grows(self):
        prompt = self.prompt(1, 6)
        self.ns.publish(prompt[:48], fill(1))
        lease = self.ns.acquire(prompt)
        self.assertEqual(lease.tokens, 48)
        self.assertEqual(lease.extend(prompt), 48)
        self.ns.publish(prompt, fill(1))
        self.assertEqual(lease.extend(prompt), 80)
        self.assertEqual([bytes(lease.block(i)) for i in range(5)], [content(1, i) for i in range(5)])
        self.assertEqual(len(self.c.session.free), 63)
        lease.release()
        self.assertEqual(len(self.c.session.free), 64)

    def test_pin_of_another_generation(self):
        """A word that changed between the lookup and the pin."""
        prompt = self.prompt(1, 2)
        self.ns.publish(prompt, fill(1))
        desc, word = self.c.control.find(self.ns.keys(prompt)[1])
        self.assertIsNone(self.c.pin(desc, word + (1 << 16)))
        self.assertEqual(len(self.c.session.free), 64)
        hazard = self.c.pin(desc, word)
        self.assertIsNotNone(hazard)
        self.c.session.unpin(hazard)

    def race(self, blocks, lost):
        """A lookup that finds blocks, of which it fails to pin the first so many that it tries; what it got."""
        prompt = self.prompt(1, blocks)
        self.ns.publish(prompt, fill(1))
        pin, tried, free = self.c.pin, [], len(self.c.session.free)

        def loses(desc, word):
            tried.append(desc)
            return pin(desc, word + ((len(tried) <= lost) << 16))

        self.c.pin = loses
        lease = self.ns.acquire(prompt + [1])
        got = len(lease), lease.reason, self.c.session.counter(memory.LOST)
        lease.release()
        self.assertEqual(len(self.c.session.free), free)
        return got

    def test_race_that_a_shallower_block_survives(self):
        self.assertEqual(self.race(5, 2), (3, memory.NOT_CACHED, 0))

    def test_race_that_is_lost_three_times(self):
        self.assertEqual(self.race(5, 3), (0, memory.RACED, 1))

    def test_flush_between_lookup_and_pin(self):
        """What the lease had stays."""
        prompt = self.prompt(1, 5)
        self.ns.publish(prompt, fill(1))
        lease = self.ns.acquire(prompt[:33])
        look = lease.look

        def looked(keys):
            found = look(keys)
            self.admin(frames.FLUSH, namespace=self.shape()["model"])
            return found

        lease.look = looked
        self.assertEqual([lease.extend(prompt + [1]), lease.reason], [32, memory.RACED])
        self.assertEqual(self.c.session.counter(memory.LOST), 1)
        self.assertEqual(bytes(lease.block(1)), content(1, 1))
        lease.release()
        self.assertEqual(self.ns.acquire(prompt).tokens, 0)

    def test_flush_between_lookup_and_pin_of_what_another_holds(self):
        """Then it is there, but doomed: only who held it before may read it."""
        prompt = self.prompt(1, 2)
        self.ns.publish(prompt, fill(1))
        held = self.other().acquire(prompt + [1])
        pin = self.c.pin

        def flush_and_pin(desc, word):
            self.admin(frames.FLUSH, namespace=self.shape()["model"])
            self.assertEqual(memory.state_of(self.c.control.word(held.descs[1])), memory.DOOMED)
            return pin(desc, word)

        self.c.pin = flush_and_pin
        lease = self.ns.acquire(prompt + [1])
        self.assertEqual((len(lease), lease.reason), (0, memory.RACED))
        self.assertEqual(bytes(held.block(1)), content(1, 1))

    def copy_of_control(self):
        """Control, in memory that can be written."""
        fd = os.memfd_create("copy")
        self.addCleanup(os.close, fd)
        os.write(fd, bytes(self.c.control.bytes))
        copy = memory.Control(fd, self.c.control.size)
        self.addCleanup(copy.close)

        def put(at, form, value):
            os.pwrite(fd, struct.pack(form, value), at)

        return copy, put

    def test_entries_that_do_not_match(self):
        """Only the whole key and the word of the descriptor decide."""
        prompt = self.prompt(1, 1)
        self.ns.publish(prompt, fill(1))
        key = self.ns.keys(prompt)[0]
        copy, put = self.copy_of_control()
        desc, word = copy.find(key)
        at = copy.desc_at + desc * memory.DESC_BYTES
        first, second, tag = memory.places(key, copy.salt, copy.n_buckets)
        entries = [copy.index_at + b * memory.BUCKET_BYTES + 8 * i for b in (first, second) for i in range(8)]
        entry = next(e for e in entries if copy.words[e // 8] >> 48 == tag)
        for offset, form, value, found in (
                (at + 39, "B", key[31] ^ 1, False), (at, "<Q", word & ~15 | memory.EVICTING, True),
                (at, "<Q", word & ~15 | memory.DOOMED, False), (at, "<Q", word & ~15 | memory.RESERVED, False),
                (at, "<Q", word & ~15 | memory.QUARANTINE, False), (at, "<Q", word & ~0xff0f, False),
                (at, "<Q", word & ~0xff00, False), (entry, "<I", copy.max_blocks + 1, False), (entry, "<I", 0, False)):
            was = copy.bytes[offset:offset + struct.calcsize(form)].tobytes()
            put(offset, form, value)
            self.assertEqual(bool(copy.find(key)), found, (offset - at, value))
            put(offset, f"{len(was)}s", was)
            self.assertEqual(copy.find(key), (desc, word))

    def test_entry_that_moves(self):
        """A miss counts when nothing moved meanwhile; three passes are enough."""
        copy, put = self.copy_of_control()
        passes = []

        def probe(_):
            passes.append(copy.moved())
            if len(passes) < moves:
                put(256, "<Q", copy.moved() + 1)
            return found if len(passes) == moves else None

        copy.probe = probe
        for moves, found, expected, n in ((1, None, None, 1), (2, (1, 2), (1, 2), 2), (3, (1, 2), (1, 2), 3), (9, (1, 2), None, 3)):
            passes.clear()
            self.assertEqual((copy.find(bytes(32)), len(passes)), (expected, n))

    def test_counters_and_touches(self):
        prompt = self.prompt(1, 4)
        self.ns.acquire(prompt)
        self.ns.publish(prompt, fill(1))
        lease = self.ns.acquire(prompt[:40])
        lease.extend(prompt + [1])
        other = self.other()
        other.acquire(prompt)
        items = [i for i in self.admin(frames.CLIENTS)["items"] if i["session"] in (self.c.number, other.client.number)]
        self.assertEqual([(i["lookups"], i["asked_tokens"], i["hit_tokens"], i["shared_tokens"], i["leases"], i["leased_bytes"])
                          for i in items], [(3, 64 + 40 + 33, 64, 0, 1, 4 * 4096), (1, 64, 48, 48, 1, 3 * 4096)])
        rows = self.admin(frames.REQUESTS, session=self.c.number, limit=10)["items"]
        self.assertEqual([(r["asked_tokens"], r["hit_tokens"], r["from_token"], r["tail_tokens"], r["id"]) for r in rows],
                         [(33, 32, 32, 1, self.ns.keys(prompt)[3].hex()[:16]),
                          (40, 32, 0, 8, self.ns.keys(prompt)[1].hex()[:16]), (64, 0, 0, 16, "")])

    # Writing

    def test_verdicts(self):
        prompt = self.prompt(1, 4)
        keys = self.ns.keys(prompt)
        other = self.other()
        w = self.ns.reserve(keys[:3])
        self.assertEqual(w.verdicts, [GRANTED] * 3)
        self.assertEqual(other.reserve(keys).verdicts, [BUSY] * 4)
        self.assertEqual(self.ns.reserve(keys[:1]).verdicts, [BUSY])
        self.assertEqual(other.reserve(keys[3:], keys[2]).verdicts, [NO_PARENT])
        self.assertEqual(self.ns.reserve(keys[3:], keys[2]).verdicts, [GRANTED])
        theirs = kvpool2.Writer(other, {"verdict": b"\1", "desc": [w.grants[0][0]], "gen": [w.grants[0][1]],
                                        "slot": [w.grants[0][2]], "full": 0})
        self.assertEqual((theirs.commit(), theirs.abort()), ([NOT_OWNER], [NOT_OWNER]))
        self.assertEqual(w.commit([1, 0]), [NO_PARENT, COMMITTED])
        self.assertEqual(w.commit(), [STALE, COMMITTED, COMMITTED])
        self.assertEqual(other.reserve(keys).verdicts, [PRESENT] * 3 + [BUSY])
        self.assertEqual(other.reserve([bytes(32)], bytes([1] * 32)).verdicts, [NO_PARENT])

    def test_abort_takes_what_hangs_below(self):
        keys = self.ns.keys(self.prompt(1, 3))
        w = self.ns.reserve(keys)
        self.assertEqual(w.abort([1]), [FREED])
        self.assertEqual(w.commit(), [COMMITTED, STALE, STALE])
        self.assertEqual(self.ns.reserve(keys).verdicts, [PRESENT, GRANTED, GRANTED])

    def test_wait(self):
        keys = self.ns.keys(self.prompt(1, 2))
        other = self.other()
        self.assertEqual(other.wait(keys, 60000), (0, False))
        w = self.ns.reserve(keys)
        self.assertEqual(other.wait(keys, 10), (0, True))
        self.assertEqual(self.ns.wait(keys, 10), (0, True))  # another thread of this client may write it
        ident = other.client.wire.send(frames.WAIT, ns=other.ns, keys=b"".join(keys), timeout_ms=60000)
        w.commit([0])
        self.assertEqual(select.select([other.client.wire.socket], [], [], 0.1)[0], [])
        w.abort([1])
        self.assertEqual(other.client.wire.receive(ident), {"present": 1, "timed_out": 0})

    def test_session_that_ends(self):
        keys = self.ns.keys(self.prompt(1, 2))
        other = self.other()
        other.reserve(keys)
        ident = self.c.wire.send(frames.WAIT, ns=self.ns.ns, keys=b"".join(keys), timeout_ms=60000)
        other.client.close()
        self.assertEqual(self.c.wire.receive(ident), {"present": 0, "timed_out": 0})

    def test_namespace_that_is_closed(self):
        keys = self.ns.keys(self.prompt(1, 1))
        w = self.ns.reserve(keys)
        self.ns.close()
        with self.assertRaises(frames.Refused) as refused:
            self.ns.reserve(keys)
        self.assertEqual(refused.exception.code, frames.E_NAMESPACE)
        self.assertEqual(w.commit(), [COMMITTED])

    def test_unnamed(self):
        prompt = self.prompt(1, 4)
        keys = self.ns.keys(prompt)
        self.assertTrue(self.c.hello["features"] & 1)
        w = self.ns.reserve_unnamed(4)
        self.assertEqual(w.verdicts, [GRANTED] * 4)
        for i, grant in w.grants.items():
            w.block(grant)[:] = content(9, i)
        self.assertEqual(w.commit(), [NO_PARENT] * 4)
        self.assertEqual(self.ns.acquire(prompt + [1]).tokens, 0)
        self.assertEqual(w.commit([0, 1], keys[:2], keep=True), [COMMITTED] * 2)
        self.assertEqual(len(w.hazards), 2)
        self.ns.publish(prompt[:48], fill(9))
        other = self.other()
        taken = other.reserve(keys[3:], keys[2])
        self.assertEqual(taken.verdicts, [GRANTED])
        self.assertEqual(w.commit([2, 3], keys[2:], keys[1]), [PRESENT, BUSY])
        taken.abort()
        self.assertEqual(w.commit([3], keys[3:], keys[2]), [COMMITTED])
        self.assertEqual(w.abort(), [STALE, STALE, FREED, STALE])
        lease = self.ns.acquire(prompt + [1])
        self.assertEqual([bytes(lease.block(i)) for i in range(len(lease))], [content(9, i) for i in range(4)])

    def test_hints_and_touches(self):
        self.assertTrue(self.c.hello["features"] & 2)
        keys = self.ns.keys(self.prompt(1, 4))
        self.assertEqual(self.ns.hint(keys[3], reuse_s=10), 0)
        self.ns.publish(self.prompt(1, 4), fill(1))
        self.assertEqual(self.ns.touch(keys + [bytes(32)]), 4)
        self.assertEqual(self.ns.hint(keys[3], reuse_s=10), 1)
        self.assertEqual(self.ns.hint(keys[2], ended=1), 0)
        self.assertEqual(self.ns.hint(keys[3], ended=1), 4)

    def test_report_and_locate(self):
        prompt = self.prompt(1, 1)
        self.ns.publish(prompt, fill(1))
        lease = self.ns.acquire(prompt + [1])
        desc = lease.descs[0]
        gen = memory.gen_of(self.c.control.word(desc))
        self.assertEqual(self.c.wire.call(frames.LOCATE, ns=self.ns.ns, keys=self.ns.keys(prompt)[0])["found"], 0)
        self.assertEqual(self.c.wire.call(frames.REPORT, desc=desc, gen=gen)["doomed"], 0)
        lease.block(0)[0] ^= 1
        self.assertEqual(self.c.wire.call(frames.REPORT, desc=desc, gen=gen)["doomed"], 1)
        self.assertEqual(memory.state_of(self.c.control.word(desc)), memory.DOOMED)
        self.assertEqual(self.ns.acquire(prompt + [1]).tokens, 0)
        self.assertEqual(self.admin(frames.STATUS)["doomed_bytes"], 4096)
        lease.release()


class Small(daemon.Case):
    """A pool that is soon full."""

    args = ("--pool-size", "2M", "--max-blocks", "256")

    def test_full_and_evicted(self):
        c = kvpool2.Client(self.daemon.path)
        ns = c.open(**self.shape(block_bytes=65536))
        kept = list(range(5 * 16))
        self.assertEqual(ns.publish(kept, fill(1)), 5)
        lease = ns.acquire(kept + [1])
        for n in range(1, 30):
            self.assertGreater(ns.publish([n * 1000 + i for i in range(6 * 16)], fill(n)), 0)
            self.assertEqual([bytes(lease.block(i)) for i in range(5)], [content(1, i, 65536) for i in range(5)])
        self.assertEqual(ns.acquire([1000 + i for i in range(96)]).tokens, 0)
        room = ns.reserve_unnamed(1024)
        self.assertEqual((room.verdicts[0], room.verdicts[-1]), (GRANTED, FULL))
        room.abort()
        run = ns.reserve([bytes([i, 1]) * 16 for i in range(200)])
        self.assertEqual((run.verdicts[0], run.verdicts[-1], run.full), (GRANTED, FULL, 1))
        first_full = run.verdicts.index(FULL)
        self.assertEqual(set(run.verdicts[first_full:]), {FULL})
        self.assertEqual([bytes(lease.block(i)) for i in range(5)], [content(1, i, 65536) for i in range(5)])
        c.bye()

    def test_daemon_that_stops(self):
        d = daemon.Daemon(self.kvpoold, *self.args)
        self.addCleanup(d.stop)
        c = kvpool2.Client(d.path)
        ns = c.open(**self.shape())
        ns.publish(list(range(16)), fill(1))
        lease = ns.acquire(list(range(17)))
        d.process.send_signal(signal.SIGTERM)
        with self.assertRaises(frames.Gone):
            c.wire.receive(99)
        self.assertEqual(list(c.wire.events), [frames.STOPPING])
        self.assertEqual(bytes(lease.block(0)), content(1, 0))
        self.assertFalse(c.control.active())
        self.assertEqual(ns.acquire(list(range(17))).tokens, 0)
        c.close()

    def test_daemon_that_is_killed(self):
        """No word of it; what was there can still be read, and found."""
        d = daemon.Daemon(self.kvpoold, *self.args)
        self.addCleanup(d.stop)
        c = kvpool2.Client(d.path)
        ns = c.open(**self.shape())
        ns.publish(list(range(32)), fill(1))
        lease = ns.acquire(list(range(17)))
        d.process.kill()
        with self.assertRaises((frames.Gone, BrokenPipeError, ConnectionResetError)):
            while True:
                c.ping()
        self.assertFalse(c.wire.events)
        self.assertTrue(c.control.active())
        self.assertEqual(bytes(lease.block(0)), content(1, 0))
        again = ns.acquire(list(range(33)))
        self.assertEqual([bytes(again.block(i)) for i in range(2)], [content(1, i) for i in range(2)])
        c.close()


if __name__ == "__main__":
    daemon.skip_unless_able()
    daemon.Case.kvpoold = sys.argv[1]
    unittest.main(argv=sys.argv[:1], verbosity=1)
