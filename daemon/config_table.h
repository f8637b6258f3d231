/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every key of the configuration, once: what parses, what is accepted, what the page and the
 * example say, all comes from this table.
 */
#ifndef KVP_DAEMON_CONFIG_TABLE_H
#define KVP_DAEMON_CONFIG_TABLE_H

#include "daemon/config.h"

enum config_type {
	CONFIG_IS_SIZE,     /* uint64_t: bytes, or a percentage of the memory */
	CONFIG_IS_SHARE,    /* struct config_share */
	CONFIG_IS_DURATION, /* uint64_t, ns */
	CONFIG_IS_COUNT,    /* uint32_t */
	CONFIG_IS_CHOICE,   /* an enum: the place in the list */
	CONFIG_IS_LEVEL,    /* int: a level of syslog */
	CONFIG_IS_NUMA,     /* struct config_numa */
};

struct config_key {
	const char *section, *name;
	enum config_type type;
	int reload;            /* a change takes effect at once; 0: with the next start */
	size_t offset;         /* in struct config; of a rule: in struct config_rule */
	const char *value;     /* the default, as a file would say it; NULL: another key decides */
	const char *min, *max; /* as a file would say them; NULL: the type's own */
	const char *none;      /* the word for 0 */
	const char *const *choices; /* ending with NULL */
	const char *help;           /* one line */
	const char *more;           /* paragraphs for the page, in the form of scdoc(5) */
};

extern const struct config_key config_keys[];
extern const size_t config_n_keys;

/* The name of the sections whose keys go into rules. */
#define CONFIG_RULES "namespace"

int config_key_is_rule(const struct config_key *k);

/* NULL: there is no such key. */
const struct config_key *config_key_find(const char *section, const char *name);

/* Whether there is such a section, and the name that is nearest to another one, or NULL. */
int config_section_exists(const char *section);
const char *config_section_near(const char *section);
const char *config_key_near(const char *section, const char *name);

/* "size", "duration", "count" or "choice". */
const char *config_type_name(enum config_type t);

/* What may be given, in words: "auto, or a size such as 16G or 80% of memory". */
#define CONFIG_ACCEPTS_BYTES 256u
void config_key_accepts(const struct config_key *k, char out[CONFIG_ACCEPTS_BYTES]);

/*
 * Makes the value of a text. field: where it goes in a struct config or config_rule (base +
 * k->offset). memory: what a percentage is taken of, and what a pool's default size depends on.
 * Returns 0, or -EINVAL and why, which goes on after the text: "is too small: give a number from 1
 * to 4096".
 */
#define CONFIG_WHY_BYTES 512u
int config_key_parse(const struct config_key *k, const char *text, uint64_t memory, void *base,
		     char why[CONFIG_WHY_BYTES]);

/* Whether two texts, both sound, are the same value: 1h and 60m are. */
int config_key_same(const struct config_key *k, const char *a, const char *b, uint64_t memory);

/* Room for a struct config or a struct config_rule. */
union config_scratch {
	struct config config;
	struct config_rule rule;
};

#endif
