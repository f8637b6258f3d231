/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/admin.h"
#include "tools/kvpoolctl/confirm.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/units.h"
#include "tools/kvpoolctl/verb.h"

#define LOOK_AGAIN_NS (50 * NSEC_PER_MSEC)

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

static enum ctl_exit call(struct admin *a, uint64_t bytes, int dry_run, Kvpool__ResizeReply *ret)
{
	Kvpool__Resize request = KVPOOL__RESIZE__INIT;
	const void *reply;
	enum ctl_exit rc;

	request.bytes = bytes;
	request.dry_run = dry_run;
	rc = admin_call(a, OP_RESIZE, &request.base, &reply);
	/* No member of it points into the arena, so that it outlives the next call. */
	if (!rc)
		*ret = *(const Kvpool__ResizeReply *)reply;
	return rc;
}

/* Asks when cached blocks would go. */
static enum ctl_exit ask(struct admin *a, uint64_t bytes)
{
	Kvpool__ResizeReply r;
	enum ctl_exit rc = call(a, bytes, 1, &r);

	if (rc || !r.evict_blocks)
		return rc;
	return confirm_ask("Make the pool smaller, %s to %s, and evict %s blocks",
			   units_bytes(r.was_bytes, 0).text, units_bytes(bytes, 0).text,
			   units_count(r.evict_blocks).text);
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

static json_t *resize_json(const struct options *o, const Kvpool__ResizeReply *r, uint64_t excess)
{
	json_t *j = report_new("kvpool.resize/1");

	report_bool(j, "dry_run", o->dry_run);
	report_u64(j, "was_bytes", r->was_bytes);
	report_u64(j, "now_bytes", r->now_bytes);
	report_u64(j, "handed_bytes", r->handed_bytes);
	report_u64(j, "evict_blocks", r->evict_blocks);
	report_u64(j, "stuck_bytes", r->stuck_bytes);
	report_u64(j, "excess_bytes", excess);
	return j;
}

static void print(const struct options *o, const Kvpool__ResizeReply *r, uint64_t excess)
{
	const char *would = o->dry_run ? "would " : "";

	printf("the pool %s%s %s, was %s\n", would, o->dry_run ? "have" : "has",
	       units_bytes(r->now_bytes, o->bytes).text, units_bytes(r->was_bytes, o->bytes).text);
	if (r->evict_blocks)
		printf("%s blocks %s evicted\n", units_count(r->evict_blocks).text,
		       o->dry_run ? "would be" : "are");
	if (r->stuck_bytes)
		printf("%s are being read or written and go when that ends\n",
		       units_bytes(r->stuck_bytes, o->bytes).text);
	if (excess)
		printf("%s are still held beyond it\n", units_bytes(excess, o->bytes).text);
}

static enum ctl_exit tell(const struct ctl *ctl, const Kvpool__ResizeReply *r, uint64_t excess)
{
	enum ctl_exit rc = EXIT_OK;

	if (report_wanted(ctl))
		rc = report_print(ctl, resize_json(&ctl->opt, r, excess));
	else if (!ctl->opt.quiet)
		print(&ctl->opt, r, excess);
	return rc ? rc : excess ? EXIT_PARTLY : EXIT_OK;
}

enum ctl_exit verb_resize(const struct ctl *ctl)
{
	const struct options *o = &ctl->opt;
	_cleanup_(admin_close) struct admin a = { 0 };
	enum ctl_exit rc = admin_open(o, &a);
	uint64_t bytes = 0, excess;
	Kvpool__ResizeReply r;

	if (!rc)
		rc = find_bytes(&a, verb_arg(ctl, 1), &bytes);
	if (!rc && confirm_wanted(ctl))
		rc = ask(&a, bytes);
	a.about = verb_arg(ctl, 1);
	if (!rc)
		rc = call(&a, bytes, o->dry_run, &r);
	if (rc)
		return rc;
	excess = o->dry_run                     ? r.stuck_bytes
		 : r.handed_bytes > r.now_bytes ? r.handed_bytes - r.now_bytes
						: 0;
	if (o->wait && !o->dry_run)
		rc = wait_done(&a, &excess);
	return rc ? rc : tell(ctl, &r, excess);
}
