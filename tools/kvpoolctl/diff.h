/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVP_TOOLS_KVPOOLCTL_DIFF_H
#define KVP_TOOLS_KVPOOLCTL_DIFF_H

#include "tools/kvpoolctl/ctl.h"

/* explain --diff A B: where two token files part. Asks no daemon. */
enum ctl_exit diff_files(const struct ctl *ctl);

#endif
