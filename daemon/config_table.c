/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/compiler.h"
#include "base/suggest.h"
#include "daemon/config_table.h"

#define AT(field)      offsetof(struct config, field)
#define AT_RULE(field) offsetof(struct config_rule, field)

enum { NEXT_START, AT_ONCE };

/* In the order of their enums in config.h. */
static const char *const log_targets[] = { "auto", "journal", "stderr", NULL };
static const char *const huge_pages[] = { "auto", "always", "never", NULL };

const struct config_key config_keys[] = {
	{ "daemon", "log_level", CONFIG_IS_LEVEL, AT_ONCE, AT(daemon.log_level), "info", NULL, NULL,
	  NULL, NULL, "what is less urgent than this is not logged",
	  "*kvpoolctl log-level* changes it for a while." },
	{ "daemon", "log_target", CONFIG_IS_CHOICE, NEXT_START, AT(daemon.log_target), "auto", NULL,
	  NULL, NULL, log_targets, "where the log goes",
	  "_auto_: to the journal when stderr is connected to it, as it is under systemd, else "
	  "to stderr. _journal_: to the journal, if there is one. _stderr_: lines of text." },
	{ "daemon", "status_interval", CONFIG_IS_DURATION, AT_ONCE, AT(daemon.status_interval_ns),
	  "5s", "1s", "1h", NULL, NULL, "how often the service manager may get a new status line",
	  "It gets one only when there is something new to say." },

	{ "host", "pool_size", CONFIG_IS_SIZE, AT_ONCE, AT(host.pool_bytes), "auto", "64K", "8T",
	  "auto", NULL, "how far the pool may grow",
	  "A percentage is one of the memory that the daemon may use: the smallest of the "
	  "machine's and of the limits of its control groups. _auto_ is a quarter of that, at "
	  "most 8G. The pool takes memory as it is used, not at once. A change while the daemon "
	  "runs is a resize: what does not fit any more is evicted, except for what somebody "
	  "reads or writes, which goes later." },
	{ "host", "huge_pages", CONFIG_IS_CHOICE, NEXT_START, AT(host.huge_pages), "auto", NULL,
	  NULL, NULL, huge_pages, "whether the pool is made of huge pages",
	  "_auto_: of reserved ones (hugetlbfs) when there are enough of them for the whole "
	  "pool, else transparent ones if the kernel lets shared memory have them, else small "
	  "ones. _always_: the daemon does not start without reserved ones. _never_: small "
	  "ones. Reserved ones are taken at the start, all of them, so that such a pool can be "
	  "made smaller while the daemon runs, but not larger. *kvpoolctl status* says which "
	  "ones it has." },
	{ "host", "numa", CONFIG_IS_NUMA, NEXT_START, AT(host.numa), "interleave", NULL, NULL, NULL,
	  NULL, "on which memory nodes the pool lies",
	  "_interleave_: evenly on all that the daemon may use. _local_: where the daemon runs. "
	  "_node:N_: on that one. _off_: wherever the kernel puts it." },
	{ "host", "max_blocks", CONFIG_IS_COUNT, NEXT_START, AT(host.max_blocks), "auto", "1",
	  "1073741824", "auto", NULL, "how many blocks the pool may hold",
	  "_auto_: one for each 64 KiB of the pool, and 1048576 at least. Each takes memory "
	  "beside the pool." },

	{ "cache", "default_ttl", CONFIG_IS_DURATION, AT_ONCE, AT(cache.default_ttl_ns), "never",
	  "1s", "3650d", "never", NULL, "how long a block is kept that nobody uses",
	  "A block that was not used for this long is dropped even when there is room. "
	  "*[namespace]* sections can say otherwise for a model." },
	{ "cache", "pin_budget", CONFIG_IS_SHARE, AT_ONCE, AT(cache.pin_budget), "20%", NULL, NULL,
	  "none", NULL, "how much operators may pin",
	  "Pins of *kvpoolctl pin* keep prefixes in the pool. Together they hold this much of "
	  "it at most: bytes, or a percentage of the pool." },
	{ "cache", "reservation_timeout", CONFIG_IS_DURATION, AT_ONCE, AT(cache.reservation_ns),
	  "300s", "1s", "1d", NULL, NULL, "after how long a reservation without a commit is void",
	  "Prefill of a long prompt on a processor takes minutes. A writer that hangs for "
	  "longer is stuck, and its room goes to others." },
	{ "cache", "quarantine_grace", CONFIG_IS_DURATION, AT_ONCE, AT(cache.quarantine_ns), "1s",
	  "10ms", "1h", NULL, NULL, "how long the room of a dead writer rests",
	  "What it started may still write there: a copy of a device, for example. The time "
	  "begins when its process is gone." },

	{ "limits", "max_clients", CONFIG_IS_COUNT, AT_ONCE, AT(limits.max_clients), "256", "1",
	  "4096", NULL, NULL, "how many clients there may be",
	  "An ended one counts as long as it pins blocks. Of ended ones that pin nothing there "
	  "may be four times as many. Those that are connected stay when this is lowered." },
	{ "limits", "max_clients_per_user", CONFIG_IS_COUNT, AT_ONCE,
	  AT(limits.max_clients_per_user), "64", "1", "4096", NULL, NULL,
	  "how many of them one user may have", "Counted in the same way." },
	{ "limits", "max_namespaces", CONFIG_IS_COUNT, NEXT_START, AT(limits.max_namespaces), "256",
	  "1", "4096", NULL, NULL, "how many namespaces there may be",
	  "An empty one that nobody has open makes room for another." },
	{ "limits", "client_reserved_max", CONFIG_IS_SHARE, AT_ONCE, AT(limits.client_reserved),
	  "100%", NULL, NULL, NULL, NULL, "how much one client may have reserved and not committed",
	  "What is in quarantine after its reservations counts as well. Bytes, or a percentage "
	  "of the pool." },
	{ "limits", "client_unnamed_max", CONFIG_IS_SHARE, AT_ONCE, AT(limits.client_unnamed),
	  "50%", NULL, NULL, NULL, NULL, "how much one client may hold in slots without a name",
	  "Engines that keep their whole working memory in the pool hold much of it so. Bytes, "
	  "or a percentage of the pool." },

	{ CONFIG_RULES, "ttl", CONFIG_IS_DURATION, AT_ONCE, AT_RULE(ttl_ns), NULL, "1s", "3650d",
	  "never", NULL, "how long a block of such a model is kept that nobody uses",
	  "Without it *default_ttl* of section *[cache]* holds." },
	{ CONFIG_RULES, "priority", CONFIG_IS_COUNT, AT_ONCE, AT_RULE(priority), "50", "1", "99",
	  NULL, NULL, "which models stay when room is needed",
	  "Blocks of a lower priority go first." },
};

const size_t config_n_keys = ARRAY_SIZE(config_keys);

int config_key_is_rule(const struct config_key *k)
{
	return !strcmp(k->section, CONFIG_RULES);
}

const struct config_key *config_key_find(const char *section, const char *name)
{
	for (size_t i = 0; i < config_n_keys; i++)
		if (!strcmp(config_keys[i].section, section) && !strcmp(config_keys[i].name, name))
			return &config_keys[i];
	return NULL;
}

int config_section_exists(const char *section)
{
	for (size_t i = 0; i < config_n_keys; i++)
		if (!strcmp(config_keys[i].section, section))
			return 1;
	return 0;
}

const char *config_section_near(const char *section)
{
	struct suggest s = SUGGEST_INIT(section);

	for (size_t i = 0; i < config_n_keys; i++)
		suggest_offer(&s, config_keys[i].section);
	return s.best;
}

const char *config_key_near(const char *section, const char *name)
{
	struct suggest s = SUGGEST_INIT(name);

	for (size_t i = 0; i < config_n_keys; i++)
		if (!strcmp(config_keys[i].section, section))
			suggest_offer(&s, config_keys[i].name);
	return s.best;
}
