/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/health.h"

#include "base/compiler.h"

static uint64_t starting(const Kvpool__StatusReply *s)
{
	return !s->ready;
}

static uint64_t wrong_bytes(const Kvpool__StatusReply *s)
{
	return s->checksum_dooms;
}

static uint64_t no_room(const Kvpool__StatusReply *s)
{
	return s->full_blocks;
}

static uint64_t slow_clients(const Kvpool__StatusReply *s)
{
	return s->ended_slow;
}

static uint64_t protocol_errors(const Kvpool__StatusReply *s)
{
	return s->protocol_errors;
}

static uint64_t touches_lost(const Kvpool__StatusReply *s)
{
	return s->touches_lost;
}

static uint64_t draining(const Kvpool__StatusReply *s)
{
	return s->draining;
}

static uint64_t shrinking(const Kvpool__StatusReply *s)
{
	return !!s->pool_excess_bytes;
}

static uint64_t quota(const Kvpool__StatusReply *s)
{
	return s->quota_blocks;
}

static const struct health_finding findings[] = {
	{ "starting", HEALTH_WARN, "daemon", "is not ready yet", "wait, then see its log",
	  starting },
	{ "corrupt", HEALTH_WARN, "blocks", "had wrong bytes and were dropped",
	  "a client wrote where it must not, or memory fails", wrong_bytes },
	{ "full", HEALTH_NOTE, "blocks", "found no room",
	  "make the pool larger, or see who holds leases", no_room },
	{ "quota", HEALTH_NOTE, "blocks", "were refused because of a quota",
	  "see kvpoolctl clients -o name,writing,unnamed,quota", quota },
	{ "shrinking", HEALTH_NOTE, "pool", "is larger than it should be",
	  "what is read or written in it goes when that ends", shrinking },
	{ "slow_clients", HEALTH_NOTE, "clients", "were dropped because they read no replies",
	  "see the log for their names", slow_clients },
	{ "protocol_errors", HEALTH_NOTE, "requests", "were malformed",
	  "see the log for who sent them", protocol_errors },
	{ "touches_lost", HEALTH_NOTE, "lookups", "went unseen",
	  "rates of namespaces are a little too low", touches_lost },
	{ "draining", HEALTH_NOTE, "ended clients", "still map the pool",
	  "a thread or child of theirs lives on", draining },
};

const char *health_level_name(enum health_level level)
{
	static const char *const names[] = {
		[HEALTH_OK] = "ok",
		[HEALTH_NOTE] = "note",
		[HEALTH_WARN] = "warn",
	};

	return names[level];
}

const struct health_finding *health_finding(unsigned int i)
{
	return i < ARRAY_SIZE(findings) ? &findings[i] : NULL;
}

enum health_level health_level(const Kvpool__StatusReply *s)
{
	enum health_level worst = HEALTH_OK;

	for (unsigned int i = 0; i < ARRAY_SIZE(findings); i++)
		if (findings[i].count(s))
			worst = MAX(worst, findings[i].level);
	return worst;
}
