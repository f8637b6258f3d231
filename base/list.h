/* SPDX-License-Identifier: Apache-2.0 */
/* A circular doubly linked list whose links lie inside the objects. */
#ifndef KVP_BASE_LIST_H
#define KVP_BASE_LIST_H

#include "base/compiler.h"

struct list {
	struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline int list_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list_insert_(struct list *n, struct list *prev, struct list *next)
{
	n->next = next;
	n->prev = prev;
	prev->next = n;
	next->prev = n;
}

/* Adds n as the first element of l. */
static inline void list_add(struct list *l, struct list *n)
{
	list_insert_(n, l, l->next);
}

/* Adds n as the last element of l. */
static inline void list_add_tail(struct list *l, struct list *n)
{
	list_insert_(n, l->prev, l);
}

/* Takes n out of its list; n is then an empty list, so that doing it twice is harmless. */
static inline void list_del(struct list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	list_init(n);
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)

#define list_first(l, type, member) list_entry((l)->next, type, member)

#define list_for_each(pos, l, member)                                       \
	for (pos = list_first(l, __typeof__(*pos), member); &pos->member != (l); \
	     pos = list_entry(pos->member.next, __typeof__(*pos), member))

/* The same where the body may take pos out of the list. */
#define list_for_each_safe(pos, tmp, l, member)                             \
	for (pos = list_first(l, __typeof__(*pos), member),                 \
	    tmp = list_entry(pos->member.next, __typeof__(*pos), member);   \
	     &pos->member != (l);                                           \
	     pos = tmp, tmp = list_entry(tmp->member.next, __typeof__(*tmp), member))

#endif
