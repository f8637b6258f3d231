/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/verb.h"

#include <string.h>

#include "base/compiler.h"
#include "base/suggest.h"

static const struct verb verbs[] = {
	{ "status", "State at a glance (the default)", verb_status },
	{ "ping", "Ask the daemon for a sign of life", verb_ping },
	{ "namespaces", "What is cached, by model", verb_namespaces },
	{ "clients", "Who is attached", verb_clients },
	{ "flush", "Drop cached blocks", verb_flush },
	{ "version", "Versions of command, library, protocol and daemon", verb_version },
};

const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

const struct verb *verb_suggest(const char *name)
{
	struct suggest s = SUGGEST_INIT(name);

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		suggest_offer(&s, verbs[i].name);
	return s.best ? verb_find(s.best) : NULL;
}

void verb_help(FILE *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		fprintf(out, "  %-12s %s\n", verbs[i].name, verbs[i].help);
}
