/* SPDX-License-Identifier: Apache-2.0 */
/* From the descriptor that a program fills in to the canonical one (proto/nsdesc.h). */
#ifndef KVP_CLIENT_IDENTITY_H
#define KVP_CLIENT_IDENTITY_H

#include "client/handle.h"
#include "proto/nsdesc.h"

struct identity {
	size_t n;
	uint8_t data[NSDESC_MAX_BYTES];
	struct nsdesc_builder builder;
};

/* Returns 0, -EINVAL or -EOPNOTSUPP, with the text of kvpool_error made. */
int identity_make(struct kvpool *p, const struct kvpool_ns_desc *d, struct identity *ret,
		  struct nsdesc_values *ret_values);

#endif
