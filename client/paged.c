/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between blocks and an engine's own pages: the tokens that were asked for are cut into spans, each
 * inside one block and one page, and a span into runs that lie side by side in both, which are
 * copied many in one call.
 */
#include <errno.h>

#include "client/ns.h"
#include "client/read.h"
#include "client/write.h"
#include "kernels/copy.h"
#include "kernels/crc32c.h"

#define RUNS_MAX 128u

enum direction {
	SCATTER, /* from blocks to pages */
	GATHER,
};

struct batch {
	enum direction direction;
	unsigned int n;
	struct copy_run runs[RUNS_MAX];
};

/* A part of a block that one page has. */
struct span {
	uint8_t *block;
	size_t token; /* of the sequence */
	uint32_t n_tokens;
};

static void batch_flush(struct batch *b)
{
	copy_plain_batch(b->runs, b->n);
	b->n = 0;
}

static void batch_add(struct batch *b, uint8_t *block, uint8_t *page, size_t n)
{
	if (b->n == RUNS_MAX)
		batch_flush(b);
	if (b->direction == SCATTER)
		b->runs[b->n++] = (struct copy_run){ .dst = page, .src = block, .n = n };
	else
		b->runs[b->n++] = (struct copy_run){ .dst = block, .src = page, .n = n };
}

/* Whether steps of that many bytes leave no gap in both. */
static int is_dense(uint64_t page_stride, uint64_t block_stride, uint64_t bytes)
{
	return page_stride == bytes && block_stride == bytes;
}

/* The rows of a span in one plane. */
static void add_rows(struct batch *b, const struct kvpool_paged *g, uint8_t *block, uint8_t *page,
		     uint32_t n_tokens)
{
	uint64_t bytes = g->row_bytes, n_rows = g->n_rows;

	/* Tokens of a row side by side: a run for each row. */
	if (is_dense(g->page_token_stride, g->block_token_stride, bytes)) {
		bytes *= n_tokens;
		n_tokens = 1;
	}
	/* Rows side by side: one for each token, or one for all. */
	if (is_dense(g->page_row_stride, g->block_row_stride, bytes)) {
		bytes *= n_rows;
		n_rows = 1;
	}
	if (is_dense(g->page_token_stride, g->block_token_stride, bytes)) {
		bytes *= n_tokens;
		n_tokens = 1;
	}
	for (uint32_t t = 0; t < n_tokens; t++)
		for (uint64_t r = 0; r < n_rows; r++)
			batch_add(b, block + t * g->block_token_stride + r * g->block_row_stride,
				  page + t * g->page_token_stride + r * g->page_row_stride, bytes);
}

static void add_span(struct batch *b, const struct kvpool_paged *g, uint32_t block_tokens,
		     const struct span *s)
{
	int32_t number = g->pages[s->token / g->page_tokens];
	uint64_t in_block = s->token % block_tokens * g->block_token_stride + g->block_offset;
	uint64_t in_plane = (uint64_t)number * g->page_stride +
			    s->token % g->page_tokens * g->page_token_stride;

	if (number < 0)
		return;
	for (size_t p = 0; p < g->n_planes; p++)
		add_rows(b, g, s->block + in_block + p * g->block_plane_stride,
			 (uint8_t *)g->planes[p] + in_plane, s->n_tokens);
}

/* Tokens [token, end) of one block. */
static void add_block(struct batch *b, const struct kvpool_paged *g, uint32_t block_tokens,
		      uint8_t *block, size_t token, size_t end)
{
	while (token < end) {
		size_t left = g->page_tokens - token % g->page_tokens;
		struct span s = { block, token, (uint32_t)MIN(left, end - token) };

		add_span(b, g, block_tokens, &s);
		token += s.n_tokens;
	}
}

/*
 * Where the last byte of a plane lies behind its first one: (n - 1) steps along each axis, and a
 * row. UINT64_MAX when that is more than a number holds.
 */
