/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "daemon/domain.h"
#include "daemon/gate.h"
#include "daemon/log.h"
#include "daemon/memory.h"
#include "daemon/touches.h"
#include "daemon/verify.h"
#include "daemon/wait.h"
#include "proto/kvpool.pb-c.h"

/* By default one block for so many bytes of pool, and no fewer than that many. */
#define DOMAIN_BLOCK_BYTES KIB(64)
#define DOMAIN_BLOCKS_MIN  (1u << 20)

/* How often touch rings are drained, when somebody did something lately and when nobody did. */
#define DOMAIN_TOUCH_NS      (100 * NSEC_PER_MSEC)
#define DOMAIN_TOUCH_IDLE_NS NSEC_PER_SEC
#define DOMAIN_IDLE_NS       (5 * NSEC_PER_SEC)

/* After blocks changed, the pool gets its time within that: changes in a row share one call. */
#define DOMAIN_TICK_USEC 1000u
/* After a change of blocks the loop stays awake for this long. */
#define DOMAIN_LINGER_NS (100 * NSEC_PER_USEC)

static void domain_scan_pins(void *ctx, struct pinset *pins)
{
	struct domain *d = ctx;
	struct session *s;

	/* Those that drain as well: their readers may still read. */
	list_for_each(s, &d->sessions, link) if (s->region)
		pinset_scan(pins, s->region->map.hazard, s->region->map.hazard_count);
}

static void domain_populate(void *ctx, uint64_t offset, uint64_t bytes)
{
	struct domain *d = ctx;

	backing_populate(d->backing, offset, bytes);
}

static void domain_punch(void *ctx, uint64_t offset, uint64_t bytes)
{
	struct domain *d = ctx;

	backing_punch(d->backing, offset, bytes);
}

static void domain_drop(void *ctx, uint64_t offset, uint64_t bytes)
{
	struct domain *d = ctx;

	backing_drop(d->backing, offset, bytes);
}

static void domain_wake(void *ctx, struct pool_waiter *w, uint32_t present)
{
	wait_wake(w, present);
}

static void domain_pin_ended(void *ctx, const struct pool_pin *pin, enum pool_pin_end why)
{
	static const char *const reasons[] = {
		[PIN_END_TTL] = "its time is over",
		[PIN_END_BUDGET] = "the budget got smaller",
		[PIN_END_FLUSHED] = "its blocks were dropped",
	};
	struct domain *d = ctx;
	char id[LOG_HEX_BYTES];

	log_line(LOG_NOTICE, "pin ended", LOG_NUMBER("pin", pin->number),
		 LOG_TEXT("label", *pin->label ? pin->label : NULL),
		 LOG_TEXT("id", log_hex(&pin->key, sizeof(pin->key), id)),
		 LOG_TEXT("namespace", pool_ns_model(d->pool, pin->ns)),
		 LOG_NUMBER("blocks", pin->blocks),
		 LOG_NUMBER("priority", pin->priority), LOG_TEXT("reason", reasons[why]));
}

static const struct pool_ops domain_pool_ops = {
	.scan_pins = domain_scan_pins,
	.populate = domain_populate,
	.punch = domain_punch,
	.drop = domain_drop,
	.wake = domain_wake,
	.pin_ended = domain_pin_ended,
};

static void domain_on_punched(void *ctx, uint64_t offset, uint64_t bytes)
{
	struct domain *d = ctx;

	pool_punched(d->pool, offset, bytes);
	d->changed = 1;
}

/* Calls the pool at when (absolute), UINT64_MAX: not at all. */
static void domain_tick_at(struct domain *d, uint64_t when)
{
	d->tick_at = when;
	if (when == UINT64_MAX) {
		(void)sd_event_source_set_enabled(d->tick, SD_EVENT_OFF);
		return;
	}
	(void)sd_event_source_set_time(d->tick, when / NSEC_PER_USEC);
	(void)sd_event_source_set_enabled(d->tick, SD_EVENT_ONESHOT);
}

/* Blocks changed: soon, but not later than it was to be anyway, however often they change. */
static void domain_tick_soon(struct domain *d)
{
	uint64_t when = clock_ns() + DOMAIN_TICK_USEC * NSEC_PER_USEC;

	if (when < d->tick_at)
		domain_tick_at(d, when);
}

static int domain_on_tick(sd_event_source *source, uint64_t usec, void *ctx)
{
	struct domain *d = ctx;
	uint64_t now = clock_ns();

	/* The pool would go on with a flush whose blocks nobody then counts. */
	if (d->flushing) {
		domain_tick_at(d, now + DOMAIN_TICK_USEC * NSEC_PER_USEC);
		return 0;
	}
	domain_tick_at(d, pool_tick(d->pool, now));
	pool_wake(d->pool);
	return 0;
}

