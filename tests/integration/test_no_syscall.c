/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hit makes no system call: a client enters seccomp's strict mode, in which the kernel kills it
 * at any one but read, write and exit, and then hashes, acquires, extends, reads and releases. A
 * control shows that the mode does what it is for.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "client/kvpool-seq.h"
#include "tests/integration/daemon.h"
#include "tests/integration/pattern.h"

#define BT           PATTERN_BLOCK_TOKENS
#define BYTES        4096u
#define DEPTH        4096u
#define SHORT_DEPTH  16u
#define SHORT_ROUNDS 1000000u
#define LONG_ROUNDS  10000u

struct client {
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct kvpool_lease *lease;
	struct kvpool_seq *seq;
	uint32_t table[DEPTH];
	int32_t tokens[DEPTH * BT + 1];
	struct kvpool_key keys[DEPTH];
	uint8_t buf[BYTES];
	int report; /* a pipe to the parent */
};

static struct client c;

/* Ends the process from inside the strict mode: exit_group is not allowed there. */
static void leave(int status)
{
	syscall(SYS_exit, status);
}

/* Says what went wrong, since no assertion can. */
static void check(int good, const char *what)
{
	if (good)
		return;
	(void)!write(c.report, what, strlen(what));
	leave(1);
}

static void enter(void)
{
	assert(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
}

static void read_block(size_t i)
{
	struct iovec iov = {c.buf, BYTES};

	check(kvpool_lease_read(c.lease, i * (uint64_t)BYTES, &iov, 1, KVPOOL_VERIFY) == 0,
	      "read\n");
	check(!memcmp(c.buf, kvpool_lease_block(c.lease, i), BYTES), "bytes\n");
}

/* All ways to n blocks, and to less than that. */
static void one_round(size_t n, uint64_t random)
{
	size_t part = 1 + random % n;

	check(kvpool_acquire(c.ns, c.lease, c.tokens, n * BT + 1, 0) == n * BT, "acquire\n");
	read_block(random % n);
	check(kvpool_acquire(c.ns, c.lease, c.tokens, part * BT + 1, 0) == part * BT, "part\n");
	check(kvpool_extend(c.lease, c.tokens, n * BT + 1) == n * BT, "extend\n");
	kvpool_release(c.lease);
	check(kvpool_hash(c.ns, NULL, c.tokens, n * BT, c.keys, n) == n, "hash\n");
	check(kvpool_acquire_keys(c.ns, c.lease, c.keys, n, KVPOOL_DEPTH_ONLY) == n * BT,
	      "depth\n");
	c.keys[part - 1].w[0] ^= 1;
	check(kvpool_acquire_keys(c.ns, c.lease, c.keys, n, 0) == (part - 1) * BT, "miss\n");
	check(kvpool_lease_reason(c.lease) == KVPOOL_NOT_CACHED, "reason\n");
	kvpool_release(c.lease);
}

/* A sequence of cached blocks, and its table. */
static void seq_round(size_t n, uint64_t random)
{
	size_t i = random % n;

	check(kvpool_seq_acquire(c.seq, c.tokens, n * BT + 1) == n * BT, "sequence\n");
	check(kvpool_seq_table(c.seq, 0, c.table, DEPTH) == n, "table\n");
	check((const uint8_t *)kvpool_seq_base(c.seq, NULL) + (uint64_t)c.table[i] * KVPOOL_UNIT ==
	      kvpool_seq_block(c.seq, i), "place\n");
	check(!kvpool_seq_own_block(c.seq, i), "own\n");
}

static void rounds(unsigned int count, size_t depth)
{
	for (unsigned int i = 0; i < count; i++) {
		uint64_t random = mix64(i + 1);

		one_round(1 + (random >> 32) % depth, random & 0xffffffff);
		if (i % 16 == 0)
			seq_round(1 + (random >> 32) % depth, random & 0xffffffff);
	}
}

static void work(void)
{
	errno = 4711;
	rounds(SHORT_ROUNDS, SHORT_DEPTH);
	rounds(LONG_ROUNDS, DEPTH);
	check(errno == 4711, "errno\n");
}

static void call_something(void)
{
	(void)syscall(SYS_getpid);
}

static void prepare(const struct daemon *d)
{
	c.pool = pattern_connect(d->socket, "strict");
	c.ns = pattern_ns(c.pool, "m", BYTES);
	assert(kvpool_lease_new(c.pool, DEPTH, &c.lease) == 0);
	assert(kvpool_seq_new(c.ns, DEPTH, &c.seq) == 0);
	pattern_tokens(1, DEPTH, c.tokens);
}

/* Runs part in strict mode, in a process of its own. Returns its status. */
static int run_strict(const struct daemon *d, void (*part)(void))
{
	char text[100] = "";
	int report[2], status;
	pid_t pid;

	assert(pipe(report) == 0);
	pid = fork();
	assert(pid >= 0);
	if (!pid) {
		c.report = report[1];
		prepare(d);
		enter();
		part();
		leave(0);
	}
	close(report[1]);
	assert(waitpid(pid, &status, 0) == pid);
	if (read(report[0], text, sizeof(text) - 1) > 0)
		fprintf(stderr, "in strict mode: %s", text);
	close(report[0]);
	return status;
}

int main(void)
{
	static const char *const args[] = {"--max-blocks", "16384", NULL};
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct daemon d;
	int status;

	assert(daemon_start(&d, args) == 0);
	pool = pattern_connect(d.socket, "writer");
	ns = pattern_ns(pool, "m", BYTES);
	assert(pattern_publish(ns, 1, DEPTH) == (int)DEPTH);
	status = run_strict(&d, call_something);
	assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	status = run_strict(&d, work);
	if (WIFSIGNALED(status))
		fprintf(stderr, "killed by signal %d: a system call in a lookup?\n",
			WTERMSIG(status));
	kvpool_ns_close(ns);
	kvpool_close(pool);
	assert(daemon_end(&d) == 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