static uint64_t reach(uint64_t n_tokens, uint64_t token_stride, uint64_t n_rows,
		      uint64_t row_stride, uint64_t row_bytes)
{
	uint64_t tokens, rows, sum;

	if (__builtin_mul_overflow(n_tokens - 1, token_stride, &tokens) ||
	    __builtin_mul_overflow(n_rows - 1, row_stride, &rows) ||
	    __builtin_add_overflow(tokens, rows, &sum) ||
	    __builtin_add_overflow(sum, row_bytes, &sum))
		return UINT64_MAX;
	return sum;
}

/* What is wrong with the numbers, NULL when nothing is. */
static const char *numbers_wrong(const struct kvpool_paged *g, const struct kvpool_ns *ns)
{
	uint64_t planes, end;

	if (g->size != sizeof(*g))
		return "size is none that this version knows";
	if (!g->n_planes || !g->page_tokens || !g->n_rows || !g->row_bytes)
		return "n_planes, page_tokens, n_rows or row_bytes is 0";
	/* A stride that was forgotten: all of an axis in one place. */
	if ((g->n_planes > 1 && !g->block_plane_stride) ||
	    (g->n_rows > 1 && (!g->page_row_stride || !g->block_row_stride)) ||
	    (g->page_tokens > 1 && !g->page_token_stride) ||
	    (ns->block_tokens > 1 && !g->block_token_stride) || (g->n_pages > 1 && !g->page_stride))
		return "a stride is 0, so that what it steps over would lie in one place";
	if (__builtin_mul_overflow(g->n_planes - 1, g->block_plane_stride, &planes) ||
	    __builtin_add_overflow(planes, g->block_offset, &end) ||
	    __builtin_add_overflow(end,
				   reach(ns->block_tokens, g->block_token_stride, g->n_rows,
					 g->block_row_stride, g->row_bytes),
				   &end) ||
	    end > ns->block_bytes)
		return "the last row of the last plane lies outside of the block";
	return NULL;
}

/* Whether a page lies inside its planes. */
static int page_is_inside(const struct kvpool_paged *g, int32_t number)
{
	uint64_t at, end;

	return !__builtin_mul_overflow((uint64_t)number, g->page_stride, &at) &&
	       !__builtin_add_overflow(at,
				       reach(g->page_tokens, g->page_token_stride, g->n_rows,
					     g->page_row_stride, g->row_bytes),
				       &end) &&
	       end <= g->plane_bytes;
}

/* Checks all that tokens [token, end), at least one, will touch. */
static int check(const struct kvpool_ns *ns, const struct kvpool_paged *g, size_t token, size_t end,
		 enum direction direction)
{
	const char *wrong = numbers_wrong(g, ns);

	if (wrong)
		return handle_error(ns->pool, -EINVAL, "struct kvpool_paged: %s", wrong);
	if ((end - 1) / g->page_tokens >= g->n_pages)
		return handle_error(ns->pool, -ERANGE,
				    "struct kvpool_paged: %zu pages of %u tokens have no token %zu",
				    g->n_pages, g->page_tokens, end - 1);
	for (size_t i = token / g->page_tokens; i <= (end - 1) / g->page_tokens; i++) {
		if (g->pages[i] < 0 && direction == SCATTER)
			continue;
		if (g->pages[i] < 0 || !page_is_inside(g, g->pages[i]))
			return handle_error(
				ns->pool, -EINVAL,
				"struct kvpool_paged: pages[%zu] is %d, which lies outside "
				"of a plane of %llu bytes",
				i, g->pages[i], (unsigned long long)g->plane_bytes);
	}
	return 0;
}

static int verify(const struct kvpool_lease *l, size_t block)
{
	uint32_t crc = crc32c(0, kvpool_lease_block(l, block), l->ns->block_bytes);

	return crc == read_crc(l, block) ? 0 : read_report(l, block);
}

