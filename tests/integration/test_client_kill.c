/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill -9 of a client at each point of its work, and a connection that is dropped while another
 *thread reads: all that it held comes back, nothing that is being read is used again, and others go
 *on. One row for each point:
 *
 *	test_client_kill ROW
 */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "tests/integration/admin.h"
#include "tests/integration/pattern.h"

#define BLOCK  8192u
#define DEPTH  16u
#define TOKENS (DEPTH * PATTERN_BLOCK_TOKENS)
#define MINE   1u /* the chain of the client that dies */
#define OTHER  2u
#define FLOOD  1000u /* chains from here on are written by others to need room */

struct scene {
	struct daemon d;
	struct kvpool *pool; /* of the client that lives */
	struct kvpool_ns *ns;
	struct kvpool_lease *lease;
	int ready[2]; /* the one that dies says when */
};

/* The client that dies: its own connection, in its own process. */
struct victim {
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct kvpool_lease *lease;
	struct kvpool_write *write;
	int32_t tokens[TOKENS + 1];
};

static void acquired(struct victim *v)
{
	assert(pattern_publish(v->ns, MINE, DEPTH) == DEPTH);
	assert(pattern_acquire(v->ns, v->lease, MINE, DEPTH) == DEPTH);
}

static void reserved(struct victim *v)
{
	assert(kvpool_reserve(v->ns, v->tokens, TOKENS, 0, &v->write) == DEPTH);
}

static void half_written(struct victim *v)
{
	reserved(v);
	for (size_t i = 0; i < DEPTH / 2; i++)
		pattern_fill(MINE, i, kvpool_write_block(v->write, i), BLOCK);
	memset(kvpool_write_block(v->write, DEPTH / 2), 0xee, BLOCK / 2);
}

/* Everything is written; the commit is sent by commit_into_silence when the daemon no longer
 * answers. */
static void written(struct victim *v)
{
	reserved(v);
	for (size_t i = 0; i < DEPTH; i++)
		pattern_fill(MINE, i, kvpool_write_block(v->write, i), BLOCK);
}

static void commit_into_silence(struct victim *v)
{
	kvpool_commit(v->write, DEPTH);
}

static void nothing(struct victim *v)
{
}

static void wait_for_other(struct victim *v)
{
	pattern_tokens(OTHER, DEPTH, v->tokens);
	kvpool_wait(v->ns, v->tokens, TOKENS, 0, 60000);
}

struct row {
	const char *name;
	void (*before)(struct victim *v); /* then it says that it is ready */
	void (*after)(struct victim *v);  /* then it does this until it is killed */
	int stop_daemon;                  /* while it does */
	int other_writes;                 /* somebody else has OTHER reserved meanwhile */
	int left;                         /* blocks of MINE that must be there afterwards */
};

static const struct row rows[] = {
	{ .name = "acquired", .before = acquired, .after = nothing, .left = DEPTH },
	{ .name = "reserved", .before = reserved, .after = nothing },
	{ .name = "half_written", .before = half_written, .after = nothing },
	{ .name = "committed_not_answered",
	  .before = written,
	  .after = commit_into_silence,
	  .stop_daemon = 1,
	  .left = DEPTH },
	{ .name = "waiting", .before = nothing, .after = wait_for_other, .other_writes = 1 },
};

static void run_victim(struct scene *s, const struct row *row)
{
	struct victim v;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	v.pool = pattern_connect(s->d.socket, "victim");
	v.ns = pattern_ns(v.pool, "kill", BLOCK);
	assert(kvpool_lease_new(v.pool, DEPTH, &v.lease) == 0);
	pattern_tokens(MINE, DEPTH, v.tokens);
	row->before(&v);
	assert(write(s->ready[1], "r", 1) == 1);
	usleep(100000); /* the daemon is stopped now, where the row says so */
	row->after(&v);
	pause();
}

static void scene_open(struct scene *s)
{
	static const char *const args[] = { "--pool-size", "8M", NULL };

	assert(daemon_start(&s->d, args) == 0 && pipe(s->ready) == 0);
	s->pool = pattern_connect(s->d.socket, "survivor");
	s->ns = pattern_ns(s->pool, "kill", BLOCK);
	assert(kvpool_lease_new(s->pool, DEPTH, &s->lease) == 0);
}

static void scene_close(struct scene *s)
{
	kvpool_lease_free(s->lease);
	kvpool_ns_close(s->ns);
	kvpool_close(s->pool);
	admin_wait_quiet(&s->d, 0);
	assert(daemon_end(&s->d) == 0);
}

/* More than the pool has room for, twice: whatever is free or can be evicted gets new bytes. */
static void flood(struct scene *s, uint64_t first)
{
	for (uint64_t c = 0; c < 128; c++) {
		int r = pattern_publish(s->ns, first + c, DEPTH);

		assert(r == DEPTH);
	}
}

