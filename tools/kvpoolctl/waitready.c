/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/admin.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/units.h"
#include "tools/kvpoolctl/verb.h"

#define LOOK_AGAIN_NS (20 * NSEC_PER_MSEC)

enum answer {
	ANSWER_NOBODY,
	ANSWER_STARTING,
	ANSWER_READY,
	ANSWER_FINAL, /* waiting does not help: said when it is tried aloud */
};

/* Looks for the socket each time: which one is meant depends on what is there. */
static enum answer look(const struct options *o, uint64_t left_ns, struct endpoint *ret)
{
	_cleanup_(admin_close) struct admin a = { 0 };
	Kvpool__Status request = KVPOOL__STATUS__INIT;
	const void *reply;
	int r;

	if (endpoint_find(o, ret))
		return ANSWER_FINAL;
	r = admin_connect(ret, MAX(left_ns, NSEC_PER_MSEC), &a);
	if (r)
		return r == -ENOENT || r == -ECONNREFUSED || r == -EAGAIN ? ANSWER_NOBODY
									  : ANSWER_FINAL;
	a.mute = 1;
	switch (admin_call(&a, OP_STATUS, &request.base, &reply)) {
	case EXIT_OK:
		return ((const Kvpool__StatusReply *)reply)->ready ? ANSWER_READY : ANSWER_STARTING;
	case EXIT_DENIED:
		return ANSWER_FINAL;
	default:
		return ANSWER_STARTING; /* it may be the old one that goes just now */
	}
}

static enum answer wait_for(const struct options *o, struct endpoint *ret)
{
	const struct timespec pause = { .tv_nsec = LOOK_AGAIN_NS };
	uint64_t deadline = clock_ns() + o->timeout_ns, now;
	enum answer answer;

	for (;;) {
		now = clock_ns();
		answer = look(o, deadline - MIN(now, deadline), ret);
		if (answer >= ANSWER_READY || clock_ns() >= deadline)
			return answer;
		nanosleep(&pause, NULL);
	}
}

/* What a request that is made aloud fails with. */
static enum ctl_exit fail_aloud(const struct ctl *ctl)
{
	_cleanup_(admin_close) struct admin a = { 0 };
	Kvpool__Status request = KVPOOL__STATUS__INIT;
	enum ctl_exit rc = admin_open(&ctl->opt, &a);
	const void *reply;

	return rc ? rc : admin_call(&a, OP_STATUS, &request.base, &reply);
}

static enum ctl_exit tell(const struct ctl *ctl, uint64_t took_ns)
{
	json_t *o;

	if (report_wanted(ctl)) {
		o = report_new("kvpool.wait-ready/1");
		report_bool(o, "ready", 1);
		report_seconds(o, "seconds", took_ns);
		return report_print(ctl, o);
	}
	if (!ctl->opt.quiet)
		printf("ready after %.2f s\n", (double)took_ns / NSEC_PER_SEC);
	return EXIT_OK;
}

enum ctl_exit verb_wait_ready(const struct ctl *ctl)
{
	uint64_t began = clock_ns(), timeout = ctl->opt.timeout_ns;
	struct endpoint e;
	enum ctl_exit rc = endpoint_find(&ctl->opt, &e);

	if (rc)
		return rc;
	switch (wait_for(&ctl->opt, &e)) {
	case ANSWER_READY:
		return tell(ctl, clock_ns() - began);
	case ANSWER_NOBODY:
		return say_error(EXIT_NO_DAEMON, "kvpoold at %s did not come within %s (%s)",
				 e.addr.sun_path, units_duration(timeout).text, e.hint);
	case ANSWER_STARTING:
		return say_error(EXIT_FAILED, "kvpoold at %s is not ready after %s (see its log)",
				 e.addr.sun_path, units_duration(timeout).text);
	default:
		return fail_aloud(ctl);
	}
}
