/* SPDX-License-Identifier: Apache-2.0 */
/* From the text of a value to the value, by the types of config_table.h. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "daemon/config_table.h"
#include "daemon/log.h"
#include "daemon/memory.h"

/* Nodes that a kernel can have (CONFIG_NODES_SHIFT is 10 at most). */
#define CONFIG_NODE_MAX 1023u

static_assert(sizeof(enum log_target) == sizeof(int) &&
		      sizeof(enum config_huge_pages) == sizeof(int),
	      "choices are stored as int");
static_assert(sizeof(struct config_share) == 2 * sizeof(uint64_t) &&
		      sizeof(struct config_numa) == 2 * sizeof(uint32_t),
	      "values are compared byte by byte: no padding");

const char *config_type_name(enum config_type t)
{
	static const char *const names[] = {
		[CONFIG_IS_SIZE] = "size",         [CONFIG_IS_SHARE] = "size",
		[CONFIG_IS_DURATION] = "duration", [CONFIG_IS_COUNT] = "count",
		[CONFIG_IS_CHOICE] = "choice",     [CONFIG_IS_LEVEL] = "choice",
		[CONFIG_IS_NUMA] = "choice",
	};

	return names[t];
}

/* "a, b or c" of a list that ends with NULL. */
static void accepts_choices(const char *const *choices, char *out, size_t n)
{
	size_t used = 0;

	*out = '\0';
	for (size_t i = 0; choices[i] && used < n; i++)
		used += (size_t)snprintf(out + used, n - used, "%s%s",
					 !i               ? ""
					 : choices[i + 1] ? ", "
							  : " or ",
					 choices[i]);
}

void config_key_accepts(const struct config_key *k, char out[CONFIG_ACCEPTS_BYTES])
{
	static const char *const numa[] = { "interleave", "local", "off", "node:N", NULL };
	const char *levels[LOG_LEVELS + 1] = { NULL };
	size_t used = 0;

	if (k->none)
		used = (size_t)snprintf(out, CONFIG_ACCEPTS_BYTES, "%s, or ", k->none);
	out += used;
	used = CONFIG_ACCEPTS_BYTES - used;
	switch (k->type) {
	case CONFIG_IS_SIZE:
		snprintf(out, used, "a size from %s to %s, such as 16G, 16GiB or 80%% of memory",
			 k->min, k->max);
		return;
	case CONFIG_IS_SHARE:
		snprintf(out, used, "a size such as 2G, or a part of the pool from 1%% to 100%%");
		return;
	case CONFIG_IS_DURATION:
		snprintf(out, used, "a time from %s to %s, such as 90s, 5m or 1h30m", k->min,
			 k->max);
		return;
	case CONFIG_IS_COUNT:
		snprintf(out, used, "a number from %s to %s", k->min, k->max);
		return;
	case CONFIG_IS_CHOICE:
		accepts_choices(k->choices, out, used);
		return;
	case CONFIG_IS_LEVEL:
		for (int i = 0; i < LOG_LEVELS; i++)
			levels[i] = log_level_name(LOG_LEVELS - 1 - i);
		accepts_choices(levels, out, used);
		return;
	case CONFIG_IS_NUMA:
		accepts_choices(numa, out, used);
		return;
	}
}

/* Whether it is the word for 0. */
static int is_none(const struct config_key *k, const char *text)
{
	return k->none && !strcmp(text, k->none);
}

/* Bounds are texts of the same type, and sound. */
static int within(uint64_t n, uint64_t min, uint64_t max, const char **why)
{
	if (n >= min && n <= max)
		return 0;
	*why = n < min ? "is too small" : "is too large";
	return -EINVAL;
}

static int parse_size_key(const struct config_key *k, const char *text, uint64_t memory,
			  uint64_t *ret, const char **why)
{
	uint64_t n, min, max;
	const char *ignored;
	int r;

	if (is_none(k, text)) {
		n = memory_pool_default(memory);
		*why = "needs to know how much memory there is, and that cannot be read";
		if (!n)
			return -EINVAL;
		*ret = n;
		return 0;
	}
	r = parse_size(text, memory, &n, why);
	if (r < 0)
		return r;
	(void)parse_size(k->min, 0, &min, &ignored);
	(void)parse_size(k->max, 0, &max, &ignored);
	r = within(n, min, max, why);
	if (r == 0)
		*ret = n;
	return r;
}

static int parse_share(const char *text, struct config_share *ret, const char **why)
{
	struct config_share s = { 0, 0 };
	size_t n = strlen(text);
	int r = 0;

	if (n && text[n - 1] == '%') {
		/* Of 100: the number itself. */
		r = parse_size(text, 100, &s.percent, why);
	} else {
		r = parse_size(text, 0, &s.bytes, why);
	}
	if (r == 0)
		*ret = s;
	return r;
}

