/* SPDX-License-Identifier: Apache-2.0 */
/* Operations, verdicts and errors of the protocol, and the table that names them. */
#ifndef KVP_PROTO_OPS_H
#define KVP_PROTO_OPS_H

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

enum proto_op {
	OP_HELLO = 1,
	OP_NS_OPEN = 2,
	OP_RESERVE = 3,
	OP_COMMIT = 4,
	OP_ABORT = 5,
	OP_WAIT = 6,
	OP_TOUCH = 7,
	OP_LOCATE = 8,
	OP_REPORT = 9,
	OP_PING = 10,
	OP_BYE = 11,
	OP_NS_CLOSE = 12,
	OP_HINT = 13,
	OP_UNWAIT = 14,
	OP_STOPPING = 32, /* from the daemon, unasked */
	OP_VERSION = 64,  /* admin socket, with OP_PING */
	OP_STATUS = 65,
	OP_NAMESPACES = 66,
	OP_CLIENTS = 67,
	OP_FLUSH = 68,
	OP_CONFIG = 69,
	OP_CONFIG_SET = 70,
	OP_RELOAD = 71,
	OP_LOG_LEVEL = 72,
	OP_STATS_RESET = 73,
	OP_KICK = 74,
	OP_RESIZE = 75,
	OP_PIN = 76,
	OP_UNPIN = 77,
	OP_PINS = 78,
	OP_PREFIXES = 79,
	OP_EXPLAIN = 80,
	OP_REQUESTS = 81,
};

/* What a daemon can do beyond the first version, bits of HelloReply.features. */
enum proto_feature {
	FEATURE_UNNAMED = 1, /* RESERVE without keys, COMMIT with them */
	FEATURE_HINT = 2,
	FEATURE_UNWAIT = 4,
};

/* The order of PREFIXES. */
enum proto_sort {
	SORT_HITS = 0,
	SORT_BYTES = 1,
	SORT_AGE = 2,
	SORT_MAX = 2,
};

/* Answers for each key or block. The order is part of the protocol. */
enum proto_verdict {
	VERDICT_NONE = 0,
	VERDICT_GRANTED = 1,   /* reserve: the slot is the caller's to fill */
	VERDICT_PRESENT = 2,   /* reserve: cached already */
	VERDICT_BUSY = 3,      /* reserve: another client writes it, or one before it in the run */
	VERDICT_FULL = 4,      /* reserve: no room, here or before it in the run */
	VERDICT_NO_PARENT = 5, /* reserve, commit: the block before it is not cached (any more) */
	VERDICT_COMMITTED = 6, /* commit */
	VERDICT_STALE = 7,     /* commit, abort: reservation voided, timed out or reused */
	VERDICT_NOT_OWNER = 8, /* commit, abort: no reservation of this client */
	VERDICT_FREED = 9,     /* abort */
};

enum proto_full {
	FULL_NONE = 0,
	FULL_POOL = 1,        /* every slot is pinned, reserved or in quarantine */
	FULL_INDEX = 2,       /* no place in the index */
	FULL_DESCRIPTORS = 3, /* max_blocks reached */
	FULL_QUOTA = 4,       /* this client holds all it may */
	FULL_MAX = 4,
};

enum proto_error {
	ERROR_NONE = 0,
	ERROR_BAD_FRAME = 1,   /* header or length; the connection ends */
	ERROR_BAD_MESSAGE = 2, /* does not unpack */
	ERROR_BAD_FIELD = 3,   /* unpacks, but a field is missing or out of bounds */
	ERROR_UNKNOWN_OP = 4,
	ERROR_BAD_STATE = 5, /* not now: before HELLO, or HELLO twice */
	ERROR_VERSION = 6,   /* no common protocol version, or another layout */
	ERROR_DENIED = 7,
	ERROR_LIMIT = 8,        /* too many clients, namespaces, waits */
	ERROR_NO_NAMESPACE = 9, /* number of no namespace */
	ERROR_FDS = 10,         /* descriptors from a client; the connection ends */
	ERROR_INTERNAL = 11,
	ERROR_NO_OBJECT = 12, /* no such session, pin, prefix, key of the configuration */
	ERROR_AMBIGUOUS = 13, /* a name or the start of an id fits several */
	ERROR_CONFIG = 14,    /* a value, or a file, that is not accepted */
	ERROR_MAX = 14,
};

/*
 * One operation as data. A second table of the daemon maps it to its handler, the state and the
 * privilege it needs.
 */
struct proto_op_info {
	enum proto_op op;
	const char *name;
	const ProtobufCMessageDescriptor *request;
	const ProtobufCMessageDescriptor *reply; /* NULL: has none */
	unsigned int reply_fds;
	int admin; /* admin socket */
};

/* NULL for a number that is no operation. */
const struct proto_op_info *proto_op_find(unsigned int op);

const char *proto_full_name(enum proto_full f);
const char *proto_error_name(enum proto_error e);

#endif
