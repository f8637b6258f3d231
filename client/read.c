/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying out of a lease: the bytes asked for are cut into runs, each inside one block and one
 * buffer, which are copied many in one call, so that the kernel sees how much it is in all.
 */
#include <errno.h>

#include "client/link.h"
#include "client/ns.h"
#include "client/read.h"
#include "kernels/copy.h"
#include "kernels/crc32c.h"
#include "proto/kvpool.pb-c.h"
#include "shm/word.h"

#define RUNS_MAX 128u

struct reader {
	struct kvpool_lease *lease;
	uint64_t at; /* next byte of the lease to copy */
	const struct iovec *iov, *iov_end;
	size_t iov_at; /* bytes of *iov that are filled */

	int verify;
	uint64_t check_at; /* next byte to check */
	int whole;         /* the block there is being read from its start */
	uint32_t crc;      /* of what was read of it */
};

/* The next run. False at the end of the buffers. */
static int next_run(struct reader *r, struct copy_run *run)
{
	uint64_t block_bytes = r->lease->ns->block_bytes, offset = r->at % block_bytes;

	while (r->iov != r->iov_end && r->iov_at == r->iov->iov_len) {
		r->iov++;
		r->iov_at = 0;
	}
	if (r->iov == r->iov_end)
		return 0;
	run->n = MIN(r->iov->iov_len - r->iov_at, block_bytes - offset);
	run->dst = (uint8_t *)r->iov->iov_base + r->iov_at;
	run->src = (const uint8_t *)kvpool_lease_block(r->lease, r->at / block_bytes) + offset;
	r->iov_at += run->n;
	r->at += run->n;
	return 1;
}

uint32_t read_crc(const struct kvpool_lease *l, uint64_t i)
{
	return load_relaxed(&l->attach->control.desc[l->notes[i].desc].crc);
}

int read_report(const struct kvpool_lease *l, uint64_t i)
{
	const struct control *c = &l->attach->control;
	uint32_t d = l->notes[i].desc;
	uint64_t gen = word_gen(load_acquire(&c->desc[d].word));
	struct kvpool *p = l->pool;
	Kvpool__Report m = KVPOOL__REPORT__INIT;

	m.desc = d;
	m.gen = gen;
	handle_count(p, l->attach, COUNTER_CRC_ERRORS, 1);
	pthread_mutex_lock(&p->lock);
	if (p->rpc && p->current == l->attach)
		rpc_post(p->rpc, OP_REPORT, &m.base);
	pthread_mutex_unlock(&p->lock);
	return handle_error(p, -EBADMSG,
			    "block %llu of a lease of namespace \"%s\" has a wrong checksum: "
			    "its bytes changed after they were stored; the daemon was told",
			    (unsigned long long)i, l->ns->model);
}

/* Adds a run to the checksum of its block, and compares at the end of one that was read whole. */
static int check_run(struct reader *r, const struct copy_run *run)
{
	const struct kvpool_lease *l = r->lease;
	uint64_t block_bytes = l->ns->block_bytes, block = r->check_at / block_bytes;

	if (r->check_at % block_bytes == 0) {
		r->whole = 1;
		r->crc = run->crc;
	} else if (r->whole) {
		r->crc = crc32c_combine(r->crc, run->crc, run->n);
	}
	r->check_at += run->n;
	if (!r->whole || r->check_at % block_bytes)
		return 0;
	return r->crc == read_crc(l, block) ? 0 : read_report(l, block);
}

static int copy_runs(struct reader *r, struct copy_run *runs, unsigned int n)
{
	int err = 0;

	if (!r->verify) {
		copy_plain_batch(runs, n);
		return 0;
	}
	copy_crc_batch(runs, n);
	for (unsigned int i = 0; i < n && !err; i++)
		err = check_run(r, &runs[i]);
	return err;
}

static int copy_all(struct reader *r)
{
	struct copy_run runs[RUNS_MAX];
	unsigned int n;
	int err;

	do {
		for (n = 0; n < RUNS_MAX && next_run(r, &runs[n]); n++)
			;
		err = copy_runs(r, runs, n);
	} while (!err && n == RUNS_MAX);
	return err;
}

/* Bytes of all buffers; false when they are more than max. */
static int sum_buffers(const struct iovec *iov, int iovcnt, uint64_t max, uint64_t *ret)
{
	uint64_t sum = 0;

	for (int i = 0; i < iovcnt; i++) {
		if (iov[i].iov_len > max - sum)
			return 0;
		sum += iov[i].iov_len;
	}
	*ret = sum;
	return 1;
}

int read_no_pointers(const struct kvpool_lease *l)
{
	return handle_error(
		l->pool, -ENODATA,
		"a lease that was acquired with KVPOOL_DEPTH_ONLY has no bytes to read: "
		"acquire it without");
}

int kvpool_lease_read(struct kvpool_lease *l, uint64_t offset, const struct iovec *iov, int iovcnt,
		      unsigned flags)
{
	uint64_t have, n;
	struct reader r;
	int err;

	if (handle_is_forked(l->pool))
		return -ESTALE;
	if (iovcnt < 0 || (flags & ~(unsigned)KVPOOL_VERIFY))
		return handle_error(l->pool, -EINVAL, "read of a lease: %d buffers, flags %#x",
				    iovcnt, flags);
	have = l->depth ? l->depth * l->ns->block_bytes : 0;
	if (offset > have || !sum_buffers(iov, iovcnt, have - offset, &n))
		return handle_error(l->pool, -ERANGE,
				    "read of a lease from byte %llu on: the buffers take more "
				    "than the %llu bytes that it has",
				    (unsigned long long)offset, (unsigned long long)have);
	if (!n)
		return 0;
	if (l->depth_only)
		return read_no_pointers(l);
	r = (struct reader){
		.lease = l,
		.at = offset,
		.iov = iov,
		.iov_end = iov + iovcnt,
		.verify = flags & KVPOOL_VERIFY,
		.check_at = offset,
	};
	err = copy_all(&r);
	handle_count(l->pool, l->attach, COUNTER_COPIES_OUT, 1);
	handle_count(l->pool, l->attach, COUNTER_COPIED_OUT_BYTES, n);
	return err;
}
