/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "daemon/requests.h"

static_assert(sizeof(struct request_ring) <= 19u << 10, "what the header says of memory");

void requests_init(struct requests *r)
{
	*r = (struct requests){ .n = 0 };
	list_init(&r->rings);
}

static void drop(struct requests *r, struct request_ring *ring)
{
	if (ring->user)
		*ring->user = NULL;
	list_del(&ring->link);
	r->n--;
	free(ring);
}

void requests_fini(struct requests *r)
{
	while (!list_empty(&r->rings))
		drop(r, list_first(&r->rings, struct request_ring, link));
}

static struct request_ring *ring_new(struct requests *r, struct request_ring **user,
				     uint64_t session, const char *client)
{
	struct request_ring *ring;

	if (r->n == REQUESTS_RINGS)
		drop(r, list_entry(r->rings.prev, struct request_ring, link));
	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return NULL;
	list_init(&ring->link);
	ring->user = user;
	ring->session = session;
	strncpy(ring->client, client, sizeof(ring->client) - 1);
	r->n++;
	*user = ring;
	return ring;
}

void requests_add(struct requests *r, struct request_ring **user, uint64_t session,
		  const char *client, const struct past_lookup *p)
{
	struct request_ring *ring = *user ? *user : ring_new(r, user, session, client);
	struct past_lookup *e;

	r->last++;
	if (!ring)
		return;
	e = &ring->entry[ring->next++ % REQUESTS_RING];
	*e = *p;
	e->number = r->last;
	list_del(&ring->link);
	list_add(&r->rings, &ring->link);
}

void requests_end(struct request_ring **user, uint64_t now)
{
	struct request_ring *ring = *user;

	if (!ring)
		return;
	ring->user = NULL;
	ring->ended = now;
	*user = NULL;
}

void requests_tidy(struct requests *r, uint64_t now)
{
	struct request_ring *ring, *tmp;

	list_for_each_safe(ring, tmp, &r->rings,
			   link) if (!ring->user && now - ring->ended >= REQUESTS_KEEP_NS)
		drop(r, ring);
}

static int is_asked_for(const struct request_ring *ring, const struct requests_query *q)
{
	if (q->session && ring->session != q->session)
		return 0;
	return !*q->client || !strcmp(ring->client, q->client);
}

static const struct past_lookup *back(const struct request_ring *ring, uint32_t i)
{
	return &ring->entry[(ring->next - 1 - i) % REQUESTS_RING];
}

/* How far back the first one is that the query's numbers allow: they go down from the latest. */
static uint32_t first_before(const struct request_ring *ring, uint64_t before)
{
	uint32_t low = 0, high = REQUESTS_RING;

	while (before && low < high) {
		uint32_t middle = (low + high) / 2;

		if (back(ring, middle)->number >= before)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The newest one of a ring that is newer than number. */
static const struct past_lookup *newest_of(const struct request_ring *ring,
					   const struct requests_query *q, uint64_t number)
{
	for (uint32_t i = first_before(ring, q->before); i < REQUESTS_RING; i++) {
		const struct past_lookup *e = back(ring, i);

		if (e->number <= number)
			break;
		if (!q->misses || e->asked - e->hit > e->tail)
			return e;
	}
	return NULL;
}

const struct past_lookup *requests_newest(const struct requests *r, const struct requests_query *q,
					  const struct request_ring **ret_ring)
{
	const struct past_lookup *best = NULL;
	const struct request_ring *ring;

	list_for_each(ring, &r->rings, link)
	{
		const struct past_lookup *e = NULL;

		if (is_asked_for(ring, q))
			e = newest_of(ring, q, best ? best->number : 0);
		if (e) {
			best = e;
			*ret_ring = ring;
		}
	}
	return best;
}

int requests_knows(const struct requests *r, const struct requests_query *q)
{
	const struct request_ring *ring;

	list_for_each(ring, &r->rings, link) if (is_asked_for(ring, q)) return 1;
	return 0;
}
