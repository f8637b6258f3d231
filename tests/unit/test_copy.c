/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying by every variant that this processor runs, alone and in batches, next to canaries and to
 * the end of memory.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "kernels/copy.h"
#include "kernels/copy_ops.h"
#include "kernels/crc32c.h"
#include "tests/unit/crc32c_reference.h"

#define LONGEST 4097
#define LARGE   MIB(5) /* above every threshold of a batch */
#define ALIGN   128    /* alignments to try */
#define CANARY  64     /* bytes looked at on both sides of a destination */

static uint8_t *pattern, *source, *target;

static int make_buffers(void **state)
{
	size_t size = LARGE + ALIGN + 2 * CANARY;

	pattern = malloc(LARGE);
	source = malloc(size);
	target = malloc(size);
	if (!pattern || !source || !target)
		return -1;
	reference_fill(pattern, LARGE, 1);
	return 0;
}

static int free_buffers(void **state)
{
	free(pattern);
	free(source);
	free(target);
	return 0;
}

enum kind { STREAM, COPY_CRC, STREAM_CRC, KINDS };

static void run_kind(const struct kvp_copy_ops *ops, enum kind kind, void *dst, const void *src,
		     size_t n, uint32_t expected)
{
	if (kind == STREAM)
		ops->stream(dst, src, n);
	else if (kind == COPY_CRC)
		assert_int_equal(ops->copy_crc(dst, src, n), expected);
	else
		assert_int_equal(ops->stream_crc(dst, src, n), expected);
	ops->drain();
}

static void check_bytes(const uint8_t *at, uint8_t value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(at[i], value);
}

/*
 * One copy of the pattern's first n bytes between the given alignments; expected is their
 * checksum.
 */
static void check_copy(const struct kvp_copy_ops *ops, enum kind kind, size_t n, size_t src_shift,
		       size_t dst_shift, uint32_t expected)
{
	uint8_t *dst = target + CANARY + dst_shift, *src = source + src_shift;

	memcpy(src, pattern, n);
	memset(dst - CANARY, 0xa5, n + 2 * CANARY);
	run_kind(ops, kind, dst, src, n, expected);
	assert_memory_equal(dst, pattern, n);
	check_bytes(dst - CANARY, 0xa5, CANARY);
	check_bytes(dst + n, 0xa5, CANARY);
}

static void every_short_length(void **state)
{
	const struct kvp_copy_ops *ops;
	uint64_t seed = 2;

	for (size_t n = 0; n <= LONGEST; n++) {
		uint32_t expected = reference_crc32c(0, pattern, n);

		for (unsigned int i = 0; (ops = kvp_copy_ops_nth(i)); i++)
			for (enum kind kind = 0; kind < KINDS; kind++)
				check_copy(ops, kind, n, reference_random(&seed) % ALIGN,
					   reference_random(&seed) % ALIGN, expected);
	}
}

/* All pairs of alignments inside a cache line, at a length with a head, groups and a tail. */
static void every_alignment(void **state)
{
	const struct kvp_copy_ops *ops;
	uint32_t expected = reference_crc32c(0, pattern, 1111);

	for (unsigned int i = 0; (ops = kvp_copy_ops_nth(i)); i++)
		for (size_t shifts = 0; shifts < 64 * 64; shifts++)
			check_copy(ops, STREAM_CRC, 1111, shifts % 64, shifts / 64, expected);
}

static void large_lengths(void **state)
{
	const struct kvp_copy_ops *ops;
	uint64_t seed = 3;

	for (int round = 0; round < 30; round++) {
		size_t n = reference_random(&seed) % KIB(200);
		uint32_t expected = reference_crc32c(0, pattern, n);

		for (unsigned int i = 0; (ops = kvp_copy_ops_nth(i)); i++)
			for (enum kind kind = 0; kind < KINDS; kind++)
				check_copy(ops, kind, n, reference_random(&seed) % ALIGN,
					   reference_random(&seed) % ALIGN, expected);
	}
}

/*
 * Two pages whose second one cannot be touched; what lies right before it is the last readable
 * byte.
 */
static uint8_t *page_with_end(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	assert_true(p != MAP_FAILED);
	assert_int_equal(mprotect(p + page, page, PROT_NONE), 0);
	return p;
}

static void at_the_end_of_memory(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *src = page_with_end(), *dst = page_with_end();
	const struct kvp_copy_ops *ops;

	for (size_t n = 0; n <= page; n += n < 700 ? 1 : 61) {
		uint32_t expected = crc32c(0, pattern, n);

		memcpy(src + page - n, pattern, n);
		for (unsigned int i = 0; (ops = kvp_copy_ops_nth(i)); i++) {
			for (enum kind kind = 0; kind < KINDS; kind++) {
				memset(dst, 0, page);
				run_kind(ops, kind, dst + page - n, src + page - n, n, expected);
				assert_memory_equal(dst + page - n, pattern, n);
			}
			assert_int_equal(ops->crc(0, src + page - n, n), expected);
		}
	}
	munmap(src, 2 * page);
	munmap(dst, 2 * page);
}

