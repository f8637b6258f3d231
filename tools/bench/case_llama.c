/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llama/ttft, llama/copy, llama/overhead: a real model and a real text. Each round has a daemon of
 * its own, with nothing in it, and two processes one after the other: the first finds nothing,
 * computes the prompt and stores it; the second, which has computed none of it, finds all but the
 * last tokens. Loading the model is not measured, nor is making tokens of the text.
 *
 *	ttft		restore and prefill of the second, against the prefill alone of the first
 *	copy		restore of the second outside of the engine, against memcpy of the bytes
 *	overhead	publish of the first against its prefill
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "tools/bench/bench.h"
#include "tools/bench/llama_part.h"
#include "tools/bench/llama_files.h"

#define POOL_BYTES    GIB(2)
#define ROUNDS        BENCH_ROUNDS_MIN /* a cold prefill takes many seconds */
#define ROUNDS_REPORT 3u               /* where there is no bar */

struct llama_case {
	const struct bench_options *opt;
	const char *program;
	struct llama_files files;
	uint32_t tokens;
	unsigned int rounds;
	struct llama_part cold[ROUNDS], warm[ROUNDS];
	char why_not[128]; /* "" when each round was what it should be */
};

static void exec_part(const struct llama_case *c, const char *socket, int to)
{
	char tokens[16];

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	snprintf(tokens, sizeof(tokens), "%u", c->tokens);
	/* Threads that wait by spinning take the processors from those that compute. */
	setenv("GOMP_SPINCOUNT", "0", 1);
	if (dup2(to, STDOUT_FILENO) >= 0)
		execl(c->program, "kvpool-bench-llama", socket, c->files.model, c->files.text,
		      tokens, (char *)NULL);
	fprintf(stderr, "kvpool-bench: cannot run %s: %s\n", c->program, strerror(errno));
	_exit(127);
}

