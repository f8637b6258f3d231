/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "client/keys_job.h"

struct keys_job *keys_job_new(const struct op_kind *kind, struct kvpool_ns *ns, struct chain *c)
{
	struct keys_job *j = calloc(1, sizeof(*j));

	if (!j) {
		(void)handle_error(ns->pool, -ENOMEM, "cannot %s: out of memory", kind->what);
		chain_close(c);
		return NULL;
	}
	op_job_init(&j->job, kind, ns->pool, ns);
	j->c = *c;
	j->began = clock_ns();
	return j;
}

ProtobufCBinaryData keys_job_part(struct keys_job *j)
{
	j->asked = (uint32_t)MIN(j->c.n - j->at, (size_t)j->job.link.max_keys);
	return (ProtobufCBinaryData){ j->asked * sizeof(j->c.keys[0]),
				      (uint8_t *)j->c.keys[j->at].w };
}

int keys_job_next(struct op_job *job)
{
	struct keys_job *j = (struct keys_job *)job;

	j->at += j->good;
	return j->good == j->asked && j->at < j->c.n;
}

void keys_job_drop(struct op_job *job, int err, int sent)
{
	struct keys_job *j = (struct keys_job *)job;

	chain_close(&j->c);
	free(j);
}
