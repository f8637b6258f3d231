/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/exit.h"

#include "base/compiler.h"

static const struct exit_meaning meanings[] = {
	{ EXIT_OK, "All is well" },
	{ EXIT_FAILED, "It failed; standard error says why" },
	{ EXIT_USAGE, "Wrong use" },
	{ EXIT_NO_DAEMON, "The daemon is not running" },
	{ EXIT_NO_OBJECT, "There is no such object, or the name fits several" },
	{ EXIT_PARTLY, "Partly done: some of it is in use, or found no room" },
	{ EXIT_DENIED, "Not permitted" },
	{ EXIT_BAD_CONFIG, "A configuration or an environment that is not accepted" },
};

const struct exit_meaning *exit_meaning(unsigned int i)
{
	return i < ARRAY_SIZE(meanings) ? &meanings[i] : NULL;
}
