/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol against a real daemon: every operation with missing, extra, oversized, duplicated
 * and unknown fields, in the wrong state and the wrong version. Each is refused in words, and the
 * same connection goes on.
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "kernels/crc32c.h"
#include "proto/check.h"
#include "proto/nsdesc.h"
#include "shm/layout.h"
#include "tests/integration/daemon.h"
#include "tests/integration/raw.h"
#include "tests/integration/sample.h"

static struct daemon daemon_under_test;

/* A client that has said hello and opened a namespace, and a connection of the admin socket. */
struct fixture {
	struct raw *client, *admin;
	uint32_t ns;
};

static int group_setup(void **state)
{
	return daemon_start(&daemon_under_test, NULL);
}

static int group_teardown(void **state)
{
	return daemon_end(&daemon_under_test);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->client = raw_hello(daemon_under_test.socket, "protocol");
	f->admin = raw_open(daemon_under_test.admin);
	f->ns = raw_ns(f->client, "protocol");
	*state = f;
	return 0;
}

/* Whatever was sent, both connections still work. */
static int teardown(void **state)
{
	struct fixture *f = *state;

	raw_ping(f->client);
	raw_ping(f->admin);
	raw_close(f->client);
	raw_close(f->admin);
	free(f);
	return 0;
}

/* Where an operation is sound to ask for: a hello takes a connection that has said none. */
static struct raw *place_of(struct fixture *f, enum proto_op op, struct raw **fresh)
{
	*fresh = NULL;
	if (op == OP_HELLO || op == OP_BYE) {
		*fresh = op == OP_HELLO ? raw_open(daemon_under_test.socket)
					: raw_hello(daemon_under_test.socket, "bye");
		return *fresh;
	}
	return proto_op_find(op)->admin ? f->admin : f->client;
}

/* What was sent of operation i is answered as its sample is. */
static void expect_answer(struct raw *r, size_t i)
{
	if (sample_ops[i].absent) {
		raw_expect_error(r, ERROR_NO_OBJECT, NULL);
		return;
	}
	assert_true(raw_receive(r));
	assert_int_equal(r->head.flags, FRAME_REPLY);
	raw_message(r, proto_op_find(sample_ops[i].op)->reply);
	assert_int_equal(r->n_fds, proto_op_find(sample_ops[i].op)->reply_fds);
}

static void every_sample_is_answered(void **state)
{
	struct fixture *f = *state;
	struct sample s;

	for (size_t i = 0; i < SAMPLE_OPS; i++) {
		struct raw *fresh, *r = place_of(f, sample_ops[i].op, &fresh);

		sample_make(&s, f->ns);
		raw_send(r, sample_ops[i].op, sample_of(&s, sample_ops[i].op));
		expect_answer(r, i);
		raw_close(fresh);
	}
}

/* A message of a later version: it has one field more, of each wire type. */
static void unknown_fields_are_ignored(void **state)
{
	static const uint8_t more[] = {
		0xc0, 0x3e, 0x05,                            /* 1000: varint */
		0xc9, 0x3e, 1,    2,   3,   4,   5, 6, 7, 8, /* 1001: 64 bits */
		0xd2, 0x3e, 0x03, 'a', 'b', 'c',             /* 1002: bytes */
		0xdd, 0x3e, 1,    2,   3,   4,               /* 1003: 32 bits */
	};
	struct fixture *f = *state;
	struct sample s;

	for (size_t i = 0; i < SAMPLE_OPS; i++) {
		struct raw *fresh, *r = place_of(f, sample_ops[i].op, &fresh);
		uint8_t body[4096];
		size_t n;

		sample_make(&s, f->ns);
		n = protobuf_c_message_pack(sample_of(&s, sample_ops[i].op), body);
		assert_true(n + sizeof(more) < sizeof(body));
		memcpy(body + n, more, sizeof(more));
		raw_send_body(r, sample_ops[i].op, body, n + sizeof(more));
		expect_answer(r, i);
		raw_close(fresh);
	}
}

