/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to bytes and back: nothing is lost, and no bytes take more memory than the arena has.
 *
 * test_codec KVPOOL.PROTO: the file is read to see that no message is left out here.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"
#include "proto/codec.h"
#include "proto/kvpool.pb-c.h"
#include "proto/ops.h"
#include "tests/fuzz/messages.h"

#define BODY_MAX (FRAME_MAX - FRAME_HEADER_BYTES)

static const char *proto_file;
static const struct frame_header header = { .magic = FRAME_MAGIC, .op = 1, .id = 2, .epoch = 3 };
static uint8_t packet[FRAME_MAX];
static uint8_t body[BODY_MAX + 1];
static uint8_t memory[CODEC_ARENA_BYTES];

static struct codec_arena arena_new(void)
{
	struct codec_arena a;

	codec_arena_init(&a, memory, sizeof(memory));
	return a;
}

#define FOR_EACH_TYPE(t)                                                              \
	for (size_t n_ = 0, i_ = 0; i_ <= n_; i_++)                                   \
		for (const ProtobufCMessageDescriptor *t = i_ < (messages_all(&n_), n_) \
			     ? messages_all(&n_)[i_] : NULL; t; t = NULL)

static void no_message_is_left_out(void **state)
{
	FILE *f = fopen(proto_file, "re");
	char line[256];
	size_t n, found = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		found += !strncmp(line, "message ", 8);
	fclose(f);
	(void)messages_all(&n);
	assert_int_equal(found, n);
}

static void every_message_comes_back(void **state)
{
	struct codec_arena a = arena_new();

	FOR_EACH_TYPE(type)
		for (size_t entries = 0; entries < 40; entries += 13) {
			ProtobufCMessage *m = messages_make(type, 7, entries), *got;
			struct frame_header h;
			long n = codec_pack(packet, &header, m);

			assert_true(n >= (long)FRAME_HEADER_BYTES);
			assert_null(frame_parse(packet, (size_t)n, &h));
			assert_memory_equal(&h, &header, sizeof(h));
			got = codec_unpack(&a, type, packet + FRAME_HEADER_BYTES,
					   (size_t)n - FRAME_HEADER_BYTES);
			assert_non_null(got);
			assert_null(messages_difference(m, got));
			assert_int_equal(a.overflow, 0);
			protobuf_c_message_free_unpacked(m, NULL);
		}
}

/* The comparison above is worth something only if it sees each field. */
static void comparison_sees_every_field(void **state)
{
	FOR_EACH_TYPE(type)
		for (unsigned int i = 0; i < type->n_fields; i++) {
			ProtobufCMessage *m = messages_make(type, 7, 3), *other;
			const ProtobufCFieldDescriptor *f = &type->fields[i];
			size_t n;

			protobuf_c_message_pack(m, body);
			n = protobuf_c_message_get_packed_size(m);
			other = protobuf_c_message_unpack(type, NULL, n, body);
			if (f->label == PROTOBUF_C_LABEL_REPEATED)
				--*messages_count(other, f);
			else if (f->type == PROTOBUF_C_TYPE_STRING)
				(*(char **)messages_at(other, f))[0] ^= 1;
			else if (f->type == PROTOBUF_C_TYPE_BYTES)
				((ProtobufCBinaryData *)messages_at(other, f))->data[0] ^= 1;
			else
				*(uint8_t *)messages_at(other, f) ^= 1;
			assert_string_equal(messages_difference(m, other), f->name);
			/* The last entry of a list of items would stay. */
			if (f->label == PROTOBUF_C_LABEL_REPEATED)
				++*messages_count(other, f);
			protobuf_c_message_free_unpacked(m, NULL);
			protobuf_c_message_free_unpacked(other, NULL);
		}
}

