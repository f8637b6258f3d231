/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operations, and the rules that requests must keep. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "client/kvpool.h"
#include "proto/check.h"
#include "proto/frame.h"
#include "proto/kvpool.pb-c.h"
#include "proto/nsdesc.h"
#include "proto/ops.h"
#include "proto/reason.h"
#include "tests/fuzz/messages.h"

/* Numbers on the wire: a change here is another protocol. */
static const struct {
	unsigned int op;
	const char *name, *request, *reply;
	unsigned int fds;
	int admin;
} wire[] = {
	{ 1, "hello", "kvpool.Hello", "kvpool.HelloReply", 3, 0 },
	{ 2, "ns_open", "kvpool.NsOpen", "kvpool.NsOpenReply", 0, 0 },
	{ 3, "reserve", "kvpool.Reserve", "kvpool.ReserveReply", 0, 0 },
	{ 4, "commit", "kvpool.Commit", "kvpool.CommitReply", 0, 0 },
	{ 5, "abort", "kvpool.Abort", "kvpool.AbortReply", 0, 0 },
	{ 6, "wait", "kvpool.Wait", "kvpool.WaitReply", 0, 0 },
	{ 7, "touch", "kvpool.Touch", "kvpool.TouchReply", 0, 0 },
	{ 8, "locate", "kvpool.Locate", "kvpool.LocateReply", 0, 0 },
	{ 9, "report", "kvpool.Report", "kvpool.ReportReply", 0, 0 },
	{ 10, "ping", "kvpool.Ping", "kvpool.PingReply", 0, 0 },
	{ 11, "bye", "kvpool.Bye", "kvpool.ByeReply", 0, 0 },
	{ 12, "ns_close", "kvpool.NsClose", "kvpool.NsCloseReply", 0, 0 },
	{ 13, "hint", "kvpool.Hint", "kvpool.HintReply", 0, 0 },
	{ 14, "unwait", "kvpool.Unwait", "kvpool.UnwaitReply", 0, 0 },
	{ 32, "stopping", "kvpool.Stopping", NULL, 0, 0 },
	{ 64, "version", "kvpool.Version", "kvpool.VersionReply", 0, 1 },
	{ 65, "status", "kvpool.Status", "kvpool.StatusReply", 0, 1 },
	{ 66, "namespaces", "kvpool.Namespaces", "kvpool.NamespacesReply", 0, 1 },
	{ 67, "clients", "kvpool.Clients", "kvpool.ClientsReply", 0, 1 },
	{ 68, "flush", "kvpool.Flush", "kvpool.FlushReply", 0, 1 },
	{ 69, "config", "kvpool.Config", "kvpool.ConfigReply", 0, 1 },
	{ 70, "config_set", "kvpool.ConfigSet", "kvpool.ConfigSetReply", 0, 1 },
	{ 71, "reload", "kvpool.Reload", "kvpool.ReloadReply", 0, 1 },
	{ 72, "log_level", "kvpool.LogLevel", "kvpool.LogLevelReply", 0, 1 },
	{ 73, "stats_reset", "kvpool.StatsReset", "kvpool.StatsResetReply", 0, 1 },
	{ 74, "kick", "kvpool.Kick", "kvpool.KickReply", 0, 1 },
	{ 75, "resize", "kvpool.Resize", "kvpool.ResizeReply", 0, 1 },
	{ 76, "pin", "kvpool.Pin", "kvpool.PinReply", 0, 1 },
	{ 77, "unpin", "kvpool.Unpin", "kvpool.UnpinReply", 0, 1 },
	{ 78, "pins", "kvpool.Pins", "kvpool.PinsReply", 0, 1 },
	{ 79, "prefixes", "kvpool.Prefixes", "kvpool.PrefixesReply", 0, 1 },
	{ 80, "explain", "kvpool.Explain", "kvpool.ExplainReply", 0, 1 },
	{ 81, "requests", "kvpool.Requests", "kvpool.RequestsReply", 0, 1 },
};

static void table_is_the_protocol(void **state)
{
	for (unsigned int op = 0, i = 0; op < 70000; op++) {
		const struct proto_op_info *info = proto_op_find(op);

		if (i == ARRAY_SIZE(wire) || op != wire[i].op) {
			assert_null(info);
			continue;
		}
		assert_int_equal(info->op, op);
		assert_string_equal(info->name, wire[i].name);
		assert_string_equal(info->request->name, wire[i].request);
		if (wire[i].reply)
			assert_string_equal(info->reply->name, wire[i].reply);
		else
			assert_null(info->reply);
		assert_int_equal(info->reply_fds, wire[i].fds);
		assert_true(info->reply_fds <= FRAME_FDS_MAX);
		assert_int_equal(info->admin, wire[i].admin);
		i++;
	}
	assert_null(proto_op_find(UINT32_MAX));
}