/* Of a field that comes twice the last one counts; a list that comes twice is one long list. */
static void fields_twice(void **state)
{
	struct fixture *f = *state;
	struct sample s;

	for (size_t i = 0; i < SAMPLE_OPS; i++) {
		struct raw *fresh, *r = place_of(f, sample_ops[i].op, &fresh);
		uint8_t body[8192];
		size_t n;

		sample_make(&s, f->ns);
		n = protobuf_c_message_pack(sample_of(&s, sample_ops[i].op), body);
		assert_true(2 * n <= sizeof(body));
		memcpy(body + n, body, n);
		raw_send_body(r, sample_ops[i].op, body, 2 * n);
		expect_answer(r, i);
		if (sample_ops[i].op == OP_COMMIT) {
			const Kvpool__CommitReply *reply =
				raw_message(r, &kvpool__commit_reply__descriptor);

			assert_int_equal(reply->verdict.len, 4);
		}
		raw_close(fresh);
	}
}

/* Truncated, and plain nonsense. */
static void bodies_that_do_not_unpack(void **state)
{
	static const uint8_t nonsense[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	struct fixture *f = *state;
	struct sample s;

	for (size_t i = 0; i < SAMPLE_OPS; i++) {
		struct raw *fresh, *r = place_of(f, sample_ops[i].op, &fresh);
		uint8_t body[4096];
		size_t n;

		raw_send_body(r, sample_ops[i].op, nonsense, sizeof(nonsense));
		raw_expect_error(r, ERROR_BAD_MESSAGE, NULL);
		sample_make(&s, f->ns);
		n = protobuf_c_message_pack(sample_of(&s, sample_ops[i].op), body);
		if (n > 1 && sample_ops[i].op != OP_REPORT) {
			raw_send_body(r, sample_ops[i].op, body, n - 1);
			assert_true(raw_receive(r));
			assert_int_equal(r->head.flags, FRAME_REPLY | FRAME_ERROR);
		}
		raw_close(fresh);
	}
}

/* The place of a field in a message, and of the count of a list. */
static void *field_at(ProtobufCMessage *m, const ProtobufCFieldDescriptor *d)
{
	return (char *)m + d->offset;
}

static size_t *field_count(ProtobufCMessage *m, const ProtobufCFieldDescriptor *d)
{
	return (size_t *)((char *)m + d->quantifier_offset);
}

/* Gives a field n entries, bytes or letters, or the value n. */
static void field_set(ProtobufCMessage *m, const ProtobufCFieldDescriptor *d, size_t n)
{
	static uint64_t zeros[FRAME_MAX / sizeof(uint64_t)];
	static char letters[FRAME_MAX];

	if (d->label == PROTOBUF_C_LABEL_REPEATED) {
		*(void **)field_at(m, d) = zeros;
		*field_count(m, d) = n;
	} else if (d->type == PROTOBUF_C_TYPE_BYTES) {
		*(ProtobufCBinaryData *)field_at(m, d) =
			(ProtobufCBinaryData){ n, (uint8_t *)zeros };
	} else if (d->type == PROTOBUF_C_TYPE_STRING) {
		memset(letters, 'a', n);
		letters[n] = '\0';
		*(char **)field_at(m, d) = letters;
	} else {
		*(uint32_t *)field_at(m, d) = (uint32_t)n;
	}
}

static const ProtobufCFieldDescriptor *field_of(const struct proto_rule *rule)
{
	const ProtobufCFieldDescriptor *d = protobuf_c_message_descriptor_get_field_by_name(
		proto_op_find(rule->op)->request, rule->field);

	assert_non_null(d);
	return d;
}

/* Sends the sample of a rule's operation with the field at n, and with what must be as long. */
static int is_sampled(enum proto_op op)
{
	for (size_t i = 0; i < SAMPLE_OPS; i++)
		if (sample_ops[i].op == op)
			return 1;
	return 0;
}

static void send_with(struct fixture *f, const struct proto_rule *rule, size_t n)
{
	struct raw *fresh, *r;
	const ProtobufCFieldDescriptor *d = field_of(rule);
	struct sample s;
	ProtobufCMessage *m;

	if (!is_sampled(rule->op))
		return;
	r = place_of(f, rule->op, &fresh);
	sample_make(&s, f->ns);
	m = sample_of(&s, rule->op);
	field_set(m, d, n);
	raw_send(r, rule->op, m);
	raw_expect_error(r, ERROR_BAD_FIELD, NULL);
	raw_close(fresh);
}

static void missing_fields(void **state)
{
	size_t n, tried = 0;
	const struct proto_rule *rules = proto_rules(&n);

	for (size_t i = 0; i < n; i++)
		if (rules[i].required) {
			send_with(*state, &rules[i], 0);
			tried++;
		}
	assert_true(tried >= 8);
}

static void oversized_fields(void **state)
{
	size_t n, tried = 0;
	const struct proto_rule *rules = proto_rules(&n);

	for (size_t i = 0; i < n; i++)
		if (rules[i].max < FRAME_MAX / 2) {
			send_with(*state, &rules[i], rules[i].max + 1);
			tried++;
		} else if (rules[i].max < FRAME_MAX) {
			send_with(*state, &rules[i], rules[i].max + rules[i].multiple);
			tried++;
		}
	assert_true(tried >= 8);
}

static void fields_of_odd_length(void **state)
{
	size_t n, tried = 0;
	const struct proto_rule *rules = proto_rules(&n);

	for (size_t i = 0; i < n; i++)
		if (rules[i].multiple) {
			send_with(*state, &rules[i], rules[i].multiple - 1);
			tried++;
		} else if (rules[i].like) {
			send_with(*state, &rules[i], 1);
			tried++;
		}
	assert_true(tried >= 6);
}

static void text_that_is_none(void **state)
{
	static const char *const bad[] = { "new\nline", "\x1b[31m", "\xff\xfe", "\xc0\x80",
					   "\xed\xa0\x80" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct raw *r = raw_open(daemon_under_test.socket);
		struct sample s;

		sample_make(&s, 0);
		s.hello.name = (char *)bad[i];
		raw_send(r, OP_HELLO, &s.hello.base);
		raw_expect_error(r, ERROR_BAD_FIELD, "name");
		raw_close(r);
	}
}

/* Packed lists that claim more than there is, and a packet full of one list. */
static void lists_are_bounded(void **state)
{
	static const uint8_t lying[] = { 0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2, 3, 4 };
	static uint8_t full[FRAME_MAX - FRAME_HEADER_BYTES];
	struct fixture *f = *state;
	size_t n = sizeof(full) - 8;

	raw_send_body(f->client, OP_COMMIT, lying, sizeof(lying));
	raw_expect_error(f->client, ERROR_BAD_MESSAGE, NULL);
	/* gen: varints, each of which takes eight times its room when unpacked */
	full[0] = 0x12;
	full[1] = (uint8_t)(0x80 | (n & 0x7f));
	full[2] = (uint8_t)(0x80 | (n >> 7 & 0x7f));
	full[3] = (uint8_t)(n >> 14);
	raw_send_body(f->client, OP_COMMIT, full, 4 + n);
	assert_true(raw_receive(f->client));
	assert_int_equal(f->client->head.flags, FRAME_REPLY | FRAME_ERROR);
}

static void before_hello(void **state)
{
	struct raw *r = raw_open(daemon_under_test.socket);
	struct sample s;

	sample_make(&s, 0);
	for (size_t i = 0; i < SAMPLE_OPS; i++) {
		if (sample_ops[i].op == OP_HELLO)
			continue;
		raw_send(r, sample_ops[i].op, sample_of(&s, sample_ops[i].op));
		raw_expect_error(r, sample_ops[i].admin ? ERROR_DENIED : ERROR_BAD_STATE, NULL);
	}
	/* None of it counts against it. */
	raw_call(r, OP_HELLO, &s.hello.base);
	raw_ping(r);
	raw_close(r);
}

static void after_hello(void **state)
{
	struct fixture *f = *state;
	struct sample s;

	sample_make(&s, f->ns);
	raw_send(f->client, OP_HELLO, &s.hello.base);
	raw_expect_error(f->client, ERROR_BAD_STATE, NULL);
	for (size_t i = 0; i < SAMPLE_OPS; i++) {
		if (!sample_ops[i].admin)
			continue;
		raw_send(f->client, sample_ops[i].op, sample_of(&s, sample_ops[i].op));
		raw_expect_error(f->client, ERROR_DENIED, NULL);
	}
}

static void on_the_admin_socket(void **state)
{
	struct fixture *f = *state;
	struct sample s;

	sample_make(&s, f->ns);
	for (size_t i = 0; i < SAMPLE_OPS; i++) {
		if (sample_ops[i].admin || sample_ops[i].op == OP_PING)
			continue;
		raw_send(f->admin, sample_ops[i].op, sample_of(&s, sample_ops[i].op));
		raw_expect_error(f->admin, ERROR_DENIED, NULL);
	}
}

static void unknown_operations(void **state)
{
	static const unsigned int ops[] = { 0, 15, 31, OP_STOPPING, 33, 63, 82, 4096, 65535 };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		raw_send_body(f->client, ops[i], "", 0);
		raw_expect_error(f->client, ERROR_UNKNOWN_OP, NULL);
		assert_int_equal(f->client->head.op, ops[i]);
		assert_int_equal(f->client->head.id, f->client->id);
		raw_send_body(f->admin, ops[i], "", 0);
		raw_expect_error(f->admin, ERROR_UNKNOWN_OP, NULL);
	}
}

