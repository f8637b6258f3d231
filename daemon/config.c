/* SPDX-License-Identifier: Apache-2.0 */
#include <fnmatch.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "daemon/config.h"
#include "daemon/config_table.h"
#include "proto/check.h"

uint64_t config_share_bytes(const struct config_share *s, uint64_t pool_bytes)
{
	if (!s->percent)
		return MIN(s->bytes, pool_bytes);
	return pool_bytes / 100 * s->percent + pool_bytes % 100 * s->percent / 100;
}

struct config_namespace config_namespace(const struct config *c, const char *model)
{
	struct config_namespace ns = { c->cache.default_ttl_ns, PROTO_PRIORITY_DEFAULT };

	for (size_t i = 0; i < c->n_rules; i++) {
		const struct config_rule *rule = &c->rules[i];

		if (fnmatch(rule->glob, model, 0))
			continue;
		if (rule->has_ttl)
			ns.ttl_ns = rule->ttl_ns;
		if (rule->priority)
			ns.priority = rule->priority;
	}
	return ns;
}

struct config *config_new(uint64_t memory)
{
	struct config *c = calloc(1, sizeof(*c));
	char why[CONFIG_WHY_BYTES];

	/* Defaults are sound; the size of the pool stays 0 where nobody knows the memory. */
	for (size_t i = 0; c && i < config_n_keys; i++)
		if (!config_key_is_rule(&config_keys[i]))
			(void)config_key_parse(&config_keys[i], config_keys[i].value, memory, c,
					       why);
	return c;
}

struct config *config_free(struct config *c)
{
	if (!c)
		return NULL;
	for (size_t i = 0; i < c->n_rules; i++)
		free((char *)c->rules[i].glob);
	free(c->rules);
	free(c);
	return NULL;
}
