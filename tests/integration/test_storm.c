/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that read, publish, wait, hint and are killed, while an operator does everything that
 * there is to be done to a pool in use, in any order: sizes from a granule to more than it began
 * with, pins, flushes, kicks, limits, TTLs. No reader may see a wrong byte, no call may take longer
 * than it was told to, every status must add up, and nothing may be left at the end.
 *
 *	test_storm SECONDS
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/hash.h"
#include "tests/integration/admin.h"
#include "tests/integration/pattern.h"
#include "tests/integration/raw.h"

#define CLIENTS 8u
#define CHAINS  48u
#define DEPTH   24u
#define BLOCK   12000u
#define WAIT_MS 50u
/* Far above all that is waited for, far below what a call that hangs would take. */
#define HANG_NS (30 * NSEC_PER_SEC)

static uint64_t random_state;

static uint32_t below(uint32_t n)
{
	random_state += 0x9e3779b97f4a7c15ull;
	return (uint32_t)(mix64(random_state) >> 32) % n;
}

/* ---- a client ---- */

struct client {
	struct kvpool *pool;
	struct kvpool_ns *ns[2];
	struct kvpool_lease *lease[3];
	uint64_t chain[3];
};

static void publish(struct client *c)
{
	int r = pattern_publish(c->ns[below(2)], below(CHAINS), 1 + below(DEPTH));

	/* Kicked is not connected, for a moment. */
	assert(r >= 0 || r == -ENOSPC || r == -ENOTCONN);
}

/* Leases of two namespaces; some stay over what the operator does. */
static void read_some(struct client *c)
{
	uint32_t i = below(ARRAY_SIZE(c->lease));

	for (size_t b = 0; b < kvpool_lease_blocks(c->lease[i]); b++)
		assert(pattern_check(c->chain[i], b, kvpool_lease_block(c->lease[i], b), BLOCK));
	c->chain[i] = below(CHAINS);
	pattern_acquire(c->ns[i % 2], c->lease[i], c->chain[i], 1 + below(DEPTH));
	if (below(2))
		kvpool_release(c->lease[i]);
}

static void wait_some(struct client *c)
{
	int32_t tokens[DEPTH * PATTERN_BLOCK_TOKENS + 1];
	long r;

	pattern_tokens(below(CHAINS), DEPTH, tokens);
	r = kvpool_wait(c->ns[below(2)], tokens, DEPTH * PATTERN_BLOCK_TOKENS, 0, WAIT_MS);
	assert(r >= 0 || r == -ETIMEDOUT || r == -ENOTCONN);
}

/* Writes what is no block, and may die over it. */
static void give_up(struct client *c)
{
	int32_t tokens[DEPTH * PATTERN_BLOCK_TOKENS + 1];
	struct kvpool_write *w;

	pattern_tokens(below(CHAINS), DEPTH, tokens);
	if (kvpool_reserve(c->ns[below(2)], tokens, DEPTH * PATTERN_BLOCK_TOKENS, 0, &w) < 0)
		return;
	for (size_t i = 0; i < kvpool_write_blocks(w); i++)
		if (kvpool_write_block(w, i))
			memset(kvpool_write_block(w, i), 0xee, BLOCK);
	if (!below(20))
		raise(SIGKILL);
	kvpool_write_free(w);
}

static void client_step(struct client *c)
{
	uint64_t begin = clock_ns();
	uint32_t what = below(10);

	if (what < 4)
		publish(c);
	else if (what < 8)
		read_some(c);
	else if (what < 9)
		wait_some(c);
	else
		give_up(c);
	assert(clock_ns() - begin < HANG_NS);
}

static void run_client(const struct daemon *d, uint64_t seed, uint64_t end)
{
	/* It may be kicked before it knows that it is connected. */
	struct kvpool_options o = {
		.size = sizeof(o), .socket = d->socket, .name = "storm", .timeout_ms = 20000
	};
	struct client c = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	random_state = seed;
	assert(kvpool_connect(&o, &c.pool) == 0);
	c.ns[0] = pattern_ns(c.pool, "storm/0", BLOCK);
	c.ns[1] = pattern_ns(c.pool, "storm/1", BLOCK);
	for (size_t i = 0; i < ARRAY_SIZE(c.lease); i++)
		assert(kvpool_lease_new(c.pool, DEPTH, &c.lease[i]) == 0);
	while (clock_ns() < end)
		client_step(&c);
	for (size_t i = 0; i < ARRAY_SIZE(c.lease); i++)
		kvpool_lease_free(c.lease[i]);
	kvpool_ns_close(c.ns[0]);
	kvpool_ns_close(c.ns[1]);
	kvpool_close(c.pool);
	exit(0);
}

