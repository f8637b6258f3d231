/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tools/demo/demo.h"
#include "tools/private_daemon.h"

#define POOL_BYTES (512ull << 20)

enum { FIRST, SECOND, COLD, TWIN_A, TWIN_B, RUNS };

static const char *const questions[] = {
	[FIRST] = "What does the document say about patents?",
	[SECOND] = "Under which conditions may copies be handed on?",
	[COLD] = "Under which conditions may copies be handed on?",
	[TWIN_A] = "What is this document about?",
	[TWIN_B] = "What is this document about?",
};

/* Starts this program once more, as one part. socket NULL: without the pool. */
static int start(struct demo_run *run, const struct demo_options *opt, const char *socket,
		 int document, const char *question, uint32_t split)
{
	char fd[16], tokens[16], answer[16], at[16];
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -errno;
	run->pid = fork();
	if (run->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		snprintf(fd, sizeof(fd), "%d",
			 dup(pipes[1])); /* the copy stays open in the new program */
		snprintf(tokens, sizeof(tokens), "%u", opt->tokens);
		snprintf(answer, sizeof(answer), "%u", opt->answer);
		snprintf(at, sizeof(at), "%u", split);
		execl("/proc/self/exe", "kvpool-demo", "--part", run->name, "--model",
		      opt->model ? opt->model : "", "--document", opt->document[document],
		      "--question", question, "--tokens", tokens, "--answer", answer, "--split", at,
		      "--result-fd", fd, socket ? "--socket" : NULL, socket, (char *)NULL);
		_exit(127);
	}
	close(pipes[1]);
	run->fd = pipes[0];
	return run->pid < 0 ? -errno : 0;
}

static int read_all(int fd, void *data, size_t n)
{
	char *at = data;

	while (n) {
		ssize_t r = read(fd, at, n);

		if (r <= 0 && !(r < 0 && errno == EINTR))
			return r < 0 ? -errno : -EPIPE;
		if (r > 0) {
			at += r;
			n -= (size_t)r;
		}
	}
	return 0;
}

/* Waits for a part to end well. */
static int finish(struct demo_run *run)
{
	size_t bytes;
	int status, r = read_all(run->fd, &run->result, sizeof(run->result));

	bytes = run->result.n_logits * sizeof(float);
	if (r == 0) {
		run->logits = malloc(bytes);
		r = run->logits ? read_all(run->fd, run->logits, bytes) : -ENOMEM;
	}
	run->fd = close_fd(run->fd);
	if (waitpid(run->pid, &status, 0) < 0 || status)
		r = -ECHILD;
	if (r < 0)
		fprintf(stderr, "kvpool-demo: the part \"%s\" failed\n", run->name);
	return r;
}

static int play(struct demo_run *run, const struct demo_options *opt, const char *socket,
		const char *question, uint32_t split)
{
	int r = start(run, opt, socket, 0, question, split);

	return r < 0 ? r : finish(run);
}

static void say(const char *text)
{
	printf("%s\n", text);
	fflush(stdout);
}

static int play_all(struct demo_run *runs, const struct demo_options *opt, const char *socket)
{
	int r;

	say("1/4  A process answers a question about a document. Nothing is cached.");
	r = play(&runs[FIRST], opt, socket, questions[FIRST], 0);
	if (r < 0)
		return r;
	say("2/4  Another process, another question about the same document.");
	r = play(&runs[SECOND], opt, socket, questions[SECOND], 0);
	if (r < 0)
		return r;
	say("3/4  The same question, computed without the pool; then again, split at the same "
	    "token, to compare bits.");
	r = play(&runs[COLD], opt, NULL, questions[COLD], runs[SECOND].result.reused_tokens);
	if (r < 0)
		return r;
	say("4/4  Two processes at once, with a new document: one computes, the other waits for "
	    "it.");
	r = start(&runs[TWIN_A], opt, socket, 1, questions[TWIN_A], 0);
	if (r == 0)
		r = start(&runs[TWIN_B], opt, socket, 1, questions[TWIN_B], 0);
	if (r == 0)
		r = finish(&runs[TWIN_A]);
	return r < 0 ? r : finish(&runs[TWIN_B]);
}

/* The operator's view, while the daemon still runs. */
static void show_status(const struct demo_options *opt, const char *socket)
{
	char admin[400];
	pid_t pid;

	snprintf(admin, sizeof(admin), "%s.admin", socket);
	printf("\n$ kvpoolctl status\n");
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		execlp(opt->ctl, "kvpoolctl", "--socket", admin, "status", (char *)NULL);
		fprintf(stderr, "kvpool-demo: cannot run %s: %s\n", opt->ctl, strerror(errno));
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

/* One of the two computed, the other one took all of it. */
static int flew_once(const struct demo_run *a, const struct demo_run *b)
{
	const struct demo_result *computed = &a->result, *took = &b->result;

	if (computed->reused_tokens > took->reused_tokens) {
		computed = &b->result;
		took = &a->result;
	}
	return computed->reused_tokens == 0 && took->reused_tokens > 0 && took->waited;
}

static int judge(const struct demo_run *runs, const struct demo_options *opt)
{
	const struct demo_result *warm = &runs[SECOND].result, *cold = &runs[COLD].result;
	int equal = warm->n_logits == cold->n_logits &&
		    !memcmp(runs[SECOND].logits, runs[COLD].logits, warm->n_logits * sizeof(float));
	double speedup = cold->ttft / warm->ttft;

	demo_print(runs, RUNS, equal, speedup);
	if (opt->json && demo_write_json(opt->json, runs, RUNS, equal, speedup) < 0)
		return 1;
	if (!equal)
		fprintf(stderr, "kvpool-demo: the logits of the warm run differ from those of the "
				"cold one\n");
	if (!warm->reused_tokens)
		fprintf(stderr, "kvpool-demo: the second process reused nothing\n");
	if (!flew_once(&runs[TWIN_A], &runs[TWIN_B]))
		fprintf(stderr,
			"kvpool-demo: the two processes at once did not share one computation\n");
	return equal && warm->reused_tokens && flew_once(&runs[TWIN_A], &runs[TWIN_B]) ? 0 : 1;
}

int demo_stage(const struct demo_options *opt)
{
	struct demo_run runs[RUNS] = {
		[FIRST] = { .name = "first", .text = "first process" },
		[SECOND] = { .name = "second", .text = "second process" },
		[COLD] = { .name = "cold", .text = "without the pool" },
		[TWIN_A] = { .name = "at_once_a", .text = "at once, A" },
		[TWIN_B] = { .name = "at_once_b", .text = "at once, B" },
	};
	struct private_daemon daemon;
	int code = 1;

	if (private_daemon_start(&daemon, opt->daemon, "kvpool-demo", POOL_BYTES, 0) < 0)
		return 1;
	if (play_all(runs, opt, daemon.socket) == 0) {
		code = judge(runs, opt);
		show_status(opt, daemon.socket);
	}
	private_daemon_stop(&daemon);
	for (unsigned int i = 0; i < RUNS; i++)
		free(runs[i].logits);
	return code;
}
