/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "daemon/domain.h"
#include "daemon/explain.h"
#include "daemon/insight.h"
#include "daemon/touches.h"

static_assert((int)MISS_NOT_CACHED == 1 && (int)MISS_NAMESPACE == 9,
	      "reasons of a record have the numbers of enum kvpool_reason");

/* A lookup on its way: what was claimed, within bounds. */
struct claim {
	uint32_t ns; /* NS_NONE: of none that the session has open */
	uint32_t desc;
	uint32_t from, asked, hit, tail;
	uint32_t reason; /* of the record */
	struct block_key key;
};

static void claim_of(const struct session *s, const struct touch *t, struct claim *c)
{
	*c = (struct claim){
		.ns = session_has_ns(s, t->ns) ? t->ns : NS_NONE,
		.desc = t->desc,
		.from = t->from_token,
		.asked = t->asked_tokens,
		.hit = MIN(t->hit_tokens, t->asked_tokens),
		.reason = touch_reason(t),
	};
	c->tail = MIN(touch_tail(t), c->asked - c->hit);
	memcpy(&c->key, t->miss_key, sizeof(c->key));
}

/* Why what could have been a hit was none. */
static enum miss_reason claim_why(const struct session *s, const struct claim *c,
				  uint64_t *ret_gone)
{
	struct explain_missing m;

	switch (c->reason) {
	case MISS_PINS:
	case MISS_NO_DAEMON:
	case MISS_TIMEOUT:
	case MISS_RACED:
	case MISS_NAMESPACE:
		return (enum miss_reason)c->reason;
	case MISS_NOT_CACHED:
		if (c->ns == NS_NONE)
			break;
		explain_missing(s->domain->pool, &c->key, &m);
		*ret_gone = m.when;
		return m.why;
	default:
		break;
	}
	return MISS_UNKNOWN;
}

/* The block that a lookup ended at, if it is the one: numbers of blocks are used again. */
static int claim_block(const struct session *s, const struct claim *c, struct explain_block *ret)
{
	return c->ns != NS_NONE && explain_block(s->domain->pool, c->desc, ret) == 0 &&
	       ret->ns == c->ns && ret->tokens == (uint64_t)c->from + c->hit;
}

/* The first token that was missed says it for the whole. */
static enum miss_reason first_why(const struct claim *c, const struct lookup *l)
{
	if (c->asked - c->hit > c->tail)
		return l->why;
	return c->tail ? l->why_tail : MISS_NONE;
}

static void keep(struct session *s, const struct claim *c, const struct lookup *l, uint64_t gone,
		 const struct explain_block *block, uint64_t now)
{
	struct past_lookup past = {
		.when = now,
		.gone = gone,
		.desc = DESC_NONE,
		.ns = c->ns,
		.mark = insight_ns_mark(s->domain, c->ns),
		.asked = c->asked,
		.hit = c->hit,
		.from = c->from,
		.tail = c->tail,
		.why = first_why(c, l),
	};

	if (block) {
		struct block_key key = desc_key(pool_control(s->domain->pool), block->desc);

		past.desc = block->desc;
		past.gen = block->gen;
		memcpy(past.id, &key, sizeof(past.id));
	}
	requests_add(&s->domain->requests, &s->requests, s->number, s->name, &past);
}

static int prefix_is_there(const void *pool, const struct prefix *e)
{
	struct explain_block b;

	return explain_block(pool, e->desc, &b) == 0 && b.gen == e->gen;
}

void touches_sweep(struct domain *d)
{
	prefixes_sweep(&d->prefixes, prefix_is_there, d->pool);
}

static void count_prefix(struct session *s, const struct explain_block *b, uint32_t hit,
			 uint64_t now)
{
	struct prefixes *t = &s->domain->prefixes;

	if (prefixes_wants_sweep(t))
		touches_sweep(s->domain);
	prefixes_hit(t, b->desc, b->gen, b->ns, s->number, hit, now);
}

static void book(struct session *s, const struct claim *c, const struct session_map *map,
		 uint64_t now)
{
	uint64_t gone = 0;
	struct explain_block block;
	int known = claim_block(s, c, &block);
	struct pool *p = s->domain->pool;
	struct lookup l = {
		.hit = c->hit,
		.missed = c->asked - c->hit - c->tail,
		.tail = c->tail,
		.why = claim_why(s, c, &gone),
		/* All of the prompt: there is no block that could be cached. */
		.why_tail = c->tail == c->asked && !c->from ? MISS_BELOW_MIN : MISS_PARTIAL_BLOCK,
	};

	keep(s, c, &l, gone, known ? &block : NULL, now);
	if (known)
		count_prefix(s, &block, c->hit, now);
	account_book(&s->account, map, &l);
	if (c->ns == NS_NONE)
		return;
	pool_touch(p, c->ns, c->desc, (uint32_t)(l.hit + l.missed + l.tail), (uint32_t)l.hit, now);
	pool_missed(p, c->ns, l.why, l.missed);
	pool_missed(p, c->ns, l.why_tail, l.tail);
}

void touches_drain(struct session *s, uint64_t now)
{
	struct region *r = s->region;
	uint64_t lost = r->touches_lost;
	struct touch t;
	uint32_t n = 0;

	while (n < REGION_TOUCHES && touch_pop(&r->map, &r->touch_place, &r->touches_lost, &t)) {
		struct claim c;

		n++;
		claim_of(s, &t, &c);
		book(s, &c, &r->map, now);
	}
	s->unsettled |= r->touches_lost != lost;
	if (s->unsettled && r->touch_place == load_relaxed(&r->map.head->touch_head))
		touches_settle(s);
	if (n)
		s->active = now;
}

void touches_settle(struct session *s)
{
	account_settle(&s->account, &s->region->map);
	s->unsettled = 0;
}

void touches_tell(struct session *s, uint32_t ns, const struct block_key *keys, uint32_t n,
		  uint32_t present, uint32_t desc, uint64_t now)
{
	uint32_t tokens = pool_control(s->domain->pool)->ns[ns].block_tokens;
	struct claim c = {
		.ns = ns,
		.desc = desc,
		.asked = n * tokens,
		.hit = present * tokens,
		.reason = present < n ? MISS_NOT_CACHED : MISS_NONE,
	};

	if (present < n)
		c.key = keys[present];
	book(s, &c, NULL, now);
}
