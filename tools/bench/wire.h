/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session made of a socket and the messages alone, to measure what the daemon costs without what
 * the library does; and the least that a server on such a socket can be.
 */
#ifndef KVP_TOOLS_BENCH_WIRE_H
#define KVP_TOOLS_BENCH_WIRE_H

#include "proto/codec.h"
#include "proto/kvpool.pb-c.h"
#include "proto/ops.h"
#include "tools/bench/bench.h"

/* The two ends of a round trip run here, where there are two processors. */
#define WIRE_CLIENT_CPU 0
#define WIRE_SERVER_CPU 1

struct wire {
	int sock;
	uint64_t id; /* of the last request */
	size_t n_out, n_in;
	struct codec_arena arena;
	unsigned char out[FRAME_MAX], in[FRAME_MAX], memory[CODEC_ARENA_BYTES];
};

/* Returns 0 or -errno, with words on stderr. wire_close accepts NULL and returns NULL. */
int wire_open(const struct private_daemon *d, const char *name, struct wire **ret);
struct wire *wire_close(struct wire *w);

/* The number of the namespace that bench_namespace opened with the same arguments. */
int wire_namespace(struct wire *w, const char *model, uint32_t block_tokens, uint64_t block_bytes,
		   uint32_t *ret_ns);

/*
 * Sends a packet and waits for one: what is measured, the same for each server. Returns seconds, or
 * -errno; *ret_n: bytes that came.
 */
double wire_round(int sock, const void *out, size_t n_out, void *in, size_t size, size_t *ret_n);

/* Puts a request into out. Returns 0 or -errno. */
int wire_pack(struct wire *w, enum proto_op op, const ProtobufCMessage *m);

/* Sends what is in out and waits for what comes back. Returns seconds, or -errno. */
double wire_trip(struct wire *w);

/* What came back, until the next one; NULL when it is no answer of that operation. */
const void *wire_reply(struct wire *w, enum proto_op op);

/*
 * Reserves and commits n keys as the start of a chain, by two messages. Returns seconds of both
 * round trips, or -errno. sizes: bytes of the four packets, there and back and again.
 */
double wire_put(struct wire *w, uint32_t ns, const struct kvpool_key *keys, uint32_t n,
		size_t sizes[4]);

/* Where a process runs: nothing is done where there is one processor. */
void wire_pin(pid_t pid, int cpu);
void wire_unpin(pid_t pid);

/*
 * A server of one socket: epoll_wait, recv, the probes that are asked for, send. lines of 8 words
 * at table, of which mask + 1 are a power of two.
 */
struct echo {
	pid_t pid;
	int sock;
	const uint64_t *table;
	uint64_t mask;
	int server_sock;
};

int echo_start(struct echo *e, const uint64_t *table, uint64_t mask);
void echo_stop(struct echo *e);

/*
 * Sends a packet of n bytes and gets one of reply bytes. keys, if there are any: so many lines are
 * probed before it is sent, and they are a part of the n bytes. Returns seconds or -errno.
 */
double echo_trip(struct echo *e, size_t n, size_t reply, const struct kvpool_key *keys,
		 uint32_t n_keys);

#endif
