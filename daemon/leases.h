/* SPDX-License-Identifier: Apache-2.0 */
/* What one client pins at the moment, for people. */
#ifndef KVP_DAEMON_LEASES_H
#define KVP_DAEMON_LEASES_H

#include "shm/control.h"
#include "shm/pinset.h"
#include "shm/session.h"

/* Whether a client pins anything. */
int leases_any(const struct session_map *m);

struct leases {
	uint64_t words; /* hazard words in use */
	uint64_t bytes; /* of the blocks that they name, and of all before those, each once */
};

/* scratch: cleared here, with room for the blocks of c. */
void leases_count(const struct control *c, const struct session_map *m, struct pinset *scratch,
		  struct leases *ret);

#endif
