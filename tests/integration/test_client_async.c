/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that must not block, beside a daemon that stops and dies. In the first part the kernel
 * sees to it: a filter ends the process at any system call with which the library could wait. The
 * test itself waits with select(), which the library has no use for.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/kvpool-hint.h"
#include "client/kvpool-seq.h"
#include "tests/integration/daemon.h"
#include "tests/integration/pattern.h"

#define BT    PATTERN_BLOCK_TOKENS
#define BYTES 4096u
#define DEPTH 1500u /* two messages */
#define MANY  600u
#define SLOTS 300u /* of a sequence */
#define WAITS 64u  /* of one client, that the daemon takes */

struct client {
	struct kvpool *pool;
	struct kvpool_ns *ns;
	int32_t tokens[DEPTH * BT + 1];
	unsigned int n_done;
	long result;
};

static struct client c;
static struct daemon d;

#define LOAD(field)                                                                                \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
/* Goes on with the next instruction where it is the number, else skips n. */
#define IS(number, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(number), 0, (n))
#define HAS_NOT(bit)  BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (uint32_t)(bit), 1, 0)
#define KILL          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define ALLOW         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* A call is killed without that bit in the argument. */
#define WANTS(number, argument, bit)                                                               \
	LOAD(nr), IS(number, 4), LOAD(args[argument]), HAS_NOT(bit), KILL, ALLOW

/* What can wait, unless its arguments say that it does not. */
static struct sock_filter filter[] = {
	WANTS(SYS_socket, 1, SOCK_NONBLOCK),
	WANTS(SYS_sendmsg, 2, MSG_DONTWAIT),
	WANTS(SYS_recvmsg, 2, MSG_DONTWAIT),
	WANTS(SYS_eventfd2, 1, EFD_NONBLOCK),
	WANTS(SYS_timerfd_create, 1, TFD_NONBLOCK),
	/* Only waking others. */
	LOAD(nr),
	IS(SYS_futex, 5),
	LOAD(args[1]),
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (uint32_t)FUTEX_CMD_MASK),
	IS(FUTEX_WAKE, 1),
	ALLOW,
	KILL,
	/* Only looking. */
	LOAD(nr),
	IS(SYS_epoll_wait, 4),
	LOAD(args[3]),
	IS(0, 1),
	ALLOW,
	KILL,
	LOAD(nr),
	IS(SYS_poll, 4),
	LOAD(args[2]),
	IS(0, 1),
	ALLOW,
	KILL,
	IS(SYS_ppoll, 1),
	KILL,
	IS(SYS_epoll_pwait, 1),
	KILL,
	IS(SYS_nanosleep, 1),
	KILL,
	IS(SYS_clock_nanosleep, 1),
	KILL,
	IS(SYS_recvfrom, 1),
	KILL,
	IS(SYS_sendto, 1),
	KILL,
	IS(SYS_wait4, 1),
	KILL,
	IS(SYS_pause, 1),
	KILL,
	ALLOW,
};

