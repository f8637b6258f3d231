/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client made of a socket and the message codec, for what the library would never send. Every
 * function aborts the test when something fails that is not what is being tested.
 */
#ifndef KVP_TESTS_INTEGRATION_RAW_H
#define KVP_TESTS_INTEGRATION_RAW_H

#include "proto/codec.h"
#include "proto/kvpool.pb-c.h"
#include "proto/ops.h"

struct raw {
	int sock;
	uint64_t id; /* of the last request */
	struct frame_header head;
	unsigned char in[FRAME_MAX];
	size_t n; /* bytes of the last packet that came */
	int fds[FRAME_FDS_MAX];
	unsigned int n_fds;
	struct codec_arena arena;
	unsigned char memory[CODEC_ARENA_BYTES];
};

/* Connects. raw_close(NULL) is fine. */
struct raw *raw_open(const char *path);
void raw_close(struct raw *r);

/* Connects and says a sound hello with name; keeps the three descriptors. */
struct raw *raw_hello(const char *path, const char *name);

/* Sends n bytes as one packet, with descriptors. Returns 0 or -errno. */
int raw_send_packet(struct raw *r, const void *packet, size_t n, const int *fds,
		    unsigned int n_fds);

/* Sends a request with a body of n bytes, or with a message. */
void raw_send_body(struct raw *r, unsigned int op, const void *body, size_t n);
void raw_send(struct raw *r, unsigned int op, const ProtobufCMessage *m);

/* The next packet: 1, or 0 when the daemon has hung up. Aborts after 20 seconds of neither. */
int raw_receive(struct raw *r);

/* The message of the last packet. */
const void *raw_message(struct raw *r, const ProtobufCMessageDescriptor *type);

/* Sends and expects the reply of that operation to this request. */
const void *raw_call(struct raw *r, enum proto_op op, const ProtobufCMessage *m);

/* The next packet is an error with that code, and about that field when it is not NULL. */
const Kvpool__Error *raw_expect_error(struct raw *r, enum proto_error code, const char *field);

/* What comes is read until the daemon has hung up. */
void raw_expect_end(struct raw *r);

/* The connection is of use: a ping is answered. */
void raw_ping(struct raw *r);

/* Opens a namespace named model with blocks of 16 KiB; its number. */
uint32_t raw_ns(struct raw *r, const char *model);

/* A sound descriptor of that namespace. Returns its length. */
size_t raw_descriptor(const char *model, uint8_t *out);

/* n made-up keys, the same for the same seed. */
void raw_keys(unsigned int seed, uint8_t *keys, size_t n);

/* Reserves n keys of a chain below nothing. The reply lives until the next packet. */
const Kvpool__ReserveReply *raw_reserve(struct raw *r, uint32_t ns, uint8_t *keys, size_t n);

#endif
