/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of the protocol, and a sound request of each. A new one has a line in each part.
 */
#ifndef KVP_TESTS_INTEGRATION_SAMPLE_H
#define KVP_TESTS_INTEGRATION_SAMPLE_H

#include "proto/kvpool.pb-c.h"
#include "proto/nsdesc.h"
#include "proto/ops.h"
#include "shm/layout.h"

#define SAMPLE_OPS 32u

/*
 * Where each is asked for; absent: the sample names an object that there is not, and is sound apart
 * from that.
 */
struct sample_op {
	enum proto_op op;
	int admin, absent;
};

extern const struct sample_op sample_ops[SAMPLE_OPS];

/* A sound request of each operation, in buffers of its own. */
struct sample {
	uint8_t keys[2 * KEY_BYTES], desc_bytes[NSDESC_MAX_BYTES];
	uint32_t desc[2], crc[2];
	uint64_t gen[2];
	Kvpool__Hello hello;
	Kvpool__NsOpen ns_open;
	Kvpool__Reserve reserve;
	Kvpool__Commit commit;
	Kvpool__Abort abort;
	Kvpool__Wait wait;
	Kvpool__Touch touch;
	Kvpool__Locate locate;
	Kvpool__Report report;
	Kvpool__Ping ping;
	Kvpool__Bye bye;
	Kvpool__NsClose ns_close;
	Kvpool__Version version;
	Kvpool__Status status;
	Kvpool__Namespaces namespaces;
	Kvpool__Clients clients;
	Kvpool__Flush flush;
	Kvpool__Hint hint;
	Kvpool__Unwait unwait;
	Kvpool__StatsReset stats_reset;
	Kvpool__Kick kick;
	Kvpool__Pin pin;
	Kvpool__Unpin unpin;
	Kvpool__Pins pins;
	Kvpool__Resize resize;
	Kvpool__Prefixes prefixes;
	Kvpool__Explain explain;
	Kvpool__Requests requests;
	Kvpool__Config config;
	Kvpool__ConfigSet config_set;
	Kvpool__Reload reload;
	Kvpool__LogLevel log_level;
};

/* ns: the number of the namespace "protocol" in the session that asks. */
void sample_make(struct sample *s, uint32_t ns);

ProtobufCMessage *sample_of(struct sample *s, enum proto_op op);

#endif