static void kill_at(struct scene *s, const struct row *row)
{
	struct kvpool_write *other = NULL;
	int32_t tokens[TOKENS + 1];
	char byte;
	pid_t pid;

	pattern_tokens(OTHER, DEPTH, tokens);
	if (row->other_writes)
		assert(kvpool_reserve(s->ns, tokens, TOKENS, 0, &other) == DEPTH);
	pid = fork();
	if (pid == 0)
		run_victim(s, row);
	assert(pid > 0 && read(s->ready[0], &byte, 1) == 1);
	if (row->stop_daemon)
		assert(kill(s->d.pid, SIGSTOP) == 0);
	usleep(400000); /* it is in row->after by now */
	assert(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	if (row->stop_daemon)
		assert(kill(s->d.pid, SIGCONT) == 0);
	kvpool_write_free(other);
	printf("%s: all back %.2f s after the kill\n", row->name, admin_wait_quiet(&s->d, 1));
}

static void run_row(const struct row *row)
{
	struct scene s;

	scene_open(&s);
	kill_at(&s, row);
	assert(pattern_acquire(s.ns, s.lease, MINE, DEPTH) == (size_t)row->left);
	kvpool_release(s.lease);
	/* Its keys can be stored by others at once, and all of the pool is usable again. */
	assert(pattern_publish(s.ns, MINE, DEPTH) == (int)(DEPTH - (unsigned int)row->left));
	assert(pattern_acquire(s.ns, s.lease, MINE, DEPTH) == DEPTH);
	kvpool_release(s.lease);
	flood(&s, FLOOD);
	assert(admin_status(&s.d)->ended_crash == 1);
	scene_close(&s);
}

#define FDS_MAX 1024

/* Marks every descriptor that is a socket. */
static void find_sockets(char found[FDS_MAX])
{
	struct stat st;

	for (int fd = 0; fd < FDS_MAX; fd++)
		found[fd] = fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Cuts the library's own connection under it: the one socket that was not there before. */
static void drop_connection(const char before[FDS_MAX])
{
	char now[FDS_MAX];
	int cut = 0;

	find_sockets(now);
	for (int fd = 0; fd < FDS_MAX; fd++)
		if (now[fd] && !before[fd])
			cut += shutdown(fd, SHUT_RDWR) == 0;
	assert(cut == 1);
}

struct reader {
	struct kvpool_lease *lease;
	int stop;
	uint64_t rounds;
};

static void *read_on(void *arg)
{
	struct reader *r = arg;

	while (!load_acquire(&r->stop)) {
		for (size_t i = 0; i < DEPTH; i++)
			assert(pattern_check(MINE, i, kvpool_lease_block(r->lease, i), BLOCK));
		r->rounds++;
	}
	return NULL;
}

/* In a process of its own: holds a lease, loses its connection, reads on; lets go when it is told
 * to. */
static void run_dropped(struct scene *s, int go)
{
	struct reader r = { .stop = 0 };
	char byte, sockets[FDS_MAX];
	struct kvpool *pool;
	struct kvpool_ns *ns;
	pthread_t thread;

	find_sockets(sockets);
	pool = pattern_connect(s->d.socket, "dropped");
	ns = pattern_ns(pool, "kill", BLOCK);
	assert(kvpool_lease_new(pool, DEPTH, &r.lease) == 0);
	assert(pattern_publish(ns, MINE, DEPTH) == DEPTH);
	assert(pattern_acquire(ns, r.lease, MINE, DEPTH) == DEPTH);
	assert(pthread_create(&thread, NULL, read_on, &r) == 0);
	drop_connection(sockets);
	assert(write(s->ready[1], "r", 1) == 1);
	assert(read(go, &byte, 1) == 1);
	store_release(&r.stop, 1);
	pthread_join(thread, NULL);
	assert(r.rounds > 0);
	/* It comes back by itself, with what it still holds. */
	assert(kvpool_reconnect(pool) == 0 && kvpool_state(pool) == KVPOOL_CONNECTED);
	assert(pattern_check(MINE, 0, kvpool_lease_block(r.lease, 0), BLOCK));
	kvpool_lease_free(r.lease);
	kvpool_ns_close(ns);
	kvpool_close(pool);
	exit(0);
}

static void run_drop(void)
{
	struct scene s;
	int go[2], status;
	char byte;
	pid_t pid;

	scene_open(&s);
	assert(pipe(go) == 0);
	pid = fork();
	if (pid == 0)
		run_dropped(&s, go[0]);
	assert(pid > 0 && read(s.ready[0], &byte, 1) == 1);
	/* While it reads, others need all the room there is. */
	flood(&s, FLOOD);
	flood(&s, FLOOD + 128);
	assert(write(go[1], "g", 1) == 1);
	assert(waitpid(pid, &status, 0) == pid && status == 0);
	printf("dropped: all back %.2f s after the end\n", admin_wait_quiet(&s.d, 1));
	scene_close(&s);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IONBF, 0);
	if (!strcmp(name, "dropped")) {
		run_drop();
		return 0;
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++)
		if (!strcmp(name, rows[i].name)) {
			run_row(&rows[i]);
			return 0;
		}
	fprintf(stderr, "test_client_kill: no row \"%s\"\n", name);
	return 1;
}
