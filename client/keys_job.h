/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that ask about the keys of a chain, as many as fit a message at a time. */
#ifndef KVP_CLIENT_KEYS_JOB_H
#define KVP_CLIENT_KEYS_JOB_H

#include "client/op.h"

struct keys_job {
	struct op_job job;
	struct chain c; /* the job's own */
	size_t at;      /* keys that all was well with */
	uint32_t asked,
		good; /* keys of the last message, and how many of them, from the first on */
	int timed_out;
	uint64_t began, until; /* of a wait */
};

/* Takes the keys of c over, also when it returns NULL, with the text of kvpool_error made. */
struct keys_job *keys_job_new(const struct op_kind *kind, struct kvpool_ns *ns, struct chain *c);

/* The next part, for a message. */
ProtobufCBinaryData keys_job_part(struct keys_job *j);

/* Hooks of struct op_kind: it goes on while all of a part are good; then its keys are freed. */
int keys_job_next(struct op_job *job);
void keys_job_drop(struct op_job *job, int err, int sent);

#endif
