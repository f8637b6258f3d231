/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVP_TOOLS_KVPOOLCTL_VERSION_H
#define KVP_TOOLS_KVPOOLCTL_VERSION_H

#include <stdio.h>

/* What this program was built from; asks nobody. */
void version_print(FILE *out);

#endif
