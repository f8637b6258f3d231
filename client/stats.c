/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "client/handle.h"

#define STATS_SIZE_FIRST offsetof(struct kvpool_stats, waits) /* before it had more */

/*
 * Counters lie where they are counted: in the region of each session, so that the daemon sees them,
 * or in the handle when there was none. Under the lock.
 */
static uint64_t sum_counter(struct kvpool *p, enum session_counter c)
{
	uint64_t n = p->folded[c] + load_relaxed(&p->stray[c]);

	for (unsigned int i = 0; i < ATTACH_MAX; i++)
		if (attach_is_mapped(&p->attach[i]))
			n += load_relaxed(&p->attach[i].session.head->counter[c]);
	return n;
}

int kvpool_get_stats(const struct kvpool *pool, struct kvpool_stats *ret)
{
	struct kvpool *p = (struct kvpool *)pool;
	struct kvpool_stats s;
	size_t size = ret->size;

	if (size != STATS_SIZE_FIRST && size != sizeof(s))
		return -EINVAL;
	if (handle_is_forked(p))
		return -ESTALE;
	pthread_mutex_lock(&p->lock);
	s = (struct kvpool_stats){
		.size = size,
		.lookups = sum_counter(p, COUNTER_LOOKUPS),
		.asked_tokens = sum_counter(p, COUNTER_ASKED_TOKENS),
		.hit_tokens = sum_counter(p, COUNTER_HIT_TOKENS),
		.miss_tokens = sum_counter(p, COUNTER_MISS_TOKENS),
		.shared_tokens = sum_counter(p, COUNTER_SHARED_TOKENS),
		.raced = sum_counter(p, COUNTER_RACED),
		.copies_out = sum_counter(p, COUNTER_COPIES_OUT),
		.copied_out_bytes = sum_counter(p, COUNTER_COPIED_OUT_BYTES),
		.copies_in = sum_counter(p, COUNTER_COPIES_IN),
		.copied_in_bytes = sum_counter(p, COUNTER_COPIED_IN_BYTES),
		.checksum_errors = sum_counter(p, COUNTER_CRC_ERRORS),
		.requests = p->requests + (p->rpc ? rpc_requests(p->rpc) : 0),
		.reconnects = p->connects ? p->connects - 1 : 0,
		.waits = sum_counter(p, COUNTER_WAITS),
		.waited_ns = sum_counter(p, COUNTER_WAITED_NS),
		.stored_blocks = sum_counter(p, COUNTER_STORED),
		.stored_bytes = sum_counter(p, COUNTER_STORED_BYTES),
	};
	pthread_mutex_unlock(&p->lock);
	memcpy(ret, &s, size);
	return 0;
}
