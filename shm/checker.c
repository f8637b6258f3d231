/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shm/checker_run.h"

void checker_found(struct checker_run *r, const char *where, uint64_t number, const char *format,
		   ...)
{
	char text[256];
	size_t n;
	va_list args;

	if (checker_full(r))
		return;
	if (number == CHECKER_NO_NUMBER)
		n = (size_t)snprintf(text, sizeof(text), "%s: ", where);
	else
		n = (size_t)snprintf(text, sizeof(text), "%s %" PRIu64 ": ", where, number);
	va_start(args, format);
	vsnprintf(text + n, sizeof(text) - n, format, args);
	va_end(args);
	r->findings++;
	r->k->found(r->k->ctx, text);
}

struct checker_number checker_number(uint32_t n)
{
	struct checker_number number = { "none" };

	if (n != NS_NONE)
		snprintf(number.text, sizeof(number.text), "%" PRIu32, n);
	return number;
}

#define header_found(r, ...) checker_found(r, "header", CHECKER_NO_NUMBER, __VA_ARGS__)

/* A header field and the bounds that it must be in; lo = hi for one that follows from others. */
struct header_row {
	const char *what;
	uint64_t is, lo, hi;
};

static void check_rows(struct checker_run *r, const struct header_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct header_row *f = &rows[i];

		if (f->is >= f->lo && f->is <= f->hi)
			continue;
		if (f->lo == f->hi)
			header_found(r, "%s is %" PRIu64 ", expected %" PRIu64, f->what, f->is,
				     f->lo);
		else
			header_found(r, "%s is %" PRIu64 ", expected %" PRIu64 " to %" PRIu64,
				     f->what, f->is, f->lo, f->hi);
	}
}

static uint64_t any_bits(const void *bytes, size_t n)
{
	const uint8_t *b = bytes;
	uint64_t any = 0;

	for (size_t i = 0; i < n; i++)
		any |= b[i];
	return any;
}

/* The numbers that the others follow from. */
static void check_sizes(struct checker_run *r, const struct control_header *h)
{
	const struct header_row rows[] = {
		{ "magic", h->magic, CONTROL_MAGIC, CONTROL_MAGIC },
		{ "layout_version", h->layout_version, LAYOUT_VERSION, LAYOUT_VERSION },
		{ "header_bytes", h->header_bytes, LAYOUT_PAGE, LAYOUT_PAGE },
		{ "max_blocks", h->max_blocks, 1, CONTROL_BLOCKS_MAX },
		{ "max_namespaces", h->max_namespaces, 1, CONTROL_NAMESPACES_MAX },
		{ "granule_shift", h->granule_shift, SLOT_SHIFT, CONTROL_GRANULE_SHIFT_MAX },
	};
	uint64_t granule;

	check_rows(r, rows, sizeof(rows) / sizeof(rows[0]));
	if (h->granule_shift > CONTROL_GRANULE_SHIFT_MAX)
		return;
	granule = UINT64_C(1) << h->granule_shift;
	if (!h->pool_bytes || h->pool_bytes % granule ||
	    h->pool_bytes > (uint64_t)SLOT_NONE << SLOT_SHIFT)
		header_found(r, "pool_bytes is %" PRIu64 ", expected 1 or more times %" PRIu64,
			     h->pool_bytes, granule);
}

static void check_geometry(struct checker_run *r, const struct control_header *h,
			   const struct control_geometry *g, uint64_t size)
{
	const struct header_row rows[] = {
		{ "ns_offset", h->ns_offset, g->ns_offset, g->ns_offset },
		{ "granule_offset", h->granule_offset, g->granule_offset, g->granule_offset },
		{ "index_offset", h->index_offset, g->index_offset, g->index_offset },
		{ "desc_offset", h->desc_offset, g->desc_offset, g->desc_offset },
		{ "aux_offset", h->aux_offset, g->aux_offset, g->aux_offset },
		{ "n_buckets", h->n_buckets, g->n_buckets, g->n_buckets },
		{ "n_granules", h->n_granules, g->n_granules, g->n_granules },
		{ "total_bytes", h->total_bytes, g->total_bytes, g->total_bytes },
		{ "size of the region", size, g->total_bytes, g->total_bytes },
	};

	check_rows(r, rows, sizeof(rows) / sizeof(rows[0]));
}

/* What does not keep a region from being attached. */
static void check_rest(struct checker_run *r, const struct control_header *h)
{
	const struct header_row rows[] = {
		{ "zero", any_bits(h->zero, sizeof(h->zero)), 0, 0 },
		{ "zero2", any_bits(h->zero2, sizeof(h->zero2)), 0, 0 },
		{ "zero3", any_bits(h->zero3, sizeof(h->zero3)), 0, 0 },
		{ "epoch", h->epoch, 1, UINT64_MAX },
		{ "state", h->state, CONTROL_ACTIVE, CONTROL_RETIRED },
	};

	check_rows(r, rows, sizeof(rows) / sizeof(rows[0]));
}

/* Attaches the region; a header that does not let it is reported field by field. */
static int check_header(struct checker_run *r, void *base, uint64_t size)
{
	struct control_geometry g;
	struct control_config cfg;

	if (!control_attach(base, size, &r->c)) {
		check_rest(r, base);
		return 1;
	}
	if (size < LAYOUT_PAGE) {
		header_found(r, "size of the region is %" PRIu64 ", expected %u or more", size,
			     LAYOUT_PAGE);
		return 0;
	}
	check_sizes(r, base);
	control_config_of(base, &cfg);
	if (!control_geometry(&cfg, &g))
		check_geometry(r, base, &g, size);
	return 0;
}