static void hello_with(uint32_t min, uint32_t max, uint32_t layout, enum proto_error code,
		       const char *field)
{
	struct raw *r = raw_open(daemon_under_test.socket);
	struct sample s;

	sample_make(&s, 0);
	s.hello.protocol_min = min;
	s.hello.protocol_max = max;
	s.hello.layout = layout;
	raw_send(r, OP_HELLO, &s.hello.base);
	raw_expect_error(r, code, field);
	assert_int_equal(r->n_fds, 0);
	/* It may offer something else. */
	s.hello.protocol_min = PROTOCOL_MIN;
	s.hello.protocol_max = PROTOCOL_MAX + 5;
	s.hello.layout = LAYOUT_VERSION;
	assert_int_equal(
		((const Kvpool__HelloReply *)raw_call(r, OP_HELLO, &s.hello.base))->protocol,
		PROTOCOL_MAX);
	raw_close(r);
}

static void other_versions(void **state)
{
	hello_with(PROTOCOL_MAX + 1, PROTOCOL_MAX + 2, LAYOUT_VERSION, ERROR_VERSION,
		   "protocol_max");
	hello_with(5, 4, LAYOUT_VERSION, ERROR_BAD_FIELD, "protocol_max");
	hello_with(PROTOCOL_MIN, PROTOCOL_MAX, LAYOUT_VERSION + 1, ERROR_VERSION, "layout");
}

