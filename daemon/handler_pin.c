/* SPDX-License-Identifier: Apache-2.0 */
/* Operators' pins: prefixes that stay, whoever else wants their room. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/find_id.h"
#include "daemon/find_ns.h"
#include "daemon/finder.h"
#include "daemon/log.h"
#include "proto/check.h"

/* An item has at most some 700 bytes, with a model name of the longest kind. */
#define PINS_PAGE 64u

static_assert(PINS_PAGE * 900 < FRAME_MAX, "a page of a list fits a packet");
static_assert(PROTO_TEXT_MAX <= POOL_PIN_LABEL, "every label fits a pin");

/* What a request turned out to mean. */
struct pin_object {
	uint32_t desc;
	uint64_t gen;
	uint32_t missing; /* blocks of the run that are not cached */
};

static int pin_check(struct request *rq, const Kvpool__Pin *m)
{
	int by_id = *m->id != '\0', by_keys = m->keys.len != 0;

	if (by_id != by_keys)
		return 1;
	request_fail(rq, ERROR_BAD_FIELD, by_id ? "id" : "keys",
		     "pin: name the prefix, either by the keys of its blocks or by its id");
	return 0;
}

/* The longest cached part of a run of keys. */
static int pin_by_keys(struct request *rq, const Kvpool__Pin *m, struct pin_object *ret)
{
	struct pool *p = rq->domain->pool;
	uint32_t ns, n, present;
	const struct block_key *keys = request_keys(&m->keys, &n);

	if (!find_ns(rq, m->namespace_, &ns))
		return 0;
	present = pool_present(p, ns, keys, n);
	ret->missing = n - present;
	ret->desc = present ? pool_find(p, ns, &keys[present - 1], &ret->gen) : DESC_NONE;
	if (ret->desc != DESC_NONE)
		return 1;
	request_fail(rq, ERROR_NO_OBJECT, "keys",
		     "not even the first of these %u blocks is cached: store the prefix first", n);
	return 0;
}

static int pin_by_id(struct request *rq, const Kvpool__Pin *m, struct pin_object *ret)
{
	uint32_t ns = NS_NONE;

	if (*m->namespace_ && !find_ns(rq, m->namespace_, &ns))
		return 0;
	if (!finder_find(rq, ns, m->id, &ret->desc))
		return 0;
	ret->gen = rq->found->gen;
	ret->missing = 0;
	return 1;
}

static void pin_fail(struct request *rq, int r)
{
	switch (r) {
	case -EDQUOT:
		request_fail(rq, ERROR_LIMIT, NULL,
			     "the budget of pins has no room for one more block: take a pin back "
			     "(kvpoolctl unpin), or raise cache.pin_budget");
		break;
	case -ENOSPC:
		request_fail(rq, ERROR_LIMIT, NULL,
			     "there are %u pins, which is all that there may be: take one back "
			     "(kvpoolctl unpin)",
			     POOL_PINS_MAX);
		break;
	case -ENOENT:
		request_fail(rq, ERROR_NO_OBJECT, NULL, "the prefix is not cached any more");
		break;
	default:
		request_fail(rq, ERROR_INTERNAL, NULL, "no memory for a pin: try later");
		break;
	}
}

static void pin_log(const struct request *rq, const struct pool_pinned *done, const char *id)
{
	log_line(LOG_NOTICE, "pinned", LOG_NUMBER("pin", done->pin.number),
		 LOG_TEXT("label", *done->pin.label ? done->pin.label : NULL),
		 LOG_NUMBER("client_uid", rq->session->peer.uid), LOG_TEXT("id", id),
		 LOG_NUMBER("blocks", done->pin.blocks), LOG_NUMBER("bytes", done->added_bytes));
}

static void pin_reply(struct request *rq, const struct pool_pinned *done, uint32_t missing)
{
	Kvpool__PinReply reply = KVPOOL__PIN_REPLY__INIT;
	struct pool *p = rq->domain->pool;
	uint32_t tokens = pool_control(p)->ns[done->pin.ns].block_tokens;
	char id[FIND_ID_DIGITS + 1];

	find_id_of(p, done->pin.desc, id);
	reply.pin = done->pin.number;
	reply.id = id;
	reply.tokens = (uint64_t)done->pin.blocks * tokens;
	reply.asked_tokens = ((uint64_t)done->wanted + missing) * tokens;
	reply.bytes = done->added_bytes;
	pool_pin_usage(p, &reply.budget_bytes, &reply.used_bytes);
	if (done->pin.blocks < done->wanted)
		reply.why = (char *)"budget";
	else if (missing)
		reply.why = (char *)"not cached";
	pin_log(rq, done, id);
	request_reply(rq, &reply.base);
}

