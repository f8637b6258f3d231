/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "client/due.h"

#define DUE_ROOM_MIN 63u

int due_prepare(struct due_heap *h)
{
	size_t room = h->room ? 2 * h->room + 1 : DUE_ROOM_MIN;
	struct due **entry;

	if (h->n < h->room)
		return 0;
	entry = realloc(h->entry, (room + 1) * sizeof(struct due *));
	if (!entry)
		return -ENOMEM;
	h->entry = entry;
	h->room = room;
	return 0;
}

static void put(struct due_heap *h, size_t place, struct due *d)
{
	h->entry[place] = d;
	d->place = place;
}

/* Moves what is later than d down, until d fits. */
static void rise(struct due_heap *h, size_t place, struct due *d)
{
	for (; place > 1 && h->entry[place / 2]->at > d->at; place /= 2)
		put(h, place, h->entry[place / 2]);
	put(h, place, d);
}

/* Moves what is earlier than d up, until d fits. */
static void sink(struct due_heap *h, size_t place, struct due *d)
{
	size_t child;

	for (; (child = 2 * place) <= h->n; place = child) {
		if (child < h->n && h->entry[child + 1]->at < h->entry[child]->at)
			child++;
		if (h->entry[child]->at >= d->at)
			break;
		put(h, place, h->entry[child]);
	}
	put(h, place, d);
}

void due_add(struct due_heap *h, struct due *d, uint64_t at)
{
	d->at = at;
	rise(h, ++h->n, d);
}

void due_remove(struct due_heap *h, struct due *d)
{
	size_t place = d->place;
	struct due *last;

	if (!place)
		return;
	d->place = 0;
	last = h->entry[h->n--];
	if (last == d)
		return;
	if (place > 1 && h->entry[place / 2]->at > last->at)
		rise(h, place, last);
	else
		sink(h, place, last);
}

void due_free(struct due_heap *h)
{
	free(h->entry);
	*h = (struct due_heap){ .entry = NULL };
}
