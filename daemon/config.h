/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration as values: what the rest of the daemon looks at.
 *
 * A struct config never changes. When the operator changes something a new one takes its place
 * (daemon/configurator.h), and whoever must act on the difference is told of both.
 * daemon/config_table.c says what each key means, its default and its bounds.
 */
#ifndef KVP_DAEMON_CONFIG_H
#define KVP_DAEMON_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/log.h"

enum config_huge_pages {
	CONFIG_HUGE_AUTO,
	CONFIG_HUGE_ALWAYS,
	CONFIG_HUGE_NEVER,
};

enum config_numa_policy {
	CONFIG_NUMA_INTERLEAVE,
	CONFIG_NUMA_LOCAL,
	CONFIG_NUMA_OFF, /* nothing is said to the kernel */
	CONFIG_NUMA_NODE,
};

struct config_numa {
	enum config_numa_policy policy;
	uint32_t node; /* CONFIG_NUMA_NODE */
};

/* A part of the pool: bytes, or a percentage of what the pool has then. */
struct config_share {
	uint64_t bytes;
	uint64_t percent; /* 1 to 100; 0: bytes */
};

/* From a section [namespace GLOB]: what it says of the models that fit. */
struct config_rule {
	const char *glob;
	int has_ttl;
	uint64_t ttl_ns;   /* 0: never */
	uint32_t priority; /* 1 to 99; 0: it says none */
};

struct config {
	struct {
		int log_level; /* of syslog */
		enum log_target log_target;
		uint64_t status_interval_ns;
	} daemon;
	struct {
		uint64_t pool_bytes;
		enum config_huge_pages huge_pages;
		struct config_numa numa;
		uint32_t max_blocks; /* 0: by the size of the pool */
	} host;
	struct {
		uint64_t default_ttl_ns; /* 0: never */
		struct config_share pin_budget;
		uint64_t reservation_ns;
		uint64_t quarantine_ns;
	} cache;
	struct config_limits {
		uint32_t max_clients;
		uint32_t max_clients_per_user;
		uint32_t max_namespaces;
		struct config_share client_reserved; /* keyed reservations, quarantine included */
		struct config_share client_unnamed;  /* unnamed slots */
	} limits;
	/* Files first to last, so that the last rule that fits and says something wins. */
	struct config_rule *rules;
	size_t n_rules;
};

/* The bytes of a share of a pool of so many. */
uint64_t config_share_bytes(const struct config_share *s, uint64_t pool_bytes);

/* What holds for the blocks of a namespace, by the name of its model. */
struct config_namespace {
	uint64_t ttl_ns; /* 0: never */
	uint32_t priority;
};

struct config_namespace config_namespace(const struct config *c, const char *model);

/*
 * All defaults, for a daemon that may use so much memory. To be given back with config_free, which
 * accepts NULL and returns NULL. NULL: no memory.
 */
struct config *config_new(uint64_t memory);
struct config *config_free(struct config *c);

#endif
