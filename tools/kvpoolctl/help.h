/* SPDX-License-Identifier: Apache-2.0 */
/* What the tables of verbs and options say, as help. */
#ifndef KVP_TOOLS_KVPOOLCTL_HELP_H
#define KVP_TOOLS_KVPOOLCTL_HELP_H

#include <stdio.h>

#include "tools/kvpoolctl/verb.h"

/* kvpoolctl --help */
void help_print(FILE *out);

/* kvpoolctl VERB --help */
void help_verb(const struct verb *v, FILE *out);

#endif
