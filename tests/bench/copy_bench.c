/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the copy kernels against the machine: copying blocks between private memory and a
 * memfd, with and without a checksum, by every variant that this processor runs. Not a test:
 * timing decides nothing here.
 *
 *	copy_bench [ROUNDS]		the cases of kvpool-bench
 *	copy_bench threshold [ROUNDS]	ordinary against non-temporal stores by size of the batch
 *
 * All candidates of a case take turns in each round, in any order; best and median round of each
 * are printed. The ratios are to the faster of memcpy and the plain non-temporal copies, measured
 * in the same rounds. Where memory is to be cold the median says more: now and then a part of the
 * region is still in a cache. Where both sides are to be hot, a candidate is measured the second
 * time in a row that it runs, or else it would pay for what the one before it left in the caches,
 * and that depends on its kind of stores.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/fd.h"
#include "kernels/copy.h"
#include "kernels/copy_ops.h"

#define BLOCKS     128
#define REGION     MIB(256)
#define CANDIDATES 24
#define ROUNDS_MAX 1024

enum kind {
	BY_MEMCPY,
	BY_STREAM,
	BY_STREAM_CRC,
	BY_COPY_CRC,
	BY_CRC,
	BY_PLAIN_BATCH,
	BY_CRC_BATCH,
};

static const char *const kind_names[] = {
	"memcpy",   "stream",           "stream+crc",     "copy+crc",
	"crc only", "copy_plain_batch", "copy_crc_batch",
};

struct candidate {
	enum kind kind;
	const struct kvp_copy_ops *ops;
	uint64_t best, median;
};

struct bench_case {
	const char *name;
	int put; /* from private memory to the memfd, or the other way round */
	size_t block;
	unsigned int blocks;
	int src_hot, dst_hot; /* the same place each time, or the next part of a large region */
};

static uint8_t *private_memory, *shared_memory;
static volatile uint32_t sink;

static void copy_each(const struct candidate *c, const struct copy_run *r)
{
	switch (c->kind) {
	case BY_MEMCPY:
		memcpy(r->dst, r->src, r->n);
		break;
	case BY_STREAM:
		c->ops->stream(r->dst, r->src, r->n);
		break;
	case BY_STREAM_CRC:
		sink += c->ops->stream_crc(r->dst, r->src, r->n);
		break;
	case BY_COPY_CRC:
		sink += c->ops->copy_crc(r->dst, r->src, r->n);
		break;
	default:
		sink += c->ops->crc(0, r->src, r->n);
	}
}

static uint64_t time_one(struct candidate *c, struct copy_run *runs, unsigned int count)
{
	uint64_t start = clock_ns();

	if (c->kind == BY_PLAIN_BATCH) {
		copy_plain_batch(runs, count);
	} else if (c->kind == BY_CRC_BATCH) {
		copy_crc_batch(runs, count);
	} else {
		for (unsigned int i = 0; i < count; i++)
			copy_each(c, &runs[i]);
		if (c->ops)
			c->ops->drain();
	}
	return clock_ns() - start;
}

static void lay_out(const struct bench_case *b, uint64_t turn, struct copy_run *runs)
{
	uint64_t total = b->block * b->blocks, place = turn % (REGION / total) * total;
	const uint8_t *src = (b->put ? private_memory : shared_memory) + (b->src_hot ? 0 : place);
	uint8_t *dst = (b->put ? shared_memory : private_memory) + (b->dst_hot ? 0 : place);

	for (unsigned int i = 0; i < b->blocks; i++)
		runs[i] = (struct copy_run){
			.dst = dst + i * b->block, .src = src + i * b->block, .n = b->block
		};
}

/* Another order in each round: who comes after memcpy pays for the dirty lines that it left. */
static void shuffle(unsigned int *order, unsigned int count)
{
	for (unsigned int i = count; i > 1; i--) {
		unsigned int k = (unsigned int)random() % i, last = order[i - 1];

		order[i - 1] = order[k];
		order[k] = last;
	}
}

static int compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void run_rounds(const struct bench_case *b, unsigned int rounds, struct candidate *c,
		       unsigned int count)
{
	static uint64_t samples[CANDIDATES][ROUNDS_MAX];
	unsigned int order[CANDIDATES];
	struct copy_run runs[BLOCKS];
	uint64_t turn = 1; /* place 0 is still hot from the case before */

	rounds = MIN(rounds, ROUNDS_MAX);
	for (unsigned int i = 0; i < count; i++)
		order[i] = i;
	for (unsigned int r = 0; r < rounds; r++) {
		shuffle(order, count);
		for (unsigned int k = 0; k < count; k++) {
			struct candidate *turning = &c[order[k]];

			lay_out(b, turn++, runs);
			if (b->src_hot && b->dst_hot)
				time_one(turning, runs, b->blocks);
			samples[order[k]][r] = time_one(turning, runs, b->blocks);
		}
	}
	for (unsigned int i = 0; i < count; i++) {
		qsort(samples[i], rounds, sizeof(uint64_t), compare_ns);
		c[i].best = samples[i][0];
		c[i].median = samples[i][rounds / 2];
	}
}

static unsigned int add(struct candidate *c, unsigned int count, enum kind kind,
			const struct kvp_copy_ops *ops)
{
	c[count] = (struct candidate){ .kind = kind, .ops = ops };
	return count + 1;
}

