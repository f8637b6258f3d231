/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target without a fuzzer:
 *
 *	DRIVER RUNS            its seeds, then RUNS inputs made from them, always the same ones
 *	DRIVER --write FOLDER  writes the seeds there, for a fuzzer
 *	DRIVER --replay FILE   runs one input, such as a fuzzer found
 *
 * Inputs end where the next page is not there, so that reading behind them ends the process.
 */
#undef NDEBUG
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"
#include "tests/fuzz/fuzz.h"

#define INPUT_MAX 65536u
#define SEEDS_MAX 1024u
#define PAGE      4096u

struct seed {
	uint8_t *data;
	size_t n;
};

static struct seed seeds[SEEDS_MAX];
static unsigned int n_seeds;
static uint8_t *guard; /* the page that is not there */

static void add_seed(const void *data, size_t n)
{
	struct seed *s = &seeds[n_seeds++];

	assert(n_seeds <= SEEDS_MAX && n <= INPUT_MAX);
	s->data = malloc(n + 1);
	assert(s->data);
	memcpy(s->data, data, n);
	s->n = n;
}

static void run(const void *data, size_t n)
{
	memcpy(guard - n, data, n);
	(void)LLVMFuzzerTestOneInput(guard - n, n);
}

/* xorshift64*, from a fixed start. */
static uint32_t random_next(void)
{
	static uint64_t x = 0x9e3779b97f4a7c15;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	return (uint32_t)((x * 0x2545f4914f6cdd1d) >> 32);
}

static size_t random_below(size_t n)
{
	return n ? random_next() % n : 0;
}

/* Opens or closes a gap of up to 16 bytes. */
static size_t mutate_length(uint8_t *data, size_t n)
{
	size_t at = random_below(n + 1), gap = 1 + random_below(16);

	if (random_next() & 1) {
		gap = MIN(gap, n - at);
		memmove(data + at, data + at + gap, n - at - gap);
		return n - gap;
	}
	gap = MIN(gap, INPUT_MAX - n);
	memmove(data + at + gap, data + at, n - at);
	for (size_t i = 0; i < gap; i++)
		data[at + i] = (uint8_t)random_next();
	return n + gap;
}

/* Copies a piece of a seed over what is there. */
static void mutate_splice(uint8_t *data, size_t n)
{
	const struct seed *s = &seeds[random_below(n_seeds)];
	size_t from = random_below(s->n), at = random_below(n);
	size_t len = random_below(MIN(s->n - from, n - at) + 1);

	memcpy(data + at, s->data + from, len);
}

static size_t mutate_once(uint8_t *data, size_t n)
{
	static const uint8_t edges[] = { 0, 1, 0x7f, 0x80, 0xff };
	size_t at = random_below(n);

	switch (random_next() % 5) {
	case 0:
		if (n)
			data[at] ^= (uint8_t)(1u << random_below(8));
		return n;
	case 1:
		if (n)
			data[at] = edges[random_below(sizeof(edges))];
		return n;
	case 2:
		if (n)
			data[at] = (uint8_t)random_next();
		return n;
	case 3:
		if (n)
			mutate_splice(data, n);
		return n;
	default:
		return mutate_length(data, n);
	}
}

static void run_mutated(void)
{
	static uint8_t data[INPUT_MAX];
	const struct seed *s = &seeds[random_below(n_seeds)];
	size_t n = s->n, times = 1 + random_below(8);

	memcpy(data, s->data, n);
	while (times--)
		n = mutate_once(data, n);
	run(data, n);
}

static void write_seed(const char *folder, unsigned int i)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/seed-%u", folder, i);
	f = fopen(path, "wbe");
	assert(f && fwrite(seeds[i].data, 1, seeds[i].n, f) == seeds[i].n);
	assert(fclose(f) == 0);
}

static void replay(const char *path)
{
	static uint8_t data[INPUT_MAX];
	FILE *f = fopen(path, "rbe");
	size_t n;

	assert(f);
	n = fread(data, 1, sizeof(data), f);
	fclose(f);
	run(data, n);
}

static uint8_t *map_input(void)
{
	uint8_t *mem = mmap(NULL, INPUT_MAX + PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert(mem != MAP_FAILED && mprotect(mem + INPUT_MAX, PAGE, PROT_NONE) == 0);
	return mem + INPUT_MAX;
}

int main(int argc, char **argv)
{
	unsigned long runs;

	guard = map_input();
	fuzz_seeds(add_seed);
	if (argc == 3 && !strcmp(argv[1], "--replay")) {
		replay(argv[2]);
	} else if (argc == 3 && !strcmp(argv[1], "--write")) {
		for (unsigned int i = 0; i < n_seeds; i++)
			write_seed(argv[2], i);
	} else if (argc == 2) {
		runs = strtoul(argv[1], NULL, 10);
		for (unsigned int i = 0; i < n_seeds; i++)
			run(seeds[i].data, seeds[i].n);
		for (unsigned long i = 0; i < runs; i++)
			run_mutated();
		printf("%u seeds and %lu inputs made from them\n", n_seeds, runs);
	} else {
		fprintf(stderr, "usage: %s RUNS | --write FOLDER | --replay FILE\n", argv[0]);
		return 2;
	}
	for (unsigned int i = 0; i < n_seeds; i++)
		free(seeds[i].data);
	return 0;
}