/*
 * While a client copies, make the room that it will ask for next; requests go first. And for as
 * long as such a copy takes, look for its next request instead of sleeping: a processor that was
 * put to sleep takes longer to wake up than to serve it.
 */
static int domain_on_idle(sd_event_source *source, void *ctx)
{
	struct domain *d = ctx;
	uint64_t now = clock_ns();

	if ((!d->flushing && pool_refill(d->pool, now)) || now - d->changed_at < DOMAIN_LINGER_NS)
		(void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	return 0;
}

/*
 * The end of each round of the loop. Ending a session changes blocks; waking a waiter may find its
 * client gone: so both go on until there is nothing to do, which each session can cause only once.
 */
static int domain_on_round(sd_event_source *source, void *ctx)
{
	struct domain *d = ctx;

	while (d->changed || !list_empty(&d->doomed)) {
		if (d->changed) {
			d->changed = 0;
			pool_wake(d->pool);
			domain_tick_soon(d);
			d->changed_at = clock_ns();
			(void)sd_event_source_set_enabled(d->idle, SD_EVENT_ONESHOT);
		}
		if (!list_empty(&d->doomed))
			session_end(list_first(&d->doomed, struct session, doomed), clock_ns());
	}
	return 0;
}

void domain_drain_touches(struct domain *d, uint64_t now)
{
	struct session *s;

	list_for_each(s, &d->sessions, link) if (s->state == SESSION_READY) touches_drain(s, now);
}

static void domain_touch_in(struct domain *d, uint64_t ns)
{
	(void)sd_event_source_set_time_relative(d->touch, ns / NSEC_PER_USEC);
	(void)sd_event_source_set_enabled(d->touch, SD_EVENT_ONESHOT);
}

static int domain_on_touch(sd_event_source *source, uint64_t usec, void *ctx)
{
	struct domain *d = ctx;
	uint64_t now = clock_ns(), active = 0;
	struct session *s;

	domain_drain_touches(d, now);
	requests_tidy(&d->requests, now);
	list_for_each(s, &d->sessions, link)
	{
		session_check_time(s, now);
		active = MAX(active, s->active);
	}
	if (!list_empty(&d->sessions))
		domain_touch_in(d, now - active < DOMAIN_IDLE_NS ? DOMAIN_TOUCH_NS
								 : DOMAIN_TOUCH_IDLE_NS);
	return 0;
}

static int domain_add_sources(struct domain *d)
{
	int r = sd_event_add_post(d->event, &d->post, domain_on_round, d);

	if (r >= 0)
		r = sd_event_add_time(d->event, &d->tick, CLOCK_BOOTTIME, 0, DOMAIN_TICK_USEC,
				      domain_on_tick, d);
	if (r >= 0)
		r = sd_event_add_time(d->event, &d->touch, CLOCK_BOOTTIME, 0, DOMAIN_TICK_USEC,
				      domain_on_touch, d);
	if (r >= 0)
		r = sd_event_add_defer(d->event, &d->idle, domain_on_idle, d);
	if (r >= 0)
		r = sd_event_source_set_priority(d->idle, SD_EVENT_PRIORITY_IDLE);
	if (r >= 0)
		r = sd_event_source_set_enabled(d->idle, SD_EVENT_OFF);
	return r;
}

static int domain_make_memory(struct domain *d)
{
	const struct config *c = d->config;
	const struct hostmem_config cfg = {
		.pool_bytes = c->host.pool_bytes,
		.machine_bytes = memory_machine(""),
		.huge_pages = c->host.huge_pages,
		.numa = c->host.numa,
	};
	uint64_t available = memory_available("");

	if (available && cfg.pool_bytes > available)
		log_line(LOG_WARNING,
			 "the pool may grow beyond the memory that this service may have: lower "
			 "host.pool_size, or raise the limit of its control group",
			 LOG_NUMBER("pool_bytes", cfg.pool_bytes),
			 LOG_NUMBER("limit_bytes", available));
	return hostmem_new(&cfg, &d->hostmem);
}

static int domain_make_pool(struct domain *d)
{
	const struct config *c = d->config;
	const struct hostmem *m = d->hostmem;
	uint64_t bytes = m->pool_bytes;
	uint64_t blocks = MIN(MAX(bytes / DOMAIN_BLOCK_BYTES, DOMAIN_BLOCKS_MIN), POOL_BLOCKS_MAX);
	const struct pool_config cfg = {
		.pool_bytes = bytes,
		.max_bytes = m->max_bytes,
		.memory_fd = m->fd,
		.fixed = m->pages == HOSTMEM_HUGETLB,
		.max_blocks = c->host.max_blocks ?: (uint32_t)blocks,
		.max_namespaces = c->limits.max_namespaces,
		.granule_shift = m->granule_shift,
		.reservation_ns = c->cache.reservation_ns,
		.quarantine_ns = c->cache.quarantine_ns,
		.owner_reserved_bytes = config_share_bytes(&c->limits.client_reserved, bytes),
		.owner_unnamed_bytes = config_share_bytes(&c->limits.client_unnamed, bytes),
	};
	int r = pool_new(&cfg, &domain_pool_ops, d, &d->pool);

	return r < 0 ? r : backing_new(d->worker, m, domain_on_punched, d, &d->backing);
}

static int domain_make(struct domain *d)
{
	uint32_t max_blocks;
	int r = domain_make_memory(d);

	if (r < 0)
		return r;
	r = domain_make_pool(d);
	if (r < 0)
		return r;
	max_blocks = pool_control(d->pool)->max_blocks;
	d->leased.max_blocks = max_blocks;
	d->leased.bits = calloc(((size_t)max_blocks + 63) / 64, sizeof(uint64_t));
	d->arena_memory = malloc(CODEC_ARENA_BYTES);
	if (!d->leased.bits || !d->arena_memory)
		return -ENOMEM;
	domain_apply_shares(d);
	codec_arena_init(&d->arena, d->arena_memory, CODEC_ARENA_BYTES);
	return domain_add_sources(d);
}

int domain_new(sd_event *event, struct worker *worker, const struct domain_config *cfg,
	       struct domain **ret)
{
	struct domain *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->cfg = *cfg;
	d->config = cfg->config;
	d->started = clock_ns();
	d->tick_at = UINT64_MAX;
	d->event = event;
	d->worker = worker;
	list_init(&d->sessions);
	list_init(&d->doomed);
	list_init(&d->verifies);
	prefixes_init(&d->prefixes);
	requests_init(&d->requests);
	r = domain_make(d);
	if (r < 0) {
		domain_free(d);
		return r;
	}
	*ret = d;
	return 0;
}

struct domain *domain_free(struct domain *d)
{
	if (!d)
		return NULL;
	requests_fini(&d->requests); /* before those whose they are */
	while (!list_empty(&d->sessions))
		session_free(list_first(&d->sessions, struct session, link));
	verify_free_all(d);
	sd_event_source_disable_unref(d->post);
	sd_event_source_disable_unref(d->tick);
	sd_event_source_disable_unref(d->idle);
	sd_event_source_disable_unref(d->touch);
	backing_free(d->backing);
	pool_free(d->pool);
	hostmem_free(d->hostmem);
	free(d->leased.bits);
	free(d->arena_memory);
	free(d);
	return NULL;
}

void domain_add(struct domain *d, struct session *s)
{
	s->number = ++d->last_number;
	list_add_tail(&d->sessions, &s->link);
	domain_touch_in(d, DOMAIN_TOUCH_NS);
}

void domain_remove(struct domain *d, struct session *s)
{
	struct usage u;

	list_del(&s->link);
	if (!s->region)
		return;
	touches_settle(s);
	requests_end(&s->requests, clock_ns());
	account_read(&s->account, &s->region->map, &u);
	usage_add(&d->ended_usage, &u);
	d->ended_touches_lost += s->region->touches_lost;
	d->hazards -= s->region->map.hazard_count;
}

void domain_admit(struct domain *d, int sock, struct peer *peer, int admin)
{
	struct session *s;
	char why[GATE_WHY_BYTES];
	enum proto_error code = gate_check(d, peer, admin, why);
	int r;

	d->counts.connects += !admin;
	if (code) {
		d->counts.ended[REASON_REFUSED] += !admin;
		gate_refuse(d, sock, peer, code, why);
		return;
	}
	r = session_new(d, sock, peer, admin, &s);
	if (r < 0) {
		d->counts.ended[REASON_REFUSED] += !admin;
		log_line(LOG_ERR, "cannot serve another client", LOG_ERRNO(r));
	}
}

void domain_stop(struct domain *d)
{
	Kvpool__Stopping stopping = KVPOOL__STOPPING__INIT;
	struct session *s;

	pool_retire(d->pool);
	list_for_each(s, &d->sessions, link)
	{
		if (s->state == SESSION_READY)
			session_send(s, OP_STOPPING, 0, 0, &stopping.base, NULL, 0);
		session_doom(s, REASON_KICKED, "stopping");
	}
	domain_on_round(d->post, d);
}

struct session *domain_find(struct domain *d, uint64_t number)
{
	struct session *s;

	list_for_each(s, &d->sessions, link) if (s->number == number) return s->state ==
			SESSION_DRAINING
		? NULL
		: s;
	return NULL;
}
