/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What somebody set, key by key, in the order in which it was said: as text, with the place where
 * it was said. A later one of the same key counts. Only sound values get in.
 */
#ifndef KVP_DAEMON_SETTINGS_H
#define KVP_DAEMON_SETTINGS_H

#include "daemon/config_table.h"
#include "proto/nsdesc.h"

struct setting {
	const struct config_key *key;
	char *glob; /* of a rule; else NULL */
	char *value;
	char *origin; /* "/etc/kvpool/kvpool.conf:12", "command line", "config set", "default" */
};

struct settings {
	struct setting *v;
	size_t n;
};

#define SETTINGS_INIT                                                                              \
	{                                                                                          \
		NULL, 0                                                                            \
	}

/*
 * Keys of rules that one layer may have. Each is compared with all others when the configuration is
 * read, which the clients of a daemon wait for: some 5 ms.
 */
#define SETTINGS_RULES_MAX 1024u

/* How many keys of rules there are. */
size_t settings_rules(const struct settings *s);

/* Copies the texts. Returns 0 or -ENOMEM. */
int settings_add(struct settings *s, const struct config_key *key, const char *glob,
		 const char *value, const char *origin);
int settings_add_all(struct settings *s, const struct settings *from);

/* The one that counts of those from number `from` on, or NULL. glob: NULL for a key of no rule. */
const struct setting *settings_find(const struct settings *s, size_t from,
				    const struct config_key *key, const char *glob);

void settings_remove(struct settings *s, const struct config_key *key, const char *glob);

/* Twice is harmless. */
void settings_clear(struct settings *s);

/*
 * A key as people write it: "host.pool_size", or "namespace.GLOB.ttl", where the first and the last
 * dot divide it. glob gets "" for a key of no rule. -ENOENT and why when there is no such key:
 * "is no key of section host: did you mean "pool_size"?".
 */
#define SETTING_GLOB_BYTES (NSDESC_TEXT_MAX + 1)
#define SETTING_NAME_BYTES (SETTING_GLOB_BYTES + 64u)
int setting_parse_name(const char *name, const struct config_key **ret,
		       char glob[SETTING_GLOB_BYTES], char why[CONFIG_WHY_BYTES]);

/* The other way. */
void setting_name(const struct config_key *key, const char *glob, char out[SETTING_NAME_BYTES]);

/* What is wrong with the name of models in a rule, or NULL. */
const char *setting_glob_wrong(const char *glob, size_t n);

/* The same for sections and keys apart; -ENOENT and why. */
int setting_find_key(const char *section, const char *name, const struct config_key **ret,
		     char why[CONFIG_WHY_BYTES]);

/* Whether the value of a key is sound: 0, or -EINVAL and why. */
int setting_check(const struct config_key *key, const char *value, uint64_t memory,
		  char why[CONFIG_WHY_BYTES]);

/* The configuration that they make, over the defaults. NULL: no memory. */
struct config *settings_config(const struct settings *s, uint64_t memory);

#endif
