/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "tests/shm/random.h"
#include "tests/shm/sim_memory.h"

#define STACK_BYTES (256u << 10)

/* One access in so many passes the turn on; one in so many lets a waiting store reach memory. */
#define TURN_ONE_IN  3
#define DRAIN_ONE_IN 6
/* One turn in so many is the last one for a while: others get far ahead of who was interrupted. */
#define SLEEP_ONE_IN 100
#define SLEEP_TURNS  1000

struct actor {
	ucontext_t context;
	void *stack;
	void (*main)(void *arg);
	void *arg;
	int alive;
	uint64_t awake; /* when it has its next turn at the earliest */
};

static struct {
	struct actor actor[SIM_ACTORS];
	int running; /* -1 outside of the actors */
	ucontext_t scheduler;
	struct random rnd;
	uint64_t now;
} sim;

void sim_init(uint64_t seed, enum sim_memory model)
{
	for (unsigned int a = 0; a < SIM_ACTORS; a++)
		free(sim.actor[a].stack);
	memset(&sim, 0, sizeof(sim));
	sim.rnd = random_seed(seed);
	sim.running = -1;
	memory_init(model);
}

uint64_t sim_now(void)
{
	return sim.now;
}

uint32_t sim_random(uint32_t below)
{
	return random_below(&sim.rnd, below);
}

static void entry(void)
{
	struct actor *me = &sim.actor[sim.running];

	me->main(me->arg);
	me->alive = 0;
	memory_sync((unsigned int)sim.running);
	swapcontext(&me->context, &sim.scheduler);
	abort();
}

void sim_start(unsigned int a, void (*main)(void *arg), void *arg)
{
	struct actor *x = &sim.actor[a];

	assert(!x->alive);
	memory_sync(a);
	if (!x->stack)
		x->stack = malloc(STACK_BYTES);
	assert(x->stack && getcontext(&x->context) == 0);
	x->main = main;
	x->arg = arg;
	x->alive = 1;
	x->awake = sim.now;
	x->context.uc_stack.ss_sp = x->stack;
	x->context.uc_stack.ss_size = STACK_BYTES;
	x->context.uc_link = NULL;
	makecontext(&x->context, entry, 0);
}

void sim_kill(unsigned int a)
{
	assert(sim.running != (int)a);
	sim.actor[a].alive = 0;
	memory_sync(a);
}

int sim_alive(unsigned int a)
{
	return sim.actor[a].alive;
}

unsigned int sim_pending(unsigned int a)
{
	return memory_pending(a);
}

void sim_message(void)
{
	memory_sync((unsigned int)sim.running);
}

static void turn(unsigned int a)
{
	struct actor *x = &sim.actor[a];

	sim.running = (int)a;
	swapcontext(&sim.scheduler, &x->context);
	sim.running = -1;
	if (!sim_random(SLEEP_ONE_IN))
		x->awake = sim.now + sim_random(SLEEP_TURNS);
}

void sim_run(uint64_t n, void (*tick)(void *ctx), void *ctx)
{
	for (uint64_t end = sim.now + n; sim.now < end; sim.now++) {
		unsigned int a = sim_random(SIM_ACTORS);

		if (!sim.actor[a].alive || sim.actor[a].awake > sim.now)
			continue;
		turn(a);
		tick(ctx);
	}
}

void sim_pass(void)
{
	swapcontext(&sim.actor[sim.running].context, &sim.scheduler);
}

/* A place where the turn may pass to another actor. */
static void point(void)
{
	if (!sim_random(DRAIN_ONE_IN))
		memory_drain(sim_random(SIM_ACTORS));
	if (!sim_random(TURN_ONE_IN))
		sim_pass();
}

uint64_t sim_load(const void *p, size_t size, int acquire)
{
	uint64_t v = 0;

	if (sim.running < 0) {
		memcpy(&v, p, size);
		return v;
	}
	point();
	return memory_load((unsigned int)sim.running, p, size, acquire);
}

uint64_t sim_peek(const void *p, size_t size)
{
	uint64_t v = 0;

	if (sim.running >= 0)
		return memory_load((unsigned int)sim.running, p, size, 0);
	memcpy(&v, p, size);
	return v;
}

void sim_store(void *p, size_t size, uint64_t value, int release)
{
	if (sim.running < 0) {
		memory_poke(p, size, value);
		return;
	}
	point();
	memory_store((unsigned int)sim.running, p, size, value, release);
}

void sim_fence_release(void)
{
	if (sim.running < 0)
		return;
	point();
	memory_fence_release((unsigned int)sim.running);
}

void sim_fence_full(void)
{
	if (sim.running < 0)
		return;
	point();
	memory_fence_full((unsigned int)sim.running);
}

uint64_t sim_add(void *p, size_t size, uint64_t value)
{
	assert(sim.running >= 0);
	point();
	return memory_add((unsigned int)sim.running, p, size, value);
}
