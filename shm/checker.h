/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks whole regions: what is wrong, where, and what was expected, one line a finding:
 *
 * 	descriptor 17: parent is FREE, expected COMMITTED
 * 	WHERE [NUMBER]: WHAT is IS, expected WANT
 *
 * WHERE is header, namespace, granule, entry (of the index, counted through), descriptor or
 * session. One fault in a region is one finding where that can be told.
 *
 * Nothing in a region is believed: any bytes may stand there, and nothing outside of it is read. No
 * allocation and no I/O; the caller gives the scratch memory, and a bound on the findings. Nobody
 * may write the region meanwhile, but hazard words, touch rings and counters may change: readers go
 * on while a successor looks at what it took over.
 */
#ifndef KVP_SHM_CHECKER_H
#define KVP_SHM_CHECKER_H

#include "shm/session.h"

enum checker_mode {
	/* No operation is under way, in the daemon or, for session regions, in their clients. */
	CHECKER_QUIET,
	/*
	 * The daemon was killed, at whatever instruction. What that leaves behind is no finding:
	 * RESERVED without a slot; EVICTING; COMMITTED that is not listed; EVICTING or DOOMED,
	 * listed or not; an entry that stands in both places of its key; an entry of another gen;
	 * a slot whose tier bit is clear; an extent or a namespace that is partly written.
	 */
	CHECKER_AFTER_KILL,
};

struct checker {
	enum checker_mode mode;
	/* session regions to check, by the daemon's own counts; may be none */
	const struct session_map *sessions;
	uint32_t n_sessions;
	/* checker_scratch() bytes or more, aligned for uint64_t */
	void *scratch;
	size_t scratch_bytes;
	/* after so many findings the check ends */
	uint32_t max_findings;
	/* called for each finding; text is gone when it returns */
	void (*found)(void *ctx, const char *text);
	void *ctx;
};

/* Bytes of scratch that a region needs; 0 for one whose header is wrong, which needs none. */
size_t checker_scratch(void *base, uint64_t size);

/*
 * Checks the control region of size bytes at base (aligned to LAYOUT_PAGE). Returns how many
 * findings there were, or -EINVAL when scratch is too small.
 */
int64_t checker_run(const struct checker *k, void *base, uint64_t size);

#endif
