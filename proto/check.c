/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "proto/check.h"
#include "proto/frame.h"
#include "proto/nsdesc.h"
#include "proto/text.h"

#define KEYS_MAX_BYTES (PROTO_KEY_BYTES * FRAME_KEYS_MAX)
#define KEYS(op)                                                                                   \
	{                                                                                          \
		op, "keys", 1, KEYS_MAX_BYTES, PROTO_KEY_BYTES                                     \
	}

static const struct proto_rule rule_table[] = {
	{ OP_HELLO, "protocol_min", 1, UINT32_MAX },
	{ OP_HELLO, "protocol_max", 1, UINT32_MAX },
	{ OP_HELLO, "layout", 1, UINT32_MAX },
	{ OP_HELLO, "library", 0, PROTO_TEXT_MAX },
	{ OP_HELLO, "name", 0, PROTO_TEXT_MAX },
	{ OP_NS_OPEN, "descriptor", 1, NSDESC_MAX_BYTES },
	{ OP_RESERVE, "parent", 0, PROTO_KEY_BYTES, PROTO_KEY_BYTES },
	{ OP_RESERVE, "keys", 0, KEYS_MAX_BYTES, PROTO_KEY_BYTES },
	{ OP_RESERVE, "unnamed", 0, FRAME_KEYS_MAX },
	{ OP_COMMIT, "desc", 1, FRAME_KEYS_MAX },
	{ OP_COMMIT, "gen", 1, FRAME_KEYS_MAX, 0, "desc" },
	{ OP_COMMIT, "crc", 1, FRAME_KEYS_MAX, 0, "desc" },
	{ OP_COMMIT, "keys", 0, KEYS_MAX_BYTES, PROTO_KEY_BYTES },
	{ OP_COMMIT, "parent", 0, PROTO_KEY_BYTES, PROTO_KEY_BYTES },
	{ OP_ABORT, "desc", 1, FRAME_KEYS_MAX },
	{ OP_ABORT, "gen", 1, FRAME_KEYS_MAX, 0, "desc" },
	KEYS(OP_WAIT),
	KEYS(OP_TOUCH),
	KEYS(OP_LOCATE),
	{ OP_HINT, "key", 1, PROTO_KEY_BYTES, PROTO_KEY_BYTES },
	{ OP_HINT, "priority", 0, PROTO_PRIORITY_MAX },
	{ OP_FLUSH, "namespace", 0, NSDESC_TEXT_MAX },
	{ OP_CONFIG, "key", 0, PROTO_CONFIG_KEY_MAX },
	{ OP_CONFIG_SET, "key", 1, PROTO_CONFIG_KEY_MAX },
	{ OP_CONFIG_SET, "value", 0, PROTO_CONFIG_VALUE_MAX },
	{ OP_LOG_LEVEL, "level", 0, PROTO_TEXT_MAX },
	{ OP_PIN, "namespace", 0, NSDESC_TEXT_MAX },
	{ OP_PIN, "keys", 0, KEYS_MAX_BYTES, PROTO_KEY_BYTES },
	{ OP_PIN, "id", 0, 2 * PROTO_KEY_BYTES },
	{ OP_PIN, "label", 0, PROTO_TEXT_MAX },
	{ OP_PIN, "priority", 0, PROTO_PRIORITY_MAX },
	{ OP_UNPIN, "label", 0, PROTO_TEXT_MAX },
	{ OP_PREFIXES, "namespace", 0, NSDESC_TEXT_MAX },
	{ OP_PREFIXES, "id", 0, 2 * PROTO_KEY_BYTES },
	{ OP_PREFIXES, "sort", 0, SORT_MAX },
	{ OP_EXPLAIN, "namespace", 1, NSDESC_TEXT_MAX },
	KEYS(OP_EXPLAIN),
	{ OP_REQUESTS, "client", 0, PROTO_TEXT_MAX },
};

const struct proto_rule *proto_rules(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(rule_table);
	return rule_table;
}

/* Reads the measure of a field (struct proto_rule says which). Returns -EINVAL for unclean text. */
static int proto_measure(const ProtobufCFieldDescriptor *f, const ProtobufCMessage *m,
			 uint64_t *ret)
{
	const char *at = (const char *)m + f->offset;
	const char *text;

	if (f->label == PROTOBUF_C_LABEL_REPEATED) {
		*ret = *(const size_t *)((const char *)m + f->quantifier_offset);
		return 0;
	}
	switch (f->type) {
	case PROTOBUF_C_TYPE_STRING:
		text = *(const char *const *)at;
		*ret = strlen(text);
		return text_check(text, *ret);
	case PROTOBUF_C_TYPE_BYTES:
		*ret = ((const ProtobufCBinaryData *)at)->len;
		return 0;
	default:
		*ret = *(const uint32_t *)at;
		return 0;
	}
}

/* What is wrong with the field of a rule, or NULL. */
static const char *proto_rule_why(const struct proto_rule *rule, const ProtobufCMessage *m)
{
	const ProtobufCFieldDescriptor *f =
		protobuf_c_message_descriptor_get_field_by_name(m->descriptor, rule->field);
	uint64_t n, other = 0;

	if (proto_measure(f, m, &n) < 0)
		return "is not UTF-8 text without control characters";
	if (!n && rule->required)
		return "is missing";
	if (n > rule->max)
		return "is too large";
	if (rule->multiple && n % rule->multiple)
		return "is not a whole number of keys";
	if (!rule->like)
		return NULL;
	f = protobuf_c_message_descriptor_get_field_by_name(m->descriptor, rule->like);
	(void)proto_measure(f, m, &other);
	return n == other ? NULL : "is not as long as the list that it belongs to";
}

int proto_check(const struct proto_op_info *op, const ProtobufCMessage *m, const char **ret_field,
		const char **ret_why)
{
	for (size_t i = 0; i < ARRAY_SIZE(rule_table); i++) {
		const char *why;

		if (rule_table[i].op != op->op)
			continue;
		why = proto_rule_why(&rule_table[i], m);
		if (why) {
			*ret_field = rule_table[i].field;
			*ret_why = why;
			return -EINVAL;
		}
	}
	return 0;
}