static int parse_duration_key(const struct config_key *k, const char *text, uint64_t *ret,
			      const char **why)
{
	uint64_t n, min, max;
	const char *ignored;
	int r = parse_duration(text, &n, why);

	if (r < 0)
		return r;
	(void)parse_duration(k->min, &min, &ignored);
	(void)parse_duration(k->max, &max, &ignored);
	r = within(n, min, max, why);
	if (r == 0)
		*ret = n;
	return r;
}

static int parse_count_key(const struct config_key *k, const char *text, uint32_t *ret,
			   const char **why)
{
	uint64_t n, min, max;
	const char *ignored;
	int r;

	(void)parse_count(k->min, 0, UINT32_MAX, &min, &ignored);
	(void)parse_count(k->max, 0, UINT32_MAX, &max, &ignored);
	r = parse_count(text, min, max, &n, why);
	if (r == 0)
		*ret = (uint32_t)n;
	return r;
}

static int parse_choice(const char *const *choices, const char *text, int *ret, const char **why)
{
	for (int i = 0; choices[i]; i++)
		if (!strcmp(choices[i], text)) {
			*ret = i;
			return 0;
		}
	*why = *text ? "is none of the choices" : "is empty";
	return -EINVAL;
}

static int parse_level(const char *text, int *ret, const char **why)
{
	int level = log_level_parse(text);

	if (level < 0) {
		*why = *text ? "is no level" : "is empty";
		return -EINVAL;
	}
	*ret = level;
	return 0;
}

static int parse_numa(const char *text, struct config_numa *ret, const char **why)
{
	/* In the order of enum config_numa_policy. */
	static const char *const words[] = { "interleave", "local", "off", NULL };
	struct config_numa numa = { CONFIG_NUMA_NODE, 0 };
	uint64_t node = 0;
	int policy, r;

	if (!strncmp(text, "node:", 5)) {
		r = parse_count(text + 5, 0, CONFIG_NODE_MAX, &node, why);
		numa.node = (uint32_t)node;
	} else {
		r = parse_choice(words, text, &policy, why);
		if (r == 0)
			numa.policy = (enum config_numa_policy)policy;
	}
	if (r == 0)
		*ret = numa;
	return r;
}

static size_t field_size(enum config_type t)
{
	static const size_t sizes[] = {
		[CONFIG_IS_SIZE] = sizeof(uint64_t),
		[CONFIG_IS_SHARE] = sizeof(struct config_share),
		[CONFIG_IS_DURATION] = sizeof(uint64_t),
		[CONFIG_IS_COUNT] = sizeof(uint32_t),
		[CONFIG_IS_CHOICE] = sizeof(int),
		[CONFIG_IS_LEVEL] = sizeof(int),
		[CONFIG_IS_NUMA] = sizeof(struct config_numa),
	};

	return sizes[t];
}

static int parse_key(const struct config_key *k, const char *text, uint64_t memory, void *field,
		     const char **why)
{
	/* Instead of no size one is made out of the memory that there is. */
	if (is_none(k, text) && k->type != CONFIG_IS_SIZE) {
		memset(field, 0, field_size(k->type));
		return 0;
	}
	switch (k->type) {
	case CONFIG_IS_SIZE:
		return parse_size_key(k, text, memory, field, why);
	case CONFIG_IS_SHARE:
		return parse_share(text, field, why);
	case CONFIG_IS_DURATION:
		return parse_duration_key(k, text, field, why);
	case CONFIG_IS_COUNT:
		return parse_count_key(k, text, field, why);
	case CONFIG_IS_CHOICE:
		return parse_choice(k->choices, text, field, why);
	case CONFIG_IS_LEVEL:
		return parse_level(text, field, why);
	case CONFIG_IS_NUMA:
		return parse_numa(text, field, why);
	}
	return -EINVAL;
}

int config_key_parse(const struct config_key *k, const char *text, uint64_t memory, void *base,
		     char why[CONFIG_WHY_BYTES])
{
	char accepts[CONFIG_ACCEPTS_BYTES];
	const char *reason = NULL;
	int r = parse_key(k, text, memory, (char *)base + k->offset, &reason);

	if (r == 0)
		return 0;
	config_key_accepts(k, accepts);
	snprintf(why, CONFIG_WHY_BYTES, "%s: give %s", reason, accepts);
	return r;
}

int config_key_same(const struct config_key *k, const char *a, const char *b, uint64_t memory)
{
	union config_scratch left = { 0 }, right = { 0 };
	char why[CONFIG_WHY_BYTES];

	(void)config_key_parse(k, a, memory, &left, why);
	(void)config_key_parse(k, b, memory, &right, why);
	return !memcmp((const char *)&left + k->offset, (const char *)&right + k->offset,
		       field_size(k->type));
}
