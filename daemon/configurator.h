/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration while the daemon runs: what each layer says, which of it is in force, and every
 * change of it.
 *
 *   defaults < files < command line < config set
 *
 * A change is all or nothing. Keys that take a restart keep what they had at the start, whatever
 * the files say later.
 */
#ifndef KVP_DAEMON_CONFIGURATOR_H
#define KVP_DAEMON_CONFIGURATOR_H

#include <stdio.h>

#include "daemon/config_places.h"

struct configurator;

/*
 * Reads the files. line: what the command line set; its content is the configurator's own then.
 * Returns 0; -EINVAL when something is wrong, and complaints about all of it; -ENOMEM.
 */
int configurator_new(const struct config_places *places, struct settings *line, uint64_t memory,
		     struct complaints *wrong, struct configurator **ret);

/* Accepts NULL, returns NULL. */
struct configurator *configurator_free(struct configurator *c);

/* In force. Until the next change. */
const struct config *configurator_config(const struct configurator *c);

/* How many files there were. */
unsigned int configurator_files(const struct configurator *c);

/* What a percentage of memory is taken of. */
uint64_t configurator_memory(const struct configurator *c);

/*
 * Who is told of changes. check: whether what is new can be had at all; -EINVAL and why if not.
 * apply: it is in force from now on; the old one lives until apply returns.
 */
#define CONFIGURATOR_WHY_BYTES 512u
struct configurator_ops {
	int (*check)(void *ctx, const struct config *now, char why[CONFIGURATOR_WHY_BYTES]);
	void (*apply)(void *ctx, const struct config *was, const struct config *now);
};

void configurator_listen(struct configurator *c, const struct configurator_ops *ops, void *ctx);

/* Names of keys, the first CONFIGURATOR_NAMES_MAX of them. */
#define CONFIGURATOR_NAMES_MAX 32u
struct configurator_names {
	char *v[CONFIGURATOR_NAMES_MAX];
	size_t n;
};

/* changed: took effect. restart: what the next start changes. */
struct configurator_changes {
	struct configurator_names changed, restart;
};

void configurator_changes_clear(struct configurator_changes *c);

/*
 * Reads the files again. Returns 0 and what changed; -EINVAL, with complaints, and nothing changed;
 * -ENOMEM. Tells the log and the service manager.
 */
int configurator_reload(struct configurator *c, struct configurator_changes *ret,
			struct complaints *wrong);

/*
 * Sets a key until the daemon restarts, or takes that back (value NULL). Returns 0, -EINVAL and why
 * (as a sentence that begins with the key), or -ENOMEM.
 */
int configurator_set(struct configurator *c, const struct config_key *key, const char *glob,
		     const char *value, char why[CONFIGURATOR_WHY_BYTES]);

/* What is in force of a key, and where it comes from; NULL for a rule that there is none of. */
const struct setting *configurator_find(const struct configurator *c, const struct config_key *key,
					const char *glob);

/*
 * Keys of kvpool.conf(5) in its order, then the rules. file_value: what the files say now, NULL
 * when that is in force; value is NULL where it is not. The view is of one moment: free it soon.
 */
struct configurator_item {
	const struct config_key *key;
	const char *glob, *value, *origin, *file_value;
};

struct configurator_view;

/* NULL: no memory. A file that is wrong now counts as it was when it was read last. */
struct configurator_view *configurator_view(const struct configurator *c);
struct configurator_view *configurator_view_free(struct configurator_view *v);
/* What is wrong with the files now; empty: nothing. */
const char *configurator_view_wrong(const struct configurator_view *v);
size_t configurator_view_count(const struct configurator_view *v);
struct configurator_item configurator_view_item(const struct configurator_view *v, size_t i);

/* All that is in force, as a file that says where each value comes from. */
void configurator_dump(const struct configurator *c, FILE *out);

#endif
