/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "daemon/model.h"

/* Pins that end at the same time do so in steps of that many blocks: some 1 ms. */
#define STEP_BLOCKS 32768u

struct pin {
	struct list link;
	uint32_t at; /* its place in the table's tip */
	struct pool_pin pub;
};

static_assert(POOL_PINS_MAX < PIN_IS_TIP, "a count fits beside the flag");

void pin_table_init(struct pin_table *t)
{
	*t = (struct pin_table){ .next = UINT64_MAX };
	list_init(&t->all);
}

int pin_table_make(struct pin_table *t, uint32_t max_blocks, uint64_t pool_bytes)
{
	t->budget = pool_bytes * POOL_PIN_BUDGET / 100;
	t->holds = calloc(max_blocks, sizeof(*t->holds));
	return t->holds ? 0 : -ENOMEM;
}

void pin_table_fini(struct pin_table *t)
{
	struct pin *x, *tmp;

	list_for_each_safe(x, tmp, &t->all, link)
		free(x);
	list_init(&t->all);
	free(t->holds);
}

void pin_scan(const struct pin_table *t, struct pinset *pins)
{
	for (uint32_t i = 0; i < t->count; i++)
		pinset_add(pins, t->tip[i]);
}

static uint32_t depth_of(const struct pool *p, uint32_t d)
{
	return load_relaxed(&p->control.desc[d].depth);
}

/* One more pin ends at d. */
static void hold(struct pool *p, uint32_t d)
{
	struct namespace *ns = block_namespace(p, d);

	for (uint32_t at = d; at != DESC_NONE; at = block_parent(p, at)) {
		if (!p->pin.holds[at]++) {
			ns->pinned++;
			p->pin.bytes += ns->stride;
		}
	}
	p->pin.holds[d] |= PIN_IS_TIP;
}

static int is_tip(const struct pin_table *t, uint32_t d)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (t->tip[i] == d)
			return 1;
	return 0;
}

/* One pin less ends at d, and the table does not have it any more. */
static void let_go(struct pool *p, uint32_t d)
{
	struct namespace *ns = block_namespace(p, d);

	if (!is_tip(&p->pin, d))
		p->pin.holds[d] &= (uint16_t)~PIN_IS_TIP;
	for (uint32_t at = d; at != DESC_NONE; at = block_parent(p, at)) {
		if (!--p->pin.holds[at]) {
			ns->pinned--;
			p->pin.bytes -= ns->stride;
		}
	}
}

static void set_tip(struct pin_table *t, uint32_t at, struct pin *x)
{
	t->tip[at] = x->pub.desc;
	t->of_tip[at] = x;
	x->at = at;
}

static void drop_pin(struct pool *p, struct pin *x)
{
	list_del(&x->link);
	p->pin.count--;
	set_tip(&p->pin, x->at, p->pin.of_tip[p->pin.count]);
	let_go(p, x->pub.desc);
	free(x);
}

static void end(struct pool *p, struct pin *x, enum pool_pin_end why)
{
	p->ops->pin_ended(p->ctx, &x->pub, why);
	drop_pin(p, x);
}

uint32_t pin_drop(struct pool *p, uint32_t d)
{
	struct pin *x, *tmp;
	uint32_t n = 0;

	if (!(p->pin.holds[d] & PIN_IS_TIP))
		return 0;
	list_for_each_safe(x, tmp, &p->pin.all, link) {
		if (x->pub.desc != d)
			continue;
		end(p, x, PIN_END_FLUSHED);
		n++;
	}
	return n;
}

uint32_t pin_count_ns(const struct pin_table *t, uint32_t ns)
{
	const struct pin *x;
	uint32_t n = 0;

	list_for_each(x, &t->all, link)
		n += x->pub.ns == ns;
	return n;
}

uint64_t pin_time_out(struct pool *p, uint64_t now)
{
	struct pin *x, *tmp;
	uint32_t walked = 0;

	if (now < p->pin.next)
		return p->pin.next;
	p->pin.next = UINT64_MAX;
	list_for_each_safe(x, tmp, &p->pin.all, link) {
		/* More of them are due, but not in this call. */
		if (walked >= STEP_BLOCKS) {
			p->pin.next = now;
			break;
		}
		if (x->pub.until <= now) {
			walked += x->pub.blocks;
			end(p, x, PIN_END_TTL);
		} else {
			p->pin.next = MIN(p->pin.next, x->pub.until);
		}
	}
	return p->pin.next;
}

/* Who goes first when the budget gets smaller: the youngest of the lowest priority. */
static struct pin *least(const struct pin_table *t)
{
	struct pin *x, *worst = NULL;

