/* SPDX-License-Identifier: Apache-2.0 */
/* The text of one file of the configuration. */
#ifndef KVP_DAEMON_CONFIG_FILE_H
#define KVP_DAEMON_CONFIG_FILE_H

#include "daemon/complaint.h"
#include "daemon/settings.h"

/*
 * Adds what it sets, and a complaint for each thing that is wrong. name is what it is called in
 * origins and complaints. Returns 0 (whatever is wrong with the text), or -ENOMEM.
 */
int config_file_parse(const char *text, size_t n, const char *name, uint64_t memory,
		      struct settings *settings, struct complaints *wrong);

#endif
