/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVP_TOOLS_KVPOOLCTL_CONFIRM_H
#define KVP_TOOLS_KVPOOLCTL_CONFIRM_H

#include "tools/kvpoolctl/ctl.h"

/* True when a verb that destroys something asks first: on a terminal, without --yes. */
int confirm_wanted(const struct ctl *ctl);

/* Asks "QUESTION? [y/N] ". EXIT_FAILED, and said, when the answer is not yes. */
enum ctl_exit confirm_ask(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
