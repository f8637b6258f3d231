/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "daemon/insight.h"
#include "shm/word.h"

const struct prefix *insight_prefix(const struct domain *d, uint32_t desc)
{
	const struct control *c = pool_control(d->pool);

	return prefixes_find(&d->prefixes, desc, word_gen(load_relaxed(&c->desc[desc].word)));
}

static int is_shared(void *domain, uint32_t desc)
{
	return prefixes_readers(insight_prefix(domain, desc)) > 1;
}

void insight_fanout(const struct domain *d, uint32_t ns, uint32_t desc, struct explain_fanout *ret)
{
	explain_fanout(d->pool, ns, desc, is_shared, (void *)d, ret);
}

const char *insight_client(struct domain *d, uint64_t session)
{
	const struct session *s = domain_find(d, session);

	return s ? s->name : "";
}

uint32_t insight_ns_mark(const struct domain *d, uint32_t ns)
{
	const uint8_t *seed = pool_ns_seed(d->pool, ns);
	uint32_t mark = 0;

	if (seed)
		memcpy(&mark, seed, sizeof(mark));
	return mark;
}

const char *insight_model(const struct domain *d, uint32_t ns)
{
	return pool_ns_model(d->pool, ns) ?: "";
}
