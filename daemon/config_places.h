/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of the configuration: where they are, and which of them count.
 *
 * A file and, with less and more weight than it, folders of drop-ins: *.conf in the order of their
 * names. A drop-in hides those of the same name in folders of less weight; an empty one, or a link
 * to /dev/null, takes them away.
 */
#ifndef KVP_DAEMON_CONFIG_PLACES_H
#define KVP_DAEMON_CONFIG_PLACES_H

#include <limits.h>

#include "daemon/complaint.h"
#include "daemon/settings.h"

#define CONFIG_FOLDERS 3u

/* Paths are "" where there is nothing to read. */
struct config_places {
	char file[PATH_MAX];
	char folders[CONFIG_FOLDERS][PATH_MAX]; /* the first has less weight than file */
	int required;                           /* file must be there */
};

/* root is put before each path. Too long ones are left out. */
void config_places_system(struct config_places *p, const char *root);
void config_places_user(struct config_places *p, const char *root, const char *home);
void config_places_file(struct config_places *p, const char *file);

/* A file is text of at most so many bytes. */
#define CONFIG_FILE_MAX (1u << 20)

/*
 * Reads them all. Returns how many files there were, with a complaint for each thing that is wrong,
 * a file that cannot be read included; or -ENOMEM.
 */
int config_places_read(const struct config_places *p, uint64_t memory, struct settings *settings,
		       struct complaints *wrong);

#endif