static unsigned int all_candidates(struct candidate *c)
{
	static const enum kind kinds[] = { BY_STREAM, BY_STREAM_CRC, BY_COPY_CRC, BY_CRC };
	const struct kvp_copy_ops *ops;
	unsigned int count = add(c, 0, BY_MEMCPY, NULL);

	count = add(c, count, BY_PLAIN_BATCH, NULL);
	count = add(c, count, BY_CRC_BATCH, NULL);
	for (unsigned int i = 0; (ops = kvp_copy_ops_nth(i)); i++)
		for (unsigned int k = 0; k < ARRAY_SIZE(kinds); k++)
			if (count < CANDIDATES)
				count = add(c, count, kinds[k], ops);
	return count;
}

static void print_case(const struct bench_case *b, const struct candidate *c, unsigned int count)
{
	double total = (double)b->block * b->blocks;
	uint64_t best = UINT64_MAX, median = UINT64_MAX;

	for (unsigned int i = 0; i < count; i++)
		if (c[i].kind == BY_MEMCPY || c[i].kind == BY_STREAM) {
			best = MIN(best, c[i].best);
			median = MIN(median, c[i].median);
		}
	printf("%-31s       best            median\n", b->name);
	for (unsigned int i = 0; i < count; i++)
		printf("  %-10s %-18s %6.1f GB/s %5.2f  %6.1f GB/s %5.2f\n",
		       c[i].ops ? c[i].ops->name : "", kind_names[c[i].kind],
		       total / (double)c[i].best, (double)c[i].best / (double)best,
		       total / (double)c[i].median, (double)c[i].median / (double)median);
}

static void bench_cases(unsigned int rounds)
{
	static const struct bench_case cases[] = {
		{ "get/2M", 0, MIB(2), BLOCKS, 0, 0 },
		{ "put/2M", 1, MIB(2), BLOCKS, 0, 0 },
		{ "get/16K, both cold", 0, KIB(16), BLOCKS, 0, 0 },
		{ "get/16K, both hot", 0, KIB(16), BLOCKS, 1, 1 },
		{ "put/16K, both cold", 1, KIB(16), BLOCKS, 0, 0 },
		{ "put/16K, source hot", 1, KIB(16), BLOCKS, 1, 0 },
		{ "put/16K, both hot", 1, KIB(16), BLOCKS, 1, 1 },
	};
	struct candidate c[CANDIDATES];
	unsigned int count = all_candidates(c);

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned int turns = (unsigned int)(MIB(256) / (cases[i].block * cases[i].blocks));

		run_rounds(&cases[i], rounds * MIN(turns, 16), c, count);
		print_case(&cases[i], c, count);
	}
}

static void bench_threshold(unsigned int rounds)
{
	const struct kvp_copy_ops *ops = kvp_copy_ops_cpu();
	struct candidate c[CANDIDATES];
	unsigned int count = 0;

	count = add(c, count, BY_MEMCPY, NULL);
	count = add(c, count, BY_STREAM, ops);
	count = add(c, count, BY_COPY_CRC, ops);
	count = add(c, count, BY_STREAM_CRC, ops);
	printf("%10s %4s %4s %10s %10s %10s %10s  (GB/s)\n", "bytes", "src", "dst", "memcpy",
	       "stream", "copy+crc", "stream+crc");
	for (size_t size = KIB(4); size <= MIB(8); size *= 2)
		for (int hot = 0; hot < 4; hot++) {
			struct bench_case b = { "", 1, size, 1, hot & 1, hot >> 1 };

			run_rounds(&b, rounds * 50, c, count);
			printf("%10zu %4s %4s", size, hot & 1 ? "hot" : "cold",
			       hot >> 1 ? "hot" : "cold");
			for (unsigned int i = 0; i < count; i++)
				printf(" %10.1f", (double)size / (double)c[i].median);
			printf("\n");
		}
}

static int make_memory(void)
{
	void *shared;
	int fd, r;

	private_memory = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0);
	if (private_memory == MAP_FAILED)
		return -errno;
	fd = fd_memory("copy-bench", REGION, 1);
	if (fd < 0)
		return fd;
	r = fd_map(fd, REGION, 1, &shared);
	if (r < 0)
		return r;
	shared_memory = shared;
	for (size_t i = 0; i < REGION; i++)
		private_memory[i] = (uint8_t)(i * 2654435761u >> 13);
	memcpy(shared_memory, private_memory, REGION);
	return 0;
}

int main(int argc, char **argv)
{
	int threshold = argc > 1 && !strcmp(argv[1], "threshold");
	const char *text = argc > 1 + threshold ? argv[1 + threshold] : "9";
	unsigned int rounds = (unsigned int)strtoul(text, NULL, 10);
	int r = make_memory();

	if (r < 0) {
		fprintf(stderr, "copy_bench: cannot make %llu MiB of memory: %s\n",
			(unsigned long long)(REGION >> 20), strerror(-r));
		return 1;
	}
	if (!rounds) {
		fprintf(stderr,
			"copy_bench: %s is no number of rounds; copy_bench [threshold] [ROUNDS]\n",
			text);
		return 2;
	}
	if (threshold)
		bench_threshold(rounds);
	else
		bench_cases(rounds);
	return 0;
}
