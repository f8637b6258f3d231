/* SPDX-License-Identifier: Apache-2.0 */
/* Naming in words what two descriptors do not share. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "proto/nsdesc.h"
#include "proto/text.h"

#define SHOWN_MAX    sizeof(((struct nsdesc_difference *)0)->here)
#define DIGEST_BYTES 32u
#define DIGEST_SHOWN 6u  /* 12 digits */
#define TEXT_BEFORE  24u /* kept of a long text before the place where it differs */

/* All items of one tag: a run of a descriptor's bytes. */
struct nsdesc_run {
	const uint8_t *bytes;
	size_t n;
	unsigned int count;
	struct nsdesc_item first;
};

static struct nsdesc_run nsdesc_run_find(const uint8_t *bytes, size_t n, unsigned int tag)
{
	struct nsdesc_run run = { .bytes = bytes };
	struct nsdesc_item it;
	size_t next;

	for (size_t at = 0; (next = nsdesc_next(bytes, n, at, &it)) != 0; at = next) {
		if (it.tag != tag)
			continue;
		if (!run.count++) {
			run.first = it;
			run.bytes = bytes + at;
		}
		run.n = (size_t)(bytes + next - run.bytes);
	}
	return run;
}

/* Finds an item that equals it, or (name > 0) whose first name bytes and '=' do. */
static int nsdesc_run_holds(const struct nsdesc_run *run, const struct nsdesc_item *it, size_t name,
			    struct nsdesc_item *ret)
{
	struct nsdesc_item x;

	for (size_t at = 0; (at = nsdesc_next(run->bytes, run->n, at, &x)) != 0;) {
		int same = name ? x.n > name && !memcmp(x.value, it->value, name + 1)
				: !nsdesc_item_compare(&x, it);

		if (same) {
			*ret = x;
			return 1;
		}
	}
	return 0;
}

/* The first item of a that is not in b. Returns 0 when there is none. */
static int nsdesc_run_unshared(const struct nsdesc_run *a, const struct nsdesc_run *b,
			       struct nsdesc_item *ret)
{
	struct nsdesc_item x, y;

	for (size_t at = 0; (at = nsdesc_next(a->bytes, a->n, at, &x)) != 0;) {
		if (!nsdesc_run_holds(b, &x, 0, &y)) {
			*ret = x;
			return 1;
		}
	}
	return 0;
}

/* The fewest digits that read back as the same double; whole numbers without an exponent. */
static void nsdesc_show_double(double x, char *out, size_t size)
{
	if (fabs(x) < 1e15 && x == (double)(int64_t)x) {
		snprintf(out, size, "%.0f", x);
		return;
	}
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(out, size, "%.*g", digits, x);
		if (strtod(out, NULL) == x)
			return;
	}
}

/* Text is cut to what fits; a long one starts shortly before byte `from`, where it differs. */
static void nsdesc_show_text(const struct nsdesc_item *it, size_t from, char *out)
{
	const char *text = (const char *)it->value;
	size_t start = 0, n = it->n, room = SHOWN_MAX - 1;

	if (n > room && from > TEXT_BEFORE) {
		start = text_cut(text, from - TEXT_BEFORE);
		room -= strlen("...");
	}
	n -= start;
	if (n > room)
		n = text_cut(text + start, room - strlen("..."));
	snprintf(out, SHOWN_MAX, "%s%.*s%s", start ? "..." : "", (int)n, text + start,
		 start + n < it->n ? "..." : "");
}

/* Where two items differ first. */
static size_t nsdesc_differs_at(const struct nsdesc_item *a, const struct nsdesc_item *b)
{
	size_t i = 0;

	while (i < a->n && i < b->n && a->value[i] == b->value[i])
		i++;
	return i;
}

/* Twelve digits of a digest; all of them when another one starts the same. */
static void nsdesc_show_digest(const struct nsdesc_item *it, const struct nsdesc_item *other,
			       char *out)
{
	size_t at = other ? nsdesc_differs_at(it, other) : 0;
	int close = at >= DIGEST_SHOWN && at < DIGEST_BYTES;

	hex_encode(it->value, close ? DIGEST_BYTES : DIGEST_SHOWN, out);
}