int checker_ns_sound(const struct checker_run *r, uint32_t ns)
{
	const struct ns_entry *e = r->c.ns;

	if (ns >= r->c.max_namespaces)
		return 0;
	e += ns;
	return load_acquire(&e->state) == NS_OPEN && e->block_bytes >= BLOCK_BYTES_MIN &&
	       e->block_bytes <= BLOCK_BYTES_MAX &&
	       e->stride == ALIGN_UP(e->block_bytes, SLOT_UNIT);
}

static void check_namespace(struct checker_run *r, uint32_t i)
{
	const struct ns_entry *e = &r->c.ns[i];
	uint32_t state = load_acquire(&e->state);

	if (state == NS_FREE)
		return;
	if (state != NS_OPEN) {
		checker_found(r, "namespace", i, "state is %u, expected %u or %u", state, NS_FREE,
			      NS_OPEN);
		return;
	}
	if (!e->block_tokens)
		checker_found(r, "namespace", i, "block_tokens is 0, expected 1 or more");
	if (e->block_bytes < BLOCK_BYTES_MIN || e->block_bytes > BLOCK_BYTES_MAX)
		checker_found(r, "namespace", i, "block_bytes is %" PRIu64 ", expected %u to %u",
			      e->block_bytes, BLOCK_BYTES_MIN, BLOCK_BYTES_MAX);
	else if (e->stride != ALIGN_UP(e->block_bytes, SLOT_UNIT))
		checker_found(r, "namespace", i, "stride is %" PRIu64 ", expected %" PRIu64,
			      e->stride, ALIGN_UP(e->block_bytes, SLOT_UNIT));
	if (e->group_rule > GROUP_LAST)
		checker_found(r, "namespace", i, "group_rule is %u, expected %u to %u",
			      e->group_rule, GROUP_ALL, GROUP_LAST);
	if (any_bits(e->zero, sizeof(e->zero)))
		checker_found(r, "namespace", i, "zero is not 0, expected 0");
}

/* The other granules of the extent that starts at head. */
static void check_extent(struct checker_run *r, uint32_t head, uint32_t ns)
{
	uint32_t count = r->c.granule[head].count;

	if (!count || count > r->c.head->n_granules - head) {
		checker_found(r, "granule", head, "count is %u, expected 1 to %u", count,
			      r->c.head->n_granules - head);
		return;
	}
	for (uint32_t i = head + 1; i < head + count && !checker_full(r); i++) {
		const struct granule *m = &r->c.granule[i];

		/* Handed out or taken back in part: its other fields count for nothing. */
		if (!checker_quiet(r) && m->ns == NS_NONE)
			continue;
		if (m->first != head) {
			checker_found(r, "granule", i, "first is %u, expected %u", m->first, head);
			return;
		}
		if (m->ns != ns)
			checker_found(r, "granule", i, "ns is %s, expected %u",
				      checker_number(m->ns).text, ns);
		if (m->count)
			checker_found(r, "granule", i, "count is %u, expected 0", m->count);
	}
}

static void check_granule(struct checker_run *r, uint32_t i)
{
	const struct granule *g = &r->c.granule[i];
	const struct granule *head;

	if (any_bits(g->zero, sizeof(g->zero)))
		checker_found(r, "granule", i, "zero is not 0, expected 0");
	if (g->ns == NS_NONE)
		return;
	if (g->ns >= r->c.max_namespaces || load_acquire(&r->c.ns[g->ns].state) != NS_OPEN) {
		checker_found(r, "granule", i, "ns is %u, expected an open namespace", g->ns);
		return;
	}
	if (g->first == i) {
		check_extent(r, i, g->ns);
		return;
	}
	head = g->first < i ? &r->c.granule[g->first] : g;
	if (head->ns == NS_NONE && !checker_quiet(r))
		return; /* on its way in or out: nothing lies there */
	if (head->first != g->first || i - g->first >= head->count)
		checker_found(r, "granule", i, "first is %u, expected the start of its extent",
			      g->first);
	else if (head->ns == NS_NONE)
		checker_found(r, "granule", i, "ns is %u, expected none, as in granule %u", g->ns,
			      g->first);
}

/* Bits for descriptors, then bits for slot units. */
static size_t words(uint64_t bits)
{
	return (size_t)((bits + 63) / 64);
}

static size_t scratch_words(const struct control *c)
{
	return words(c->max_blocks) + words(c->head->pool_bytes >> SLOT_SHIFT);
}

size_t checker_scratch(void *base, uint64_t size)
{
	struct control c;

	return control_attach(base, size, &c) ? 0 : scratch_words(&c) * sizeof(uint64_t);
}

int64_t checker_run(const struct checker *k, void *base, uint64_t size)
{
	struct checker_run r = { .k = k };

	if (!check_header(&r, base, size))
		return r.findings;
	if (k->scratch_bytes < scratch_words(&r.c) * sizeof(uint64_t))
		return -EINVAL;
	memset(k->scratch, 0, scratch_words(&r.c) * sizeof(uint64_t));
	r.listed = k->scratch;
	r.taken = r.listed + words(r.c.max_blocks);
	r.pool_units = r.c.head->pool_bytes >> SLOT_SHIFT;
	for (uint32_t i = 0; i < r.c.max_namespaces && !checker_full(&r); i++)
		check_namespace(&r, i);
	for (uint32_t i = 0; i < r.c.head->n_granules && !checker_full(&r); i++)
		check_granule(&r, i);
	checker_index(&r);
	checker_descs(&r);
	for (uint32_t i = 0; i < k->n_sessions && !checker_full(&r); i++)
		checker_session(&r, i);
	return r.findings;
}
