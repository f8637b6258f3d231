/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVP_TOOLS_KVPOOLCTL_REQUESTS_H
#define KVP_TOOLS_KVPOOLCTL_REQUESTS_H

#include "tools/kvpoolctl/admin.h"
#include "tools/kvpoolctl/ctl.h"

/* explain --last: the last lookups, newest first. */
enum ctl_exit requests_print(const struct ctl *ctl);

#endif
