/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/verb.h"

#include <string.h>

#include "base/compiler.h"
#include "base/suggest.h"
#include "tools/kvpoolctl/candidates.h"
#include "tools/kvpoolctl/objects.h"
#include "tools/kvpoolctl/say.h"

static const struct verb verbs[] = {
	{ "status", VERB_LOOK, "", "State at a glance (the default)",
	  "One screen: the daemon, its pool by state of the bytes, how its memory is made, blocks, "
	  "hits, the reasons of misses, clients, pins, and its health. Hits count tokens since the "
	  "start of the daemon, or since \"stats reset\", sessions that ended included; \"from "
	  "another program\" is the part of the hit tokens whose deepest block another program had "
	  "computed.",
	  "kvpoolctl status", .run = verb_status },
	{ "clients", VERB_LOOK, "", "Who is attached",
	  "A line for each client: what it pins now (LEASED), what it wrote and is still there "
	  "(CACHED), its hit rate since it attached, and the part of its hits that another program "
	  "had computed (SHARED). A client whose session has ended, by itself or by \"kick\", but "
	  "whose memory somebody still maps is draining.",
	  "kvpoolctl clients -o name,pid,unit,leased", .listing = &clients_listing,
	  .run = verb_clients },
	{ "namespaces", VERB_LOOK, "", "What is cached, by model",
	  "A line for each namespace: the model, the fingerprint that its keys start from "
	  "(shortened), the bytes that a token takes, what is held, leased or not, the hit rate "
	  "since "
	  "the daemon knows it, and how long ago it was used.",
	  "kvpoolctl namespaces", .listing = &namespaces_listing, .run = verb_namespaces },
	{ "prefixes", VERB_LOOK, "", "The prefixes that are used most",
	  "Prefixes that lookups ended at lately, as far as the daemon keeps track of them: 20 at "
	  "most, or as many as --limit says, up to 64. The id stands for the prefix in \"show\" "
	  "and "
	  "\"pin\"; no text can be had from it.",
	  "kvpoolctl prefixes -n 10 --sort bytes --namespace qwen3-8b",
	  .listing = &prefixes_listing, .run = verb_prefixes },
	{ "show",
	  VERB_LOOK,
	  "OBJECT",
	  "All about one object",
	  "OBJECT is a client (name, session or process), a namespace (model, number or the start "
	  "of its fingerprint), a pin (number, label) or a prefix (the start of its id). Where a "
	  "name fits several, write client:NAME, namespace:NAME, pin:NAME or prefix:ID.",
	  "kvpoolctl show vllm-chat",
	  1,
	  1,
	  { VALUE_OBJECT },
	  .run = verb_show },
	{ "dump", VERB_LOOK, "", "Everything as one JSON",
	  "The answers of status, namespaces, clients, prefixes, pins, the last lookups and the "
	  "configuration (keys) in one object. What the daemon does not know of is null. There are "
	  "no "
	  "tokens and no text in it.",
	  "kvpoolctl dump >kvpool.json", .run = verb_dump },
	{ "info",
	  VERB_LOOK,
	  "[SECTION]",
	  "Flat key:value lines, for scripts and reports",
	  "Sections: daemon, pool, counters, reasons, pins, health. Without one, all of them, each "
	  "behind a line \"# section\". Values are raw, as in JSON; \"-\" is not known.",
	  "kvpoolctl info pool | grep ^used_bytes",
	  0,
	  1,
	  { VALUE_SECTION },
	  .run = verb_info },
	{ "capacity", VERB_LOOK, "", "How many tokens fit",
	  "By namespace: what a token takes, how many tokens are held, how many more could be "
	  "stored without evicting (FREE), and how many an otherwise empty pool would hold "
	  "(EMPTY); "
	  "with --pool-size also one of that size (RESIZED). With --layers, --kv-heads and "
	  "--head-dim, or --latent, or --gguf, it computes all this for a model that need not run, "
	  "and asks no daemon: bytes = 2 x layers x kv-heads x tokens x head-dim x bytes of an "
	  "element.",
	  "kvpoolctl capacity --layers 80 --kv-heads 8 --head-dim 128 --tokens 4096",
	  .listing = &capacity_listing, .run = verb_capacity },
	{ "explain",
	  VERB_UNDERSTAND,
	  "--tokens FILE --namespace NS | --last | --diff A B",
	  "Why a prompt was not a hit",
	  "With --tokens: how far these tokens are cached in a namespace, and why not further. "
	  "With "
	  "--last: the last lookup of all clients or of one (-n more), where its prefix broke and "
	  "why. With --diff: the first token and block in which two files differ, which takes no "
	  "daemon. Files hold decimal token ids with blanks, commas or new lines between them. The "
	  "reasons are listed in kvpoolctl(1).",
	  "kvpoolctl explain --last --client rag-worker -n 5",
	  0,
	  2,
	  { VALUE_FILE, VALUE_FILE },
	  .run = verb_explain },
	{ "pin",
	  VERB_CONTROL,
	  "ID | --tokens FILE --namespace NS",
	  "Keep a prefix in the pool",
	  "A pinned prefix is not evicted until its time is over, \"unpin\" or \"flush\". ID is "
	  "the "
	  "start of the id of a prefix, as \"prefixes\" shows it; --tokens takes the longest "
	  "cached "
	  "part of a prompt. A prefix may have several pins, by their labels; pinning it with the "
	  "same label again gives that pin a new time and priority. Pins have a budget "
	  "(cache.pin_budget): what exceeds it is not pinned, and the exit status is 5.",
	  "kvpoolctl pin 96a231236c91 --ttl 1h --label system-prompt",
	  0,
	  1,
	  { VALUE_PREFIX },
	  .run = verb_pin },
	{ "unpin",
	  VERB_CONTROL,
	  "ID | --label TEXT | --all",
	  "Take a pin back",
	  "ID is the number of a pin, its label, or the start of the id of its prefix. On a "
	  "terminal --all asks first.",
	  "kvpoolctl unpin --label system-prompt",
	  0,
	  1,
	  { VALUE_PIN },
	  .run = verb_unpin },
	{ "pins", VERB_LOOK, "", "What is pinned", "A line for each pin, and the budget of all.",
	  "kvpoolctl pins", .listing = &pins_listing, .run = verb_pins },
	{ "flush", VERB_CONTROL, "", "Drop cached blocks",
	  "All of them, or those of one namespace. Pins on them are dropped too. Blocks that are "
	  "being read are no longer found, and are freed when their last reader lets go; how many "
	  "those are is printed, and the exit status is 5. On a terminal it asks first.",
	  "kvpoolctl flush --namespace qwen3-8b --dry-run", .run = verb_flush },
	{ "resize", VERB_CONTROL, "SIZE", "Make the pool larger or smaller",
	  "SIZE is as 16G, or a percentage of what the pool may grow to. Shrinking evicts what "
	  "lies in the memory that goes, and leaves what is pinned, being read or written until "
	  "that ends: then the exit status is 5, and \"status\" shows the excess. A budget of pins "
	  "that is a percentage shrinks too, and pins beyond it end. On a terminal it asks before "
	  "it evicts. The size is that of the configuration again when the daemon restarts; "
	  "\"config "
	  "unset host.pool_size\" goes back to it at once.",
	  "kvpoolctl resize 12G --dry-run", 1, 1, .run = verb_resize },
	{ "kick",
	  VERB_CONTROL,
	  "CLIENT",
	  "End the session of a client",
	  "CLIENT is a name, the number of a session, or of a process. It is as if the client had "
	  "hung up: it may connect again, and what it reads stays readable until it lets go. On a "
	  "terminal it asks first.",
	  "kvpoolctl kick rag-worker",
	  1,
	  1,
	  { VALUE_CLIENT },
	  .run = verb_kick },
	{ "config",
	  VERB_RUN,
	  "[show|diff|get KEY|set KEY VALUE|unset KEY]",
	  "The configuration in force",
	  "\"show\" (the default) lists every key with its value and where that comes from. "
	  "\"diff\" lists only those that are not at their default, and those for which the files "
	  "say something else now (FILE), which is not in force: it waits for \"reload\" or, when "
	  "RESTART says so, for a restart, or was overridden by \"set\" or the command line. "
	  "\"get\" prints one value. \"set\" holds until the daemon restarts, \"unset\" takes it "
	  "back; see kvpool.conf(5) for the keys.",
	  "kvpoolctl config set host.pool_size 12G",
	  0,
	  3,
	  { VALUE_CHOICE, VALUE_KEY },
	  "show diff get set unset",
	  &config_listing,
	  verb_config },
	{ "reload", VERB_RUN, "", "Read the configuration files again",
	  "All of it, or nothing when a file has an error (exit status 78; the message names file "
	  "and line). Keys that need a restart are named.",
	  "kvpoolctl reload", .run = verb_reload },
	{ "log-level",
	  VERB_RUN,
	  "[LEVEL]",
	  "What the daemon logs",
	  "LEVEL is error, warning, notice, info or debug; it goes back to that of the "
	  "configuration after 10 minutes, or when --for says. With --for forever (or 0) it stays "
	  "until the daemon restarts, as with \"config set daemon.log_level\". Without LEVEL it "
	  "prints "
	  "the level in force, and how long it holds if it is one for a while.",
	  "kvpoolctl log-level debug --for 1h",
	  0,
	  1,
	  { VALUE_CHOICE },
	  "error warning notice info debug",
	  .run = verb_log_level },
	{ "stats",
	  VERB_RUN,
	  "reset",
	  "Let the counters begin at zero",
	  "For everybody who looks at them without --raw; the daemon goes on counting. Those of "
	  "single clients and namespaces stay.",
	  "kvpoolctl stats reset",
	  1,
	  1,
	  { VALUE_CHOICE },
	  "reset",
	  .run = verb_stats },
	{ "ping", VERB_RUN, "", "Ask the daemon for a sign of life",
	  "Prints how long the answer took.", "kvpoolctl ping -q", .run = verb_ping },
	{ "wait-ready", VERB_RUN, "", "Wait until the daemon is ready",
	  "As long as --timeout says. The exit status is 3 when nobody listened in that time, 1 "
	  "when the daemon was there and not ready.",
	  "kvpoolctl wait-ready --timeout 30s", .run = verb_wait_ready },
	{ "version", VERB_RUN, "", "Versions of command, library, protocol and daemon",
	  "With the protocol and the layout of shared memory that each of them speaks.",
	  "kvpoolctl version", .run = verb_version },
};

