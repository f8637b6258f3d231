/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Knowing in a child that it is one, without a system call and without a handler: a page that the
 * kernel hands to a child zeroed.
 */
#ifndef KVP_CLIENT_FORK_H
#define KVP_CLIENT_FORK_H

#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

/* Makes a page whose first word is 1 here and 0 in every child. Returns 0 or -errno. */
int fork_page_new(uint32_t **ret_page);

/* Gives it back, in parent or child. NULL is ignored. Returns NULL. */
uint32_t *fork_page_free(uint32_t *page);

static inline int fork_is_child(const uint32_t *page)
{
	return unlikely(!load_relaxed(page));
}

#endif
