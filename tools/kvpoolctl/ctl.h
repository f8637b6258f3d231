/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVP_TOOLS_KVPOOLCTL_CTL_H
#define KVP_TOOLS_KVPOOLCTL_CTL_H

#include "tools/kvpoolctl/options.h"
#include "tools/kvpoolctl/style.h"

/* What every verb is given: what was asked for, and what stdout is. */
struct ctl {
	struct options opt;
	struct style style;
};

#endif
