#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_together.py KVPOOLD PEER: libkvpool and the second client at one daemon do the same.

PEER is libkvpool, in a process of its own that takes commands (peer.c).
"""
import os
import random
import select
import subprocess
import sys
import unittest

import daemon
import frames
import kvpool2
import memory
from daemon import BLOCK_TOKENS, content
from frames import BUSY, COMMITTED, GRANTED, NO_PARENT, PRESENT

SEED = 20  # of the random comparison


class Peer:
    """A client in another process and in one namespace: libkvpool, or the second client again."""

    def __init__(self, program, path, model):
        self.process = subprocess.Popen([*program, path, model], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, command, *numbers, prompt=()):
        self.process.stdin.write(" ".join([command, *map(str, numbers), *map(str, prompt)]) + "\n")
        self.process.stdin.flush()

    def hear(self):
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError("the peer is gone")
        return line.split()

    def ask(self, *args, **prompt):
        self.tell(*args, **prompt)
        return [int(n) for n in self.hear()]

    def keys(self, prompt):
        self.tell("keys", prompt=prompt)
        return [bytes.fromhex(key) for key in self.hear()]

    def block(self, i):
        self.tell("bytes", i)
        return bytes.fromhex(self.hear()[0])

    def kill(self):
        self.process.kill()
        self.end()

    def end(self):
        if not self.process.stdin.closed:
            self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(timeout=daemon.WAIT)


class Pair(daemon.Case):
    """Both clients in the namespace of the test."""

    peer_program = None
    child_program = [sys.executable, "-B", os.path.join(sys.path[0], "child.py")]

    def setUp(self):
        self.second = kvpool2.Client(self.daemon.path)
        self.addCleanup(self.second.close)
        self.ns = self.second.open(**self.shape())
        self.peer = self.start_peer()

    def start_peer(self, program=None):
        peer = Peer(program or self.peer_program, self.daemon.path, self.shape()["model"])
        self.addCleanup(lambda: peer.process.stdin.closed or peer.end())
        return peer

    def admin(self, op, **values):
        wire = frames.Wire(self.daemon.admin)
        try:
            return wire.call(op, **values)
        finally:
            wire.close()

    def publish(self, prompt, seed):
        def fill(i, block):
            block[:] = content(seed, i)
        return self.ns.publish(prompt, fill)

    def prompt(self, n, tokens):
        return [n * 100000 + i for i in range(tokens)]

    def check_lease(self, lease, seed, blocks):
        self.assertEqual(len(lease), blocks)
        for i in range(blocks):
            self.assertEqual(bytes(lease.block(i)), content(seed, i))
            self.assertEqual(lease.crc(i), kvpool2.crc32c(lease.block(i)))


class Together(Pair):
    def test_keys(self):
        prompt = self.prompt(1, 100)
        self.assertEqual(self.peer.keys(prompt), self.ns.keys(prompt))

    def test_what_the_library_stored(self):
        prompt = self.prompt(1, 85)
        self.assertEqual(self.peer.ask("publish", 7, prompt=prompt), [5])
        lease = self.ns.acquire(prompt)
        self.check_lease(lease, 7, 5)
        self.assertEqual(self.publish(prompt, 8), 0)
        self.assertEqual(lease.reason, memory.PARTIAL_BLOCK)

    def test_what_the_second_client_stored(self):
        prompt = self.prompt(1, 85)
        self.assertEqual(self.publish(prompt, 7), 5)
        self.assertEqual(self.peer.ask("acquire", prompt=prompt), [80, memory.PARTIAL_BLOCK])
        for i in range(5):
            self.assertEqual(self.peer.block(i), content(7, i))
        self.assertEqual(self.peer.ask("publish", 8, prompt=prompt), [0])

    def test_more_blocks_than_a_message_has(self):
        """In both directions; 1024 is the most."""
        for n, publish in ((1, self.publish), (2, lambda p, seed: self.peer.ask("publish", seed, prompt=p)[0])):
            prompt = self.prompt(n, 1500 * BLOCK_TOKENS)
            self.assertEqual(publish(prompt[:10 * BLOCK_TOKENS], 6), 10)
            self.assertEqual(publish(prompt, 6), 1490)
            lease = self.ns.acquire(prompt)
            self.assertEqual(self.peer.ask("acquire", prompt=prompt), [lease.tokens, lease.reason])
            self.assertEqual(lease.tokens, 1499 * BLOCK_TOKENS)
            for i in range(0, 1499, 90):
                self.assertEqual([bytes(lease.block(i)), self.peer.block(i)], [content(6, i)] * 2)
            lease.release()

    def test_slots_that_are_named_later(self):
        """What the second client names at commit is a block like any other."""
        prompt = self.prompt(1, 48)
        keys = self.ns.keys(prompt)
        w = self.ns.reserve_unnamed(3)
        for i, grant in w.grants.items():
            w.block(grant)[:] = content(2, i)
        self.assertEqual(self.peer.ask("acquire", prompt=prompt), [0, memory.NOT_CACHED])
        self.assertEqual(self.peer.ask("reserve", 0, prompt=prompt[:16]), [GRANTED])
        self.assertEqual(w.commit(keys=keys), [BUSY] * 3)
        self.peer.ask("commit", 2)
        self.assertEqual(w.commit(keys=keys), [PRESENT, COMMITTED, COMMITTED])
        self.assertEqual(self.peer.ask("acquire", prompt=prompt + [1]), [48, memory.COMPLETE])
        self.assertEqual([self.peer.block(i) for i in range(3)], [content(2, i) for i in range(3)])

    def test_hints(self):
        prompt = self.prompt(1, 48)
        self.assertEqual(self.peer.ask("hint", 5, prompt=prompt), [0])
        self.publish(prompt, 1)
        self.assertEqual(self.peer.ask("hint", 5, prompt=prompt), [self.ns.hint(self.ns.keys(prompt)[-1], reuse_s=5)])

    def test_verdicts(self):
        """One asks for what the other holds, in both directions, and for the same as the other asked."""
        p = [self.prompt(n, 64) for n in range(5)]
        keys = [self.ns.keys(prompt) for prompt in p]
        self.assertEqual(self.peer.ask("reserve", 0, prompt=p[0][:32]), [GRANTED] * 2)
        self.assertEqual(self.ns.reserve(keys[0]).verdicts, [BUSY] * 4)
        self.assertEqual(self.ns.reserve(keys[0][2:], keys[0][1]).verdicts, [NO_PARENT] * 2)
        self.assertEqual(self.peer.ask("commit", 1), [2, COMMITTED, COMMITTED])
        self.assertEqual(self.ns.reserve(keys[0]).verdicts, [PRESENT, PRESENT, GRANTED, GRANTED])
        self.assertEqual(self.peer.ask("reserve", 0, prompt=p[0]), [PRESENT, PRESENT, BUSY, BUSY])

        w = self.ns.reserve(keys[1][:2])
        self.assertEqual(w.verdicts, [GRANTED] * 2)
        self.assertEqual(self.peer.ask("reserve", 0, prompt=p[1]), [BUSY] * 4)
        self.assertEqual(self.peer.ask("reserve", 2, prompt=p[1]), [NO_PARENT] * 2)
        self.assertEqual(w.commit(), [COMMITTED] * 2)
        self.assertEqual(self.peer.ask("reserve", 0, prompt=p[1]), [PRESENT, PRESENT, GRANTED, GRANTED])
        self.assertEqual(self.ns.reserve(keys[1]).verdicts, [PRESENT, PRESENT, BUSY, BUSY])
        self.peer.ask("abort")
        self.assertEqual(self.ns.reserve(keys[1]).verdicts, [PRESENT, PRESENT, GRANTED, GRANTED])

        self.assertEqual(self.peer.ask("reserve", 3, prompt=p[2]), [NO_PARENT])
        self.assertEqual(self.ns.reserve(keys[2][3:], keys[2][2]).verdicts, [NO_PARENT])

    def test_library_waits_for_the_second_client(self):
        prompt = self.prompt(1, 48)
        w = self.ns.reserve(self.ns.keys(prompt))
        self.peer.tell("wait", 0, 20000, prompt=prompt)
        w.commit([0, 1])
        self.assertEqual(select.select([self.peer.process.stdout], [], [], 0.1)[0], [])
        w.commit([2])
        self.assertEqual(self.peer.hear(), ["48"])

    def test_second_client_waits_for_the_library(self):
        prompt = self.prompt(1, 48)
        keys = self.ns.keys(prompt)
        self.peer.ask("reserve", 0, prompt=prompt)
        self.assertEqual(self.ns.wait(keys, 1), (0, True))
        ident = self.second.wire.send(frames.WAIT, ns=self.ns.ns, keys=b"".join(keys), timeout_ms=20000)
        self.peer.ask("commit", 4)
        self.assertEqual(self.second.wire.receive(ident), {"present": 3, "timed_out": 0})
        self.check_lease(self.ns.acquire(prompt + [1]), 4, 3)

    def test_library_is_killed(self):
        """Its reservations end and its pins go; what it stored stays."""
        prompt = self.prompt(1, 48)
        keys = self.ns.keys(prompt)
        self.peer.ask("publish", 3, prompt=prompt[:16])
        self.peer.ask("acquire", prompt=prompt)
        self.assertEqual(self.peer.ask("reserve", 1, prompt=prompt), [GRANTED] * 2)
        ident = self.second.wire.send(frames.WAIT, ns=self.ns.ns, keys=b"".join(keys), timeout_ms=20000)
        self.peer.kill()
        self.assertEqual(self.second.wire.receive(ident), {"present": 1, "timed_out": 0})
        self.assertEqual(self.publish(prompt, 3), 2)
        self.check_lease(self.ns.acquire(prompt + [1]), 3, 3)
        self.assertEqual(self.start_peer().ask("acquire", prompt=prompt + [1]), [48, memory.COMPLETE])

    def test_second_client_is_killed(self):
        prompt = self.prompt(1, 48)
        child = self.start_peer(self.child_program)
        self.assertEqual(child.ask("publish", 3, prompt=prompt[:16]), [1])
        self.assertEqual(child.ask("acquire", prompt=prompt), [16, memory.NOT_CACHED])
        self.assertEqual(child.ask("reserve", 1, prompt=prompt), [GRANTED] * 2)
        self.assertEqual(self.peer.ask("reserve", 0, prompt=prompt), [PRESENT, BUSY, BUSY])
        self.peer.tell("wait", 0, 20000, prompt=prompt)
        child.kill()
        self.assertEqual(self.peer.hear(), ["16"])
        self.assertEqual(self.peer.ask("publish", 3, prompt=prompt), [2])
        self.assertEqual(self.peer.ask("acquire", prompt=prompt + [1]), [48, memory.COMPLETE])
        for i in range(3):
            self.assertEqual(self.peer.block(i), content(3, i))

    def test_killed_anywhere(self):
        """Either one dies while it stores; what the others find has the right bytes, and can be completed."""
        r = random.Random(SEED)
        for n in range(12):
            victim = self.start_peer(self.child_program if n % 2 else None)
            prompt = self.prompt(n, 100 * BLOCK_TOKENS)
            victim.ask("publish", n, prompt=prompt[:r.randrange(1, 50) * BLOCK_TOKENS])
            victim.tell("publish", n, prompt=prompt)
            select.select([victim.process.stdout], [], [], r.random() * (0.004 if n % 2 else 0.0004))
            victim.kill()
            lease = self.ns.acquire(prompt)
            there = len(lease)
            self.assertEqual(self.peer.ask("acquire", prompt=prompt)[0], lease.tokens)
            self.publish(prompt, n)
            self.assertEqual(lease.extend(prompt), 99 * BLOCK_TOKENS)
            self.assertEqual(self.peer.ask("acquire", prompt=prompt)[0], lease.tokens)
            for i in {0, there - 1, min(there, 98), 98}:
                self.assertEqual([bytes(lease.block(i)), self.peer.block(i)], [content(n, i)] * 2)
            lease.release()

    def test_single_flight(self):
        """Both store the same at the same time: each block is stored once."""
        both = 0
        for n in range(60):
            prompt = self.prompt(n, (20 + n) * BLOCK_TOKENS)
            self.peer.tell("publish", 1, prompt=prompt)
            ours = self.publish(prompt, 1)
            theirs = int(self.peer.hear()[0])
            self.assertEqual(ours + theirs, 20 + n)
            both += bool(ours)
        self.assertGreater(both, 0)

    def test_operators_see_the_same(self):
        """What a lookup tells the daemon: the same rows for the same lookups."""
        stored = self.prompt(1, 64)
        self.peer.ask("publish", 1, prompt=stored)
        steps = [("acquire", stored[:n]) for n in (5, 15, 16, 17, 32, 33, 47, 63, 64)]
        steps += [("acquire", p) for p in (stored + [1], stored + self.prompt(2, 40), stored[:40] + self.prompt(2, 40))]
        steps += [("acquire", stored[:20]), ("extend", stored), ("extend", stored + [1]), ("extend", stored + [1]),
                  ("extend", stored + self.prompt(2, 30))]
        writing, gone = self.prompt(3, 40), self.prompt(4, 40)
        self.peer.ask("publish", 1, prompt=gone)
        self.admin(frames.FLUSH, namespace=self.shape()["model"])
        self.peer.ask("publish", 1, prompt=stored)
        self.peer.ask("reserve", 0, prompt=writing)
        steps += [("acquire", writing), ("acquire", gone)]
        lease = kvpool2.Lease(self.ns)
        for what, prompt in steps:
            theirs = self.peer.ask(what, prompt=prompt)
            if what == "acquire":
                lease.release()
            self.assertEqual([lease.extend(prompt), lease.reason], theirs, (what, len(prompt)))
        rows = {}
        for client in ("peer", "second"):
            mine = [i for i in self.admin(frames.CLIENTS)["items"] if i["name"] == client]
            session = max(i["session"] for i in mine)
            items = self.admin(frames.REQUESTS, session=session, limit=100)["items"]
            rows[client] = [{k: v for k, v in i.items() if k not in ("number", "ago_ns", "session", "client")} for i in items]
            rows[client].append([(i["asked_tokens"], i["hit_tokens"], i["lookups"]) for i in mine if i["session"] == session])
        self.assertGreaterEqual(len(rows["peer"]), len(steps) - 2)
        self.assertEqual(rows["peer"], rows["second"])
        self.assertEqual([i["reason"] for i in rows["peer"][:2]], [19, 22])  # flushed, in flight

    def test_lease_whose_blocks_were_stored_anew(self):
        """It keeps what it holds, and does not go on in a chain that it does not hold."""
        prompt = self.prompt(1, 64)
        self.peer.ask("publish", 1, prompt=prompt[:32])
        lease = self.ns.acquire(prompt + [1])
        self.assertEqual(self.peer.ask("acquire", prompt=prompt + [1]), [32, memory.NOT_CACHED])
        self.admin(frames.FLUSH, namespace=self.shape()["model"])
        self.assertEqual(self.peer.ask("publish", 2, prompt=prompt), [4])
        self.assertEqual([lease.extend(prompt + [1]), lease.reason], [32, memory.RACED])
        self.assertEqual(self.peer.ask("extend", prompt=prompt + [1]), [32, memory.RACED])
        self.check_lease(lease, 1, 2)
        self.assertEqual(self.peer.block(1), content(1, 1))
        lease.release()
        self.assertEqual([lease.extend(prompt + [1]), lease.reason], [64, memory.COMPLETE])
        self.check_lease(lease, 2, 4)

    def test_random(self):
        """Prompts that share prefixes, stored, read and flushed by either: at every step both see the same."""
        r = random.Random(SEED)
        known, stems = [], [self.prompt(n, 400) for n in range(4)]
        lease = kvpool2.Lease(self.ns)
        for step in range(300):
            if known and r.random() < 0.5:
                prompt = r.choice(known)
                prompt = prompt[:r.randrange(1, len(prompt) + 1)]
            else:
                prompt = r.choice(stems)[:r.randrange(1, 300)]
            if r.random() < 0.5:
                prompt = prompt + self.prompt(10 + step, r.randrange(1, 80))
            known.append(prompt)
            stored = None
            if r.random() < 0.5:
                stored = self.publish(prompt, 1) if r.random() < 0.5 else self.peer.ask("publish", 1, prompt=prompt)[0]
                self.assertEqual(self.peer.ask("publish", 1, prompt=prompt), [0])
            if r.random() < 0.05:
                self.admin(frames.FLUSH, namespace=self.shape()["model"])
            what = r.choice(("acquire", "extend")) if step and lease.wants(prompt) else "acquire"
            if what == "acquire":
                lease.release()
            theirs = self.peer.ask(what, prompt=prompt)
            ours = [lease.extend(prompt), lease.reason]
            self.assertEqual(ours, theirs, (step, what, len(prompt), stored))
            if len(lease):
                i = r.randrange(len(lease))
                self.assertEqual(bytes(lease.block(i)), content(1, i))
                self.assertEqual(self.peer.block(i), content(1, i))


class Pressure(Pair):
    """Each test has a small pool of its own."""

    args = ("--pool-size", "2M", "--max-blocks", "1024")

    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass

    def setUp(self):
        self.daemon = daemon.Daemon(self.kvpoold, *self.args)
        self.addCleanup(self.daemon.stop)
        super().setUp()

    def test_lease_of_the_second_client_under_pressure(self):
        """The library fills the pool many times over; what the lease holds stays, and little else."""
        prompt = self.prompt(0, 20 * BLOCK_TOKENS)
        self.assertEqual(self.publish(prompt, 5), 20)
        lease = self.ns.acquire(prompt + [1])
        for n in range(1, 60):
            self.assertEqual(self.peer.ask("publish", 1, prompt=self.prompt(n, 50 * BLOCK_TOKENS)), [50])
        self.check_lease(lease, 5, 20)
        self.assertEqual(self.ns.acquire(self.prompt(1, 50 * BLOCK_TOKENS)).tokens, 0)
        self.assertEqual(self.peer.ask("acquire", prompt=prompt), [19 * BLOCK_TOKENS, memory.PARTIAL_BLOCK])
        self.peer.ask("release")
        lease.release()
        for n in range(60, 120):
            self.assertEqual(self.peer.ask("publish", 1, prompt=self.prompt(n, 50 * BLOCK_TOKENS)), [50])
        self.assertEqual(self.ns.acquire(prompt).tokens, 0)

    def test_pins_of_a_second_client_that_was_killed(self):
        """They go with it: the library needs the room, and gets it."""
        prompt = self.prompt(0, 20 * BLOCK_TOKENS)
        self.publish(prompt, 5)
        child = self.start_peer(self.child_program)
        self.assertEqual(child.ask("acquire", prompt=prompt + [1]), [20 * BLOCK_TOKENS, memory.COMPLETE])
        for n in range(1, 40):
            self.peer.ask("publish", 1, prompt=self.prompt(n, 50 * BLOCK_TOKENS))
        self.assertEqual(self.admin(frames.STATUS)["leased_bytes"], 20 * daemon.BLOCK_BYTES)
        child.kill()
        n = 40
        while self.ns.wait(self.ns.keys(prompt)[:1], 0)[0]:  # asks, and uses nothing
            self.peer.ask("publish", 1, prompt=self.prompt(n, 50 * BLOCK_TOKENS))
            n += 1
        self.assertEqual(self.admin(frames.STATUS)["leased_bytes"], 0)

    def test_lookups_while_blocks_go(self):
        """The library stores and evicts as fast as it can; a lookup finds a prefix with the right bytes, or nothing."""
        hits = 0
        for n in range(400):
            self.peer.tell("publish", n + 1, prompt=self.prompt(n, 40 * BLOCK_TOKENS))
            while True:
                back = random.Random(n).randrange(12)
                lease = self.ns.acquire(self.prompt(max(n - back, 0), 40 * BLOCK_TOKENS))
                for i in range(0, len(lease), 5):
                    self.assertEqual(bytes(lease.block(i)), content(max(n - back, 0) + 1, i))
                hits += bool(lease.tokens)
                lease.release()
                if select.select([self.peer.process.stdout], [], [], 0)[0]:
                    break
            self.peer.hear()
        self.assertGreater(hits, 0)
        self.assertEqual(len(self.second.session.free), self.second.session.hazards)


if __name__ == "__main__":
    daemon.skip_unless_able()
    daemon.Case.kvpoold, Pair.peer_program = sys.argv[1], sys.argv[2:]
    unittest.main(argv=sys.argv[:1], verbosity=1)
