/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <assert.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "tests/litmus/race.h"

/* Time to meet, and how far from a tie a round may be: in ticks. */
#define LEAD   1000
#define SPREAD 128
#define STEP   2

static uint64_t ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t t;

	__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(t));
	return t;
#else
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#endif
}

int race_processors(int cpu[2])
{
	cpu_set_t set;
	int n = 0;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
			if (CPU_ISSET(i, &set))
				cpu[n++] = i;
	if (n == 2)
		return 0;
	printf("skipped: two processors are needed, this process may run on %d\n", n);
	return -1;
}

void race_run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert(sched_setaffinity(0, sizeof(set), &set) == 0);
}

/* The driver alone has a child. */
static int child_has_ended(void)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid;
}

/* The other one may not be running at all: then its turn comes sooner. */
static void wait_for(const uint64_t *word, uint64_t value)
{
	for (unsigned int spins = 1; load_acquire(word) != value; spins++) {
		if (spins % 4096)
			continue;
		sched_yield();
		if (child_has_ended() && load_acquire(word) != value) {
			printf("the other process has ended in the middle of a round\n");
			exit(1);
		}
	}
}

static void other_side(struct race *race, uint64_t rounds,
		       uint64_t (*step)(struct race *race, void *ctx), void *ctx)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (uint64_t i = 1; i <= rounds; i++) {
		wait_for(&race->round, i);
		race->result = step(race, ctx);
		store_release(&race->done, i);
	}
}

struct race_driver race_start(const int cpu[2], uint64_t rounds,
			      uint64_t (*step)(struct race *race, void *ctx), void *ctx)
{
	struct race_driver d = { .rnd = random_seed(1) };
	pid_t pid;

	d.race = mmap(NULL, sizeof(*d.race), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert(d.race != MAP_FAILED);
	pid = fork();
	assert(pid >= 0);
	if (!pid) {
		race_run_on(cpu[1]);
		other_side(d.race, rounds, step, ctx);
		_exit(0);
	}
	race_run_on(cpu[0]);
	return d;
}

void race_wait(struct race *race)
{
	uint64_t at;

	store_release(&race->ready, race->round);
	for (unsigned int spins = 1; !(at = load_acquire(&race->at)); spins++)
		if (spins % 4096 == 0)
			sched_yield();
	while ((int64_t)(ticks() - at) < 0)
		;
}

void race_go(struct race_driver *d)
{
	int64_t off = d->skew + (int64_t)random_below(&d->rnd, 2 * SPREAD + 1) - SPREAD;
	uint64_t at;

	store_relaxed(&d->race->at, 0);
	store_release(&d->race->round, d->race->round + 1);
	wait_for(&d->race->ready, d->race->round);
	at = ticks() + LEAD;
	store_release(&d->race->at, at);
	while ((int64_t)(ticks() - at) < off)
		;
}

uint64_t race_result(struct race_driver *d)
{
	wait_for(&d->race->done, d->race->round);
	return d->race->result;
}

void race_came_first(struct race_driver *d, int other)
{
	d->skew += other ? -STEP : STEP;
	if (d->skew > LEAD / 2 || d->skew < -LEAD / 2)
		d->skew = 0; /* somebody was not running: no news about the tie */
}

void race_end(struct race_driver *d)
{
	int status;

	assert(wait(&status) > 0);
	assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	munmap(d->race, sizeof(*d->race));
}
