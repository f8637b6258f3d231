/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flush that an operator asked for: namespace by namespace, a bounded number of blocks in each
 * round of the loop, and the sums at the end.
 */
#ifndef KVP_DAEMON_FLUSHER_H
#define KVP_DAEMON_FLUSHER_H

struct flusher;

/*
 * Forgets a request whose asker is gone; the pool drops the blocks of the namespace that was begun
 * by itself. Accepts NULL, returns NULL.
 */
struct flusher *flusher_free(struct flusher *f);

#endif
