/* SPDX-License-Identifier: Apache-2.0 */
/* overhead/block, overhead/daemon: what the pool takes beside the bytes of the blocks. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "tools/bench/full.h"

#define BYTES_MAX    128
#define DAEMON_MIB   32
#define DAEMON_SHARE 0.005 /* of the pool */

/* Which of the daemon's mappings the lines that follow are about. */
enum mapping {
	MAPPING_OWN,
	MAPPING_CONTROL,
	MAPPING_SHARED,
};

/* A line "55d3c0e4f000-55d3c0e50000 rw-s 00000000 00:01 12 /memfd:kvpool-control (deleted)". */
static int is_header(const char *line, enum mapping *ret)
{
	unsigned long from, to;

	if (sscanf(line, "%lx-%lx ", &from, &to) != 2)
		return 0;
	*ret = strstr(line, "/memfd:kvpool-control") ? MAPPING_CONTROL
	       : strstr(line, "/memfd:kvpool-")      ? MAPPING_SHARED
						     : MAPPING_OWN;
	return 1;
}

int full_memory(const struct private_daemon *d, uint64_t *ret_own, uint64_t *ret_control)
{
	uint64_t own = 0, control = 0;
	enum mapping at = MAPPING_OWN;
	char path[64], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps", (int)d->pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		unsigned long kib;

		if (is_header(line, &at))
			continue;
		if (at == MAPPING_OWN && sscanf(line, "Rss: %lu kB", &kib) == 1)
			own += KIB(kib);
		else if (at == MAPPING_CONTROL && sscanf(line, "Size: %lu kB", &kib) == 1)
			control = MAX(control, KIB(kib));
	}
	fclose(f);
	*ret_own = own;
	*ret_control = control;
	return control ? 0 : -ENOENT;
}

static double run_block(void *arg)
{
	const struct full *c = arg;
	uint64_t own, control;
	int r = full_memory(&c->daemon, &own, &control);

	if (r < 0)
		return r;
	return ((double)control + (double)own - (double)c->own_before) / (double)c->blocks;
}

static double run_block_limit(void *arg)
{
	return BYTES_MAX;
}

static double run_daemon(void *arg)
{
	const struct full *c = arg;
	uint64_t own, control;
	int r = full_memory(&c->daemon, &own, &control);

	return r < 0 ? r : (double)own / MIB(1);
}

static double run_daemon_limit(void *arg)
{
	return DAEMON_MIB +
	       DAEMON_SHARE * (double)((const struct full *)arg)->blocks * FULL_BLOCK / MIB(1);
}

int full_overhead(struct full *c)
{
	struct bench_result block = {
		.name = "overhead/block", .unit = "B", .bar = 1, .limit = "shared and private"
	};
	struct bench_result daemon = { .name = "overhead/daemon",
				       .unit = "MiB",
				       .bar = 1,
				       .limit = "32 MiB and 0.5 % of the pool" };
	int r = full_measure(c, &block, run_block, run_block_limit, c);

	if (r < 0)
		return r;
	bench_emit(&block);
	r = full_measure(c, &daemon, run_daemon, run_daemon_limit, c);
	if (r == 0)
		bench_emit(&daemon);
	return r;
}
