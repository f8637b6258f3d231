# SPDX-License-Identifier: Apache-2.0
"""A second client of kvpool, written from doc/protocol.md, doc/shared-memory.md and doc/keys.md and nothing else.

It says whether those pages are enough, and beside libkvpool whether that does what they say. One thread, blocking.
"""
import contextlib

import frames
import memory
import names
from frames import BUSY, COMMITTED, GRANTED, PRESENT

PROTOCOL = 1
KEYS_MAX = 1024


def crc_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
        table.append(n)
    return table


TABLE = crc_table()


def crc32c(data):
    crc = 0xffffffff
    for byte in bytes(data):
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xffffffff


class Client:
    """A session with a daemon: its wire, its three regions."""

    def __init__(self, path, name="second", hazards=64, timeout=30):
        with contextlib.ExitStack() as undo:
            self.wire = frames.Wire(path, timeout)
            undo.callback(self.wire.close)
            self.hello = self.wire.call(frames.HELLO, protocol_min=PROTOCOL, protocol_max=PROTOCOL, layout=memory.LAYOUT,
                                        library="second-client 1", name=name, hazards=hazards)
            if self.hello["protocol"] != PROTOCOL or len(self.wire.fds) != 3:
                raise memory.Unfit(f"protocol {self.hello['protocol']}, {len(self.wire.fds)} descriptors")
            control, pool, session = self.wire.fds
            self.control = memory.Control(control, self.hello["control_bytes"])
            undo.callback(self.control.close)
            self.pool = memory.Pool(pool, self.hello["pool_bytes"], self.hello["pool_writable"])
            undo.callback(self.pool.close)
            self.session = memory.Session(session, self.hello["region_bytes"], self.hello["session"])
            undo.pop_all()
        self.number = self.hello["session"]

    def open(self, **fields):
        return Namespace(self, fields)

    def ping(self):
        return self.wire.call(frames.PING)["uptime_ns"]

    def bye(self):
        self.wire.call(frames.BYE)
        self.close()

    def close(self):
        """Without bye the daemon takes it for a hang-up. Memory goes first: what it pins counts while it is mapped."""
        for region in (self.control, self.pool, self.session):
            region.close()
        self.wire.close()

    def is_still(self, desc, word):
        """Whether a block is what its word said, and can be pinned."""
        now = self.control.word(desc)
        return (memory.gen_of(now) == memory.gen_of(word) and memory.state_of(now) == memory.COMMITTED and
                bool(memory.in_host(now)))

    def pin(self, desc, word):
        """The number of the hazard word that pins this block, or None when it is not what its word said any more."""
        hazard = self.session.pin(desc)
        self.session.fence()  # pairs with the one of the daemon between marking EVICTING and reading hazards
        if self.is_still(desc, word):
            return hazard
        self.session.unpin(hazard)
        return None


