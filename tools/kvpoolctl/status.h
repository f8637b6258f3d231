/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a daemon in words and as JSON. */
#ifndef KVP_TOOLS_KVPOOLCTL_STATUS_H
#define KVP_TOOLS_KVPOOLCTL_STATUS_H

#include <jansson.h>
#include <stdio.h>

#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/style.h"

/* One screen. exact: sizes in bytes. */
void status_print(const Kvpool__StatusReply *s, const struct style *style, int exact, FILE *out);

/* Schema kvpool.status/1; NULL when there is no memory. */
json_t *status_json(const Kvpool__StatusReply *s);

#endif
