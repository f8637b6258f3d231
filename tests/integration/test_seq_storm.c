/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that decode the same few conversations at once, with sequences: they acquire, grow,
 * name, cut and fork at random, in a pool that is too small for them, while blocks are flushed, the
 * daemon sleeps, and programs are killed. What a block holds follows from its key, so whoever reads
 * a block that is not held sees it. In the end nothing of theirs is left.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "client/kvpool-seq.h"
#include "tests/integration/admin.h"
#include "tests/integration/pattern.h"

#define BT       PATTERN_BLOCK_TOKENS
#define BYTES    4096u
#define DEPTH    24u
#define SEQS     6u
#define PROGRAMS 3u
#define EVENTS   60u

/* One sequence, and what it was made of. All of its blocks are written. */
struct line {
	struct kvpool_seq *seq;
	int32_t tokens[DEPTH * BT + 1];
	struct kvpool_key keys[DEPTH];
};

static struct daemon d;
static struct kvpool *pool;
static struct kvpool_ns *ns;
static struct line lines[SEQS];
static uint64_t seed;

static uint32_t pick(uint32_t n)
{
	return (uint32_t)(mix64(seed++) % n);
}

/* Tokens from a block on: there is little choice, so that others choose the same. */
static void choose(struct line *l, uint32_t from)
{
	for (uint32_t i = from * BT; i < DEPTH * BT + 1; i++)
		l->tokens[i] = (int32_t)i;
	if (pick(2))
		l->tokens[from * BT] += 1000 * (int32_t)pick(3);
	kvpool_hash(ns, NULL, l->tokens, DEPTH * BT, l->keys, DEPTH);
}

static void fill(struct line *l, uint32_t first)
{
	for (uint32_t i = first; i < kvpool_seq_blocks(l->seq); i++) {
		uint64_t *block = kvpool_seq_own_block(l->seq, i);

		assert(block);
		for (uint32_t w = 0; w < BYTES / sizeof(*block); w++)
			block[w] = l->keys[i].w[w % 4] + w;
	}
}

static void check(const struct line *l)
{
	for (uint32_t i = 0; i < kvpool_seq_blocks(l->seq); i++) {
		const uint64_t *block = kvpool_seq_block(l->seq, i);

		for (uint32_t w = 0; w < BYTES / sizeof(*block); w += 37)
			assert(block[w] == l->keys[i].w[w % 4] + w);
	}
}

/* Now and then it is cancelled, or freed at once: then it returns 0. */
static int run(struct kvpool_op *op)
{
	struct pollfd p = { .fd = kvpool_fd(pool), .events = POLLIN };

	if (!pick(6)) {
		kvpool_op_free(op);
		return 0;
	}
	if (!pick(6))
		kvpool_op_cancel(op);
	while (!kvpool_op_done(op)) {
		assert(poll(&p, 1, -1) == 1);
		assert(kvpool_dispatch(pool) >= 0);
	}
	return 1;
}

static void grow(struct line *l)
{
	uint32_t had = (uint32_t)kvpool_seq_blocks(l->seq), n = had + pick(DEPTH - had + 1);
	struct kvpool_op *op;

	if (pick(2))
		(void)kvpool_seq_grow(l->seq, n);
	else if (kvpool_seq_grow_start(l->seq, n, pick(3) ? 0 : 1, NULL, NULL, &op) == 0 && run(op))
		(void)kvpool_seq_grow_finish(op);
	fill(l, had);
}

static void commit(struct line *l)
{
	size_t n = pick((uint32_t)kvpool_seq_blocks(l->seq) + 1) * BT;
	unsigned int flags = pick(2) ? KVPOOL_SWAP : 0;
	struct kvpool_op *op;

	if (pick(2))
		(void)kvpool_seq_commit(l->seq, l->tokens, n, flags);
	else if (kvpool_seq_commit_start(l->seq, l->tokens, n, flags, pick(3) ? 0 : 1, NULL, NULL,
					 &op) == 0 &&
		 run(op))
		(void)kvpool_seq_commit_finish(op);
}

static void cut(struct line *l)
{
	uint32_t n = pick((uint32_t)kvpool_seq_blocks(l->seq) + 1);

	if (pick(2))
		(void)kvpool_seq_truncate(l->seq, n);
	else
		assert(kvpool_seq_truncate_start(l->seq, n) == 0);
	choose(l, n);
}

static void fork_into(struct line *to, struct line *l)
{
	if (to == l)
		return;
	kvpool_seq_free_start(to->seq);
	*to = *l;
	if (kvpool_seq_fork(l->seq, &to->seq) < 0)
		to->seq = NULL;
	else
		check(to);
}

static void step(struct line *l)
{
	if (!l->seq) {
		if (kvpool_seq_new(ns, DEPTH, &l->seq) < 0)
			return;
		choose(l, 0);
	}
	check(l);
	switch (pick(10)) {
	case 0:
		choose(l, 0);
		(void)kvpool_seq_acquire(l->seq, l->tokens, DEPTH * BT + 1);
		break;
	case 1:
		fork_into(&lines[pick(SEQS)], l);
		break;
	case 2:
		l->seq = pick(2) ? kvpool_seq_free(l->seq) : kvpool_seq_free_start(l->seq);
		return;
	case 3:
	case 4:
		cut(l);
		break;
	case 5:
	case 6:
		grow(l);
		break;
	default:
		commit(l);
	}
	check(l);
}

/* Some have few leases, and some little patience. */
static pid_t start_program(uint64_t n)
{
	struct kvpool_options o = {
		.size = sizeof(o),
		.socket = d.socket,
		.name = "storm",
		.timeout_ms = n % 2 ? 10 : 20000,
		.max_leases = n % 3 ? 256 : 20,
	};
	pid_t pid = fork();

	assert(pid >= 0);
	if (pid)
		return pid;
	assert(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	seed = n << 32;
	assert(kvpool_connect(&o, &pool) == 0);
	ns = pattern_ns(pool, "m", BYTES);
	for (;;)
		step(&lines[pick(SEQS)]);
}

static void end_program(pid_t pid)
{
	int status;

	assert(kill(pid, SIGKILL) == 0);
	assert(waitpid(pid, &status, 0) == pid);
	/* And not by an assert of its own before that. */
	assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void nap(void)
{
	assert(kill(d.pid, SIGSTOP) == 0);
	usleep(20000);
	assert(kill(d.pid, SIGCONT) == 0);
}

int main(void)
{
	const char *args[] = { "--pool-size", "8M", "--max-blocks", "140", NULL };
	pid_t program[PROGRAMS];
	uint64_t n = 0;

	assert(daemon_start(&d, args) == 0);
	for (uint32_t i = 0; i < PROGRAMS; i++)
		program[i] = start_program(++n);
	for (uint32_t event = 0; event < EVENTS; event++) {
		uint32_t i = event % PROGRAMS;

		usleep(40000);
		switch (pick(4)) {
		case 0:
			end_program(program[i]);
			program[i] = start_program(++n);
			break;
		case 1:
			admin_flush(&d);
			break;
		case 2:
			nap();
			break;
		default:
			admin_check_sums(admin_status(&d));
		}
	}
	for (uint32_t i = 0; i < PROGRAMS; i++)
		end_program(program[i]);
	admin_wait_quiet(&d, 0);
	admin_check_sums(admin_status(&d));
	return daemon_end(&d) ? 1 : 0;
}