void handler_pin(struct request *rq)
{
	const Kvpool__Pin *m = rq->msg;
	const struct pool_pin_wish wish = {
		.ttl_ns = m->ttl_s * NSEC_PER_SEC,
		.priority = m->priority ?: PROTO_PRIORITY_DEFAULT,
		.label = m->label,
	};
	struct pin_object o;
	struct pool_pinned done;
	int r;

	if (!pin_check(rq, m))
		return;
	if (!(*m->id ? pin_by_id(rq, m, &o) : pin_by_keys(rq, m, &o)))
		return;
	r = pool_pin(rq->domain->pool, o.desc, o.gen, &wish, rq->now, &done);
	if (r < 0) {
		pin_fail(rq, r);
		return;
	}
	rq->domain->changed = 1; /* its time is to be watched */
	pin_reply(rq, &done, o.missing);
}

static int unpin_fits(const Kvpool__Unpin *m, const struct pool_pin *pin)
{
	if (m->pin)
		return pin->number == m->pin;
	return m->all || !strcmp(pin->label, m->label);
}

static void unpin_fail(struct request *rq, const Kvpool__Unpin *m)
{
	if (m->pin)
		request_fail(rq, ERROR_NO_OBJECT, "pin",
			     "no pin has the number %llu: see kvpoolctl pins",
			     (unsigned long long)m->pin);
	else
		request_fail(rq, ERROR_NO_OBJECT, "label",
			     "no pin has the label \"%s\": see kvpoolctl pins", m->label);
}

void handler_unpin(struct request *rq)
{
	const Kvpool__Unpin *m = rq->msg;
	Kvpool__UnpinReply reply = KVPOOL__UNPIN_REPLY__INIT;
	struct pool *p = rq->domain->pool;
	const struct pool_pin *next;
	struct pool_pin pin = { 0 };
	uint64_t bytes;

	if ((m->pin != 0) + (*m->label != '\0') + (m->all != 0) != 1) {
		request_fail(rq, ERROR_BAD_FIELD, "pin",
			     "unpin: name pins in one way: by number, by label, or all");
		return;
	}
	while ((next = pool_pin_next(p, pin.number)) != NULL) {
		pin = *next;
		if (!unpin_fits(m, &pin) || pool_unpin(p, pin.number, &bytes) < 0)
			continue;
		reply.pins++;
		reply.bytes += bytes;
		log_line(LOG_NOTICE, "unpinned", LOG_NUMBER("pin", pin.number),
			 LOG_TEXT("label", *pin.label ? pin.label : NULL),
			 LOG_NUMBER("client_uid", rq->session->peer.uid),
			 LOG_NUMBER("bytes", bytes));
	}
	if (!reply.pins && !m->all) {
		unpin_fail(rq, m);
		return;
	}
	rq->domain->changed = 1;
	request_reply(rq, &reply.base);
}

/* An item of the list, and the texts that are made for it. */
struct pin_row {
	Kvpool__PinItem item;
	char id[FIND_ID_DIGITS + 1], label[POOL_PIN_LABEL + 1];
};

static void pin_row(struct request *rq, const struct pool_pin *pin, struct pin_row *row)
{
	const struct pool *p = rq->domain->pool;
	const struct ns_entry *ns = &pool_control(p)->ns[pin->ns];
	const char *model = pool_ns_model(p, pin->ns);

	kvpool__pin_item__init(&row->item);
	find_id_of(p, pin->desc, row->id);
	row->item.pin = pin->number;
	row->item.id = row->id;
	row->item.ns = pin->ns;
	if (model)
		row->item.namespace_ = (char *)model;
	row->item.tokens = (uint64_t)pin->blocks * ns->block_tokens;
	row->item.bytes = pin->blocks * ns->stride;
	if (pin->until != UINT64_MAX)
		row->item.left_ns = pin->until > rq->now ? pin->until - rq->now : 1;
	strcpy(row->label, pin->label);
	row->item.label = row->label;
	row->item.priority = pin->priority;
	row->item.age_ns = rq->now - pin->since;
}

/* The cursor is the number of the last pin that was listed. */
void handler_pins(struct request *rq)
{
	const Kvpool__Pins *m = rq->msg;
	Kvpool__PinsReply reply = KVPOOL__PINS_REPLY__INIT;
	struct pin_row rows[PINS_PAGE];
	Kvpool__PinItem *items[PINS_PAGE];
	const struct pool_pin *pin;
	uint64_t after = m->after;

	while ((pin = pool_pin_next(rq->domain->pool, after)) != NULL) {
		if (reply.n_items == PINS_PAGE) {
			reply.next = after;
			break;
		}
		pin_row(rq, pin, &rows[reply.n_items]);
		items[reply.n_items] = &rows[reply.n_items].item;
		reply.n_items++;
		after = pin->number;
	}
	reply.items = items;
	pool_pin_usage(rq->domain->pool, &reply.budget_bytes, &reply.used_bytes);
	request_reply(rq, &reply.base);
}
