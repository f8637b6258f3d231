/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines of many operations: a binary heap of entries that lie in them. */
#ifndef KVP_CLIENT_DUE_H
#define KVP_CLIENT_DUE_H

#include <stddef.h>
#include <stdint.h>

struct due {
	uint64_t at;  /* clock_ns() */
	size_t place; /* in the heap, from 1 on; 0: in none */
};

struct due_heap {
	struct due **entry; /* from 1 on */
	size_t n, room;
};

/* Makes sure that one more can be added. Returns 0 or -ENOMEM. */
int due_prepare(struct due_heap *h);

/* After due_prepare. */
void due_add(struct due_heap *h, struct due *d, uint64_t at);

/* Harmless when it is in none. */
void due_remove(struct due_heap *h, struct due *d);

/* The earliest; NULL: there is none. */
static inline struct due *due_first(const struct due_heap *h)
{
	return h->n ? h->entry[1] : NULL;
}

void due_free(struct due_heap *h);

#endif
