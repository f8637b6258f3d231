/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to the admin socket: one request at a time, each with a deadline. */
#ifndef KVP_TOOLS_KVPOOLCTL_ADMIN_H
#define KVP_TOOLS_KVPOOLCTL_ADMIN_H

#include "proto/codec.h"
#include "proto/ops.h"
#include "tools/kvpoolctl/endpoint.h"

struct admin {
	int sock;
	struct endpoint endpoint;
	uint64_t timeout_ns;
	const char *about; /* what requests are about, for messages; NULL: nothing to name */
	int mute;          /* says nothing of what fails */
	uint32_t expected; /* a bit for each enum proto_error that is no failure to tell of */
	unsigned int code; /* enum proto_error of the last answer */
	uint64_t id;       /* of the last request */
	uint64_t epoch;    /* of the daemon, from its last reply */
	uint8_t *memory;   /* of packet and arena */
	uint8_t *packet;
	struct codec_arena arena;
};

/*
 * Connects to the daemon that the options name. *ret needs no admin_close when that fails; an
 * admin_close of a zeroed struct, or twice, is fine.
 */
enum ctl_exit admin_open(const struct options *o, struct admin *ret);
void admin_close(struct admin *a);

/* Connects without a word. Returns -errno; *ret as above. */
int admin_connect(const struct endpoint *e, uint64_t timeout_ns, struct admin *ret);

/* The path that it talks to. */
const char *admin_path(const struct admin *a);

/*
 * Sends a request and waits for the reply, which lives until the next call or admin_close.
 */
enum ctl_exit admin_call(struct admin *a, enum proto_op op, const ProtobufCMessage *request,
			 const void **ret_reply);

#endif
