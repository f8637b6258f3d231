/* SPDX-License-Identifier: Apache-2.0 */
#include "base/compiler.h"
#include "proto/kvpool.pb-c.h"
#include "proto/ops.h"

#define MESSAGE(type) (&kvpool__##type##__descriptor)

static const struct proto_op_info op_table[] = {
	{ OP_HELLO, "hello", MESSAGE(hello), MESSAGE(hello_reply), .reply_fds = 3 },
	{ OP_NS_OPEN, "ns_open", MESSAGE(ns_open), MESSAGE(ns_open_reply) },
	{ OP_RESERVE, "reserve", MESSAGE(reserve), MESSAGE(reserve_reply) },
	{ OP_COMMIT, "commit", MESSAGE(commit), MESSAGE(commit_reply) },
	{ OP_ABORT, "abort", MESSAGE(abort), MESSAGE(abort_reply) },
	{ OP_WAIT, "wait", MESSAGE(wait), MESSAGE(wait_reply) },
	{ OP_TOUCH, "touch", MESSAGE(touch), MESSAGE(touch_reply) },
	{ OP_LOCATE, "locate", MESSAGE(locate), MESSAGE(locate_reply) },
	{ OP_REPORT, "report", MESSAGE(report), MESSAGE(report_reply) },
	{ OP_PING, "ping", MESSAGE(ping), MESSAGE(ping_reply) },
	{ OP_BYE, "bye", MESSAGE(bye), MESSAGE(bye_reply) },
	{ OP_NS_CLOSE, "ns_close", MESSAGE(ns_close), MESSAGE(ns_close_reply) },
	{ OP_HINT, "hint", MESSAGE(hint), MESSAGE(hint_reply) },
	{ OP_UNWAIT, "unwait", MESSAGE(unwait), MESSAGE(unwait_reply) },
	{ OP_STOPPING, "stopping", MESSAGE(stopping), NULL },
	{ OP_VERSION, "version", MESSAGE(version), MESSAGE(version_reply), .admin = 1 },
	{ OP_STATUS, "status", MESSAGE(status), MESSAGE(status_reply), .admin = 1 },
	{ OP_NAMESPACES, "namespaces", MESSAGE(namespaces), MESSAGE(namespaces_reply), .admin = 1 },
	{ OP_CLIENTS, "clients", MESSAGE(clients), MESSAGE(clients_reply), .admin = 1 },
	{ OP_FLUSH, "flush", MESSAGE(flush), MESSAGE(flush_reply), .admin = 1 },
	{ OP_CONFIG, "config", MESSAGE(config), MESSAGE(config_reply), .admin = 1 },
	{ OP_CONFIG_SET, "config_set", MESSAGE(config_set), MESSAGE(config_set_reply), .admin = 1 },
	{ OP_RELOAD, "reload", MESSAGE(reload), MESSAGE(reload_reply), .admin = 1 },
	{ OP_LOG_LEVEL, "log_level", MESSAGE(log_level), MESSAGE(log_level_reply), .admin = 1 },
	{ OP_STATS_RESET, "stats_reset", MESSAGE(stats_reset), MESSAGE(stats_reset_reply),
	  .admin = 1 },
	{ OP_KICK, "kick", MESSAGE(kick), MESSAGE(kick_reply), .admin = 1 },
	{ OP_RESIZE, "resize", MESSAGE(resize), MESSAGE(resize_reply), .admin = 1 },
	{ OP_PIN, "pin", MESSAGE(pin), MESSAGE(pin_reply), .admin = 1 },
	{ OP_UNPIN, "unpin", MESSAGE(unpin), MESSAGE(unpin_reply), .admin = 1 },
	{ OP_PINS, "pins", MESSAGE(pins), MESSAGE(pins_reply), .admin = 1 },
	{ OP_PREFIXES, "prefixes", MESSAGE(prefixes), MESSAGE(prefixes_reply), .admin = 1 },
	{ OP_EXPLAIN, "explain", MESSAGE(explain), MESSAGE(explain_reply), .admin = 1 },
	{ OP_REQUESTS, "requests", MESSAGE(requests), MESSAGE(requests_reply), .admin = 1 },
};

static const char *const full_names[] = {
	[FULL_NONE] = "none",   [FULL_POOL] = "pool",
	[FULL_INDEX] = "index", [FULL_DESCRIPTORS] = "descriptors",
	[FULL_QUOTA] = "quota",
};

static const char *const error_names[] = {
	[ERROR_NONE] = "none",
	[ERROR_BAD_FRAME] = "bad frame",
	[ERROR_BAD_MESSAGE] = "bad message",
	[ERROR_BAD_FIELD] = "bad field",
	[ERROR_UNKNOWN_OP] = "unknown operation",
	[ERROR_BAD_STATE] = "bad state",
	[ERROR_VERSION] = "version",
	[ERROR_DENIED] = "denied",
	[ERROR_LIMIT] = "limit",
	[ERROR_NO_NAMESPACE] = "no namespace",
	[ERROR_FDS] = "descriptors",
	[ERROR_INTERNAL] = "internal",
	[ERROR_NO_OBJECT] = "no such object",
	[ERROR_AMBIGUOUS] = "ambiguous",
	[ERROR_CONFIG] = "configuration",
};

_Static_assert(ARRAY_SIZE(full_names) == FULL_MAX + 1, "a name for each reason");
_Static_assert(ARRAY_SIZE(error_names) == ERROR_MAX + 1, "a name for each error");

const struct proto_op_info *proto_op_find(unsigned int op)
{
	for (size_t i = 0; i < ARRAY_SIZE(op_table); i++)
		if (op_table[i].op == op)
			return &op_table[i];
	return NULL;
}

/* The number may have come over the wire. */
static const char *proto_name(const char *const *names, size_t count, unsigned int i)
{
	return i < count ? names[i] : "unknown";
}

const char *proto_full_name(enum proto_full f)
{
	return proto_name(full_names, ARRAY_SIZE(full_names), f);
}

const char *proto_error_name(enum proto_error e)
{
	return proto_name(error_names, ARRAY_SIZE(error_names), e);
}
