/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "daemon/request.h"

void handler_resize(struct request *rq)
{
	const Kvpool__Resize *m = rq->msg;
	Kvpool__ResizeReply reply = KVPOOL__RESIZE_REPLY__INIT;
	struct pool_resized r;
	char text[DOMAIN_WHY_BYTES];
	int e = domain_resize(rq->domain, m->bytes, m->dry_run, &r, text);

	if (e < 0) {
		request_fail(rq, e == -ENOMEM ? ERROR_INTERNAL : ERROR_LIMIT, "bytes", "%s", text);
		return;
	}
	reply.was_bytes = r.was_bytes;
	reply.now_bytes = r.now_bytes;
	reply.handed_bytes = r.handed_bytes;
	reply.evict_blocks = r.evict_blocks;
	reply.stuck_bytes = r.stuck_bytes;
	reply.note = text;
	request_reply(rq, &reply.base);
}
