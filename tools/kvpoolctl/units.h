/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people read them. base/parse.h has the way back. */
#ifndef KVP_TOOLS_KVPOOLCTL_UNITS_H
#define KVP_TOOLS_KVPOOLCTL_UNITS_H

#include <stdint.h>

/* A number in words, by value: printf("%s", units_bytes(n, 0).text). */
struct units {
	char text[32];
};

/* "6.4 GiB", powers of 1024; exact: the digits alone. */
struct units units_bytes(uint64_t n, int exact);

/* part in the unit that whole has: "6.4" of 8.0 GiB, with a unit of its own when that reads 0.0. */
struct units units_bytes_of(uint64_t part, uint64_t whole, int exact);

/* Exact, in groups of three digits: "46 592". */
struct units units_count(uint64_t n);

/* Four digits at most: "9 811", "418 k", "1.2 M". */
struct units units_round(uint64_t n);

/* The two largest units of a time in nanoseconds: "3d 4h", "12min 4s", "0s". */
struct units units_duration(uint64_t ns);

/*
 * "71%", to the nearest; 0% and 100% only when that is so (else "<1%", ">99%"); "-" when whole is
 * 0, since nothing is known then.
 */
struct units units_percent(uint64_t part, uint64_t whole);

#endif
