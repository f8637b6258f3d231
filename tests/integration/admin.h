/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator sees of a test's daemon. */
#ifndef KVP_TESTS_INTEGRATION_ADMIN_H
#define KVP_TESTS_INTEGRATION_ADMIN_H

#include "proto/kvpool.pb-c.h"
#include "tests/integration/daemon.h"

/*
 * Asks for STATUS. Aborts the test when there is no answer. The message lives until the next call.
 */
const Kvpool__StatusReply *admin_status(const struct daemon *d);

/* Drops all blocks of all namespaces. The message lives until the next call. */
const Kvpool__FlushReply *admin_flush(const struct daemon *d);

/* Sets the size of the pool, which must be accepted. The message lives until the next call. */
const Kvpool__ResizeReply *admin_resize(const struct daemon *d, uint64_t bytes, int dry_run);

/* Asks again and again until the pool has at most that much above its limit; 20 s at most. */
void admin_wait_excess(const struct daemon *d, uint64_t most);

/* Waits until no namespace has memory: all are empty, and nobody has them open. */
void admin_wait_unused(const struct daemon *d);

/*
 * Asks again and again until nothing of any ended client is left: no reservation, no quarantine, no
 * pin, nothing doomed, nobody draining, and n clients. Returns the seconds that it took, or aborts
 * the test after 20.
 */
double admin_wait_quiet(const struct daemon *d, unsigned int n);

/* Fails the test when the numbers of a status do not add up. */
void admin_check_sums(const Kvpool__StatusReply *s);

#endif
