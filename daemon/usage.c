/* SPDX-License-Identifier: Apache-2.0 */
#include "base/compiler.h"
#include "daemon/usage.h"

/* 2^48 tokens are beyond what one client can look up; 2^15 clients that claim them still add up. */
#define USAGE_CLAIM_MAX (UINT64_C(1) << 48)
#define USAGE_SUM_MAX   (UINT64_C(1) << 63)

/* All or nothing, so that the sums go on adding up. */
void usage_add(struct usage *sum, const struct usage *u)
{
	if (sum->asked + u->asked > USAGE_SUM_MAX || sum->lookups + u->lookups > USAGE_SUM_MAX ||
	    sum->raced + u->raced > USAGE_SUM_MAX)
		return;
	sum->lookups += u->lookups;
	sum->asked += u->asked;
	sum->hit += u->hit;
	sum->miss += u->miss;
	sum->shared += u->shared;
	sum->raced += u->raced;
	for (unsigned int i = 0; i < USAGE_REASONS; i++)
		sum->reasons[i] += u->reasons[i];
}

/* Counters only go up: one that stepped back does not count. */
static uint64_t counted(struct account *a, const struct session_map *map, enum session_counter c)
{
	uint64_t n = load_relaxed(&map->head->counter[c]);

	a->counted[c] = MAX(a->counted[c], MIN(n, USAGE_CLAIM_MAX));
	return a->counted[c];
}

/* How much more may be booked. */
static uint64_t room_hit(struct account *a, const struct session_map *map)
{
	return counted(a, map, COUNTER_HIT_TOKENS) + a->told.hit - a->booked.hit;
}

static uint64_t room_miss(struct account *a, const struct session_map *map)
{
	return counted(a, map, COUNTER_MISS_TOKENS) + a->told.miss - a->booked.miss;
}

static void book_miss(struct account *a, enum miss_reason why, uint64_t n)
{
	a->booked.miss += n;
	a->booked.reasons[why] += n;
}

static void cut(struct account *a, const struct session_map *map, struct lookup *l)
{
	l->hit = MIN(l->hit, room_hit(a, map));
	l->missed = MIN(l->missed, room_miss(a, map));
	l->tail = MIN(l->tail, room_miss(a, map) - l->missed);
}

static void tell(struct account *a, struct lookup *l)
{
	if (a->told.hit + a->told.miss + l->hit + l->missed + l->tail > USAGE_CLAIM_MAX)
		l->hit = l->missed = l->tail = 0;
	a->told.lookups++;
	a->told.hit += l->hit;
	a->told.miss += l->missed + l->tail;
}

void account_book(struct account *a, const struct session_map *map, struct lookup *l)
{
	if (map)
		cut(a, map, l);
	else
		tell(a, l);
	a->booked.hit += l->hit;
	book_miss(a, l->why, l->missed);
	book_miss(a, l->why_tail, l->tail);
}

void account_settle(struct account *a, const struct session_map *map)
{
	a->booked.hit += room_hit(a, map);
	book_miss(a, MISS_UNKNOWN, room_miss(a, map));
}

void account_read(struct account *a, const struct session_map *map, struct usage *ret)
{
	*ret = a->booked;
	ret->asked = ret->hit + ret->miss;
	ret->lookups = counted(a, map, COUNTER_LOOKUPS) + a->told.lookups;
	ret->shared = MIN(counted(a, map, COUNTER_SHARED_TOKENS), ret->hit);
	ret->raced = counted(a, map, COUNTER_RACED);
}