/* ---- the operator ---- */

static struct raw *admin;

/* What may be refused, as there is nothing to do it to, or no room. */
static void tell(enum proto_op op, const ProtobufCMessage *m)
{
	raw_send(admin, op, m);
	assert(raw_receive(admin) && admin->head.op == op);
}

static void resize(void)
{
	static const uint64_t sizes[] = { KIB(64), KIB(640), MIB(2), MIB(5), MIB(8), MIB(16), 1 };
	Kvpool__Resize m = KVPOOL__RESIZE__INIT;

	m.bytes = sizes[below(ARRAY_SIZE(sizes))];
	m.dry_run = !below(3);
	tell(OP_RESIZE, &m.base);
}

static void pin(void)
{
	static const char *const labels[] = { "", "a", "b" };
	Kvpool__Prefixes list = KVPOOL__PREFIXES__INIT;
	Kvpool__Pin m = KVPOOL__PIN__INIT;
	const Kvpool__PrefixesReply *r = raw_call(admin, OP_PREFIXES, &list.base);
	char id[65];

	if (!r->n_items)
		return;
	snprintf(id, sizeof(id), "%s", r->items[below((uint32_t)r->n_items)]->id);
	m.id = id;
	m.ttl_s = below(3);
	m.label = (char *)labels[below(3)];
	m.priority = below(100);
	tell(OP_PIN, &m.base);
}

static void unpin(void)
{
	Kvpool__Unpin m = KVPOOL__UNPIN__INIT;

	m.all = (int)below(2);
	m.label = (char *)(m.all ? "" : "a");
	tell(OP_UNPIN, &m.base);
}

static void flush(void)
{
	Kvpool__Flush m = KVPOOL__FLUSH__INIT;

	m.namespace_ = (char *)(below(2) ? "storm/1" : "");
	m.dry_run = (int)below(2);
	tell(OP_FLUSH, &m.base);
}

static void kick(void)
{
	Kvpool__Clients list = KVPOOL__CLIENTS__INIT;
	Kvpool__Kick m = KVPOOL__KICK__INIT;
	const Kvpool__ClientsReply *r = raw_call(admin, OP_CLIENTS, &list.base);

	if (!r->n_items)
		return;
	m.session = r->items[below((uint32_t)r->n_items)]->session;
	tell(OP_KICK, &m.base);
}

static void configure(void)
{
	static const char *const settings[][2] = {
		{ "cache.pin_budget", "none" },
		{ "cache.pin_budget", "100%" },
		{ "cache.default_ttl", "1s" },
		{ "cache.default_ttl", "never" },
		{ "cache.quarantine_grace", "10ms" },
		{ "namespace.storm/*.priority", "1" },
		{ "namespace.storm/1.priority", "99" },
		{ "limits.client_reserved_max", "2%" },
		{ "limits.client_reserved_max", "100%" },
		{ "limits.client_unnamed_max", "1" },
		{ "host.pool_size", "8M" },
		{ "host.pool_size", "8T" },
	};
	uint32_t i = below(ARRAY_SIZE(settings));
	Kvpool__ConfigSet m = KVPOOL__CONFIG_SET__INIT;
	Kvpool__Reload reload = KVPOOL__RELOAD__INIT;

	if (!below(4)) {
		tell(OP_RELOAD, &reload.base);
		return;
	}
	m.key = (char *)settings[i][0];
	m.value = (char *)settings[i][1];
	m.unset = !below(4);
	tell(OP_CONFIG_SET, &m.base);
}

