/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/address.h"

static int address_add(struct address *a, const char *dir, const char *path)
{
	char *to = a->path[a->count];
	int n = snprintf(to, sizeof(a->path[0]), "%s%s", dir, path);

	if (n < 0 || (size_t)n >= sizeof(a->path[0]))
		return -ENAMETOOLONG;
	a->count++;
	return 0;
}

static int is_set(const char *text)
{
	return text && *text;
}

int address_choose(const char *option, const char *socket, const char *runtime_dir,
		   struct address *ret)
{
	struct address a = { .count = 0 };
	int err;

	if (is_set(option) || is_set(socket)) {
		err = address_add(&a, "", is_set(option) ? option : socket);
		if (err < 0)
			return err;
	} else {
		if (is_set(runtime_dir))
			(void)address_add(&a, runtime_dir, "/kvpool/kvpool.sock");
		(void)address_add(&a, "", ADDRESS_SYSTEM);
	}
	*ret = a;
	return 0;
}
