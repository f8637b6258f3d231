/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_page man|example TEXT: writes, from the table of keys, the page kvpool.conf(5) in the form
 * of scdoc(5), or a file to start from. TEXT is the part of it that people write; a line "@KEYS@"
 * in it is where the keys go. Part of the build, not installed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config_table.h"

#define LINE_BYTES   1024u
#define EXAMPLE_WIDTH 90u

/* scdoc would take "_" between letters, and "*" anywhere, for marks. */
static void man_put(const char *text)
{
	for (; *text; text++) {
		if (*text == '_' || *text == '*' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
}

static void man_key(const struct config_key *k)
{
	char accepts[CONFIG_ACCEPTS_BYTES];

	config_key_accepts(k, accepts);
	printf("*");
	man_put(k->name);
	printf("* = ");
	man_put(accepts);
	printf("\n\t%c%s. ", k->help[0] - 'a' + 'A', k->help + 1);
	if (k->value) {
		printf("Default: _");
		man_put(k->value);
		printf("_. ");
	}
	printf("[%s]\n\n\t%s\n\n", k->reload ? "reload" : "restart", k->more);
}

static void man_keys(void)
{
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *k = &config_keys[i];

		if (!i || strcmp(k->section, config_keys[i - 1].section))
			printf("## [%s%s]\n\n", k->section,
			       config_key_is_rule(k) ? " MODEL" : "");
		man_key(k);
	}
}

/* A comment, in lines of a width. */
static void example_wrap(const char *text)
{
	size_t column = 0;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (column && column + 1 + n > EXAMPLE_WIDTH) {
			printf("\n");
			column = 0;
		}
		printf("%s%.*s", column ? " " : "# ", (int)n, text);
		column += n + (column ? 1 : 2);
		text += n + (text[n] == ' ');
	}
	printf("\n");
}

static void example_key(const struct config_key *k)
{
	char text[LINE_BYTES], accepts[CONFIG_ACCEPTS_BYTES];

	config_key_accepts(k, accepts);
	snprintf(text, sizeof(text), "%c%s: %s. [%s]", k->help[0] - 'a' + 'A', k->help + 1, accepts,
		 k->reload ? "reload" : "restart");
	example_wrap(text);
	printf("#%s = %s\n\n", k->name, k->value ?: k->none);
}

static void example_keys(void)
{
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *k = &config_keys[i];
		int rule = config_key_is_rule(k);

		/* A section of rules without a name is an error, so that it is a comment too. */
		if (!i || strcmp(k->section, config_keys[i - 1].section))
			printf("%s[%s%s]\n", rule ? "#" : "", k->section, rule ? " Qwen2*" : "");
		example_key(k);
	}
}

int main(int argc, char **argv)
{
	int man = argc == 3 && !strcmp(argv[1], "man");
	char line[LINE_BYTES];
	FILE *f;

	if (argc != 3 || (!man && strcmp(argv[1], "example"))) {
		fprintf(stderr, "usage: config_page man|example TEXT\n");
		return 2;
	}
	f = fopen(argv[2], "re");
	if (!f) {
		perror(argv[2]);
		return EXIT_FAILURE;
	}
	while (fgets(line, sizeof(line), f)) {
		if (strcmp(line, "@KEYS@\n"))
			fputs(line, stdout);
		else if (man)
			man_keys();
		else
			example_keys();
	}
	fclose(f);
	return fflush(stdout) || ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
