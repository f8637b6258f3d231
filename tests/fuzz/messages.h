/* SPDX-License-Identifier: Apache-2.0 */
/* Every message of the protocol, made and compared by what protobuf-c knows of its fields. */
#ifndef KVP_TESTS_FUZZ_MESSAGES_H
#define KVP_TESTS_FUZZ_MESSAGES_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

/* The types, in no order of meaning. */
const ProtobufCMessageDescriptor *const *messages_all(size_t *ret_n);

/*
 * Makes a message with every field set, to values that follow from seed; lists get `entries`
 * entries. Freed by protobuf_c_message_free_unpacked(m, NULL).
 */
ProtobufCMessage *messages_make(const ProtobufCMessageDescriptor *type, uint32_t seed,
				size_t entries);

/* Returns the first field that differs, or NULL. */
const char *messages_difference(const ProtobufCMessage *a, const ProtobufCMessage *b);

/* Where a field and its number of entries lie. */
static inline void *messages_at(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	return (char *)m + f->offset;
}

static inline size_t *messages_count(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	return (size_t *)((char *)m + f->quantifier_offset);
}

#endif
