/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the word of a list that a mistyped one is nearest to. */
#ifndef KVP_BASE_SUGGEST_H
#define KVP_BASE_SUGGEST_H

/* Edits (insert, remove, replace, swap neighbours) that make one word of the other. */
unsigned int suggest_distance(const char *a, const char *b);

/* As many edits as a mistyped word may be away from the one that was meant, plus one. */
#define SUGGEST_FAR 3u

/*
 * The best of the words that are offered: SUGGEST_INIT, then suggest_offer for each. Afterwards
 * best is the nearest one that is not too far from the word, the first of equally near ones, or
 * NULL.
 */
struct suggest {
	const char *word, *best;
	unsigned int least;
};

#define SUGGEST_INIT(word)                                                                         \
	{                                                                                          \
		(word), NULL, SUGGEST_FAR                                                          \
	}

void suggest_offer(struct suggest *s, const char *candidate);

#endif
