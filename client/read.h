/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums of what a lease has. */
#ifndef KVP_CLIENT_READ_H
#define KVP_CLIENT_READ_H

#include "client/lease.h"

/* The checksum of block i, which the lease has, as its writer computed it. */
uint32_t read_crc(const struct kvpool_lease *l, uint64_t i);

/*
 * Block i had another checksum when it was copied: tells the daemon, which looks for itself.
 * Returns -EBADMSG, with the text of kvpool_error made.
 */
int read_report(const struct kvpool_lease *l, uint64_t i);

/* The lease knows its depth only. Returns -ENODATA, with the text of kvpool_error made. */
int read_no_pointers(const struct kvpool_lease *l);

#endif