static void nsdesc_show_adapters(const struct nsdesc_run *run, const struct nsdesc_run *other,
				 char *out)
{
	int n = snprintf(out, SHOWN_MAX, "%u adapter%s", run->count, run->count == 1 ? "" : "s");
	char digest[2 * DIGEST_BYTES + 1], scale[32];
	struct nsdesc_item it, theirs;

	if (!nsdesc_run_unshared(run, other, &it))
		return;
	nsdesc_show_digest(&it, nsdesc_run_unshared(other, run, &theirs) ? &theirs : NULL, digest);
	nsdesc_show_double(nsdesc_item_double(&it), scale, sizeof(scale));
	snprintf(out + n, SHOWN_MAX - (size_t)n, ", with %s at %s", digest, scale);
}

/* One name of the extras differs first: what each side says to it. */
static void nsdesc_show_extras(const struct nsdesc_run *here, const struct nsdesc_run *there,
			       struct nsdesc_difference *d)
{
	struct nsdesc_item a, b, it;
	int in_here = nsdesc_run_unshared(here, there, &a);
	int in_there = nsdesc_run_unshared(there, here, &b);
	size_t name, from;

	it = in_here && (!in_there || nsdesc_item_compare(&a, &b) < 0) ? a : b;
	name = nsdesc_item_name(&it);
	in_here = nsdesc_run_holds(here, &it, name, &a);
	in_there = nsdesc_run_holds(there, &it, name, &b);
	from = in_here && in_there ? nsdesc_differs_at(&a, &b) : 0;
	strcpy(d->here, "-");
	strcpy(d->there, "-");
	if (in_here)
		nsdesc_show_text(&a, from, d->here);
	if (in_there)
		nsdesc_show_text(&b, from, d->there);
}

/* One side of a field that is there once at most. */
static void nsdesc_show(const struct nsdesc_field *f, const struct nsdesc_run *run,
			const struct nsdesc_run *other, char *out)
{
	const struct nsdesc_item *it = &run->first, *beside = other->count ? &other->first : NULL;

	if (!run->count)
		snprintf(out, SHOWN_MAX, "-");
	else if (f->tag == NSDESC_ADAPTER)
		nsdesc_show_adapters(run, other, out);
	else if (f->kind == NSDESC_KIND_TEXT)
		nsdesc_show_text(it, beside ? nsdesc_differs_at(it, beside) : 0, out);
	else if (f->kind == NSDESC_KIND_NUMBER)
		snprintf(out, SHOWN_MAX, "%llu", (unsigned long long)nsdesc_item_number(it));
	else if (f->kind == NSDESC_KIND_DOUBLE)
		nsdesc_show_double(nsdesc_item_double(it), out, SHOWN_MAX);
	else
		nsdesc_show_digest(it, beside, out);
}

static void nsdesc_describe(const struct nsdesc_field *f, const struct nsdesc_run *here,
			    const struct nsdesc_run *there, struct nsdesc_difference *ret)
{
	*ret = (struct nsdesc_difference){ .field = f->name };
	if (f->tag == NSDESC_EXTRA) {
		nsdesc_show_extras(here, there, ret);
	} else if (f->tag == NSDESC_SALT) {
		/* A salt is a secret between those who share it. */
		strcpy(ret->here, here->count ? "(set)" : "-");
		strcpy(ret->there, !there->count ? "-" : here->count ? "(another)" : "(set)");
	} else {
		nsdesc_show(f, here, there, ret->here);
		nsdesc_show(f, there, here, ret->there);
	}
}

unsigned int nsdesc_compare(const uint8_t *here, size_t n_here, const uint8_t *there,
			    size_t n_there, struct nsdesc_difference *ret, unsigned int max)
{
	unsigned int count = 0;

	for (unsigned int tag = 1; tag <= NSDESC_TAG_MAX; tag++) {
		struct nsdesc_run a = nsdesc_run_find(here, n_here, tag);
		struct nsdesc_run b = nsdesc_run_find(there, n_there, tag);

		if (a.n == b.n && !memcmp(a.bytes, b.bytes, a.n))
			continue;
		if (count < max)
			nsdesc_describe(nsdesc_field_find(tag), &a, &b, &ret[count]);
		count++;
	}
	return count;
}
