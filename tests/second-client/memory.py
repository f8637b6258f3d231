# SPDX-License-Identifier: Apache-2.0
"""The three regions of kvpool, by doc/shared-memory.md alone.

Words of 64 bits are read and written through memoryviews of that type, which CPython does with one move; struct would go
byte by byte.
"""
import mmap
import struct
import threading

PAGE = 4096
LAYOUT = 2
NONE = 0xffffffff
MASK = 2**64 - 1
MAP_NORESERVE = 0x4000

FREE, RESERVED, COMMITTED, EVICTING, DOOMED, QUARANTINE = range(6)
HOST = 1  # the bit of the host tier in the word of a descriptor
ACTIVE, RETIRED = 1, 2
LOOKUPS, ASKED, HIT, MISS, SHARED, LOST = range(6)
WAITS, WAIT_NS, STORED, STORED_BYTES = range(11, 15)
COMPLETE, NOT_CACHED, PARTIAL_BLOCK, BELOW_MIN, PINS, NO_DAEMON, TIMEOUT, FORKED, RACED, NAMESPACE = range(10)
TRIES = 3

NS_BYTES, GRANULE_BYTES, BUCKET_BYTES, DESC_BYTES, AUX_BYTES, TOUCH_BYTES = 256, 32, 64, 64, 16, 64


class Unfit(Exception):
    """A region is not what the page says."""


class Fence:
    """A full fence: a lock that nobody holds is taken, which is a locked instruction."""

    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self):
        with self.lock:
            pass


class Region:
    """Memory of the daemon. Not inherited by children, in no core file."""

    def __init__(self, fd, size, writable):
        prot = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        self.map = mmap.mmap(fd, size, flags=mmap.MAP_SHARED | MAP_NORESERVE, prot=prot)
        self.map.madvise(mmap.MADV_DONTFORK)
        self.map.madvise(mmap.MADV_DONTDUMP)
        self.size = size
        self.bytes = memoryview(self.map)
        self.words = self.bytes.cast("Q")
        self.halves = self.bytes.cast("I")

    def close(self):
        for view in (self.words, self.halves, self.bytes):
            view.release()
        self.map.close()


