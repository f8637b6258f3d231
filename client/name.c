/* SPDX-License-Identifier: Apache-2.0 */
/* Words for numbers. */
#include "base/compiler.h"
#include "client/kvpool.h"

const char *kvpool_version(void)
{
	return KVPOOL_VERSION;
}

static const char *name_of(const char *const *names, unsigned int n, unsigned int i)
{
	return i < n && names[i] ? names[i] : "unknown";
}

const char *kvpool_reason_name(enum kvpool_reason reason)
{
	static const char *const names[] = {
		[KVPOOL_COMPLETE] = "complete",
		[KVPOOL_NOT_CACHED] = "not_cached",
		[KVPOOL_PARTIAL_BLOCK] = "partial_block",
		[KVPOOL_BELOW_MIN] = "below_min",
		[KVPOOL_PINS] = "pins",
		[KVPOOL_NO_DAEMON] = "no_daemon",
		[KVPOOL_TIMEOUT] = "timeout",
		[KVPOOL_FORKED] = "forked",
		[KVPOOL_RACED] = "raced",
		[KVPOOL_NAMESPACE] = "namespace",
	};

	return name_of(names, ARRAY_SIZE(names), reason);
}

const char *kvpool_verdict_name(enum kvpool_verdict verdict)
{
	static const char *const names[] = {
		[KVPOOL_GRANTED] = "granted",
		[KVPOOL_PRESENT] = "present",
		[KVPOOL_BUSY] = "busy",
		[KVPOOL_FULL] = "full",
		[KVPOOL_NO_PARENT] = "no_parent",
		[KVPOOL_COMMITTED] = "committed",
		[KVPOOL_STALE] = "stale",
	};

	return name_of(names, ARRAY_SIZE(names), verdict);
}