static void hazards_are_bounded(void **state)
{
	static const struct {
		uint32_t asked, least, most;
	} rows[] = { { 0, 2, 2 }, { 1, 2, 2 }, { 100, 100, 100 }, { UINT32_MAX, 1024, 32768 } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct raw *r = raw_open(daemon_under_test.socket);
		struct session_header *h;
		struct sample s;

		sample_make(&s, 0);
		s.hello.hazards = rows[i].asked;
		raw_call(r, OP_HELLO, &s.hello.base);
		h = mmap(NULL, LAYOUT_PAGE, PROT_READ, MAP_SHARED, r->fds[2], 0);
		assert_ptr_not_equal(h, MAP_FAILED);
		assert_in_range(h->hazard_count, rows[i].least, rows[i].most);
		munmap(h, LAYOUT_PAGE);
		raw_close(r);
	}
}

static void descriptors_of_namespaces(void **state)
{
	struct fixture *f = *state;
	uint8_t desc[NSDESC_MAX_BYTES];
	Kvpool__NsOpen m = KVPOOL__NS_OPEN__INIT;
	size_t n = raw_descriptor("protocol", desc);
	const Kvpool__NsOpenReply *reply;

	m.descriptor = (ProtobufCBinaryData){ n, desc };
	reply = raw_call(f->client, OP_NS_OPEN, &m.base);
	assert_int_equal(reply->ns, f->ns);
	assert_false(reply->created);
	/* Every cut of it is none, and every further byte. */
	for (size_t cut = 1; cut <= n + 1; cut++) {
		if (cut == n)
			continue;
		m.descriptor.len = cut;
		desc[n] = 0;
		raw_send(f->client, OP_NS_OPEN, &m.base);
		raw_expect_error(f->client, ERROR_BAD_FIELD, NULL);
	}
}

