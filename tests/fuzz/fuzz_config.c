/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the configuration: what is taken from one is sound, and written out it is the same. */
#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "daemon/config_file.h"
#include "tests/fuzz/fuzz.h"

#define MEMORY GIB(10)

/* A file with the same content. */
static char *write_out(const struct settings *s)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	assert(f);
	for (size_t i = 0; i < s->n; i++) {
		const struct setting *e = &s->v[i];

		fprintf(f, "[%s%s%s]\n%s = %s\n", e->key->section, e->glob ? " " : "",
			e->glob ?: "", e->key->name, e->value);
	}
	assert(fclose(f) == 0);
	return text;
}

static void check_same(const struct settings *a, const struct settings *b)
{
	assert(a->n == b->n);
	for (size_t i = 0; i < a->n; i++) {
		assert(a->v[i].key == b->v[i].key && !strcmp(a->v[i].value, b->v[i].value));
		assert(!a->v[i].glob == !b->v[i].glob);
		assert(!a->v[i].glob || !strcmp(a->v[i].glob, b->v[i].glob));
	}
}

/* Everything that is wrong has its place. */
static void check_complaints(const struct complaints *wrong)
{
	for (size_t i = 0; i < complaint_kept(wrong); i++) {
		const char *line = wrong->lines[i];

		assert(!strncmp(line, "f:", 2) && line[2] >= '1' && line[2] <= '9');
		for (; *line; line++)
			assert((unsigned char)*line >= ' ' && *line != 0x7f);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct settings first = SETTINGS_INIT, again = SETTINGS_INIT;
	struct complaints wrong = COMPLAINTS_INIT, none = COMPLAINTS_INIT;
	char why[CONFIG_WHY_BYTES], *text;
	struct config *c;

	assert(config_file_parse((const char *)data, n, "f", MEMORY, &first, &wrong) == 0);
	check_complaints(&wrong);
	for (size_t i = 0; i < first.n; i++)
		assert(setting_check(first.v[i].key, first.v[i].value, MEMORY, why) == 0);
	c = settings_config(&first, MEMORY);
	assert(c);
	(void)config_namespace(c, "Qwen2");
	config_free(c);
	text = write_out(&first);
	assert(config_file_parse(text, strlen(text), "f", MEMORY, &again, &none) == 0);
	assert(none.n == 0);
	check_same(&first, &again);
	free(text);
	settings_clear(&first);
	settings_clear(&again);
	complaint_clear(&wrong);
	return 0;
}

void fuzz_seeds(void (*tell)(const void *data, size_t n))
{
	static const char *const texts[] = {
		"[host]\npool_size = 16G # a\nnuma = node:1\n[limits]\nmax_clients = 7\n",
		"; a\n[namespace Qwen2*]\nttl = 1h30m\npriority = 99\n[namespace *]\nttl = never\n",
		"[cache]\npin_budget = 20%\npin_budget = 1G\nquarantine_grace : 1s\n",
		"\xef\xbb\xbf[daemon]\r\nlog_level = debug\r\nstatus_interval = 5s\r\n",
		"[host\n[host] x\npool_size\n= 3\npool_sizes = 1\n[hots]\n[namespace]\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		tell(texts[i], strlen(texts[i]));
}
