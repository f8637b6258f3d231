/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies of packets: the first byte says which message, the rest is its bytes. What unpacks stays
 * in the arena and means the same after packing it again; what the rules of requests let through
 * has the lengths that handlers count on.
 */
#undef NDEBUG
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "proto/check.h"
#include "proto/codec.h"
#include "proto/kvpool.pb-c.h"
#include "proto/text.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/messages.h"

/* Two messages are compared, each in an arena of its own. */
static uint8_t memory[2][CODEC_ARENA_BYTES];
static uint8_t packet[FRAME_MAX];

/*
 * kvpool never sends on what it does not know, and protobuf-c does not always write an unknown
 * field so that it can be read: a tag beyond 29 bits is cut.
 */
static void forget_unknown(ProtobufCMessage *m)
{
	m->n_unknown_fields = 0;
	for (unsigned int i = 0; i < m->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];

		if (f->type != PROTOBUF_C_TYPE_MESSAGE)
			continue;
		for (size_t k = 0; k < *messages_count(m, f); k++)
			forget_unknown((*(ProtobufCMessage ***)messages_at(m, f))[k]);
	}
}

static void check_again(ProtobufCMessage *m)
{
	static const struct frame_header header = { .magic = FRAME_MAGIC };
	struct codec_arena a;
	ProtobufCMessage *again;
	long n;

	forget_unknown(m);
	n = codec_pack(packet, &header, m);
	if (n < 0)
		return; /* a list that came entry by entry in fewer bytes than a packed one takes */
	codec_arena_init(&a, memory[1], sizeof(memory[1]));
	again = codec_unpack(&a, m->descriptor, packet + FRAME_HEADER_BYTES,
			     (size_t)n - FRAME_HEADER_BYTES);
	assert(again || a.overflow);
	if (again)
		assert(!messages_difference(m, again));
}

/* What handlers take for granted, said once more and without the table. */
static void check_granted(const struct proto_op_info *op, const ProtobufCMessage *m)
{
	const Kvpool__Reserve *reserve = (const void *)m;
	const Kvpool__Commit *commit = (const void *)m;
	const Kvpool__Abort *abort = (const void *)m;
	const Kvpool__Hello *hello = (const void *)m;
	const Kvpool__Hint *hint = (const void *)m;
	const Kvpool__Pin *pin = (const void *)m;
	const Kvpool__ConfigSet *set = (const void *)m;

	switch (op->op) {
	case OP_RESERVE:
		assert(reserve->parent.len == 0 || reserve->parent.len == 32);
		assert(reserve->keys.len % 32 == 0 && reserve->keys.len / 32 <= FRAME_KEYS_MAX);
		assert(reserve->unnamed <= FRAME_KEYS_MAX);
		break;
	case OP_COMMIT:
		assert(commit->n_desc && commit->n_desc <= FRAME_KEYS_MAX);
		assert(commit->n_gen == commit->n_desc && commit->n_crc == commit->n_desc);
		assert(commit->parent.len == 0 || commit->parent.len == 32);
		assert(commit->keys.len % 32 == 0 && commit->keys.len / 32 <= FRAME_KEYS_MAX);
		break;
	case OP_HINT:
		assert(hint->key.len == 32 && hint->priority <= PROTO_PRIORITY_MAX);
		break;
	case OP_PIN:
		assert(pin->keys.len % 32 == 0 && pin->keys.len / 32 <= FRAME_KEYS_MAX);
		assert(strlen(pin->id) <= 64 && pin->priority <= PROTO_PRIORITY_MAX);
		assert(!text_check(pin->label, strlen(pin->label)));
		break;
	case OP_CONFIG_SET:
		assert(*set->key && strlen(set->value) <= PROTO_CONFIG_VALUE_MAX);
		assert(!text_check(set->value, strlen(set->value)));
		break;
	case OP_ABORT:
		assert(abort->n_desc && abort->n_desc <= FRAME_KEYS_MAX);
		assert(abort->n_gen == abort->n_desc);
		break;
	case OP_HELLO:
		assert(strlen(hello->name) <= PROTO_TEXT_MAX && hello->layout);
		assert(!text_check(hello->name, strlen(hello->name)));
		break;
	default:
		break;
	}
}

static void check_request(const ProtobufCMessage *m)
{
	for (unsigned int op = 0; op < 256; op++) {
		const struct proto_op_info *info = proto_op_find(op);
		const char *field = NULL, *why = NULL;

		if (!info || info->request != m->descriptor)
			continue;
		if (proto_check(info, m, &field, &why) == 0)
			check_granted(info, m);
		else
			assert(*why && protobuf_c_message_descriptor_get_field_by_name(
					       m->descriptor, field));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const ProtobufCMessageDescriptor *const *types;
	struct codec_arena a;
	ProtobufCMessage *m;
	size_t n_types;

	if (!n)
		return 0;
	types = messages_all(&n_types);
	codec_arena_init(&a, memory[0], sizeof(memory[0]));
	m = codec_unpack(&a, types[data[0] % n_types], data + 1, n - 1);
	assert(a.used <= a.size);
	if (m) {
		check_again(m);
		check_request(m);
	}
	return 0;
}

static void tell_message(void (*tell)(const void *data, size_t n), size_t type,
			 const ProtobufCMessage *m)
{
	uint8_t *body = malloc(1 + protobuf_c_message_get_packed_size(m));
	size_t n;

	assert(body);
	body[0] = (uint8_t)type;
	n = 1 + protobuf_c_message_pack(m, body + 1);
	tell(body, n);
	tell(body, n - n / 8);
	free(body);
}

void fuzz_seeds(void (*tell)(const void *data, size_t n))
{
	size_t n_types;
	const ProtobufCMessageDescriptor *const *types = messages_all(&n_types);

	for (size_t i = 0; i < n_types; i++)
		for (size_t entries = 0; entries < 4; entries += 3) {
			ProtobufCMessage *m = messages_make(types[i], (uint32_t)i, entries);

			tell_message(tell, i, m);
			protobuf_c_message_free_unpacked(m, NULL);
		}
}
