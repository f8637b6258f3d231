/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/flag.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "proto/check.h"
#include "tools/kvpoolctl/options.h"
#include "tools/kvpoolctl/word.h"

#define AT(member)   offsetof(struct options, member)
#define SET(member)  FLAG_SET, AT(member), 0, 1
#define TEXT(member) FLAG_TEXT, AT(member), 0, 0
#define DAY          (86400 * NSEC_PER_SEC)
#define TABLES       "namespaces clients prefixes pins capacity config"
#define SIZES        "status namespaces clients prefixes pins capacity show flush pin unpin resize"

static const struct flag rows[] = {
	{ "system", 0, NULL, FLAG_SET, AT(instance), 0, INSTANCE_SYSTEM,
	  .help = "The instance of the system" },
	{ "user", 0, NULL, FLAG_SET, AT(instance), 0, INSTANCE_USER,
	  .help = "The instance of this user" },
	{ "socket", 0, "PATH", TEXT(socket), VALUE_FILE, .help = "The instance with this socket" },
	{ "json", 0, "[short|pretty|off]", FLAG_JSON, AT(json), 0, 0, VALUE_CHOICE,
	  "short pretty off", .help = "Print JSON: raw numbers, bytes, seconds" },
	{ "", 'j', NULL, FLAG_SET, AT(json), 0, OPTIONS_JSON_AUTO,
	  .help = "Print JSON: pretty on a terminal, short elsewhere" },
	{ "quiet", 'q', NULL, SET(quiet), .help = "Print nothing but errors" },
	{ "timeout", 0, "TIME", FLAG_TIME, AT(timeout_ns), NSEC_PER_MSEC, DAY,
	  .help = "Wait this long for an answer (default 5s)" },
	{ "help", 'h', NULL, SET(help), .help = "Print help, for a command its own" },
	{ "version", 0, NULL, SET(version), .help = "Print the version of this program" },
	{ "output", 'o', "NAMES", TEXT(columns), VALUE_COLUMNS, NULL, TABLES,
	  "Columns to print, or \"all\"" },
	{ "no-legend", 0, NULL, SET(no_legend), VALUE_ANY, NULL, TABLES,
	  "No header, no count of lines" },
	{ "full", 'l', NULL, SET(full), VALUE_ANY, NULL, TABLES,
	  "Do not cut names to fit the terminal" },
	{ "bytes", 0, NULL, SET(bytes), VALUE_ANY, NULL, SIZES, "Sizes in exact bytes" },
	{ "raw", 0, NULL, SET(raw), VALUE_ANY, NULL, "status info dump",
	  "Counters since the start, not since \"stats reset\"" },
	{ "namespace", 0, "NS", TEXT(namespace), VALUE_NAMESPACE, NULL,
	  "flush prefixes capacity pin explain",
	  "Only this one: its number, model or fingerprint" },
	{ "limit", 'n', "N", FLAG_COUNT, AT(limit), 1, 256, VALUE_ANY, NULL, "prefixes explain",
	  "At most so many" },
	{ "sort", 0, "BY", TEXT(sort), VALUE_CHOICE, "hits bytes age", "prefixes",
	  "By what to order (default hits)" },
	{ "tokens", 0, "FILE", TEXT(tokens), VALUE_FILE, NULL, "pin explain",
	  "A file with token ids, \"-\" is stdin" },
	{ "tokens", 0, "N", TEXT(tokens), VALUE_ANY, NULL, "capacity",
	  "The size of so many tokens" },
	{ "last", 0, NULL, SET(last), VALUE_ANY, NULL, "explain",
	  "The last lookups, newest first" },
	{ "client", 0, "CLIENT", TEXT(client), VALUE_CLIENT, NULL, "explain",
	  "Only lookups of this name, session or process" },
	{ "misses", 0, NULL, SET(misses), VALUE_ANY, NULL, "explain",
	  "Only lookups that missed something" },
	{ "diff", 0, NULL, SET(diff), VALUE_ANY, NULL, "explain",
	  "Where two files of token ids part (no daemon)" },
	{ "block", 0, "N", FLAG_COUNT, AT(block), 1, 65536, VALUE_ANY, NULL, "explain capacity",
	  "Tokens of a block (default 16) if no namespace" },
	{ "layers", 0, "N", FLAG_COUNT, AT(layers), 1, 65536, VALUE_ANY, NULL, "capacity",
	  "Layers with K/V of a model" },
	{ "kv-heads", 0, "N", FLAG_COUNT, AT(kv_heads), 1, 65536, VALUE_ANY, NULL, "capacity",
	  "Its K/V heads (not those of queries)" },
	{ "head-dim", 0, "N", FLAG_COUNT, AT(head_dim), 1, 1048576, VALUE_ANY, NULL, "capacity",
	  "Elements of a head" },
	{ "head-dim-v", 0, "N", FLAG_COUNT, AT(head_dim_v), 1, 1048576, VALUE_ANY, NULL, "capacity",
	  "The same of V, when it differs from K" },
	{ "latent", 0, "N[+N]", TEXT(latent), VALUE_ANY, NULL, "capacity",
	  "MLA: elements of a token and layer, as 512+64" },
	{ "gguf", 0, "FILE", TEXT(gguf), VALUE_FILE, NULL, "capacity",
	  "The shape from the header of this file" },
	{ "dtype", 0, "TYPE", TEXT(dtype), VALUE_CHOICE,
	  "f32 f16 bf16 fp8 int8 int8_head q8_0 q5_1 q5_0 q4_1 q4_0 iq4_nl kivi4 nvfp4", "capacity",
	  "Type of K and V (default f16)" },
	{ "dtype-v", 0, "TYPE", TEXT(dtype_v), VALUE_CHOICE,
	  "f32 f16 bf16 fp8 int8 int8_head q8_0 q5_1 q5_0 q4_1 q4_0 iq4_nl kivi4 nvfp4", "capacity",
	  "Type of V, when it differs from K" },
	{ "pool-size", 0, "SIZE", TEXT(pool_size), VALUE_ANY, NULL, "capacity",
	  "What if the pool were so large" },
	{ "ttl", 0, "TIME", FLAG_TIME, AT(ttl_ns), NSEC_PER_SEC, UINT32_MAX *NSEC_PER_SEC,
	  VALUE_ANY, NULL, "pin", "Until so long from now; else until \"unpin\"" },
	{ "priority", 0, "N", FLAG_COUNT, AT(priority), 1, PROTO_PRIORITY_MAX, VALUE_ANY, NULL,
	  "pin", "Low ones end first if budgets shrink (default 50)" },
	{ "label", 0, "TEXT", TEXT(label), VALUE_LABEL, NULL, "pin unpin",
	  "A name of your own for the pin" },
	{ "all", 0, NULL, SET(all), VALUE_ANY, NULL, "unpin", "Every pin" },
	{ "wait", 0, NULL, SET(wait), VALUE_ANY, NULL, "resize",
	  "Wait until it is done, as long as --timeout says" },
	{ "for", 0, "TIME", FLAG_SPAN, AT(for_ns), NSEC_PER_SEC, 365 * DAY, VALUE_ANY, NULL,
	  "log-level", "Go back after it (default 10m); forever: stay" },
	{ "dry-run", 0, NULL, SET(dry_run), VALUE_ANY, NULL, "flush resize",
	  "Change nothing, say what would be" },
	{ "yes", 0, NULL, SET(yes), VALUE_ANY, NULL, "flush resize kick unpin", "Do not ask" },
};

static_assert(ARRAY_SIZE(rows) <= FLAG_ROWS_MAX, "a bit each in options.given");

const struct flag *flag_row(unsigned int i)
{
	return i < ARRAY_SIZE(rows) ? &rows[i] : NULL;
}

int flag_applies(const struct flag *f, const char *verb)
{
	return !f->verbs || word_listed(f->verbs, verb);
}

struct flag_form flag_form(const struct flag *f)
{
	int optional = f->arg && *f->arg == '[';
	struct flag_form s;

	if (*f->name)
		snprintf(s.text, sizeof(s.text), "--%s%s%s", f->name,
			 optional ? "[="
			 : f->arg ? " "
				  : "",
			 f->arg ? f->arg + optional : "");
	else
		snprintf(s.text, sizeof(s.text), "-%c", f->letter);
	return s;
}

unsigned int flag_first(const struct flag *f)
{
	unsigned int i = 0;

	while (strcmp(rows[i].name, f->name) || rows[i].letter != f->letter)
		i++;
	return i;
}
