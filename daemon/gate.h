/* SPDX-License-Identifier: Apache-2.0 */
/* Who is let in, and how many. */
#ifndef KVP_DAEMON_GATE_H
#define KVP_DAEMON_GATE_H

#include "daemon/domain.h"

#define GATE_WHY_BYTES 256u

/* ERROR_NONE, or ERROR_DENIED or ERROR_LIMIT with the words for it. */
enum proto_error gate_check(const struct domain *d, const struct peer *peer, int admin,
			    char why[GATE_WHY_BYTES]);

/* Says why, as an error that answers no request, and closes. Takes the socket and the peer. */
void gate_refuse(struct domain *d, int sock, struct peer *peer, enum proto_error code,
		 const char *why);

#endif
