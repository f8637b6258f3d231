/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "base/parse.h"
#include "daemon/configurator.h"
#include "daemon/request.h"

/* As a setting, so that the configuration goes on to say what the size is, and why. */
static int resize_set(struct domain *d, uint64_t bytes, char text[DOMAIN_WHY_BYTES])
{
	const struct config_key *k = config_key_find("host", "pool_size");
	char value[PARSE_SIZE_BYTES], why[CONFIGURATOR_WHY_BYTES] = "";
	int r;

	parse_format_size(bytes, value);
	r = configurator_set(d->cfg.configurator, k, NULL, value, why);
	if (r < 0)
		snprintf(text, DOMAIN_WHY_BYTES, "%.200s",
			 *why ? why : "there is no memory for it: try later");
	return r;
}

void handler_resize(struct request *rq)
{
	const Kvpool__Resize *m = rq->msg;
	Kvpool__ResizeReply reply = KVPOOL__RESIZE_REPLY__INIT;
	struct pool_resized r;
	char text[DOMAIN_WHY_BYTES];
	uint64_t budget;
	int e = domain_resize(rq->domain, m->bytes, 1, &r, text);

	pool_pin_usage(rq->domain->pool, &budget, &reply.pinned_bytes);
	if (e == 0 && !m->dry_run)
		e = resize_set(rq->domain, m->bytes, text);
	if (e < 0) {
		request_fail(rq, e == -ENOMEM ? ERROR_INTERNAL : ERROR_LIMIT, "bytes", "%s", text);
		return;
	}
	reply.was_bytes = r.was_bytes;
	reply.now_bytes = r.now_bytes;
	reply.handed_bytes = r.handed_bytes;
	reply.evict_blocks = r.evict_blocks;
	reply.stuck_bytes = r.stuck_bytes;
	reply.note = text;
	reply.pin_budget_bytes =
		config_share_bytes(&rq->domain->config->cache.pin_budget, r.now_bytes);
	request_reply(rq, &reply.base);
}
