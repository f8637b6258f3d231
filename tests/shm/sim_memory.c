/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <assert.h>
#include <string.h>

#include "base/compiler.h"
#include "tests/shm/sim_memory.h"

/* Store buffers: SIM_TSO. */
#define BUFFER_DEPTH 8u

struct waiting_store {
	void *p;
	size_t size;
	uint64_t value;
};

struct buffer {
	struct waiting_store store[BUFFER_DEPTH];
	unsigned int n;
};

/*
 * Views: SIM_C11. Each place has its last stores, numbered; a view says, for each place, the oldest
 * of them that may still be read. A store carries the view that an acquire load of it takes over.
 */
#define PLACES  1024u
#define HISTORY 8u

struct view {
	uint32_t from[PLACES];
};

struct stored {
	uint64_t value;
	struct view released;
};

struct place {
	const void *p;
	size_t size;
	uint32_t last; /* number of the newest store; 0 is what stood there before the first */
	struct stored stored[HISTORY];
};

struct thread_view {
	struct view now;      /* what its loads must heed */
	struct view read;     /* now, and what relaxed loads have found: taken over by a fence */
	struct view released; /* now, at its last release fence */
};

static struct {
	enum sim_memory model;
	struct buffer buffer[SIM_ACTORS];
	struct thread_view thread[SIM_ACTORS];
	struct view fences; /* of all full fences */
	struct place place[PLACES];
	unsigned int n_places;
} memory;

void memory_init(enum sim_memory model)
{
	memset(&memory, 0, sizeof(memory));
	memory.model = model;
}

static uint64_t read_memory(const void *p, size_t size)
{
	uint64_t v = 0;

	memcpy(&v, p, size);
	return v;
}

/* A hash table by address; a place is made when it is first seen, with what stands there. */
static uint32_t place_of(const void *p, size_t size)
{
	uint32_t i = (uint32_t)((uintptr_t)p / 4 * 2654435761u % PLACES);

	for (; memory.place[i].p != p; i = (i + 1) % PLACES) {
		struct place *x = &memory.place[i];

		if (x->p)
			continue;
		assert(++memory.n_places < PLACES * 3 / 4);
		x->p = p;
		x->size = size;
		x->stored[0].value = read_memory(p, size);
		break;
	}
	assert(memory.place[i].size == size);
	return i;
}

static void join(struct view *to, const struct view *from)
{
	for (unsigned int i = 0; i < PLACES; i++)
		to->from[i] = MAX(to->from[i], from->from[i]);
}

static uint64_t view_load(struct thread_view *t, const void *p, size_t size, int acquire)
{
	uint32_t i = place_of(p, size);
	const struct place *x = &memory.place[i];
	uint32_t oldest = x->last < HISTORY ? 0 : x->last - HISTORY + 1;
	uint32_t from = MAX(t->now.from[i], oldest);
	uint32_t at = x->last - sim_random(x->last - from + 1);
	const struct stored *s = &x->stored[at % HISTORY];

	t->now.from[i] = MAX(t->now.from[i], at);
	t->read.from[i] = MAX(t->read.from[i], at);
	join(&t->read, &s->released);
	if (acquire)
		join(&t->now, &s->released);
	return s->value;
}

static void view_store(struct thread_view *t, void *p, size_t size, uint64_t value,
		       const struct view *released)
{
	uint32_t i = place_of(p, size), at = ++memory.place[i].last;
	struct stored *s = &memory.place[i].stored[at % HISTORY];

	t->now.from[i] = t->read.from[i] = at;
	s->value = value;
	s->released = *released;
	s->released.from[i] = at;
	memcpy(p, &value, size);
}

static void view_fence_full(struct thread_view *t)
{
	join(&t->read, &memory.fences);
	t->now = t->released = memory.fences = t->read;
}

static void view_sync(struct thread_view *t)
{
	for (unsigned int i = 0; i < PLACES; i++)
		t->now.from[i] = memory.place[i].last;
	t->read = t->released = t->now;
}

void memory_drain(unsigned int a)
{
	struct buffer *b = &memory.buffer[a];

	if (!b->n)
		return;
	memcpy(b->store[0].p, &b->store[0].value, b->store[0].size);
	b->n--;
	memmove(&b->store[0], &b->store[1], b->n * sizeof(b->store[0]));
}

static void drain_all(unsigned int a)
{
	while (memory.buffer[a].n)
		memory_drain(a);
}

unsigned int memory_pending(unsigned int a)
{
	return memory.buffer[a].n;
}

void memory_sync(unsigned int a)
{
	drain_all(a);
	if (memory.model == SIM_C11)
		view_sync(&memory.thread[a]);
}

void memory_poke(void *p, size_t size, uint64_t value)
{
	struct thread_view nobody = { .now.from = { 0 } };

	if (memory.model == SIM_C11)
		view_store(&nobody, p, size, value, &nobody.now);
	else
		memcpy(p, &value, size);
}

uint64_t memory_load(unsigned int a, const void *p, size_t size, int acquire)
{
	const struct buffer *b = &memory.buffer[a];

	if (memory.model == SIM_C11)
		return view_load(&memory.thread[a], p, size, acquire);
	for (unsigned int i = b->n; i-- > 0;)
		if (b->store[i].p == p) {
			assert(b->store[i].size == size);
			return b->store[i].value;
		}
	return read_memory(p, size);
}

void memory_store(unsigned int a, void *p, size_t size, uint64_t value, int release)
{
	struct buffer *b = &memory.buffer[a];
	struct thread_view *t = &memory.thread[a];

	switch (memory.model) {
	case SIM_C11:
		view_store(t, p, size, value, release ? &t->now : &t->released);
		break;
	case SIM_TSO:
		if (b->n == BUFFER_DEPTH)
			memory_drain(a);
		b->store[b->n++] = (struct waiting_store){ p, size, value };
		break;
	default:
		memcpy(p, &value, size);
		break;
	}
}

void memory_fence_release(unsigned int a)
{
	memory.thread[a].released = memory.thread[a].now;
}

void memory_fence_full(unsigned int a)
{
	drain_all(a);
	view_fence_full(&memory.thread[a]);
}

/* A relaxed read-modify-write: of the newest store, whose view it hands on. */
uint64_t memory_add(unsigned int a, void *p, size_t size, uint64_t value)
{
	struct thread_view *t = &memory.thread[a];
	uint64_t before;

	drain_all(a);
	before = read_memory(p, size);
	value += before;
	if (memory.model == SIM_C11) {
		struct place *x = &memory.place[place_of(p, size)];
		struct view released = x->stored[x->last % HISTORY].released;

		join(&t->read, &released);
		join(&released, &t->released);
		view_store(t, p, size, value, &released);
	} else {
		memcpy(p, &value, size);
	}
	return before;
}
