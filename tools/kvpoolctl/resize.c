/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/admin.h"
#include "tools/kvpoolctl/cell.h"
#include "tools/kvpoolctl/confirm.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/units.h"
#include "tools/kvpoolctl/verb.h"

#define LOOK_AGAIN_NS (50 * NSEC_PER_MSEC)
#define NOTE_BYTES    256

/* What was answered, in memory that the next call leaves alone. */
struct resized {
	uint64_t was_bytes, now_bytes, handed_bytes, evict_blocks, stuck_bytes;
	uint64_t pinned_bytes, pin_budget_bytes;
	uint64_t excess_bytes; /* that is still held beyond the size, or would be */
	char note[NOTE_BYTES];
};

static enum ctl_exit get_status(struct admin *a, const Kvpool__StatusReply **ret)
{
	Kvpool__Status request = KVPOOL__STATUS__INIT;
	const void *reply;
	enum ctl_exit rc = admin_call(a, OP_STATUS, &request.base, &reply);

	if (!rc)
		*ret = reply;
	return rc;
}

static enum ctl_exit find_bytes(struct admin *a, const char *text, uint64_t *ret)
{
	const Kvpool__StatusReply *s;
	enum ctl_exit rc = get_status(a, &s);
	const char *why;

	if (rc)
		return rc;
	if (parse_size(text, s->pool_max_bytes, ret, &why))
		return say_error(EXIT_USAGE, "the size %s %s: write it as 16G or 80%%", text, why);
	return EXIT_OK;
}

static uint64_t excess_of(const Kvpool__ResizeReply *r, int dry_run)
{
	if (dry_run)
		return r->stuck_bytes;
	return r->handed_bytes > r->now_bytes ? r->handed_bytes - r->now_bytes : 0;
}

static enum ctl_exit call(struct admin *a, uint64_t bytes, int dry_run, struct resized *ret)
{
	Kvpool__Resize request = KVPOOL__RESIZE__INIT;
	const Kvpool__ResizeReply *r;
	const void *reply;
	enum ctl_exit rc;

	request.bytes = bytes;
	request.dry_run = dry_run;
	rc = admin_call(a, OP_RESIZE, &request.base, &reply);
	if (rc)
		return rc;
	r = reply;
	*ret = (struct resized){
		.was_bytes = r->was_bytes,
		.now_bytes = r->now_bytes,
		.handed_bytes = r->handed_bytes,
		.evict_blocks = r->evict_blocks,
		.stuck_bytes = r->stuck_bytes,
		.pinned_bytes = r->pinned_bytes,
		.pin_budget_bytes = r->pin_budget_bytes,
		.excess_bytes = excess_of(r, dry_run),
	};
	snprintf(ret->note, sizeof(ret->note), "%s", r->note);
	return EXIT_OK;
}

static int ends_pins(const struct resized *r)
{
	return r->pinned_bytes > r->pin_budget_bytes;
}

/* Asks when cached blocks would go, or pins. */
static enum ctl_exit ask(struct admin *a, uint64_t bytes)
{
	struct resized r;
	enum ctl_exit rc = call(a, bytes, 1, &r);

	if (rc || (!r.evict_blocks && !ends_pins(&r)))
		return rc;
	return confirm_ask("Make the pool smaller, %s to %s, and evict %s blocks%s",
			   units_bytes(r.was_bytes, 0).text, units_bytes(bytes, 0).text,
			   units_count(r.evict_blocks).text,
			   ends_pins(&r) ? ", and end pins beyond the smaller budget" : "");
}

/* Until nothing is held beyond the limit, or the time is over; *ret_excess is what is left. */
static enum ctl_exit wait_done(struct admin *a, uint64_t *ret_excess)
{
	const struct timespec pause = { .tv_nsec = LOOK_AGAIN_NS };
	uint64_t deadline = clock_ns() + a->timeout_ns;
	const Kvpool__StatusReply *s;

	for (;;) {
		enum ctl_exit rc = get_status(a, &s);

		if (rc)
			return rc;
		*ret_excess = s->pool_excess_bytes;
		if (!s->pool_excess_bytes || clock_ns() >= deadline)
			return EXIT_OK;
		nanosleep(&pause, NULL);
	}
}

static json_t *resize_json(const struct options *o, const struct resized *r)
{
	json_t *j = report_new("kvpool.resize/1");

	report_bool(j, "dry_run", o->dry_run);
	report_u64(j, "was_bytes", r->was_bytes);
	report_u64(j, "now_bytes", r->now_bytes);
	report_u64(j, "handed_bytes", r->handed_bytes);
	report_u64(j, "evict_blocks", r->evict_blocks);
	report_u64(j, "stuck_bytes", r->stuck_bytes);
	report_u64(j, "excess_bytes", r->excess_bytes);
	report_u64(j, "pinned_bytes", r->pinned_bytes);
	report_u64(j, "pin_budget_bytes", r->pin_budget_bytes);
	report_text(j, "note", r->note);
	return j;
}

static void print_pins(const struct options *o, const struct resized *r)
{
	printf("%s %s pinned, and the budget %s %s: pins %s, low priorities first\n",
	       units_bytes(r->pinned_bytes, o->bytes).text, o->dry_run ? "are" : "were",
	       o->dry_run ? "would be" : "is", units_bytes(r->pin_budget_bytes, o->bytes).text,
	       o->dry_run ? "would end" : "ended");
}

static void print(const struct options *o, const struct resized *r)
{
	_cleanup_free_ char *note = cell_clean(r->note);
	const char *would = o->dry_run ? "would " : "";

	printf("the pool %s%s %s, was %s\n", would, o->dry_run ? "have" : "has",
	       units_bytes(r->now_bytes, o->bytes).text, units_bytes(r->was_bytes, o->bytes).text);
	if (r->evict_blocks)
		printf("%s blocks %s evicted\n", units_count(r->evict_blocks).text,
		       o->dry_run ? "would be" : "are");
	if (r->stuck_bytes)
		printf("%s are pinned, being read or written, and go when that ends\n",
		       units_bytes(r->stuck_bytes, o->bytes).text);
	if (ends_pins(r))
		print_pins(o, r);
	if (r->excess_bytes && !o->dry_run)
		printf("%s beyond it are still to be given back (status shows it, --wait waits)\n",
		       units_bytes(r->excess_bytes, o->bytes).text);
	if (note && *note)
		printf("note: %s\n", note);
}

static enum ctl_exit tell(const struct ctl *ctl, const struct resized *r)
{
	enum ctl_exit rc = EXIT_OK;

	if (report_wanted(ctl))
		rc = report_print(ctl, resize_json(&ctl->opt, r));
	else if (!ctl->opt.quiet)
		print(&ctl->opt, r);
	return rc ? rc : r->excess_bytes ? EXIT_PARTLY : EXIT_OK;
}

enum ctl_exit verb_resize(const struct ctl *ctl)
{
	const struct options *o = &ctl->opt;
	_cleanup_(admin_close) struct admin a = { 0 };
	enum ctl_exit rc = admin_open(o, &a);
	uint64_t bytes = 0;
	struct resized r;

	if (!rc)
		rc = find_bytes(&a, verb_arg(ctl, 1), &bytes);
	if (!rc && confirm_wanted(ctl))
		rc = ask(&a, bytes);
	a.about = verb_arg(ctl, 1);
	if (!rc)
		rc = call(&a, bytes, o->dry_run, &r);
	if (!rc && o->wait && !o->dry_run)
		rc = wait_done(&a, &r.excess_bytes);
	return rc ? rc : tell(ctl, &r);
}
