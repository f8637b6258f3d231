/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon for tests of libkvpool: a thread of the test that keeps to the protocol, unless the test
 * says otherwise, packet by packet. Its pool is real shared memory with a real index, so that
 * lookups find what it publishes. It never evicts, and forgets reservations with their connection.
 *
 * Failures of its own abort the test: nothing here returns an error.
 */
#ifndef KVP_TESTS_CLIENT_FAKE_H
#define KVP_TESTS_CLIENT_FAKE_H

#include <pthread.h>

#include "client/kvpool.h"
#include "proto/codec.h"
#include "proto/kvpool.pb-c.h"
#include "proto/ops.h"
#include "shm/index.h"
#include "shm/session.h"

#define FAKE_BLOCKS       4096u
#define FAKE_BLOCK_BYTES  4096u
#define FAKE_BLOCK_TOKENS 16u
#define FAKE_POOL_BYTES   ((uint64_t)FAKE_BLOCKS * FAKE_BLOCK_BYTES)
#define FAKE_CONNS        16u
#define FAKE_NS           3u /* the number of every namespace */

struct fake;

/* A request that came. */
struct fake_request {
	struct fake *fake;
	int sock;
	struct frame_header head;
	const ProtobufCMessage *message; /* NULL when it does not unpack */
};

enum fake_answer {
	FAKE_USUAL,   /* answer as the protocol says */
	FAKE_SILENCE, /* say nothing (more) */
	FAKE_HANG_UP,
};

/* Called for each request, in the daemon's thread. NULL: always FAKE_USUAL. */
typedef enum fake_answer (*fake_script)(struct fake_request *rq, void *arg);

/* All of a daemon's memory: replaced as a whole when it is restarted. */
struct fake_memory {
	int control_fd, control_ro, pool_fd;
	void *control_base;
	uint64_t control_bytes;
	struct control control;
	uint8_t *pool;
	struct index_writer index;
	uint32_t next; /* descriptor and slot of the next block */
};

struct fake {
	char dir[64], socket[96];
	struct fake_memory m;
	pthread_mutex_t lock; /* script, arg, counts */
	fake_script script;
	void *arg;
	unsigned int seen[OP_FLUSH + 1]; /* requests of each kind */

	/* The session of the last HELLO, mapped here too. */
	uint64_t sessions;
	int region_fd;
	void *region_base;
	uint64_t region_bytes;
	struct session_map session;

	uint32_t unnamed; /* slots that somebody has */

	/* What the usual answers do otherwise, set by tests before they connect. */
	uint32_t hazards_max, max_keys, unnamed_max;
	int read_only;
	int no_features; /* a daemon of before there were any */

	int listener, wake[2];
	pthread_t thread;
	int conns[FAKE_CONNS];
	unsigned int n_conns;
	uint8_t packet[FRAME_MAX], out[FRAME_MAX];
	struct codec_arena arena;
	void *arena_memory;
};

/* Starts it on a socket of its own. */
void fake_start(struct fake *f);

/* Ends it without a word, as a crash does. Its socket file stays. */
void fake_stop(struct fake *f);

/* Starts it again with new memory, after fake_stop. */
void fake_again(struct fake *f);

/* Frees everything; stops it if it runs. */
void fake_end(struct fake *f);

/* What is done with each request from here on. */
void fake_set_script(struct fake *f, fake_script script, void *arg);

/* The same with a number for the script. */
static inline void fake_script_number(struct fake *f, fake_script script, unsigned int n)
{
	fake_set_script(f, script, (void *)(uintptr_t)n);
}

static inline unsigned int fake_number(const void *arg)
{
	return (unsigned int)(uintptr_t)arg;
}

/* How many requests of a kind came so far. */
unsigned int fake_seen(struct fake *f, enum proto_op op);

/* Marks the control region as given up. */
void fake_retire(struct fake *f);

/*
 * Publishes blocks [first, n) of a chain whose bytes are fake_byte of their key. Blocks before
 * first must have been published. Call it from one thread, while no client writes.
 */
void fake_publish(struct fake *f, const struct kvpool_key *keys, uint32_t first, uint32_t n);

/* Makes a published block one that eviction took, or takes it back. */
void fake_evict(struct fake *f, const struct kvpool_key *key);

/* Its descriptor, or DESC_NONE. */
uint32_t fake_find(struct fake *f, const struct kvpool_key *key);

/* What each byte of a block is. */
static inline uint8_t fake_byte(const struct kvpool_key *key)
{
	return (uint8_t)(key->w[3] >> 56);
}

/* Answers. */
void fake_reply(struct fake_request *rq, const ProtobufCMessage *m);
void fake_error(struct fake_request *rq, enum proto_error code, const char *text);
/* With any header and descriptors. */
void fake_send(struct fake_request *rq, const struct frame_header *h, const ProtobufCMessage *m,
	       const int *fds, unsigned int n_fds);

/* The usual answer, for a script that does something else first. */
void fake_usual(struct fake_request *rq);

/* A handle that is connected to it, with a time-out of timeout_ms (0: 5 s), and a namespace. */
struct kvpool *fake_connect(const struct fake *f, unsigned int timeout_ms);
struct kvpool_ns *fake_ns(struct kvpool *pool, const char *model);

/* Descriptor of that namespace. */
struct kvpool_ns_desc fake_desc(const char *model);

/* n tokens that begin with seed. */
void fake_tokens(int32_t *tokens, size_t n, int32_t seed);

#endif
