/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/word.h"

#include <string.h>

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