static unsigned int depth(const ProtobufCMessageDescriptor *type)
{
	unsigned int deepest = 0;

	for (unsigned int i = 0; i < type->n_fields; i++)
		if (type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
			deepest = MAX(deepest, 1 + depth(type->fields[i].descriptor));
	return deepest;
}

/* A message within itself would make depth() run out of stack here rather than in the daemon. */
static void requests_are_flat(void **state)
{
	FOR_EACH_TYPE(type)
		assert_true(depth(type) <= 1);
	for (unsigned int op = 0; op < 256; op++)
		if (proto_op_find(op))
			assert_int_equal(depth(proto_op_find(op)->request), 0);
}

static size_t put_varint(uint8_t *p, uint64_t x)
{
	size_t n = 0;

	for (; x >= 0x80; x >>= 7)
		p[n++] = (uint8_t)(x | 0x80);
	p[n++] = (uint8_t)x;
	return n;
}

static size_t put_tag(uint8_t *p, uint32_t field, unsigned int wire)
{
	return put_varint(p, (uint64_t)field << 3 | wire);
}

static void unknown_fields_are_ignored(void **state)
{
	/* fields 1000 to 1003: a varint, 8 bytes, 3 bytes of text, 4 bytes */
	static const uint8_t unknown[] = {
		0xc0, 0x3e, 0x96, 0x01,
		0xc9, 0x3e, 1, 2, 3, 4, 5, 6, 7, 8,
		0xd2, 0x3e, 3, 'a', 'b', 'c',
		0xdd, 0x3e, 1, 2, 3, 4,
	};
	struct codec_arena a = arena_new();

	FOR_EACH_TYPE(type) {
		ProtobufCMessage *m = messages_make(type, 9, 2), *got;
		size_t n = sizeof(unknown) + protobuf_c_message_pack(m, body + sizeof(unknown));

		memcpy(body, unknown, sizeof(unknown));
		memcpy(body + n, unknown, sizeof(unknown));
		got = codec_unpack(&a, type, body, n + sizeof(unknown));
		assert_non_null(got);
		assert_null(messages_difference(m, got));
		protobuf_c_message_free_unpacked(m, NULL);
	}
}

/* A group would be the one way to nest without a type that says so. */
static void groups_are_refused(void **state)
{
	struct codec_arena a = arena_new();

	FOR_EACH_TYPE(type)
		for (unsigned int wire = 3; wire < 8; wire++) {
			size_t n = wire == 5 ? 0 : put_tag(body, 1000, wire);

			if (n)
				assert_null(codec_unpack(&a, type, body, n));
		}
}

static void duplicated_fields(void **state)
{
	struct codec_arena a = arena_new();
	Kvpool__Hello one = KVPOOL__HELLO__INIT, two = KVPOOL__HELLO__INIT, *h;
	Kvpool__Abort list = KVPOOL__ABORT__INIT, *l;
	uint32_t desc[] = { 1, 2, 3 };
	uint64_t gen[] = { 4, 5 };
	size_t n;

	one.name = "one";
	one.layout = 1;
	two.name = "two";
	two.hazards = 7;
	n = kvpool__hello__pack(&one, body);
	n += kvpool__hello__pack(&two, body + n);
	h = codec_unpack(&a, &kvpool__hello__descriptor, body, n);
	assert_string_equal(h->name, "two");
	assert_int_equal(h->layout, 1);
	assert_int_equal(h->hazards, 7);

	list.desc = desc;
	list.n_desc = 3;
	list.gen = gen;
	list.n_gen = 2;
	n = kvpool__abort__pack(&list, body);
	n += kvpool__abort__pack(&list, body + n);
	l = codec_unpack(&a, &kvpool__abort__descriptor, body, n);
	assert_int_equal(l->n_desc, 6);
	assert_int_equal(l->n_gen, 4);
	assert_int_equal(l->desc[5], 3);
	assert_int_equal(l->gen[2], 4);
}

/* Entries one by one, as an old encoder writes them, mean the same as packed ones. */
static void unpacked_lists_are_read(void **state)
{
	struct codec_arena a = arena_new();
	Kvpool__Abort *l;
	size_t n = 0;

	for (unsigned int i = 0; i < 5; i++) {
		n += put_tag(body + n, 2, 0);
		n += put_varint(body + n, 300 + i);
	}
	l = codec_unpack(&a, &kvpool__abort__descriptor, body, n);
	assert_non_null(l);
	assert_int_equal(l->n_gen, 5);
	assert_int_equal(l->gen[4], 304);
}

static void missing_fields_have_defaults(void **state)
{
	struct codec_arena a = arena_new();

	FOR_EACH_TYPE(type) {
		ProtobufCMessage *got = codec_unpack(&a, type, "", 0), *plain;

		assert_non_null(got);
		plain = calloc(1, type->sizeof_message);
		assert_non_null(plain);
		protobuf_c_message_init(type, plain);
		assert_null(messages_difference(plain, got));
		free(plain);
	}
}

static void cut_messages_are_refused(void **state)
{
	struct codec_arena a = arena_new();
	Kvpool__Hello h = KVPOOL__HELLO__INIT;
	size_t n;

	h.name = "name";
	n = kvpool__hello__pack(&h, body);
	for (size_t cut = 1; cut < n; cut++)
		assert_null(codec_unpack(&a, &kvpool__hello__descriptor, body, cut));
}

/* Lengths that the bytes do not bear out: nothing is taken for them. */
static void lengths_beyond_the_end(void **state)
{
	static const uint64_t lengths[] = { 1, 100, BODY_MAX, 1u << 20, INT32_MAX, UINT32_MAX,
					    (uint64_t)UINT32_MAX + 1, INT64_MAX, UINT64_MAX };
	struct codec_arena a = arena_new();

	FOR_EACH_TYPE(type)
		for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
			for (uint32_t field = 1; field < 64; field++) {
				size_t n = put_tag(body, field, 2);

				n += put_varint(body + n, lengths[i]);
				assert_null(codec_unpack(&a, type, body, n));
				assert_true(a.used < 2 * type->sizeof_message + 64);
			}
}

static void too_long_for_a_packet(void **state)
{
	struct codec_arena a = arena_new();
	Kvpool__NsOpen m = KVPOOL__NS_OPEN__INIT, *got;
	uint8_t *big = calloc(1, FRAME_MAX);
	long n;

	assert_non_null(big);
	m.descriptor.data = big;
	m.descriptor.len = BODY_MAX - 4; /* tag and a length of three bytes */
	n = codec_pack(packet, &header, &m.base);
	assert_int_equal(n, FRAME_MAX);
	got = codec_unpack(&a, &kvpool__ns_open__descriptor, packet + FRAME_HEADER_BYTES, BODY_MAX);
	assert_non_null(got);
	assert_int_equal(got->descriptor.len, BODY_MAX - 4);
	memset(packet, 0xee, 64);
	m.descriptor.len++;
	assert_int_equal(codec_pack(packet, &header, &m.base), -EMSGSIZE);
	assert_int_equal(packet[0], 0xee);
	kvpool__ns_open__pack(&m, body);
	assert_null(codec_unpack(&a, &kvpool__ns_open__descriptor, body, BODY_MAX + 1));
	free(big);
}

/* An arena that ends where the next page is not there: a byte outside ends the test. */
static void small_arenas_hold(void **state)
{
	size_t page = 4096, room = 64 * page;
	uint8_t *mem = mmap(NULL, room + page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(mem != MAP_FAILED);
	assert_int_equal(mprotect(mem + room, page, PROT_NONE), 0);
	FOR_EACH_TYPE(type) {
		ProtobufCMessage *m = messages_make(type, 5, 20), *got;
		size_t n = protobuf_c_message_pack(m, body), failed = 0;

		for (size_t size = 0; size < 16384; size += size < 4096 ? 1 : 111) {
			struct codec_arena a;

			codec_arena_init(&a, mem + room - size, size);
			got = codec_unpack(&a, type, body, n);
			assert_true(a.used <= a.size && a.size <= size);
			assert_int_equal(!got, a.overflow);
			failed += !got;
			if (got)
				assert_null(messages_difference(m, got));
		}
		assert_true(failed >= type->sizeof_message);
		protobuf_c_message_free_unpacked(m, NULL);
	}
	munmap(mem, room + page);
}

static void arena_is_aligned(void **state)
{
	for (size_t skew = 0; skew < 64; skew++) {
		struct codec_arena a;
		void *m;

		codec_arena_init(&a, memory + skew, 4096);
		m = codec_unpack(&a, &kvpool__hello__descriptor, "", 0);
		assert_int_equal((uintptr_t)m % 16, 0);
		assert_true(a.memory >= memory + skew);
		assert_true(a.memory + a.size <= memory + skew + 4096);
	}
}

static void expect_aligned(const ProtobufCMessage *m)
{
	for (unsigned int i = 0; i < m->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];

		if (f->label == PROTOBUF_C_LABEL_REPEATED)
			assert_int_equal(*(uintptr_t *)messages_at(m, f) % 16, 0);
	}
}

/* Lists stand behind strings of any length, and so does a second message. */
static void lists_are_aligned(void **state)
{
	struct codec_arena a = arena_new();
	Kvpool__NamespacesReply *page;
	size_t n;

	FOR_EACH_TYPE(type) {
		ProtobufCMessage *m = messages_make(type, 1, 3);

		n = protobuf_c_message_pack(m, body);
		expect_aligned(codec_unpack(&a, type, body, n));
		protobuf_c_message_free_unpacked(m, NULL);
	}
	page = (void *)messages_make(&kvpool__namespaces_reply__descriptor, 1, 3);
	n = kvpool__namespaces_reply__pack(page, body);
	kvpool__namespaces_reply__free_unpacked(page, NULL);
	page = codec_unpack(&a, &kvpool__namespaces_reply__descriptor, body, n);
	for (size_t i = 0; i < page->n_items; i++)
		assert_int_equal((uintptr_t)page->items[i] % 16, 0);
}

static void arena_is_used_again(void **state)
{
	struct codec_arena a = arena_new();
	Kvpool__Ping *first = codec_unpack(&a, &kvpool__ping__descriptor, "", 0);
	size_t used = a.used;

	for (int i = 0; i < 1000; i++)
		assert_ptr_equal(codec_unpack(&a, &kvpool__ping__descriptor, "", 0), first);
	assert_int_equal(a.used, used);
	codec_arena_init(&a, memory, used + 8);
	assert_null(codec_unpack(&a, &kvpool__hello__descriptor, "", 0));
	assert_int_equal(a.overflow, 1);
	assert_non_null(codec_unpack(&a, &kvpool__ping__descriptor, "", 0));
	assert_int_equal(a.overflow, 0);
}

/*
 * The largest things that are said: requests and answers for FRAME_KEYS_MAX keys, and whole pages
 * of lists. All of them fit a packet and the arena.
 */
static void largest_messages_fit(void **state)
{
	struct codec_arena a = arena_new();
	size_t most = 0;

	for (unsigned int op = 1; op < 256; op++) {
		const struct proto_op_info *info = proto_op_find(op);

		for (int reply = 0; info && reply < 2; reply++) {
			const ProtobufCMessageDescriptor *type =
				reply ? info->reply : info->request;
			size_t entries = type && depth(type) ? 150 : FRAME_KEYS_MAX;
			ProtobufCMessage *m;
			long n;

			if (!type)
				continue;
			m = messages_make(type, 0xffff0001, entries);
			n = codec_pack(packet, &header, m);
			assert_true(n > 0);
			assert_non_null(codec_unpack(&a, type, packet + FRAME_HEADER_BYTES,
						     (size_t)n - FRAME_HEADER_BYTES));
			most = MAX(most, a.used);
			protobuf_c_message_free_unpacked(m, NULL);
		}
	}
	print_message("largest message: %zu bytes of %u\n", most, CODEC_ARENA_BYTES);
}

/*
 * A page of as many small items as a packet takes: of what unpacks, it grows most. Items with fewer
 * fields than these do not exist.
 */
static void full_pages_fit(void **state)
{
	struct codec_arena a = arena_new();
	Kvpool__ClientItem item = KVPOOL__CLIENT_ITEM__INIT, *items[4096];
	Kvpool__ClientsReply page = KVPOOL__CLIENTS_REPLY__INIT, *got;
	long n;

	item.session = item.pid = item.uid = 1;
	item.connected_ns = 1000000000;
	item.state = "idle";
	item.library = "0.1.0";
	for (size_t i = 0; i < ARRAY_SIZE(items); i++)
		items[i] = &item;
	page.items = items;
	page.n_items = ARRAY_SIZE(items);
	while ((n = codec_pack(packet, &header, &page.base)) < 0)
		page.n_items--;
	got = codec_unpack(&a, &kvpool__clients_reply__descriptor, packet + FRAME_HEADER_BYTES,
			   (size_t)n - FRAME_HEADER_BYTES);
	assert_non_null(got);
	assert_int_equal(got->n_items, page.n_items);
	print_message("page of %zu items: %zu bytes of %u\n", page.n_items, a.used,
		      CODEC_ARENA_BYTES);
}

static void keys_fit(void **state)
{
	struct codec_arena a = arena_new();
	Kvpool__Reserve m = KVPOOL__RESERVE__INIT, *got;
	long n;

	m.ns = UINT32_MAX;
	m.parent.data = m.keys.data = memory;
	m.parent.len = 32;
	m.keys.len = 32 * FRAME_KEYS_MAX;
	n = codec_pack(packet, &header, &m.base);
	assert_true(n > 0);
	got = codec_unpack(&a, &kvpool__reserve__descriptor, packet + FRAME_HEADER_BYTES,
			   (size_t)n - FRAME_HEADER_BYTES);
	assert_int_equal(got->keys.len, 32 * FRAME_KEYS_MAX);
}

/* Fills the body with one short piece again and again. */
static size_t fill(const uint8_t *piece, size_t size)
{
	size_t n = 0;

	for (; n + size <= BODY_MAX; n += size)
		memcpy(body + n, piece, size);
	return n;
}

/*
 * The densest bytes there are. Either the arena holds what they unpack to, or they are refused;
 * small_arenas_hold shows that refusing is safe.
 */
static void dense_bytes_stay_in_the_arena(void **state)
{
	struct codec_arena a = arena_new();
	size_t accepted = 0, refused = 0, most = 0;

	FOR_EACH_TYPE(type)
		for (uint32_t field = 1; field < 64; field++)
			for (unsigned int wire = 0; wire < 6; wire++) {
				uint8_t piece[16] = { 0 };
				size_t tag = put_tag(piece, field, wire);
				size_t size = tag + (wire == 1 ? 8 : wire == 5 ? 4 : 1);

				if (codec_unpack(&a, type, body, fill(piece, size)))
					accepted++, most = MAX(most, a.used);
				else
					refused += a.overflow;
			}
	assert_true(accepted > 0 && refused > 0);
	print_message("dense bytes: %zu accepted, at most %zu bytes; %zu refused for room\n",
		      accepted, most, refused);
}

/* One packed list of the shortest integers: eight bytes for one. It is let through, and fits. */
static void packed_integers_fit(void **state)
{
	struct codec_arena a = arena_new();
	Kvpool__Abort *got;
	size_t n = put_tag(body, 2, 2), count = BODY_MAX - 4;

	n += put_varint(body + n, count);
	memset(body + n, 1, count);
	got = codec_unpack(&a, &kvpool__abort__descriptor, body, n + count);
	assert_non_null(got);
	assert_int_equal(got->n_gen, count);
	print_message("packed integers: %zu bytes of %u\n", a.used, CODEC_ARENA_BYTES);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_message_is_left_out),
		cmocka_unit_test(every_message_comes_back),
		cmocka_unit_test(comparison_sees_every_field),
		cmocka_unit_test(requests_are_flat),
		cmocka_unit_test(unknown_fields_are_ignored),
		cmocka_unit_test(groups_are_refused),
		cmocka_unit_test(duplicated_fields),
		cmocka_unit_test(unpacked_lists_are_read),
		cmocka_unit_test(missing_fields_have_defaults),
		cmocka_unit_test(cut_messages_are_refused),
		cmocka_unit_test(lengths_beyond_the_end),
		cmocka_unit_test(too_long_for_a_packet),
		cmocka_unit_test(small_arenas_hold),
		cmocka_unit_test(arena_is_aligned),
		cmocka_unit_test(lists_are_aligned),
		cmocka_unit_test(arena_is_used_again),
		cmocka_unit_test(largest_messages_fit),
		cmocka_unit_test(full_pages_fit),
		cmocka_unit_test(keys_fit),
		cmocka_unit_test(dense_bytes_stay_in_the_arena),
		cmocka_unit_test(packed_integers_fit),
	};

	if (argc != 2)
		return 2;
	proto_file = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
