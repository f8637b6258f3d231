/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why tokens were not a hit: a closed list, with a counter each in the daemon.
 *
 * The first ones are what shared memory can know, with the numbers of enum kvpool_reason, as a
 * lookup leaves them in its touch record. Instead of NOT_CACHED the daemon counts a finer one, from
 * 16 on, which it derives from the key that was missed.
 */
#ifndef KVP_PROTO_REASON_H
#define KVP_PROTO_REASON_H

enum miss_reason {
	MISS_NONE = 0,          /* nothing was missed */
	MISS_NOT_CACHED = 1,    /* in a touch record only */
	MISS_PARTIAL_BLOCK = 2, /* behind the last block that can be cached: the last token too */
	MISS_BELOW_MIN = 3,     /* a prompt without one such block */
	MISS_PINS = 4,
	MISS_NO_DAEMON = 5,
	MISS_TIMEOUT = 6,
	/* not 7: what a child of fork asks for is counted nowhere */
	MISS_RACED = 8,
	MISS_NAMESPACE = 9,
	MISS_COLD = 16,        /* never seen, as far as is remembered */
	MISS_EVICTED = 17,     /* made room for others */
	MISS_EXPIRED = 18,     /* its TTL was over */
	MISS_FLUSHED = 19,     /* an operator dropped it */
	MISS_CORRUPT = 20,     /* its bytes were wrong */
	MISS_RESIZED = 21,     /* the pool got smaller */
	MISS_IN_FLIGHT = 22,   /* somebody writes it now: it can be waited for */
	MISS_WRITER_DIED = 23, /* whoever wrote it went, or took too long */
	MISS_QUOTA = 24,       /* its writer held all it may */
	MISS_FULL = 25,        /* it found no room */
	MISS_UNKNOWN = 26,     /* the record of the lookup was lost */
	MISS_MAX = 26,
};

/* "evicted"; "unknown" for a number of none. */
const char *miss_reason_name(unsigned int reason);

/* What an operator can make of it, one sentence; "" for a number of none. */
const char *miss_reason_help(unsigned int reason);

#endif