static int read_part(int fd, struct llama_part *ret)
{
	struct llama_part p;
	size_t have = 0;
	ssize_t n;

	while (have < sizeof(p)) {
		n = read(fd, (char *)&p + have, sizeof(p) - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EIO; /* it has said why */
		have += (size_t)n;
	}
	if (p.size != sizeof(p))
		return -EPROTO;
	*ret = p;
	return 0;
}

static int run_part(const struct llama_case *c, const char *socket, struct llama_part *ret)
{
	int fd[2], status, r;
	pid_t pid;

	if (pipe(fd) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		exec_part(c, socket, fd[1]);
	close(fd[1]);
	r = pid < 0 ? -errno : read_part(fd[0], ret);
	close(fd[0]);
	if (pid > 0 && (waitpid(pid, &status, 0) < 0 || status) && r == 0)
		r = -EIO;
	return r;
}

/* Notes what is wrong with a round, if nothing was with those before. */
static void check_round(struct llama_case *c, const struct llama_part *cold,
			const struct llama_part *warm)
{
	size_t usable = kvpool_usable_tokens(c->tokens, cold->block_tokens);
	unsigned int blocks = c->tokens / cold->block_tokens;

	if (c->why_not[0])
		return;
	if (cold->reused_tokens)
		snprintf(c->why_not, sizeof(c->why_not), "a cold process reused %u tokens",
			 cold->reused_tokens);
	else if (cold->stored_blocks != blocks)
		snprintf(c->why_not, sizeof(c->why_not), "a cold process stored %lld blocks of %u",
			 (long long)cold->stored_blocks, blocks);
	else if (warm->reused_tokens != usable)
		snprintf(c->why_not, sizeof(c->why_not), "a warm process reused %u tokens, not %zu",
			 warm->reused_tokens, usable);
	else if (warm->stored_blocks)
		snprintf(c->why_not, sizeof(c->why_not), "a warm process stored %lld blocks",
			 (long long)warm->stored_blocks);
}

static int run_round(struct llama_case *c, unsigned int i)
{
	struct private_daemon daemon;
	int r = private_daemon_start(&daemon, c->opt->daemon, BENCH_NAME, POOL_BYTES, 0);

	if (r < 0)
		return r;
	r = run_part(c, daemon.socket, &c->cold[i]);
	if (r == 0)
		r = run_part(c, daemon.socket, &c->warm[i]);
	private_daemon_stop(&daemon);
	if (r == 0)
		check_round(c, &c->cold[i], &c->warm[i]);
	return r;
}

static int run_rounds(struct llama_case *c, uint32_t tokens, unsigned int rounds)
{
	int r = 0;

	c->tokens = tokens;
	c->rounds = MIN(rounds, c->opt->rounds);
	c->why_not[0] = '\0';
	for (unsigned int i = 0; i < c->rounds && r == 0; i++)
		r = run_round(c, i);
	return r;
}

static double ttft_value(const struct llama_part *cold, const struct llama_part *warm)
{
	return warm->restore + warm->prefill;
}

static double ttft_limit(const struct llama_part *cold, const struct llama_part *warm)
{
	return cold->prefill;
}

static double copy_value(const struct llama_part *cold, const struct llama_part *warm)
{
	return warm->restore_own;
}

static double copy_limit(const struct llama_part *cold, const struct llama_part *warm)
{
	return warm->copy;
}

static double overhead_value(const struct llama_part *cold, const struct llama_part *warm)
{
	return cold->publish;
}

typedef double (*llama_number)(const struct llama_part *cold, const struct llama_part *warm);

static void emit(const struct llama_case *c, struct bench_result *r, llama_number value,
		 llama_number limit)
{
	double v[ROUNDS], l[ROUNDS];
	unsigned int best = 0;

	for (unsigned int i = 0; i < c->rounds; i++) {
		v[i] = value(&c->cold[i], &c->warm[i]);
		l[i] = limit(&c->cold[i], &c->warm[i]);
		best = v[i] < v[best] ? i : best;
	}
	r->with.writer_pid = c->cold[best].pid;
	r->with.reader_pid = c->warm[best].pid;
	r->with.descriptors = (uint64_t)c->cold[best].stored_blocks;
	r->with.model = c->files.model_name;
	r->with.tokens = c->tokens;
	r->with.reused_tokens = c->warm[best].reused_tokens;
	r->why_not = c->why_not[0] ? c->why_not : NULL;
	r->unit = "ms";
	bench_fill(r, v, l, c->rounds);
	bench_emit(r);
}

static void emit_ttft(const struct llama_case *c, const char *name, double bar)
{
	struct bench_result r = { .name = name,
				  .limit = "cold: all of the prompt computed",
				  .bar = bar,
				  .sense = BENCH_AT_LEAST };

	emit(c, &r, ttft_value, ttft_limit);
}

static int run_cases(struct llama_case *c)
{
	struct bench_result copy = { .name = "llama/copy",
				     .limit = "memcpy of the bytes restored",
				     .bar = 2 };
	struct bench_result overhead = { .name = "llama/overhead",
					 .limit = "prefill, nothing cached",
					 .bar = 0.01 };
	int r = run_rounds(c, 2000, ROUNDS);

	if (r < 0)
		return r;
	emit_ttft(c, "llama/ttft", 20);
	emit(c, &copy, copy_value, copy_limit);
	emit(c, &overhead, overhead_value, ttft_limit);
	r = run_rounds(c, 500, ROUNDS_REPORT);
	if (r < 0)
		return r;
	emit_ttft(c, "llama/ttft-500", 0);
	r = run_rounds(c, 4000, ROUNDS_REPORT);
	if (r == 0)
		emit_ttft(c, "llama/ttft-4000", 0);
	return r;
}

static int run(const struct bench_options *opt)
{
	struct llama_case c = { .opt = opt };
	char why[LLAMA_FILES_WHY];

	c.program = private_program("tools/bench", "kvpool-bench-llama");
	if (access(c.program, X_OK) < 0) {
		bench_not_run("llama", "there is no kvpool-bench-llama beside this program: build "
				       "with libllama (meson options llama_include, llama_lib)");
		return BENCH_NOT_RUN;
	}
	if (llama_files_find(&c.files, opt, why) < 0) {
		bench_not_run("llama", why);
		return BENCH_NOT_RUN;
	}
	return run_cases(&c);
}

const struct bench_group bench_llama = { "llama",
					 { "llama/ttft", "llama/copy", "llama/overhead",
					   "llama/ttft-500", "llama/ttft-4000" },
					 run };