static void forbid_waiting(void)
{
	struct sock_fprog program = {
		.len = sizeof(filter) / sizeof(filter[0]),
		.filter = filter,
	};

	assert(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	assert(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* Sleeps until there is something to do, or ms are over, and does it. */
static void turn(int ms)
{
	struct timeval t = { ms / 1000, ms % 1000 * 1000 };
	int fd = kvpool_fd(c.pool);
	fd_set set;

	assert(fd >= 0 && fd < FD_SETSIZE);
	FD_ZERO(&set);
	FD_SET(fd, &set);
	assert(select(fd + 1, &set, NULL, NULL, &t) >= 0);
	assert(kvpool_dispatch(c.pool) >= 0);
}

static void on_wait(void *arg, struct kvpool_op *op)
{
	c.result = kvpool_wait_finish(op);
	c.n_done++;
}

static int start_wait(unsigned int timeout_ms)
{
	struct kvpool_op *op;

	return kvpool_wait_start(c.ns, c.tokens, DEPTH * BT, 0, timeout_ms, on_wait, NULL, &op);
}

/* Returns what a wait that only asks says. */
static long ask(void)
{
	unsigned int before = c.n_done;
	int err = start_wait(0);

	if (err < 0)
		return err;
	while (c.n_done == before)
		turn(1000);
	return c.result;
}

static void open_client(const char *name, uint64_t seed)
{
	c.pool = pattern_connect(d.socket, name);
	c.ns = pattern_ns(c.pool, "m", BYTES);
	pattern_tokens(seed, DEPTH, c.tokens);
}

/* Everything that a program does, from the first block to the last. */
static void store(void)
{
	struct kvpool_write *w;
	struct kvpool_op *op;
	int n;

	assert(kvpool_reserve_start(c.ns, c.tokens, DEPTH * BT, 0, 0, NULL, NULL, &op) == 0);
	while ((n = kvpool_reserve_finish(op, &w)) == -EINPROGRESS)
		turn(1000);
	assert(n == (int)DEPTH);
	for (size_t i = 0; i < DEPTH; i++)
		memset(kvpool_write_block(w, i), 1, BYTES);
	assert(kvpool_commit_start(w, DEPTH - 1, 0, NULL, NULL, &op) == 0);
	while ((n = kvpool_commit_finish(op)) == -EINPROGRESS)
		turn(1000);
	assert(n == (int)DEPTH - 1);
	kvpool_write_free_start(w);
	assert(ask() == (long)(DEPTH - 1) * (long)BT);
}

/* What the parent is told, and what it answers when it is done. */
static int to_parent, from_parent;

static void tell(char what)
{
	assert(write(to_parent, &what, 1) == 1);
	assert(read(from_parent, &what, 1) == 1);
}

/* The daemon sleeps: requests pile up and end; then it is killed, and another one comes. */
static void outlive_daemons(void)
{
	unsigned int n = 0;

	tell('s');
	c.n_done = 0;
	while (n < MANY && start_wait(200) == 0)
		n++;
	assert(n == MANY);
	while (c.n_done < n)
		turn(1000);
	assert(c.result == -ETIMEDOUT);
	assert(kvpool_state(c.pool) == KVPOOL_CONNECTED);
	assert(start_wait(10000) == 0);
	tell('k');
	while (c.n_done < n + 1)
		turn(1000);
	assert(c.result == -ENOTCONN);
	assert(start_wait(0) == -ENOTCONN);
	/* Nobody there for some tries. */
	for (int i = 0; i < 3; i++)
		turn(1000);
	tell('a');
	while (kvpool_state(c.pool) != KVPOOL_CONNECTED)
		turn(1000);
	assert(ask() == 0);
	store();
	/* A daemon that sleeps from the start on: the connection waits in its backlog. */
	tell('z');
	while (kvpool_state(c.pool) == KVPOOL_CONNECTED)
		turn(1000);
	for (int i = 0; i < 20; i++)
		turn(10);
	assert(kvpool_state(c.pool) == KVPOOL_DISCONNECTED);
	tell('w');
	while (kvpool_state(c.pool) != KVPOOL_CONNECTED)
		turn(1000);
	assert(ask() == 0);
}

static void run_strict(void)
{
	open_client("strict", 1);
	/* From here on the process dies where it would wait. */
	forbid_waiting();
	assert(kvpool_fd(c.pool) >= 0);
	store();
	outlive_daemons();
	kvpool_ns_close(c.ns);
	kvpool_close(c.pool);
	_exit(0);
}

/* From the first call to the last: connects, decodes into the pool, stores, frees. */
static void run_later(void)
{
	const struct kvpool_options o = {
		.size = sizeof(o),
		.socket = d.socket,
		.flags = KVPOOL_CONNECT_LATER,
	};
	const struct kvpool_hint hint = { .size = sizeof(hint), .reuse_s = 60 };
	struct kvpool_seq *seq;
	struct kvpool_op *op;
	long n;

	forbid_waiting();
	assert(kvpool_connect(&o, &c.pool) == 0);
	c.ns = pattern_ns(c.pool, "later", BYTES);
	pattern_tokens(3, SLOTS, c.tokens);
	while (kvpool_state(c.pool) != KVPOOL_CONNECTED)
		turn(1000);
	assert(kvpool_seq_new(c.ns, SLOTS, &seq) == 0);
	assert(kvpool_seq_grow_start(seq, SLOTS, 0, NULL, NULL, &op) == 0);
	while ((n = kvpool_seq_grow_finish(op)) == -EINPROGRESS)
		turn(1000);
	assert(n == (long)SLOTS);
	for (size_t i = 0; i < SLOTS; i++)
		memset(kvpool_seq_own_block(seq, i), 3, BYTES);
	assert(kvpool_seq_commit_start(seq, c.tokens, (SLOTS - 2) * BT, 0, 0, NULL, NULL, &op) ==
	       0);
	while ((n = kvpool_seq_commit_finish(op)) == -EINPROGRESS)
		turn(1000);
	assert(n == (long)SLOTS - 2);
	assert(kvpool_hint_start(c.ns, c.tokens, SLOTS * BT, &hint) == 0);
	assert(kvpool_seq_truncate_start(seq, SLOTS - 1) == 0);
	kvpool_seq_free_start(seq);
	assert(ask() == (long)(SLOTS - 2) * (long)BT);
	kvpool_ns_close(c.ns);
	kvpool_close(c.pool);
	_exit(0);
}

/* The filter does what it is for: a call that blocks dies. */
static void run_control(void)
{
	open_client("control", 1);
	forbid_waiting();
	kvpool_wait(c.ns, c.tokens, DEPTH * BT, 0, 100);
	kvpool_ping(c.pool);
	kill(d.pid, SIGSTOP);
	kvpool_ping(c.pool);
	_exit(0);
}

static void serve(char what)
{
	switch (what) {
	case 's':
		assert(kill(d.pid, SIGSTOP) == 0);
		return;
	case 'k':
		assert(daemon_kill(&d) == -SIGKILL);
		return;
	case 'a':
		assert(daemon_again(&d, NULL) == 0);
		return;
	case 'z':
		assert(daemon_kill(&d) == -SIGKILL);
		assert(daemon_again(&d, NULL) == 0);
		assert(kill(d.pid, SIGSTOP) == 0);
		return;
	default:
		assert(kill(d.pid, SIGCONT) == 0);
	}
}

/* Runs part in a process of its own, and does to the daemon what it asks for. Returns its status.
 */
static int run(void (*part)(void))
{
	int up[2], down[2], status;
	pid_t pid;
	char what;

	assert(pipe(up) == 0 && pipe(down) == 0);
	pid = fork();
	assert(pid >= 0);
	if (!pid) {
		close(up[0]);
		close(down[1]);
		to_parent = up[1];
		from_parent = down[0];
		part();
	}
	close(up[1]);
	close(down[0]);
	while (read(up[0], &what, 1) == 1) {
		serve(what);
		assert(write(down[1], "", 1) == 1);
	}
	close(up[0]);
	close(down[1]);
	assert(waitpid(pid, &status, 0) == pid);
	return status;
}

/* The daemon bounds waits, and says so; a writer that dies ends them. */
static void bound_of_waits(void)
{
	struct kvpool *pool = pattern_connect(d.socket, "writer");
	struct kvpool_ns *ns = pattern_ns(pool, "m", BYTES);
	struct kvpool_op *op[WAITS];
	struct kvpool_write *w;
	char text[300];

	open_client("waiter", 2);
	assert(kvpool_reserve(ns, c.tokens, 2 * BT, 0, &w) == 2);
	/* Those that are cancelled make room. */
	for (unsigned int i = 0; i < WAITS; i++) {
		assert(kvpool_wait_start(c.ns, c.tokens, 2 * BT, 0, 60000, NULL, NULL, &op[i]) ==
		       0);
	}
	for (unsigned int i = 0; i < WAITS; i++) {
		kvpool_op_cancel(op[i]);
		kvpool_op_free(op[i]);
	}
	for (unsigned int i = 0; i < WAITS + 1; i++) {
		assert(kvpool_wait_start(c.ns, c.tokens, 2 * BT, 0, 60000, on_wait, NULL, op) == 0);
	}
	while (!c.n_done)
		turn(1000);
	assert(c.n_done == 1 && c.result == -ENOSPC);
	kvpool_error(c.pool, text, sizeof(text));
	assert(strstr(text, "this client waits for too much already"));
	for (size_t i = 0; i < 2; i++)
		memset(kvpool_write_block(w, i), 2, BYTES);
	assert(kvpool_commit(w, 2) == 2);
	while (c.n_done < WAITS + 1)
		turn(1000);
	assert(c.result == 2 * (long)BT);
	kvpool_write_free(w);
	kvpool_ns_close(ns);
	kvpool_close(pool);
	kvpool_ns_close(c.ns);
	kvpool_close(c.pool);
}

int main(void)
{
	int status;

	assert(daemon_start(&d, NULL) == 0);
	bound_of_waits();
	status = run(run_control);
	assert(kill(d.pid, SIGCONT) == 0);
	assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	status = run(run_later);
	assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	status = run(run_strict);
	if (WIFSIGNALED(status))
		fprintf(stderr, "killed by signal %d: would it have waited?\n", WTERMSIG(status));
	assert(daemon_end(&d) == 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
