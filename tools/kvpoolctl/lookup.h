/* SPDX-License-Identifier: Apache-2.0 */
/* How far a lookup went, why not further, and what can be made of it. */
#ifndef KVP_TOOLS_KVPOOLCTL_LOOKUP_H
#define KVP_TOOLS_KVPOOLCTL_LOOKUP_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

struct lookup {
	uint64_t asked_tokens, hit_tokens, from_token;
	uint64_t tail_tokens;   /* of the missed ones: behind the last block that could be cached */
	uint32_t block_tokens;  /* 0: not known */
	uint32_t reason;        /* enum miss_reason */
	uint64_t reason_ago_ns; /* 0: not known */
	uint32_t children, children_once, readers;
	const char *writer, *id; /* NULL or "": not known */
};

/* Lines behind a title: hit, miss, reason, advice. */
void lookup_print(const struct lookup *l, FILE *out);

/* The same as members of o. */
void lookup_members(const struct lookup *l, json_t *o);

#endif
