/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protobuf-c takes all memory of an unpacked message from the allocator it is given: the message,
 * its lists and strings, and the table of the fields it scanned. What bounds that allocator bounds
 * the message, whatever lengths the bytes claim; and a length that runs beyond the bytes fails
 * before anything is taken for it. Unpacking calls itself once per level of messages within
 * messages, and kvpool.proto has one level at most, so no input chooses the depth.
 */
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "proto/codec.h"

#define CODEC_ALIGN 16u

static void *codec_alloc(void *data, size_t size)
{
	struct codec_arena *a = data;
	size_t at = ALIGN_UP(a->used, CODEC_ALIGN);

	if (at > a->size || size > a->size - at) {
		a->overflow = 1;
		return NULL;
	}
	a->used = at + size;
	return a->memory + at;
}

/* The next unpack takes everything back at once. */
static void codec_free(void *data, void *p)
{
}

void codec_arena_init(struct codec_arena *a, void *memory, size_t size)
{
	size_t skip = -(uintptr_t)memory & (CODEC_ALIGN - 1);

	*a = (struct codec_arena){
		.alloc = { .alloc = codec_alloc, .free = codec_free },
		.memory = (uint8_t *)memory + MIN(skip, size),
		.size = size - MIN(skip, size),
	};
}

void *codec_unpack(struct codec_arena *a, const ProtobufCMessageDescriptor *type, const void *body,
		   size_t n)
{
	a->alloc.allocator_data = a; /* the arena may have been moved since */
	a->used = 0;
	a->overflow = 0;
	if (n > FRAME_MAX - FRAME_HEADER_BYTES)
		return NULL;
	return protobuf_c_message_unpack(type, &a->alloc, n, body);
}

long codec_pack(void *packet, const struct frame_header *h, const ProtobufCMessage *m)
{
	size_t n = protobuf_c_message_get_packed_size(m);

	if (n > FRAME_MAX - FRAME_HEADER_BYTES)
		return -EMSGSIZE;
	frame_write(packet, h);
	protobuf_c_message_pack(m, (uint8_t *)packet + FRAME_HEADER_BYTES);
	return (long)(FRAME_HEADER_BYTES + n);
}
