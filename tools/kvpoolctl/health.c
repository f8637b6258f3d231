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

static uint64_t refused(const Kvpool__StatusReply *s)
{
	return s->refused;
}

static const struct health_finding findings[] = {
	{ "starting", HEALTH_WARN, 1, "the daemon is not ready yet", "wait, then see its log",
	  starting },
	{ "corrupt", HEALTH_WARN, 0, "blocks dropped for wrong bytes",
	  "a client wrote where it must not, or memory fails", wrong_bytes },
	{ "full", HEALTH_NOTE, 0, "blocks that found no room",
	  "make the pool larger, or see kvpoolctl clients for who holds leases", no_room },
	{ "quota", HEALTH_NOTE, 0, "blocks refused because of a quota",
	  "kvpoolctl clients -o name,writing,unnamed,quota", quota },
	{ "shrinking", HEALTH_NOTE, 1, "the pool is larger than it should be",
	  "what is pinned, read or written goes when that ends", shrinking },
	{ "slow_clients", HEALTH_NOTE, 0, "clients dropped because they read no answers",
	  "the log names them", slow_clients },
	{ "protocol_errors", HEALTH_NOTE, 0, "malformed requests",
	  "kvpoolctl log-level debug shows who sends them", protocol_errors },
	{ "refused", HEALTH_NOTE, 0, "connections refused", "the log says whose, and why",
	  refused },
	{ "touches_lost", HEALTH_NOTE, 0, "lookups that went unseen",
	  "rates of namespaces are a little too low", touches_lost },
	{ "draining", HEALTH_NOTE, 0, "ended sessions whose memory is still mapped",
	  "the program, a thread or a child of it lives on", draining },
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