class Namespace:
    def __init__(self, client, fields):
        self.client = client
        self.descriptor = names.descriptor(**fields)
        self.reply = client.wire.call(frames.NS_OPEN, descriptor=self.descriptor)
        self.ns = self.reply["ns"]
        state, self.block_tokens, self.block_bytes, _, self.seed, rule, _ = client.control.namespace(self.ns)
        if state != 1 or self.seed != names.seed(self.descriptor):
            raise memory.Unfit(f"namespace {self.ns} is not the one that was opened")
        self.group_rule = rule

    def keys(self, tokens):
        return names.chain(self.seed, tokens, self.block_tokens)

    def acquire(self, tokens):
        lease = Lease(self)
        lease.extend(tokens)
        return lease

    def reserve(self, keys, parent=b""):
        return Writer(self, self.client.wire.call(frames.RESERVE, ns=self.ns, parent=parent, keys=b"".join(keys)))

    def reserve_unnamed(self, n):
        return Writer(self, self.client.wire.call(frames.RESERVE, ns=self.ns, unnamed=n))

    def wait(self, keys, timeout_ms):
        """(how many from the first on are present, whether the time was over)."""
        reply = self.client.wire.call(frames.WAIT, ns=self.ns, keys=b"".join(keys), timeout_ms=timeout_ms)
        return reply["present"], bool(reply["timed_out"])

    def touch(self, keys):
        return self.client.wire.call(frames.TOUCH, ns=self.ns, keys=b"".join(keys))["present"]

    def hint(self, key, **what):
        return self.client.wire.call(frames.HINT, ns=self.ns, key=key, **what)["blocks"]

    def close(self):
        self.client.wire.call(frames.NS_CLOSE, ns=self.ns)

    def publish(self, tokens, fill):
        """Stores the full blocks of tokens that nobody has: fill(i, block) writes. How many it stored.

        A key that is being written is waited for, and the next run begins there; where there is no room it stops.
        """
        keys, done, stored = self.keys(tokens), 0, 0
        while done < len(keys):
            run = keys[done:done + KEYS_MAX]
            writer = self.reserve(run, keys[done - 1] if done else b"")
            for i, grant in writer.grants.items():
                fill(done + i, writer.block(grant))
            stored += sum(v == COMMITTED for v in writer.commit())
            if BUSY in writer.verdicts:
                run = run[:writer.verdicts.index(BUSY)]
                self.wait(keys[done + len(run):done + len(run) + 1], 10000)
            elif not set(writer.verdicts) <= {GRANTED, PRESENT}:
                break
            done += len(run)
        return stored


class Lease:
    """A pin on the longest cached prefix of what was asked for. Its blocks are read in place."""

    def __init__(self, ns):
        self.ns, self.client = ns, ns.client
        self.hazard, self.descs, self.slots = None, [], []
        self.reason = memory.BELOW_MIN

    def __len__(self):
        return len(self.descs)

    @property
    def tokens(self):
        return len(self.descs) * self.ns.block_tokens

    def block(self, i):
        return self.client.pool.block(self.slots[i], self.ns.block_bytes)

    def crc(self, i):
        return self.client.control.desc(self.descs[i])[2]

    def look(self, keys):
        """[(descriptor, word)] from the first key on, as far as they are found."""
        found = []
        for key in keys:
            there = self.client.control.find(key)
            if not there:
                break
            found.append(there)
        return found

    def pin_deepest(self, found):
        """(hazard word, how many of found it pins); (None, 0) when eviction won each time."""
        n = len(found)
        for _ in range(memory.TRIES):
            while n and not self.client.is_still(*found[n - 1]):
                n -= 1
            if not n:
                break
            hazard = self.client.pin(*found[n - 1])
            if hazard is not None:
                return hazard, n
            n -= 1
        return None, 0

    def resolve(self, desc, depth, last):
        """Descriptors and slots of the depth blocks that end with desc, which is pinned, and begin behind last.

        None when the block before them is another one: what the lease holds was flushed, and stored anew elsewhere.
        """
        control, descs, slots = self.client.control, [], []
        while desc != memory.NONE and len(descs) < depth:
            if desc >= control.max_blocks:
                raise memory.Unfit(f"there is no descriptor {desc}")
            parent, slot, _, _, _ = control.desc(desc)
            descs.append(desc)
            slots.append(slot)
            desc = parent
        if len(descs) != depth or desc != last:
            return None
        return descs[::-1], slots[::-1]

    def extend(self, tokens):
        """Looks for what is cached of tokens behind what the lease has; how many tokens it has then."""
        start, control = len(self), self.client.control
        # The last token of a prompt is computed in any case, so the block that ends with it is of no use.
        keys = self.ns.keys(tokens[:-1])
        active, words = control.active(), len(self.client.session.free)
        found = self.look(keys[start:]) if active and words else []
        hazard, n = self.pin_deepest(found)
        more = self.resolve(found[n - 1][0], n, self.descs[-1] if start else memory.NONE) if n else None
        if more:
            self.descs += more[0]
            self.slots += more[1]
            self.hazard, hazard = hazard, self.hazard
        if hazard is not None:
            self.client.session.unpin(hazard)
        if not active:
            self.reason = memory.NO_DAEMON
        elif not words and start < len(keys):
            self.reason = memory.PINS
        else:
            self.reason = memory.RACED if found and not more else self.why(tokens, keys)
        missed = keys[start + len(found):][:1] if active and words else []
        self.tell(tokens, len(keys), start, missed[0] if missed else bytes(32))
        return self.tokens

    def wants(self, tokens):
        """Whether it is a lease on a beginning of these tokens."""
        keys = self.ns.keys(tokens)
        return len(self) <= len(keys) and (not self.descs or self.client.control.key(self.descs[-1]) == keys[len(self) - 1])

    def why(self, tokens, keys):
        """Why it has no more tokens than it has, when nothing came in between."""
        if len(self) < len(keys):
            return memory.NOT_CACHED
        if not keys:
            return memory.BELOW_MIN
        return memory.PARTIAL_BLOCK if (len(tokens) - 1) % self.ns.block_tokens else memory.COMPLETE

    def tell(self, tokens, cacheable, start, missed):
        """Counters and a touch record. asked, hit and tail are of what lies behind start alone."""
        session, per_block = self.client.session, self.ns.block_tokens
        asked = len(tokens) - start * per_block
        if asked <= 0:
            return
        hit = (len(self) - start) * per_block
        deepest = self.descs[-1] if self.descs else memory.NONE
        shared = hit and self.client.control.writer(deepest) != self.client.number
        for counter, n in ((memory.LOOKUPS, 1), (memory.ASKED, asked), (memory.HIT, hit), (memory.MISS, asked - hit),
                           (memory.SHARED, hit if shared else 0), (memory.LOST, int(self.reason == memory.RACED))):
            session.add(counter, n)
        tail = len(tokens) - cacheable * per_block
        session.touch(deepest, self.ns.ns, asked, hit, tail << 8 | self.reason, start * per_block, missed)

    def release(self):
        if self.hazard is not None:
            self.client.session.unpin(self.hazard)
        self.hazard, self.descs, self.slots = None, [], []


