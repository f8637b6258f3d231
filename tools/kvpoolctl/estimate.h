/* SPDX-License-Identifier: Apache-2.0 */
/* The capacity for a model that need not run: from numbers, or from its file. Asks no daemon. */
#ifndef KVP_TOOLS_KVPOOLCTL_ESTIMATE_H
#define KVP_TOOLS_KVPOOLCTL_ESTIMATE_H

#include "tools/kvpoolctl/ctl.h"
#include "tools/kvpoolctl/shape.h"

/* True when an option says something of a model. */
int estimate_wanted(const struct options *o);

enum ctl_exit estimate_print(const struct ctl *ctl, uint64_t pool_bytes);

#endif