	list_for_each(x, &t->all, link)
		if (!worst || x->pub.priority <= worst->pub.priority)
			worst = x;
	return worst;
}

void pool_pin_usage(const struct pool *p, uint64_t *ret_budget, uint64_t *ret_used)
{
	*ret_budget = p->pin.budget;
	*ret_used = p->pin.bytes;
}

void pool_set_pin_budget(struct pool *p, uint64_t bytes)
{
	p->pin.budget = bytes;
	while (p->pin.bytes > bytes)
		end(p, least(&p->pin), PIN_END_BUDGET);
}

/*
 * As far as the budget goes from the root: the block to pin instead of d, or DESC_NONE. What other
 * pins hold already is for free, and is the start of each prefix.
 */
static uint32_t affordable(const struct pool *p, uint32_t d)
{
	uint64_t left = p->pin.budget > p->pin.bytes ? p->pin.budget - p->pin.bytes : 0;
	uint64_t room = left / block_namespace(p, d)->stride;
	uint32_t fresh = 0;

	for (uint32_t at = d; at != DESC_NONE && !p->pin.holds[at]; at = block_parent(p, at))
		fresh++;
	for (; fresh > room; fresh--)
		d = block_parent(p, d);
	return d;
}

static struct pin *find_same(const struct pin_table *t, uint32_t d, const char *label)
{
	struct pin *x;

	if (t->holds[d] & PIN_IS_TIP)
		list_for_each(x, &t->all, link)
			if (x->pub.desc == d && !strcmp(x->pub.label, label))
				return x;
	return NULL;
}

static int add(struct pool *p, uint32_t d, const char *label, uint64_t now, struct pin **ret)
{
	struct pin *x;

	if (p->pin.count == POOL_PINS_MAX)
		return -ENOSPC;
	x = calloc(1, sizeof(*x));
	if (!x)
		return -ENOMEM;
	x->pub = (struct pool_pin){
		.number = ++p->pin.last,
		.ns = block_namespace(p, d)->number,
		.desc = d,
		.key = desc_key(&p->control, d),
		.blocks = depth_of(p, d) + 1,
		.since = now,
	};
	strncpy(x->pub.label, label, POOL_PIN_LABEL);
	list_add_tail(&p->pin.all, &x->link);
	set_tip(&p->pin, p->pin.count++, x);
	hold(p, d);
	*ret = x;
	return 0;
}

int pool_pin(struct pool *p, uint32_t desc, uint64_t gen, const struct pool_pin_wish *wish,
	     uint64_t now, struct pool_pinned *ret)
{
	uint64_t before = p->pin.bytes;
	struct pin *x;
	uint32_t d;
	int r;

	if (desc >= p->cfg.max_blocks || block_gen(p, desc) != gen ||
	    block_state(p, desc) != DESC_COMMITTED)
		return -ENOENT;
	d = affordable(p, desc);
	if (d == DESC_NONE)
		return -EDQUOT;
	x = find_same(&p->pin, d, wish->label);
	r = x ? 0 : add(p, d, wish->label, now, &x);
	if (r < 0)
		return r;
	x->pub.until = wish->ttl_ns ? now + wish->ttl_ns : UINT64_MAX;
	x->pub.priority = wish->priority;
	p->pin.next = MIN(p->pin.next, x->pub.until);
	*ret = (struct pool_pinned){
		.pin = x->pub,
		.wanted = depth_of(p, desc) + 1,
		.added_bytes = p->pin.bytes - before,
	};
	return 0;
}

int pool_unpin(struct pool *p, uint64_t number, uint64_t *ret_bytes)
{
	uint64_t before = p->pin.bytes;
	struct pin *x;

	list_for_each(x, &p->pin.all, link) {
		if (x->pub.number != number)
			continue;
		drop_pin(p, x);
		*ret_bytes = before - p->pin.bytes;
		return 0;
	}
	return -ENOENT;
}

const struct pool_pin *pool_pin_next(const struct pool *p, uint64_t after)
{
	const struct pin *x;

	list_for_each(x, &p->pin.all, link)
		if (x->pub.number > after)
			return &x->pub;
	return NULL;
}

int pool_pin_keeps(const struct pool *p, uint32_t desc)
{
	return pin_holds(&p->pin, desc);
}

const struct pool_pin *pool_pin_at(const struct pool *p, uint32_t desc)
{
	const struct pin *x;

	if (!(p->pin.holds[desc] & PIN_IS_TIP))
		return NULL;
	list_for_each(x, &p->pin.all, link)
		if (x->pub.desc == desc)
			return &x->pub;
	return NULL;
}