static void namespace_that_is_not_open(void **state)
{
	static const enum proto_op ops[] = { OP_RESERVE, OP_WAIT, OP_TOUCH, OP_LOCATE,
					     OP_NS_CLOSE };
	struct fixture *f = *state;
	const uint32_t numbers[] = { f->ns + 1, 255, 256, UINT32_MAX };
	struct raw *other = raw_hello(daemon_under_test.socket, "other");
	struct sample s;

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(numbers); k++) {
			sample_make(&s, numbers[k]);
			raw_send(f->client, ops[i], sample_of(&s, ops[i]));
			raw_expect_error(f->client, ERROR_NO_NAMESPACE, "ns");
		}
		/* Open in another session is not open here. */
		sample_make(&s, f->ns);
		raw_send(other, ops[i], sample_of(&s, ops[i]));
		raw_expect_error(other, ERROR_NO_NAMESPACE, "ns");
	}
	raw_close(other);
}

static uint32_t count_namespaces(struct raw *admin)
{
	Kvpool__Status m = KVPOOL__STATUS__INIT;

	return ((const Kvpool__StatusReply *)raw_call(admin, OP_STATUS, &m.base))->namespaces;
}

static void ns_close(struct raw *r, uint32_t ns)
{
	Kvpool__NsClose m = KVPOOL__NS_CLOSE__INIT;

	m.ns = ns;
	raw_call(r, OP_NS_CLOSE, &m.base);
}

static void too_many_namespaces(void **state)
{
	struct fixture *f = *state;
	struct raw *r = raw_hello(daemon_under_test.socket, "greedy");
	uint8_t desc[NSDESC_MAX_BYTES];
	Kvpool__NsOpen m = KVPOOL__NS_OPEN__INIT;
	char model[32];
	uint32_t before;

	for (unsigned int i = 0; i < 64; i++) {
		snprintf(model, sizeof(model), "greedy %u", i);
		raw_ns(r, model);
	}
	m.descriptor = (ProtobufCBinaryData){ raw_descriptor("one too many", desc), desc };
	before = count_namespaces(f->admin);
	raw_send(r, OP_NS_OPEN, &m.base);
	raw_expect_error(r, ERROR_LIMIT, NULL);
	assert_int_equal(count_namespaces(f->admin), before);
	/* One that it has open costs nothing. */
	raw_ns(r, "greedy 5");
	/* One that it closes makes room for another. */
	ns_close(r, raw_ns(r, "greedy 5"));
	raw_call(r, OP_NS_OPEN, &m.base);
	raw_close(r);
}

/* More namespaces than one session may have open, one after the other: 400, and 256 in all. */
static void namespaces_opened_and_closed(void **state)
{
	struct raw *r = raw_hello(daemon_under_test.socket, "passing");
	Kvpool__NsClose m = KVPOOL__NS_CLOSE__INIT;
	char model[32];

	for (unsigned int i = 0; i < 400; i++) {
		snprintf(model, sizeof(model), "passing %u", i);
		m.ns = raw_ns(r, model);
		raw_call(r, OP_NS_CLOSE, &m.base);
		raw_send(r, OP_NS_CLOSE, &m.base);
		raw_expect_error(r, ERROR_NO_NAMESPACE, "ns");
	}
	raw_close(r);
}