static int scatter(struct kvpool_lease *l, const struct kvpool_paged *g, size_t token, size_t end,
		   int check_crc)
{
	struct batch b = { .direction = SCATTER };
	size_t block_tokens = l->ns->block_tokens, n = end - token;
	int err = 0;

	while (!err && token < end) {
		size_t block = token / block_tokens;
		size_t until = MIN((block + 1) * block_tokens, end);

		if (check_crc)
			err = verify(l, block);
		if (!err)
			add_block(&b, g, (uint32_t)block_tokens,
				  (uint8_t *)kvpool_lease_block(l, block), token, until);
		token = until;
	}
	batch_flush(&b);
	handle_count(l->pool, l->attach, COUNTER_COPIES_OUT, 1);
	handle_count(l->pool, l->attach, COUNTER_COPIED_OUT_BYTES,
		     n * g->n_planes * g->n_rows * g->row_bytes);
	return err;
}

int kvpool_lease_scatter(struct kvpool_lease *l, size_t first_token, size_t n_tokens,
			 const struct kvpool_paged *to, unsigned flags)
{
	size_t have;
	int err;

	if (handle_is_forked(l->pool))
		return -ESTALE;
	if (flags & ~(unsigned)KVPOOL_VERIFY)
		return handle_error(l->pool, -EINVAL, "scatter of a lease: flags %#x", flags);
	have = kvpool_lease_tokens(l);
	if (first_token > have || n_tokens > have - first_token)
		return handle_error(l->pool, -ERANGE,
				    "scatter of %zu tokens from number %zu on: the lease has %zu",
				    n_tokens, first_token, have);
	if (!n_tokens)
		return 0;
	if (l->depth_only)
		return read_no_pointers(l);
	err = check(l->ns, to, first_token, first_token + n_tokens, SCATTER);
	if (err < 0)
		return err;
	return scatter(l, to, first_token, first_token + n_tokens, flags & KVPOOL_VERIFY);
}

/* The first token of a granted block: its descriptor says how many blocks are before it. */
static size_t token_of(const struct kvpool_write *w, size_t i)
{
	const struct desc *d = &w->link.attach->control.desc[w->blocks[i].desc];

	return (size_t)load_relaxed(&d->depth) * w->ns->block_tokens;
}

/* Checks the granted ones of blocks [first, end). */
static int check_granted(const struct kvpool_write *w, size_t first, size_t end,
			 const struct kvpool_paged *g)
{
	int err = 0;

	for (size_t i = first; !err && i < end; i++)
		if (kvpool_write_block(w, i)) {
			size_t token = token_of(w, i);

			err = check(w->ns, g, token, token + w->ns->block_tokens, GATHER);
		}
	return err;
}

/* Returns how many blocks were granted. */
static int gather(struct kvpool_write *w, size_t first, size_t end, const struct kvpool_paged *g)
{
	struct batch b = { .direction = GATHER };
	uint32_t block_tokens = w->ns->block_tokens;
	int filled = 0;

	for (size_t i = first; i < end; i++) {
		uint8_t *block = kvpool_write_block(w, i);
		size_t token;

		if (!block)
			continue;
		token = token_of(w, i);
		w->blocks[i].has_crc = 0;
		add_block(&b, g, block_tokens, block, token, token + block_tokens);
		filled++;
	}
	batch_flush(&b);
	if (filled)
		write_count_copies(w, (size_t)filled);
	return filled;
}

int kvpool_write_gather(struct kvpool_write *w, size_t first, size_t n,
			const struct kvpool_paged *from)
{
	int err;

	if (handle_is_forked(w->pool))
		return -ESTALE;
	if (first > w->n_blocks || n > w->n_blocks - first)
		return handle_error(w->pool, -EINVAL, "blocks [%zu, %zu + %zu) of a write of %zu",
				    first, first, n, w->n_blocks);
	err = check_granted(w, first, first + n, from);
	return err < 0 ? err : gather(w, first, first + n, from);
}
