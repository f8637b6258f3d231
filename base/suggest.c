/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/compiler.h"
#include "base/suggest.h"

#define SUGGEST_WORD_MAX 32

unsigned int suggest_distance(const char *a, const char *b)
{
	unsigned int d[SUGGEST_WORD_MAX + 1][SUGGEST_WORD_MAX + 1];
	size_t n = strnlen(a, SUGGEST_WORD_MAX), m = strnlen(b, SUGGEST_WORD_MAX);

	for (unsigned int i = 0; i <= n; i++)
		d[i][0] = i;
	for (unsigned int j = 0; j <= m; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= n; i++)
		for (size_t j = 1; j <= m; j++) {
			unsigned int gap = MIN(d[i - 1][j], d[i][j - 1]) + 1;

			d[i][j] = MIN(gap, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = MIN(d[i][j], d[i - 2][j - 2] + 1);
		}
	return d[n][m];
}

void suggest_offer(struct suggest *s, const char *candidate)
{
	unsigned int d = suggest_distance(s->word, candidate);

	if (d < s->least) {
		s->least = d;
		s->best = candidate;
	}
}
