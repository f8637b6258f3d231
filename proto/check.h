/* SPDX-License-Identifier: Apache-2.0 */
/* What the fields of each request must be, as a table, checked before a handler sees them. */
#ifndef KVP_PROTO_CHECK_H
#define KVP_PROTO_CHECK_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/nsdesc.h"
#include "proto/ops.h"

#define PROTO_KEY_BYTES 32u
#define PROTO_TEXT_MAX  64u /* bytes of a name that a client gives itself, of a label */

#define PROTO_PRIORITY_MAX     99u
#define PROTO_PRIORITY_DEFAULT 50u

/* Digits of a fingerprint or an id that may stand where a name does: fewer are one, or a slip. */
#define PROTO_DIGITS_MIN 6u

#define PROTO_CONFIG_KEY_MAX   (32u + NSDESC_TEXT_MAX) /* "namespace.MODEL.ttl" */
#define PROTO_CONFIG_VALUE_MAX 256u

/*
 * One field of one request. A number (uint32) is measured by its value, text and bytes by their
 * length in bytes, a list by its entries. Text must also be clean (proto/text.h). A request's field
 * without a row may hold anything.
 */
struct proto_rule {
	enum proto_op op;
	const char *field;
	int required; /* 0 or an empty value is none */
	uint64_t max;
	uint32_t multiple; /* of this many bytes; 0: any */
	const char *like;  /* a list that must be as long */
};

/* All rules, for the tests. */
const struct proto_rule *proto_rules(size_t *ret_n);

/*
 * Checks a request of an operation against the table. Returns 0, or -EINVAL with the field and what
 * is wrong with it ("is missing").
 */
int proto_check(const struct proto_op_info *op, const ProtobufCMessage *m, const char **ret_field,
		const char **ret_why);

#endif
