/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "proto/reason.h"

struct reason_text {
	const char *name, *help;
};

static const struct reason_text reasons[MISS_MAX + 1] = {
	[MISS_NONE] = { "none", "all that may be cached was there" },
	[MISS_NOT_CACHED] = { "not_cached", "the next block is not in memory" },
	[MISS_PARTIAL_BLOCK] = { "partial_block",
				 "tokens behind the last whole block are always computed" },
	[MISS_BELOW_MIN] = { "below_min", "the prompt is shorter than one block" },
	[MISS_PINS] = { "pins",
			"the lease takes no more blocks, or the program has no more leases" },
	[MISS_NO_DAEMON] = { "no_daemon", "the client was not connected" },
	[MISS_TIMEOUT] = { "timeout", "the daemon had not answered about the namespace yet" },
	[MISS_RACED] = { "raced", "eviction took the blocks while they were being pinned" },
	[MISS_NAMESPACE] = { "namespace", "the daemon had refused the namespace" },
	[MISS_COLD] = { "cold", "never stored, as far as is remembered" },
	[MISS_EVICTED] = { "evicted", "made room for others: the pool is too small for all" },
	[MISS_EXPIRED] = { "expired", "was not used for longer than its TTL" },
	[MISS_FLUSHED] = { "flushed", "an operator dropped it" },
	[MISS_CORRUPT] = { "corrupt", "its bytes were wrong, and it was dropped" },
	[MISS_RESIZED] = { "resized", "went when the pool was made smaller" },
	[MISS_IN_FLIGHT] = { "in_flight", "is being written: it can be waited for" },
	[MISS_WRITER_DIED] = { "writer_died", "its writer went, or took too long" },
	[MISS_QUOTA] = { "quota", "was refused: its writer held all it may" },
	[MISS_FULL] = { "full", "was refused: there was no room for it" },
	[MISS_UNKNOWN] = { "unknown", "the record of the lookup was lost" },
};

static const struct reason_text *reason_find(unsigned int reason)
{
	return reason <= MISS_MAX && reasons[reason].name ? &reasons[reason] : NULL;
}

const char *miss_reason_name(unsigned int reason)
{
	const struct reason_text *r = reason_find(reason);

	return r ? r->name : "unknown";
}

const char *miss_reason_help(unsigned int reason)
{
	const struct reason_text *r = reason_find(reason);

	return r ? r->help : "";
}
