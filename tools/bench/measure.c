/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "tools/bench/bench.h"

double bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

uint64_t bench_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15ull;
	return mix64(*state);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void best_and_median(double *v, unsigned int n, double *best, double *median)
{
	qsort(v, n, sizeof(*v), compare);
	*best = v[0];
	*median = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* 0 where there is nothing to divide by; bench_emit() says so. */
static double divide(double a, double b)
{
	return b > 0 ? a / b : 0;
}

void bench_fill(struct bench_result *r, double *value, double *limit, unsigned int n)
{
	best_and_median(value, n, &r->value, &r->value_median);
	best_and_median(limit, n, &r->limit_value, &r->limit_median);
	if (r->sense == BENCH_AT_MOST)
		r->ratio = divide(r->value, r->limit_value);
	else
		r->ratio = divide(r->limit_value, r->value);
	r->with.rounds = n;
	r->with.cpus = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	r->with.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
}

int bench_measure(struct bench_result *r, const struct bench_options *opt, bench_run value,
		  bench_run limit, void *ctx)
{
	double v[BENCH_ROUNDS_MAX], l[BENCH_ROUNDS_MAX];

	for (unsigned int i = 0; i < opt->rounds; i++) {
		v[i] = value(ctx);
		l[i] = limit(ctx);
		if (v[i] < 0 || l[i] < 0)
			return (int)(v[i] < 0 ? v[i] : l[i]);
	}
	bench_fill(r, v, l, opt->rounds);
	r->with.reader_pid = getpid();
	return 0;
}
