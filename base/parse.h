/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes, counts and durations as people write them. Strict: the whole text must be one, without
 * blanks or signs.
 *
 * Each returns 0 and the value, or -EINVAL and *why, which completes a sentence that begins with
 * the text: "is no number", "has no known unit (K, M, G, T, KiB, MiB, GiB, TiB or %)".
 */
#ifndef KVP_BASE_PARSE_H
#define KVP_BASE_PARSE_H

#include <stdint.h>

/*
 * Bytes: a number and K, M, G or T (or KiB, MiB, GiB, TiB: the same, powers of 1024), or a
 * percentage of whole, 1% to 100%. KB, MB, GB are refused: they mean two things. whole = 0: there
 * is nothing to take a percentage of. 0 bytes is refused.
 */
int parse_size(const char *text, uint64_t whole, uint64_t *ret, const char **why);

/* The other way: in the largest unit that it is a whole number of, "2M". */
#define PARSE_SIZE_BYTES 24u
void parse_format_size(uint64_t bytes, char out[PARSE_SIZE_BYTES]);

/* A decimal number from min to max. */
int parse_count(const char *text, uint64_t min, uint64_t max, uint64_t *ret, const char **why);

/* Nanoseconds: numbers with units, largest first: "90s", "5m", "1h30m", "250ms", "2d". */
int parse_duration(const char *text, uint64_t *ret, const char **why);

#endif
