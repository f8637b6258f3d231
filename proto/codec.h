/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to bytes and back, in bounded memory. */
#ifndef KVP_PROTO_CODEC_H
#define KVP_PROTO_CODEC_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"

/*
 * The memory that one message is unpacked into: a bump allocator over a buffer of its owner. A
 * message that wants more fails to unpack; nothing is freed singly. The next codec_unpack with the
 * same arena ends the life of the message before.
 */
struct codec_arena {
	ProtobufCAllocator alloc;
	uint8_t *memory;
	size_t size, used;
	int overflow;
};

/*
 * Room for whatever is worth saying in one packet: a request for FRAME_KEYS_MAX keys takes 46 KiB,
 * a packet full of one-byte integers 512 KiB, a packet full of small list items 563 KiB. What wants
 * more (32 000 empty fields) is nonsense.
 */
#define CODEC_ARENA_BYTES (16u * FRAME_MAX)

void codec_arena_init(struct codec_arena *a, void *memory, size_t size);

/*
 * Returns the message, which lives in the arena, or NULL when the bytes are no such message or want
 * too much room.
 */
void *codec_unpack(struct codec_arena *a, const ProtobufCMessageDescriptor *type, const void *body,
		   size_t n);

/* Writes header and message to packet (FRAME_MAX bytes). Returns the length, or -EMSGSIZE. */
long codec_pack(void *packet, const struct frame_header *h, const ProtobufCMessage *m);

#endif