class Writer:
    """What a reservation granted: grants has for each number of a key (descriptor, gen, slot)."""

    def __init__(self, ns, reply):
        self.ns, self.client = ns, ns.client
        self.verdicts, self.full = list(reply["verdict"]), reply["full"]
        granted = [i for i, v in enumerate(self.verdicts) if v == GRANTED]
        rest = list(zip(reply["desc"], reply["gen"], reply["slot"], strict=True))
        self.grants = dict(zip(granted, rest, strict=True))

    def block(self, grant):
        return self.client.pool.block(grant[2], self.ns.block_bytes)

    def chosen(self, which):
        return list(self.grants.values()) if which is None else [self.grants[i] for i in which]

    def commit(self, which=None, keys=(), parent=b"", keep=False):
        """The verdicts of these blocks, all if which is None. keep: hazard words that pin them are in hazards after it."""
        grants = self.chosen(which)
        if not grants:
            return []
        hazards = [self.client.session.pin(desc) for desc, _, _ in grants] if keep else []
        crcs = [crc32c(self.block(grant)) for grant in grants]
        verdicts = list(self.client.wire.call(
            frames.COMMIT, desc=[g[0] for g in grants], gen=[g[1] for g in grants], crc=crcs, keys=b"".join(keys),
            parent=parent)["verdict"])
        self.hazards = []
        for hazard, verdict in zip(hazards, verdicts):
            if verdict == COMMITTED:
                self.hazards.append(hazard)
            else:
                self.client.session.unpin(hazard)
        return verdicts

    def abort(self, which=None):
        grants = self.chosen(which)
        if not grants:
            return []
        return list(self.client.wire.call(frames.ABORT, desc=[g[0] for g in grants], gen=[g[1] for g in grants])["verdict"])