def pages(n):
    return -(-n // PAGE) * PAGE


def mix(x):
    y = x * 0x9e3779b97f4a7c15 & MASK
    return y ^ y >> 32


def places(key, salt, n_buckets):
    """(first bucket, second bucket, tag) of a key."""
    w = struct.unpack("<4Q", key)
    h, g = mix(w[0] ^ salt[0]), mix(w[1] ^ salt[1])
    first, second = h % n_buckets, g % n_buckets
    if second == first:
        second = (second + 1) % n_buckets
    return first, second, h >> 48


def state_of(word):
    return word & 15


def gen_of(word):
    return word >> 16


def in_host(word):
    return word >> 8 & HOST


class Control(Region):
    def __init__(self, fd, size):
        super().__init__(fd, size, False)
        try:
            self.check()
        except Unfit:
            self.close()
            raise
        self.retries = 0

    def check(self):
        """Refuses what is not as the page says, and takes what never changes."""
        if self.size < PAGE or self.bytes[:8] != b"KVPOCTL1":
            raise Unfit("control region: not made by kvpool, or half made")
        version, header_bytes = self.halves[2], self.halves[3]
        if (version, header_bytes) != (LAYOUT, PAGE):
            raise Unfit(f"control region: layout {version}, header of {header_bytes} bytes")
        self.domain, total, self.pool_bytes = self.words[4], self.words[5], self.words[6]
        self.salt = self.words[7], self.words[8]
        there = tuple(self.words[9:14])
        self.n_buckets = self.words[14]
        self.max_blocks, self.max_namespaces, self.n_granules, self.granule_shift = self.halves[30:34]
        offsets = [PAGE]
        for count, size in ((self.max_namespaces, NS_BYTES), (self.n_granules, GRANULE_BYTES),
                            (self.n_buckets, BUCKET_BYTES), (self.max_blocks, DESC_BYTES), (self.max_blocks, AUX_BYTES)):
            offsets.append(pages(offsets[-1] + count * size))
        buckets = 1
        while buckets * 8 < 2 * self.max_blocks:
            buckets *= 2
        if (there, total, buckets) != (tuple(offsets[:5]), offsets[5], self.n_buckets) or total > self.size:
            raise Unfit(f"control region: offsets {there}, {self.n_buckets} buckets, {total} bytes")
        if self.pool_bytes != self.n_granules << self.granule_shift:
            raise Unfit(f"control region: a pool of {self.pool_bytes} bytes, {self.n_granules} granules")
        self.ns_at, self.granule_at, self.index_at, self.desc_at, self.aux_at = offsets[:5]

    def active(self):
        return self.halves[272 // 4] == ACTIVE

    def moved(self):
        return self.words[256 // 8]

    def namespace(self, ns):
        """(state, block_tokens, block_bytes, stride, seed, rule, n) of a namespace."""
        at = self.ns_at + ns * NS_BYTES
        rest = struct.unpack_from("<IIQQ32sII", self.bytes, at)
        return (self.halves[at // 4],) + rest[1:]

    def word(self, desc):
        return self.words[(self.desc_at + desc * DESC_BYTES) // 8]

    def key(self, desc):
        at = self.desc_at + desc * DESC_BYTES + 8
        return bytes(self.bytes[at:at + 32])

    def desc(self, desc):
        """(parent, host slot, crc, depth, ns) of a block that is pinned, or written by the caller."""
        at = (self.desc_at + desc * DESC_BYTES) // 4
        parent, slot, _, crc, depth, ns = self.halves[at + 10:at + 16]
        return parent, slot, crc, depth, ns

    def writer(self, desc):
        return self.words[(self.aux_at + desc * AUX_BYTES) // 8]

    def probe(self, key):
        """(descriptor, word) of a block, or None. One that is EVICTING counts as found."""
        first, second, tag = places(key, self.salt, self.n_buckets)
        for bucket in (first, second):
            at = (self.index_at + bucket * BUCKET_BYTES) // 8
            for i in range(at, at + 8):
                entry = self.words[i]
                if entry >> 48 != tag or not entry & NONE:
                    continue
                desc = (entry & NONE) - 1
                if desc >= self.max_blocks:
                    continue
                word = self.word(desc)
                readable = state_of(word) == EVICTING or state_of(word) == COMMITTED and in_host(word)
                if readable and self.key(desc) == key:
                    return desc, word
        return None

    def find(self, key):
        """As probe, but an entry that moved under its hands is not a miss."""
        for _ in range(TRIES):
            moved = self.moved()
            found = self.probe(key)
            if found or self.moved() == moved:
                return found
            self.retries += 1
        return None


class Session(Region):
    """The region of this client: hazard words, touch ring, counters."""

    def __init__(self, fd, size, session):
        super().__init__(fd, size, True)
        try:
            self.check(session)
        except Unfit:
            self.close()
            raise
        self.fence = Fence()

    def check(self, session):
        if self.size < PAGE or self.bytes[:8] != b"KVPOSEN1" or (self.halves[2], self.halves[3]) != (LAYOUT, PAGE):
            raise Unfit("session region: not made by kvpool, or of another layout")
        if self.words[3] != session:
            raise Unfit(f"session region: of session {self.words[3]}")
        self.hazard_at, self.hazards, self.touch_at, self.touches = self.halves[8:12]
        inside = (PAGE <= self.hazard_at and self.hazard_at % 8 == 0 and self.touch_at % 64 == 0 and
                  self.hazard_at + 8 * self.hazards <= self.touch_at and
                  self.touch_at + TOUCH_BYTES * self.touches <= min(self.size, self.words[2]) and self.hazards and
                  self.touches and not self.touches & self.touches - 1)
        if not inside:
            raise Unfit("session region: its parts do not lie inside")
        self.free = list(range(self.hazards - 1, -1, -1))

    def pin(self, desc):
        """The number of the hazard word that now has that block; one must be free."""
        word = self.free.pop()
        self.words[self.hazard_at // 8 + word] = desc + 1
        return word

    def unpin(self, word):
        self.words[self.hazard_at // 8 + word] = 0
        self.free.append(word)

    def add(self, counter, n=1):
        self.words[128 // 8 + counter] += n

    def counter(self, counter):
        return self.words[128 // 8 + counter]

    def touch(self, desc, ns, asked, hit, reason_tail, start, miss_key):
        place = self.words[64 // 8]
        self.words[64 // 8] = place + 1
        at = self.touch_at + place % self.touches * TOUCH_BYTES
        struct.pack_into("<IIIIII32s", self.bytes, at + 8, desc, ns, asked, hit, reason_tail, start, miss_key)
        self.words[at // 8] = place + 1


class Pool(Region):
    def block(self, slot, size):
        """The bytes of a slot, in place."""
        at = slot * PAGE
        if at + size > self.size:
            raise Unfit(f"slot {slot} lies outside of the pool")
        return self.bytes[at:at + size]
