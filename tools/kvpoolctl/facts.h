/* SPDX-License-Identifier: Apache-2.0 */
/* An object of JSON as lines, a member each. */
#ifndef KVP_TOOLS_KVPOOLCTL_FACTS_H
#define KVP_TOOLS_KVPOOLCTL_FACTS_H

#include <jansson.h>
#include <stdio.h>

/*
 * For people: "  cached bytes     2.0 GiB". What a number is, its name tells: ..._bytes,
 * ..._seconds. exact: sizes in bytes.
 */
void facts_print(const json_t *o, int exact, FILE *out);

/*
 * For programs: "cached_bytes:2147483648", with prefix before each name. Objects in it are
 * flattened, "states.cached:..."; lists are numbered from 0.
 */
void facts_flat(const json_t *o, const char *prefix, FILE *out);

#endif
