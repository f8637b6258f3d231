/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/word.h"

#include <string.h>

#include "base/compiler.h"

#define WORD_MAX 32

unsigned int word_distance(const char *a, const char *b)
{
	unsigned int d[WORD_MAX + 1][WORD_MAX + 1];
	size_t n = strnlen(a, WORD_MAX), m = strnlen(b, WORD_MAX);

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

int word_listed(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (; *list; list += strspn(list, " ")) {
		size_t len = strcspn(list, " ");

		if (len == n && !memcmp(list, word, n))
			return 1;
		list += len;
	}
	return 0;
}
