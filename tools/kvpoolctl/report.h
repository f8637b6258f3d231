/* SPDX-License-Identifier: Apache-2.0 */
/* JSON output. Numbers are raw: bytes, seconds, counts; null is what is not known. */
#ifndef KVP_TOOLS_KVPOOLCTL_REPORT_H
#define KVP_TOOLS_KVPOOLCTL_REPORT_H

#include <jansson.h>
#include <stdint.h>

#include "tools/kvpoolctl/ctl.h"

/* True when the options ask for JSON. */
int report_wanted(const struct ctl *ctl);

/* An object that starts with "schema". NULL when there is no memory, as from all functions here. */
json_t *report_new(const char *schema);

/* Add a member; NULL for o is ignored. */
void report_u64(json_t *o, const char *name, uint64_t n);
void report_bool(json_t *o, const char *name, int b);
void report_text(json_t *o, const char *name, const char *text); /* foreign text; "" is null */
void report_seconds(json_t *o, const char *name, uint64_t ns);
/* The same, with 0 for what is not known: null. */
void report_known(json_t *o, const char *name, uint64_t n);
void report_known_seconds(json_t *o, const char *name, uint64_t ns);
void report_add(json_t *o, const char *name, json_t *value); /* takes value */

/* Prints it as the options ask, and frees it. NULL: out of memory, said and returned. */
enum ctl_exit report_print(const struct ctl *ctl, json_t *o);

#endif