const struct verb *verb_row(unsigned int i)
{
	return i < ARRAY_SIZE(verbs) ? &verbs[i] : NULL;
}

const char *verb_group_name(enum verb_group g)
{
	static const char *const names[VERB_GROUPS] = {
		[VERB_LOOK] = "Look",
		[VERB_UNDERSTAND] = "Understand",
		[VERB_CONTROL] = "Control",
		[VERB_RUN] = "Run",
	};

	return names[g];
}

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

static enum ctl_exit unknown(const char *name)
{
	const struct verb *near = verb_suggest(name);

	if (near)
		return say_error(EXIT_USAGE, "unknown command \"%s\": did you mean \"%s\"?", name,
				 near->name);
	return say_error(EXIT_USAGE, "unknown command \"%s\" (see kvpoolctl --help)", name);
}

static enum ctl_exit check_args(const struct verb *v, const struct options *o)
{
	int n = o->n_args ? o->n_args - 1 : 0;

	if (n < v->min_args)
		return say_error(EXIT_USAGE, "\"%s\" needs %s (see kvpoolctl %s --help)", v->name,
				 v->args, v->name);
	if (n > v->max_args && !v->max_args)
		return say_error(
			EXIT_USAGE,
			"\"%s\" takes no argument, \"%s\" is one (see kvpoolctl %s --help)",
			v->name, o->args[1], v->name);
	if (n > v->max_args)
		return say_error(EXIT_USAGE,
				 "\"%s\" takes no more than %d argument%s, \"%s\" is one more (see "
				 "kvpoolctl %s --help)",
				 v->name, v->max_args, v->max_args == 1 ? "" : "s",
				 o->args[1 + v->max_args], v->name);
	return options_check(o, v->name);
}

enum ctl_exit verb_run(const struct ctl *ctl)
{
	const struct options *o = &ctl->opt;
	const char *name = o->n_args ? o->args[0] : "status";
	const struct verb *v = verb_find(name);
	enum ctl_exit rc;

	/* What completion scripts ask: not listed, since it is nothing for people. */
	if (!strcmp(name, CANDIDATES_VERB) && o->n_args == 2)
		return candidates_print(ctl, o->args[1]);
	if (!v)
		return unknown(name);
	rc = check_args(v, o);
	return rc ? rc : v->run(ctl);
}

const char *verb_arg(const struct ctl *ctl, int i)
{
	return i < ctl->opt.n_args ? ctl->opt.args[i] : NULL;
}
