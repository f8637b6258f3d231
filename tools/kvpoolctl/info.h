/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVP_TOOLS_KVPOOLCTL_INFO_H
#define KVP_TOOLS_KVPOOLCTL_INFO_H

/* The name of section i of "info", NULL behind the last one. */
const char *info_section(unsigned int i);

#endif
