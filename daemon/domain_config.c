/* SPDX-License-Identifier: Apache-2.0 */
/* What a change of the configuration does to a pool that is in use. */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "daemon/domain.h"
#include "daemon/log.h"

static double gib(uint64_t bytes)
{
	return (double)bytes / (double)GIB(1);
}

/* Why pool_resize refused, for whoever asked. */
static void domain_refuse_size(const struct domain *d, uint64_t bytes, int r,
			       char text[DOMAIN_WHY_BYTES])
{
	uint32_t ns;
	uint64_t least = pool_least_bytes(d->pool, &ns);
	const char *model = pool_ns_model(d->pool, ns);

	if (r == -EFBIG)
		snprintf(text, DOMAIN_WHY_BYTES,
			 "%.2f GiB is more than the %.2f GiB that this pool can have while the daemon "
			 "runs: for more set pool_size and restart it", gib(bytes),
			 gib(pool_most_bytes(d->pool)));
	else if (r == -ERANGE)
		snprintf(text, DOMAIN_WHY_BYTES,
			 "%llu bytes are less than the %llu that %s%.80s needs at least",
			 (unsigned long long)bytes, (unsigned long long)least,
			 model ? "namespace " : "the pool", model ?: "");
	else
		snprintf(text, DOMAIN_WHY_BYTES, "no memory to plan it: try later");
}

/* What keeps the new size from being used in full, or nothing. */
static void domain_note_size(const struct domain *d, uint64_t bytes, char text[DOMAIN_WHY_BYTES])
{
	uint32_t max_blocks = pool_control(d->pool)->max_blocks;
	uint64_t blocks = pool_blocks_in(d->pool, bytes);

	*text = '\0';
	if (blocks > max_blocks)
		snprintf(text, DOMAIN_WHY_BYTES,
			 "max_blocks is %u, and %llu blocks of the smallest namespace would fit: for "
			 "all of them set max_blocks and restart the daemon", max_blocks,
			 (unsigned long long)blocks);
}

int domain_resize(struct domain *d, uint64_t bytes, int dry_run, struct pool_resized *ret,
		  char text[DOMAIN_WHY_BYTES])
{
	int r = pool_resize(d->pool, bytes, dry_run, clock_ns(), ret);

	if (r < 0) {
		domain_refuse_size(d, bytes, r, text);
		return r;
	}
	domain_note_size(d, ret->now_bytes, text);
	if (dry_run)
		return 0;
	log_line(LOG_NOTICE, "pool resized", LOG_NUMBER("was_bytes", ret->was_bytes),
		 LOG_NUMBER("pool_bytes", ret->now_bytes),
		 LOG_NUMBER("handed_bytes", ret->handed_bytes),
		 LOG_NUMBER("stuck_bytes", ret->stuck_bytes), LOG_TEXT("note", *text ? text : NULL));
	domain_apply_shares(d);
	d->changed = 1;
	return 0;
}

int domain_check_config(struct domain *d, const struct config *now,
			char why[DOMAIN_WHY_BYTES])
{
	static const char key[] = "host.pool_size: ";
	uint64_t bytes = now->host.pool_bytes;
	char text[DOMAIN_WHY_BYTES];
	int r = bytes == d->config->host.pool_bytes ? 0 : pool_resize_check(d->pool, bytes);

	if (r == 0)
		return 0;
	domain_refuse_size(d, bytes, r, text);
	snprintf(why, DOMAIN_WHY_BYTES, "%s%.*s", key, (int)(DOMAIN_WHY_BYTES - sizeof(key)), text);
	return -EINVAL;
}

void domain_apply_ns(struct domain *d, uint32_t ns)
{
	const char *model = pool_ns_model(d->pool, ns);
	struct config_namespace policy;

	if (!model)
		return;
	policy = config_namespace(d->config, model);
	pool_ns_set_policy(d->pool, ns, policy.ttl_ns, policy.priority);
}

void domain_apply_shares(struct domain *d)
{
	const struct config *c = d->config;
	uint64_t bytes = pool_limit_bytes(d->pool);

	pool_set_pin_budget(d->pool, config_share_bytes(&c->cache.pin_budget, bytes));
	pool_set_owner_limits(d->pool, config_share_bytes(&c->limits.client_reserved, bytes),
			      config_share_bytes(&c->limits.client_unnamed, bytes));
}

void domain_apply_config(struct domain *d, const struct config *now)
{
	int resize = now->host.pool_bytes != d->config->host.pool_bytes;
	struct pool_resized r;
	char text[DOMAIN_WHY_BYTES];

	d->config = now;
	if (resize && domain_resize(d, now->host.pool_bytes, 0, &r, text) < 0)
		log_line(LOG_ERR, "the pool keeps its size", LOG_TEXT("reason", text));
	domain_apply_shares(d);
	for (uint32_t ns = 0; ns < pool_control(d->pool)->max_namespaces; ns++)
		domain_apply_ns(d, ns);
	pool_set_timeouts(d->pool, now->cache.reservation_ns, now->cache.quarantine_ns);
	d->changed = 1; /* the pool gets its time: times may be over by now */
}