static uint8_t commit_one(struct raw *r, uint32_t desc, uint64_t gen, uint32_t crc)
{
	Kvpool__Commit m = KVPOOL__COMMIT__INIT;
	const Kvpool__CommitReply *reply;

	m.desc = &desc;
	m.gen = &gen;
	m.crc = &crc;
	m.n_desc = m.n_gen = m.n_crc = 1;
	reply = raw_call(r, OP_COMMIT, &m.base);
	assert_int_equal(reply->verdict.len, 1);
	return reply->verdict.data[0];
}

/*
 * F10: a commit for what is not its own, of another gen, twice. Refused, and the connection is
 * kept.
 */
static void commits_of_others(void **state)
{
	struct fixture *f = *state;
	struct raw *other = raw_hello(daemon_under_test.socket, "other");
	const Kvpool__ReserveReply *g;
	uint8_t keys[KEY_BYTES];
	uint32_t desc;
	uint64_t gen;

	raw_keys(10, keys, 1);
	g = raw_reserve(f->client, f->ns, keys, 1);
	assert_int_equal(g->n_desc, 1);
	desc = g->desc[0];
	gen = g->gen[0];
	assert_int_equal(commit_one(other, desc, gen, 0), VERDICT_NOT_OWNER);
	assert_int_equal(commit_one(f->client, desc, gen + 1, 0), VERDICT_STALE);
	assert_int_not_equal(commit_one(f->client, UINT32_MAX, gen, 0), VERDICT_COMMITTED);
	assert_int_not_equal(commit_one(f->client, 4096, 1, 0), VERDICT_COMMITTED);
	assert_int_equal(commit_one(f->client, desc, gen, 0), VERDICT_COMMITTED);
	assert_int_equal(commit_one(f->client, desc, gen, 0), VERDICT_STALE);
	raw_ping(other);
	raw_close(other);
}

/* F11: as many keys as a packet takes, and the same key again and again. */
static void long_runs(void **state)
{
	static uint8_t keys[FRAME_KEYS_MAX * KEY_BYTES];
	struct fixture *f = *state;
	const Kvpool__ReserveReply *g;

	for (size_t i = 0; i < FRAME_KEYS_MAX; i++)
		raw_keys(11, keys + i * KEY_BYTES, 1);
	g = raw_reserve(f->client, f->ns, keys, FRAME_KEYS_MAX);
	assert_int_equal(g->verdict.len, FRAME_KEYS_MAX);
	assert_int_equal(g->n_desc, 1);
	assert_int_equal(g->verdict.data[1], VERDICT_BUSY);
	raw_keys(12, keys, FRAME_KEYS_MAX);
	g = raw_reserve(f->client, f->ns, keys, FRAME_KEYS_MAX);
	assert_int_equal(g->verdict.len, FRAME_KEYS_MAX);
	assert_int_equal(g->n_desc, FRAME_KEYS_MAX);
	assert_int_equal(g->n_gen, FRAME_KEYS_MAX);
	assert_int_equal(g->n_slot, FRAME_KEYS_MAX);
}