/* Sizes on both sides of each threshold. */
static void single_copies(void **state)
{
	static const size_t sizes[] = {
		0, 1, 7, 4096, KIB(256) - 1, KIB(256), KIB(256) + 1, MIB(4) - 1, MIB(4), MIB(4) + 1,
	};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint8_t *dst = target + CANARY + i;

		memset(target, 0x5a, sizes[i] + ALIGN);
		copy_plain(dst, pattern, sizes[i]);
		assert_memory_equal(dst, pattern, sizes[i]);
		memset(target, 0x5a, sizes[i] + ALIGN);
		assert_int_equal(copy_crc(dst, pattern, sizes[i]), crc32c(0, pattern, sizes[i]));
		assert_memory_equal(dst, pattern, sizes[i]);
		check_bytes(target, 0x5a, CANARY + i);
	}
}

/* Cuts the pattern into count runs of uneven length, packed without a gap. Returns their bytes. */
static size_t cut_runs(struct copy_run *runs, unsigned int count, size_t about, uint64_t *seed)
{
	size_t at = 0;

	for (unsigned int i = 0; i < count; i++) {
		size_t n = reference_random(seed) % (2 * about + 1);

		n = MIN(n, LARGE - at);
		runs[i] = (struct copy_run){ .dst = target + at, .src = pattern + at, .n = n };
		at += n;
	}
	return at;
}

static void batches_equal_singles(void **state)
{
	static const size_t lengths[] = { 3, 100, 1500, KIB(16), KIB(30) };
	struct copy_run runs[128];
	uint64_t seed = 4;

	for (size_t k = 0; k < ARRAY_SIZE(lengths); k++) {
		size_t total = cut_runs(runs, ARRAY_SIZE(runs), lengths[k], &seed);

		memset(target, 0x5a, total + CANARY);
		copy_plain_batch(runs, ARRAY_SIZE(runs));
		assert_memory_equal(target, pattern, total);
		check_bytes(target + total, 0x5a, CANARY);

		memset(target, 0x5a, total + CANARY);
		copy_crc_batch(runs, ARRAY_SIZE(runs));
		assert_memory_equal(target, pattern, total);
		check_bytes(target + total, 0x5a, CANARY);
		for (size_t i = 0; i < ARRAY_SIZE(runs); i++)
			assert_int_equal(runs[i].crc, crc32c(0, runs[i].src, runs[i].n));
	}
}

static void empty_batch(void **state)
{
	struct copy_run run = { .dst = target, .src = pattern, .n = 10, .crc = 77 };

	target[0] = (uint8_t)~pattern[0];
	copy_plain_batch(&run, 0);
	copy_crc_batch(&run, 0);
	assert_int_equal(run.crc, 77);
	assert_int_equal(target[0], (uint8_t)~pattern[0]);
}

struct scribbler {
	uint64_t *words;
	size_t count;
	int stop;
};

static void *scribble(void *arg)
{
	struct scribbler *s = arg;

	for (uint64_t v = 1; !load_relaxed(&s->stop); v += 0x0101010101010101)
		for (size_t i = 0; i < s->count; i++)
			store_relaxed(&s->words[i], v);
	return NULL;
}

/*
 * The source changes while it is copied: whatever arrives, the checksum must be that of it. A
 * variant that read the source twice would be caught here sooner or later, and a right one never
 * fails.
 */
static void source_that_changes(void **state)
{
	struct scribbler s = { .words = (uint64_t *)source, .count = KIB(4) / sizeof(uint64_t) };
	const struct kvp_copy_ops *ops;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, scribble, &s), 0);
	for (unsigned int i = 0; (ops = kvp_copy_ops_nth(i)); i++)
		for (int round = 0; round < 3000; round++) {
			size_t shift = (size_t)round % 8, n = KIB(4) - (size_t)round % 100;
			uint32_t crc = ops->copy_crc(target, source + shift, n - shift);

			assert_int_equal(crc, crc32c(0, target, n - shift));
			crc = ops->stream_crc(target + shift, source, n);
			ops->drain();
			assert_int_equal(crc, crc32c(0, target + shift, n));
		}
	store_relaxed(&s.stop, 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_short_length),
		cmocka_unit_test(every_alignment),
		cmocka_unit_test(large_lengths),
		cmocka_unit_test(at_the_end_of_memory),
		cmocka_unit_test(single_copies),
		cmocka_unit_test(batches_equal_singles),
		cmocka_unit_test(empty_batch),
#ifndef KVP_TSAN /* which is right that the copy races with the writer: that is the point */
		cmocka_unit_test(source_that_changes),
#endif
	};

	return cmocka_run_group_tests(tests, make_buffers, free_buffers);
}