static void look(const struct daemon *d)
{
	Kvpool__Namespaces list = KVPOOL__NAMESPACES__INIT;
	Kvpool__StatsReset reset = KVPOOL__STATS_RESET__INIT;
	const Kvpool__StatusReply *s = admin_status(d);

	admin_check_sums(s);
	assert(s->pool_handed_bytes <= s->pool_bytes + s->pool_excess_bytes);
	assert(s->pinned_bytes <= s->pin_budget_bytes && s->pinned_bytes <= s->cached_bytes);
	raw_call(admin, OP_NAMESPACES, &list.base);
	if (!below(8))
		raw_call(admin, OP_STATS_RESET, &reset.base);
}

static void operator_step(const struct daemon *d)
{
	static void (*const steps[])(void) = { resize, resize, pin,       pin,      unpin,
					       flush,  kick,   configure, configure };
	uint32_t i = below(ARRAY_SIZE(steps) + 2);

	if (i < ARRAY_SIZE(steps))
		steps[i]();
	else
		look(d);
}

/* All of it can go, and has. */
static void nothing_is_left(const struct daemon *d)
{
	const Kvpool__StatusReply *s;
	Kvpool__Unpin m = KVPOOL__UNPIN__INIT;

	m.all = 1;
	raw_call(admin, OP_UNPIN, &m.base);
	admin_flush(d);
	admin_wait_quiet(d, 0);
	admin_wait_excess(d, 0);
	admin_wait_unused(d);
	s = admin_status(d);
	admin_check_sums(s);
	assert(!s->blocks && !s->pinned_bytes && !s->unnamed_bytes);
}

/* ---- */

static pid_t start_client(const struct daemon *d, uint64_t seed, uint64_t end)
{
	pid_t pid = fork();

	assert(pid >= 0);
	if (!pid)
		run_client(d, seed, end);
	return pid;
}

/* Ended well, or was killed. Anything else is what this test is about. */
static void check_end(int status)
{
	assert(WIFEXITED(status) ? !WEXITSTATUS(status) : WTERMSIG(status) == SIGKILL);
}

static unsigned int storm(const struct daemon *d, uint64_t end)
{
	pid_t pid[CLIENTS];
	unsigned int started = 0;
	int status;

	while (started < CLIENTS) {
		pid[started] = start_client(d, started, end);
		started++;
	}
	while (clock_ns() < end) {
		uint32_t i = below(CLIENTS);

		operator_step(d);
		usleep(below(10000));
		if (!below(8))
			kill(pid[i], SIGKILL);
		if (waitpid(pid[i], &status, WNOHANG) != pid[i])
			continue;
		check_end(status);
		pid[i] = start_client(d, started++, end);
	}
	for (unsigned int i = 0; i < CLIENTS; i++) {
		assert(waitpid(pid[i], &status, 0) == pid[i]);
		check_end(status);
	}
	return started;
}

int main(int argc, char **argv)
{
	static const char *const args[] = { "--pool-size", "8M", "--log-level", "warning", NULL };
	unsigned int seconds = argc > 1 ? (unsigned int)atoi(argv[1]) : 8, started;
	const Kvpool__StatusReply *s;
	Kvpool__Status raw = KVPOOL__STATUS__INIT;
	struct daemon d;

	random_state = (uint64_t)getpid() << 32;
	printf("seed %llu\n", (unsigned long long)random_state);
	fflush(stdout);
	assert(daemon_start(&d, args) == 0);
	admin = raw_open(d.admin);
	started = storm(&d, clock_ns() + seconds * NSEC_PER_SEC);
	nothing_is_left(&d);
	raw.raw = 1;
	s = raw_call(admin, OP_STATUS, &raw.base);
	printf("%u clients, %llu blocks published, %llu evicted, %llu flushed, %llu kicked\n",
	       started, (unsigned long long)s->published_blocks,
	       (unsigned long long)s->evicted_blocks, (unsigned long long)s->flushed_blocks,
	       (unsigned long long)s->ended_kicked);
	/* It was what it was meant to be. */
	assert(s->published_blocks && s->evicted_blocks && s->flushed_blocks && s->hit_tokens);
	assert(started > CLIENTS && s->ended_crash);
	raw_close(admin);
	assert(daemon_end(&d) == 0);
	return 0;
}