/* Publish, find, wait, touch: after all that, the daemon does what it is for. */
static void a_block_from_one_to_another(void **state)
{
	struct fixture *f = *state;
	struct raw *other = raw_hello(daemon_under_test.socket, "reader");
	const Kvpool__ReserveReply *g;
	const Kvpool__WaitReply *w;
	uint8_t keys[2 * KEY_BYTES];
	uint64_t gen;
	uint32_t desc;
	Kvpool__Wait wait = KVPOOL__WAIT__INIT;
	Kvpool__Touch touch = KVPOOL__TOUCH__INIT;

	raw_ns(other, "protocol");
	raw_keys(13, keys, 2);
	wait.ns = touch.ns = f->ns;
	wait.keys = touch.keys = (ProtobufCBinaryData){ sizeof(keys), keys };
	g = raw_reserve(f->client, f->ns, keys, 2);
	assert_int_equal(g->n_desc, 2);
	desc = g->desc[0];
	gen = g->gen[0];
	/* Nothing is there; nobody but the writer knows when it will be. */
	w = raw_call(other, OP_WAIT, &wait.base);
	assert_true(w->timed_out);
	assert_int_equal(w->present, 0);
	wait.timeout_ms = 10000;
	wait.keys.len = KEY_BYTES;
	raw_send(other, OP_WAIT, &wait.base);
	assert_int_equal(commit_one(f->client, desc, gen, 0), VERDICT_COMMITTED);
	assert_true(raw_receive(other));
	assert_int_equal(other->head.op, OP_WAIT);
	w = raw_message(other, &kvpool__wait_reply__descriptor);
	assert_false(w->timed_out);
	assert_int_equal(w->present, 1);
	assert_int_equal(
		((const Kvpool__TouchReply *)raw_call(other, OP_TOUCH, &touch.base))->present, 1);
	assert_int_equal(raw_reserve(other, f->ns, keys, 1)->verdict.data[0], VERDICT_PRESENT);
	raw_close(other);
}

static void expect_wait_ended(struct raw *r, uint64_t id)
{
	const Kvpool__WaitReply *w;

	assert_true(raw_receive(r));
	assert_int_equal(r->head.op, OP_WAIT);
	assert_int_equal(r->head.id, id);
	w = raw_message(r, &kvpool__wait_reply__descriptor);
	assert_true(w->timed_out);
	assert_int_equal(w->present, 0);
}

/* Both requests are answered, the one to wait first; then there is nothing left to end. */
static void a_wait_is_ended(void **state)
{
	struct fixture *f = *state;
	struct raw *other = raw_hello(daemon_under_test.socket, "waiter");
	Kvpool__Wait wait = KVPOOL__WAIT__INIT;
	Kvpool__Unwait unwait = KVPOOL__UNWAIT__INIT;
	uint8_t keys[KEY_BYTES];
	const Kvpool__UnwaitReply *u;

	raw_ns(other, "protocol");
	raw_keys(14, keys, 1);
	assert_int_equal(raw_reserve(f->client, f->ns, keys, 1)->n_desc, 1);
	wait.ns = f->ns;
	wait.keys = (ProtobufCBinaryData){ sizeof(keys), keys };
	wait.timeout_ms = 600000;
	raw_send(other, OP_WAIT, &wait.base);
	unwait.id = other->id;
	/* Somebody else's number is no wait of this session. */
	u = raw_call(f->client, OP_UNWAIT, &unwait.base);
	assert_false(u->ended);
	raw_send(other, OP_UNWAIT, &unwait.base);
	expect_wait_ended(other, unwait.id);
	assert_true(raw_receive(other));
	assert_int_equal(other->head.op, OP_UNWAIT);
	u = raw_message(other, &kvpool__unwait_reply__descriptor);
	assert_true(u->ended);
	u = raw_call(other, OP_UNWAIT, &unwait.base);
	assert_false(u->ended);
	raw_close(other);
}

/* A writer whose namespace was closed under it commits and aborts as before. */
static void reservations_outlive_a_close(void **state)
{
	struct fixture *f = *state;
	uint32_t ns = raw_ns(f->client, "closed early");
	uint8_t keys[2 * KEY_BYTES];
	const Kvpool__ReserveReply *g;
	struct sample s;
	uint32_t desc;
	uint64_t gen;

	raw_keys(15, keys, 2);
	g = raw_reserve(f->client, ns, keys, 1);
	assert_int_equal(g->n_desc, 1);
	desc = g->desc[0];
	gen = g->gen[0];
	ns_close(f->client, ns);
	sample_make(&s, ns);
	raw_send(f->client, OP_RESERVE, &s.reserve.base);
	raw_expect_error(f->client, ERROR_NO_NAMESPACE, "ns");
	assert_int_equal(commit_one(f->client, desc, gen, 0), VERDICT_COMMITTED);
	assert_int_equal(raw_ns(f->client, "closed early"), ns);
	g = raw_reserve(f->client, ns, keys, 2);
	assert_int_equal(g->verdict.data[0], VERDICT_PRESENT);
	assert_int_equal(g->verdict.data[1], VERDICT_GRANTED);
}

