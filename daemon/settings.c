/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "daemon/settings.h"
#include "proto/text.h"

static int same_glob(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static void setting_clear(struct setting *e)
{
	free(e->glob);
	free(e->value);
	free(e->origin);
}

size_t settings_rules(const struct settings *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += s->v[i].glob != NULL;
	return n;
}

int settings_add(struct settings *s, const struct config_key *key, const char *glob,
		 const char *value, const char *origin)
{
	struct setting e = {
		.key = key,
		.glob = glob ? strdup(glob) : NULL,
		.value = strdup(value),
		.origin = strdup(origin),
	};
	struct setting *v = reallocarray(s->v, s->n + 1, sizeof(*v));

	if (v)
		s->v = v;
	if (!v || !e.value || !e.origin || (glob && !e.glob)) {
		setting_clear(&e);
		return -ENOMEM;
	}
	s->v[s->n++] = e;
	return 0;
}

int settings_add_all(struct settings *s, const struct settings *from)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < from->n; i++)
		r = settings_add(s, from->v[i].key, from->v[i].glob, from->v[i].value,
				 from->v[i].origin);
	return r;
}

const struct setting *settings_find(const struct settings *s, size_t from,
				    const struct config_key *key, const char *glob)
{
	for (size_t i = s->n; i-- > from;)
		if (s->v[i].key == key && same_glob(s->v[i].glob, glob))
			return &s->v[i];
	return NULL;
}

void settings_remove(struct settings *s, const struct config_key *key, const char *glob)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i].key == key && same_glob(s->v[i].glob, glob))
			setting_clear(&s->v[i]);
		else
			s->v[kept++] = s->v[i];
	}
	s->n = kept;
}

void settings_clear(struct settings *s)
{
	for (size_t i = 0; i < s->n; i++)
		setting_clear(&s->v[i]);
	free(s->v);
	*s = (struct settings)SETTINGS_INIT;
}

int setting_find_key(const char *section, const char *name, const struct config_key **ret,
		     char why[CONFIG_WHY_BYTES])
{
	const struct config_key *k = config_key_find(section, name);
	const char *near;

	if (k) {
		*ret = k;
		return 0;
	}
	if (!config_section_exists(section)) {
		near = config_section_near(section);
		snprintf(why, CONFIG_WHY_BYTES, "there is no section %.64s%s%s%s", section,
			 near ? ": did you mean \"" : "", near ?: "", near ? "\"?" : "");
		return -ENOENT;
	}
	near = config_key_near(section, name);
	snprintf(why, CONFIG_WHY_BYTES, "is no key of section %s%s%s%s", section,
		 near ? ": did you mean \"" : " (kvpool.conf(5) lists them)", near ?: "",
		 near ? "\"?" : "");
	return -ENOENT;
}

const char *setting_glob_wrong(const char *glob, size_t n)
{
	if (!n)
		return "says no model: write [namespace NAME], or [namespace *] for all";
	if (n > NSDESC_TEXT_MAX)
		return "has a name that is longer than one of a model may be";
	return text_check(glob, n) < 0 ? "has a name that is not UTF-8 without control characters"
				       : NULL;
}

/* What is between the two dots of the name of a rule's key. */
static int parse_glob(const char *name, const char *first, const char *last,
		      char glob[SETTING_GLOB_BYTES], char why[CONFIG_WHY_BYTES])
{
	size_t n = first < last ? (size_t)(last - first - 1) : 0;
	const char *wrong = setting_glob_wrong(first + 1, n);

	if (wrong) {
		snprintf(why, CONFIG_WHY_BYTES, "is no key: write namespace.MODEL.ttl, say");
		return -ENOENT;
	}
	memcpy(glob, first + 1, n);
	glob[n] = '\0';
	return 0;
}

int setting_parse_name(const char *name, const struct config_key **ret,
		       char glob[SETTING_GLOB_BYTES], char why[CONFIG_WHY_BYTES])
{
	const char *first = strchr(name, '.'), *last = strrchr(name, '.');
	char section[64];
	int rule, r;

	if (!first || (size_t)(first - name) >= sizeof(section)) {
		snprintf(why, CONFIG_WHY_BYTES, "is no key: write SECTION.KEY, host.pool_size say");
		return -ENOENT;
	}
	memcpy(section, name, (size_t)(first - name));
	section[first - name] = '\0';
	rule = !strcmp(section, CONFIG_RULES);
	glob[0] = '\0';
	r = rule ? parse_glob(name, first, last, glob, why) : 0;
	return r < 0 ? r : setting_find_key(section, rule ? last + 1 : first + 1, ret, why);
}

void setting_name(const struct config_key *key, const char *glob, char out[SETTING_NAME_BYTES])
{
	if (glob)
		snprintf(out, SETTING_NAME_BYTES, "%s.%s.%s", key->section, glob, key->name);
	else
		snprintf(out, SETTING_NAME_BYTES, "%s.%s", key->section, key->name);
}

int setting_check(const struct config_key *key, const char *value, uint64_t memory,
		  char why[CONFIG_WHY_BYTES])
{
	union config_scratch scratch;

	return config_key_parse(key, value, memory, &scratch, why);
}

static int config_add_rule(struct config *c, const struct setting *e, uint64_t memory)
{
	struct config_rule rule = { .glob = strdup(e->glob) };
	char why[CONFIG_WHY_BYTES];

	if (!rule.glob)
		return -ENOMEM;
	(void)config_key_parse(e->key, e->value, memory, &rule, why);
	rule.has_ttl = e->key->offset == offsetof(struct config_rule, ttl_ns);
	c->rules[c->n_rules++] = rule;
	return 0;
}

struct config *settings_config(const struct settings *s, uint64_t memory)
{
	struct config *c = config_new(memory);
	char why[CONFIG_WHY_BYTES];
	int r = c ? 0 : -ENOMEM;

	if (c && s->n) {
		c->rules = calloc(s->n, sizeof(*c->rules));
		r = c->rules ? 0 : -ENOMEM;
	}
	/* They were looked at when they were added, so parsing can't fail. */
	for (size_t i = 0; r == 0 && i < s->n; i++) {
		const struct setting *e = &s->v[i];

		if (e->glob)
			r = config_add_rule(c, e, memory);
		else
			(void)config_key_parse(e->key, e->value, memory, c, why);
	}
	return r < 0 ? config_free(c) : c;
}