typedef const char *name_of(unsigned int number);

static const char *full(unsigned int n)
{
	return proto_full_name((enum proto_full)n);
}

static const char *error(unsigned int n)
{
	return proto_error_name((enum proto_error)n);
}

/* Each number up to max has a name of its own, everything above is "unknown". */
static void expect_names(name_of *name, unsigned int max)
{
	for (unsigned int i = 0; i <= max; i++) {
		assert_non_null(name(i));
		assert_string_not_equal(name(i), "unknown");
		for (unsigned int k = 0; k < i; k++)
			assert_string_not_equal(name(i), name(k));
	}
	assert_string_equal(name(max + 1), "unknown");
	assert_string_equal(name(UINT32_MAX), "unknown");
}

static void everything_has_a_name(void **state)
{
	expect_names(full, FULL_MAX);
	expect_names(error, ERROR_MAX);
	assert_string_equal(proto_full_name(FULL_INDEX), "index");
	assert_string_equal(proto_error_name(ERROR_BAD_FIELD), "bad field");
}

/* Numbers of reasons are in touch records and in replies; there is a gap between the two kinds. */
static void every_reason_has_words(void **state)
{
	unsigned int named = 0;

	for (unsigned int i = 0; i < MISS_MAX; i++) {
		int is_one = (i <= MISS_NAMESPACE && i != KVPOOL_FORKED) || i >= MISS_COLD;

		assert_int_equal(strcmp(miss_reason_name(i), "unknown") != 0, is_one);
		assert_int_equal(*miss_reason_help(i) != 0, is_one);
		named += (unsigned int)is_one;
	}
	assert_int_equal(named, MISS_MAX - (MISS_COLD - MISS_NAMESPACE - 1) - 1);
	assert_string_equal(miss_reason_name(MISS_MAX), "unknown");
	assert_string_equal(miss_reason_name(UINT32_MAX), "unknown");
	assert_string_equal(miss_reason_help(UINT32_MAX), "");
	for (unsigned int i = 1; i <= KVPOOL_NAMESPACE; i++)
		if (i != KVPOOL_FORKED)
			assert_string_equal(miss_reason_name(i),
					    kvpool_reason_name((enum kvpool_reason)i));
}

static uint8_t room[NSDESC_MAX_BYTES + PROTO_KEY_BYTES * (FRAME_KEYS_MAX + 1)];
static uint64_t numbers[FRAME_KEYS_MAX + 1];
#define LETTERS_MAX PROTO_CONFIG_KEY_MAX

static char letters[LETTERS_MAX + 2];

/* A request that lives on the test's memory. */
struct request {
	const struct proto_op_info *info;
	ProtobufCMessage *m;
};

/* Gives the field of a rule the measure n (struct proto_rule says of what). */
static void set(struct request *r, const char *name, uint64_t n)
{
	const ProtobufCFieldDescriptor *f =
		protobuf_c_message_descriptor_get_field_by_name(r->m->descriptor, name);
	void *at;

	assert_non_null(f);
	at = messages_at(r->m, f);
	if (f->label == PROTOBUF_C_LABEL_REPEATED) {
		*messages_count(r->m, f) = n;
		*(void **)at = numbers;
	} else if (f->type == PROTOBUF_C_TYPE_BYTES) {
		*(ProtobufCBinaryData *)at = (ProtobufCBinaryData){ n, room };
	} else if (f->type == PROTOBUF_C_TYPE_STRING) {
		*(char **)at = letters + LETTERS_MAX + 1 - n;
	} else {
		assert_int_equal(f->type, PROTOBUF_C_TYPE_UINT32);
		*(uint32_t *)at = (uint32_t)n;
	}
}

/* The smallest measure that a rule lets through, and is not nothing. */
static uint64_t smallest(const struct proto_rule *rule)
{
	return rule->multiple ? rule->multiple : 1;
}

static struct request request_new(enum proto_op op)
{
	struct request r = { .info = proto_op_find(op) };
	const struct proto_rule *rules;
	size_t n;

	memset(letters, 'a', sizeof(letters) - 1);
	assert_non_null(r.info);
	r.m = calloc(1, r.info->request->sizeof_message);
	assert_non_null(r.m);
	protobuf_c_message_init(r.info->request, r.m);
	rules = proto_rules(&n);
	for (size_t i = 0; i < n; i++)
		if (rules[i].op == op)
			set(&r, rules[i].field, smallest(&rules[i]));
	return r;
}

static void expect_good(const struct request *r)
{
	const char *field = "untouched", *why = "untouched";

	assert_int_equal(proto_check(r->info, r->m, &field, &why), 0);
	assert_string_equal(field, "untouched");
	assert_string_equal(why, "untouched");
}

