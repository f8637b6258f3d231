/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "proto/kvpool.pb-c.h"
#include "tests/fuzz/messages.h"

#define TYPE(name) &kvpool__##name##__descriptor

static const ProtobufCMessageDescriptor *const all_types[] = {
	TYPE(error),
	TYPE(hello),
	TYPE(hello_reply),
	TYPE(ns_open),
	TYPE(ns_open_reply),
	TYPE(reserve),
	TYPE(reserve_reply),
	TYPE(commit),
	TYPE(commit_reply),
	TYPE(abort),
	TYPE(abort_reply),
	TYPE(wait),
	TYPE(wait_reply),
	TYPE(touch),
	TYPE(touch_reply),
	TYPE(locate),
	TYPE(locate_reply),
	TYPE(report),
	TYPE(report_reply),
	TYPE(ping),
	TYPE(ping_reply),
	TYPE(bye),
	TYPE(bye_reply),
	TYPE(stopping),
	TYPE(version),
	TYPE(version_reply),
	TYPE(status),
	TYPE(status_reply),
	TYPE(namespaces),
	TYPE(namespace_item),
	TYPE(namespaces_reply),
	TYPE(clients),
	TYPE(client_item),
	TYPE(clients_reply),
	TYPE(flush),
	TYPE(flush_reply),
	TYPE(ns_close),
	TYPE(ns_close_reply),
	TYPE(hint),
	TYPE(hint_reply),
	TYPE(unwait),
	TYPE(unwait_reply),
	TYPE(config),
	TYPE(config_reply),
	TYPE(config_set),
	TYPE(config_set_reply),
	TYPE(reload),
	TYPE(reload_reply),
	TYPE(log_level),
	TYPE(log_level_reply),
	TYPE(stats_reset),
	TYPE(stats_reset_reply),
	TYPE(kick),
	TYPE(kick_reply),
	TYPE(resize),
	TYPE(resize_reply),
	TYPE(pin),
	TYPE(pin_reply),
	TYPE(unpin),
	TYPE(unpin_reply),
	TYPE(pins),
	TYPE(pins_reply),
	TYPE(prefixes),
	TYPE(prefixes_reply),
	TYPE(explain),
	TYPE(explain_reply),
	TYPE(requests),
	TYPE(requests_reply),
	TYPE(config_item),
	TYPE(pin_item),
	TYPE(prefix_item),
	TYPE(request_item),
};

const ProtobufCMessageDescriptor *const *messages_all(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(all_types);
	return all_types;
}

static size_t value_size(const ProtobufCFieldDescriptor *f)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		return sizeof(uint32_t);
	case PROTOBUF_C_TYPE_UINT64:
		return sizeof(uint64_t);
	case PROTOBUF_C_TYPE_BOOL:
		return sizeof(protobuf_c_boolean);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	default:
		assert(!"a type that the protocol does not use");
		return 0;
	}
}

static void make_bytes(ProtobufCBinaryData *b, uint32_t seed)
{
	b->len = 1 + seed % 40;
	b->data = malloc(b->len);
	assert(b->data);
	for (size_t i = 0; i < b->len; i++)
		b->data[i] = (uint8_t)(seed + i);
}

static void make_value(const ProtobufCFieldDescriptor *f, void *at, uint32_t seed)
{
	char text[32];

	switch (f->type) {
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		*(uint32_t *)at = seed | 1;
		break;
	case PROTOBUF_C_TYPE_UINT64:
		*(uint64_t *)at = (uint64_t)seed << 32 | ~seed;
		break;
	case PROTOBUF_C_TYPE_BOOL:
		*(protobuf_c_boolean *)at = 1;
		break;
	case PROTOBUF_C_TYPE_BYTES:
		make_bytes(at, seed);
		break;
	case PROTOBUF_C_TYPE_STRING:
		snprintf(text, sizeof(text), "%s-%u", f->name, seed);
		*(char **)at = strdup(text);
		break;
	default:
		*(ProtobufCMessage **)at = messages_make(f->descriptor, seed, 0);
	}
}

ProtobufCMessage *messages_make(const ProtobufCMessageDescriptor *type, uint32_t seed,
				size_t entries)
{
	ProtobufCMessage *m = calloc(1, type->sizeof_message);

	assert(m);
	protobuf_c_message_init(type, m);
	for (unsigned int i = 0; i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &type->fields[i];
		char *at = messages_at(m, f);

		seed = seed * 1664525 + 1013904223;
		if (f->label != PROTOBUF_C_LABEL_REPEATED) {
			make_value(f, at, seed);
			continue;
		}
		if (!entries)
			continue;
		*messages_count(m, f) = entries;
		*(void **)at = calloc(entries, value_size(f));
		assert(*(void **)at);
		for (size_t k = 0; k < entries; k++)
			make_value(f, *(char **)at + k * value_size(f), seed + (uint32_t)k);
	}
	return m;
}

static int values_equal(const ProtobufCFieldDescriptor *f, const void *a, const void *b)
{
	const ProtobufCBinaryData *x = a, *y = b;

	switch (f->type) {
	case PROTOBUF_C_TYPE_BYTES:
		return x->len == y->len && (!x->len || !memcmp(x->data, y->data, x->len));
	case PROTOBUF_C_TYPE_STRING:
		return !strcmp(*(char *const *)a, *(char *const *)b);
	case PROTOBUF_C_TYPE_MESSAGE:
		return !messages_difference(*(ProtobufCMessage *const *)a,
					    *(ProtobufCMessage *const *)b);
	default:
		return !memcmp(a, b, value_size(f));
	}
}

const char *messages_difference(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
	assert(a->descriptor == b->descriptor);
	for (unsigned int i = 0; i < a->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &a->descriptor->fields[i];
		const char *x = messages_at(a, f), *y = messages_at(b, f);
		size_t n = 1;

		if (f->label == PROTOBUF_C_LABEL_REPEATED) {
			n = *messages_count(a, f);
			if (n != *messages_count(b, f))
				return f->name;
			x = *(char *const *)x;
			y = *(char *const *)y;
		}
		for (size_t k = 0; k < n; k++)
			if (!values_equal(f, x + k * value_size(f), y + k * value_size(f)))
				return f->name;
	}
	return NULL;
}