/* The bytes of a slot, through the descriptor of the pool that hello brought. */
static void write_slot(int pool_fd, uint32_t slot, uint8_t value)
{
	uint8_t bytes[16384];

	memset(bytes, value, sizeof(bytes));
	assert_int_equal(pwrite(pool_fd, bytes, sizeof(bytes), (off_t)slot << SLOT_SHIFT),
			 sizeof(bytes));
}

static int report(struct raw *r, uint32_t desc, uint64_t gen)
{
	Kvpool__Report m = KVPOOL__REPORT__INIT;
	const Kvpool__ReportReply *reply;

	m.desc = desc;
	m.gen = gen;
	reply = raw_call(r, OP_REPORT, &m.base);
	return reply->doomed;
}

/* A client's word is not enough to drop a block; the daemon reads it itself. */
static void a_block_that_is_doubted(void **state)
{
	struct raw *r = raw_hello(daemon_under_test.socket, "doubter");
	int pool_fd = dup(r->fds[1]);
	uint8_t keys[KEY_BYTES], bytes[16384];
	const Kvpool__ReserveReply *g;
	uint32_t desc, slot, ns = raw_ns(r, "protocol");
	uint64_t gen;

	raw_keys(14, keys, 1);
	g = raw_reserve(r, ns, keys, 1);
	assert_int_equal(g->n_desc, 1);
	desc = g->desc[0];
	gen = g->gen[0];
	slot = g->slot[0];
	write_slot(pool_fd, slot, 1);
	memset(bytes, 1, sizeof(bytes));
	assert_int_equal(commit_one(r, desc, gen, crc32c(0, bytes, sizeof(bytes))),
			 VERDICT_COMMITTED);
	assert_false(report(r, desc, gen));
	assert_false(report(r, desc, gen + 1));
	assert_false(report(r, UINT32_MAX, gen));
	write_slot(pool_fd, slot, 2);
	assert_true(report(r, desc, gen));
	assert_false(report(r, desc, gen));
	/* Its key is free for whoever computes it again. */
	assert_int_equal(raw_reserve(r, ns, keys, 1)->verdict.data[0], VERDICT_GRANTED);
	close(pool_fd);
	raw_close(r);
}

int main(void)
{
#define WITH_CLIENTS(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	static const struct CMUnitTest tests[] = {
		WITH_CLIENTS(every_sample_is_answered),
		WITH_CLIENTS(unknown_fields_are_ignored),
		WITH_CLIENTS(fields_twice),
		WITH_CLIENTS(bodies_that_do_not_unpack),
		WITH_CLIENTS(missing_fields),
		WITH_CLIENTS(oversized_fields),
		WITH_CLIENTS(fields_of_odd_length),
		WITH_CLIENTS(text_that_is_none),
		WITH_CLIENTS(lists_are_bounded),
		WITH_CLIENTS(before_hello),
		WITH_CLIENTS(after_hello),
		WITH_CLIENTS(on_the_admin_socket),
		WITH_CLIENTS(unknown_operations),
		WITH_CLIENTS(other_versions),
		WITH_CLIENTS(hazards_are_bounded),
		WITH_CLIENTS(descriptors_of_namespaces),
		WITH_CLIENTS(namespace_that_is_not_open),
		WITH_CLIENTS(too_many_namespaces),
		WITH_CLIENTS(namespaces_opened_and_closed),
		WITH_CLIENTS(reservations_outlive_a_close),
		WITH_CLIENTS(commits_of_others),
		WITH_CLIENTS(long_runs),
		WITH_CLIENTS(a_block_from_one_to_another),
		WITH_CLIENTS(a_wait_is_ended),
		WITH_CLIENTS(a_block_that_is_doubted),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