static void expect_bad(const struct request *r, const char *field, const char *why)
{
	const char *got_field = NULL, *got_why = NULL;

	assert_int_equal(proto_check(r->info, r->m, &got_field, &got_why), -EINVAL);
	assert_string_equal(got_field, field);
	assert_string_equal(got_why, why);
}

static void sound_requests_pass(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(wire); i++) {
		struct request r = request_new((enum proto_op)wire[i].op);

		expect_good(&r);
		free(r.m);
	}
}

/* One field at its bounds, with the lists that belong to it as long as it. */
static void try_measure(const struct proto_rule *rule, uint64_t n, const char *why)
{
	struct request r = request_new(rule->op);
	const struct proto_rule *rules;
	size_t count;

	rules = proto_rules(&count);
	set(&r, rule->field, n);
	for (size_t i = 0; i < count; i++)
		if (rules[i].op == rule->op && rules[i].like && !strcmp(rules[i].like, rule->field))
			set(&r, rules[i].field, n);
	if (why)
		expect_bad(&r, rule->field, why);
	else
		expect_good(&r);
	free(r.m);
}

static void bounds_of_every_rule(void **state)
{
	const struct proto_rule *rules;
	size_t n;

	rules = proto_rules(&n);
	for (size_t i = 0; i < n; i++) {
		const struct proto_rule *rule = &rules[i];

		if (rule->like)
			continue;
		try_measure(rule, 0, rule->required ? "is missing" : NULL);
		try_measure(rule, smallest(rule), NULL);
		try_measure(rule, rule->max, NULL);
		if (rule->max < UINT32_MAX)
			try_measure(rule, rule->max + 1, "is too large");
		if (!rule->multiple)
			continue;
		try_measure(rule, 1, "is not a whole number of keys");
		try_measure(rule, rule->multiple - 1, "is not a whole number of keys");
		try_measure(rule, rule->max - 1, "is not a whole number of keys");
	}
}

static void lists_that_belong_together(void **state)
{
	const struct proto_rule *rules;
	size_t n, seen = 0;

	rules = proto_rules(&n);
	for (size_t i = 0; i < n; i++) {
		struct request r;

		if (!rules[i].like)
			continue;
		seen++;
		r = request_new(rules[i].op);
		set(&r, rules[i].field, 2);
		expect_bad(&r, rules[i].field, "is not as long as the list that it belongs to");
		set(&r, rules[i].field, 0);
		expect_bad(&r, rules[i].field, "is missing");
		set(&r, rules[i].field, FRAME_KEYS_MAX + 1);
		expect_bad(&r, rules[i].field, "is too large");
		free(r.m);
	}
	assert_int_equal(seen, 3);
}

static void text_must_be_clean(void **state)
{
	static const enum proto_op ops[] = { OP_HELLO, OP_HELLO, OP_FLUSH };
	static const char *const fields[] = { "library", "name", "namespace" };

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		struct request r = request_new(ops[i]);
		const ProtobufCFieldDescriptor *f =
			protobuf_c_message_descriptor_get_field_by_name(r.m->descriptor, fields[i]);

		*(const char **)messages_at(r.m, f) = "a\x1b[2J";
		expect_bad(&r, fields[i], "is not UTF-8 text without control characters");
		free(r.m);
	}
}

static int has_rule(enum proto_op op, const char *field)
{
	const struct proto_rule *rules;
	size_t n;

	rules = proto_rules(&n);
	for (size_t i = 0; i < n; i++)
		if (rules[i].op == op && !strcmp(rules[i].field, field))
			return 1;
	return 0;
}

/* What has no rule is a plain number or flag: nothing of unknown length gets by. */
static void nothing_long_without_a_rule(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(wire); i++) {
		const ProtobufCMessageDescriptor *type = proto_op_find(wire[i].op)->request;

		for (unsigned int k = 0; k < type->n_fields; k++) {
			const ProtobufCFieldDescriptor *f = &type->fields[k];

			if (f->label == PROTOBUF_C_LABEL_REPEATED ||
			    f->type == PROTOBUF_C_TYPE_BYTES || f->type == PROTOBUF_C_TYPE_STRING)
				assert_true(has_rule((enum proto_op)wire[i].op, f->name));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_is_the_protocol),
		cmocka_unit_test(everything_has_a_name),
		cmocka_unit_test(every_reason_has_words),
		cmocka_unit_test(sound_requests_pass),
		cmocka_unit_test(bounds_of_every_rule),
		cmocka_unit_test(lists_that_belong_together),
		cmocka_unit_test(text_must_be_clean),
		cmocka_unit_test(nothing_long_without_a_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
