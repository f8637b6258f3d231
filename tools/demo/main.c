/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/demo/demo.h"
#include "tools/private_daemon.h"

static const struct option long_options[] = {
	{ "model", required_argument, NULL, 'm' },
	{ "document", required_argument, NULL, 'd' },
	{ "tokens", required_argument, NULL, 't' },
	{ "answer", required_argument, NULL, 'a' },
	{ "json", required_argument, NULL, 'j' },
	{ "daemon", required_argument, NULL, 'D' },
	{ "ctl", required_argument, NULL, 'C' },
	/* Of the parts, given by the stage. */
	{ "part", required_argument, NULL, 'p' },
	{ "socket", required_argument, NULL, 's' },
	{ "question", required_argument, NULL, 'q' },
	{ "split", required_argument, NULL, 'S' },
	{ "result-fd", required_argument, NULL, 'r' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int usage(FILE *to, int code)
{
	fprintf(to, "Usage: kvpool-demo --document FILE --document FILE [--model FILE] [--tokens "
		    "N] [--answer N]\n"
		    "                   [--json FILE] [--daemon PATH] [--ctl PATH]\n"
		    "Shows two processes that share the prefix of a prompt, with a private daemon. "
		    "The first document\n"
		    "is shared in sequence, the second one by two processes at once. Exit code 0 "
		    "when the outputs are\n"
		    "equal bit for bit and nothing was computed twice.\n");
	return code;
}

static uint32_t number(const char *text)
{
	return (uint32_t)strtoul(text, NULL, 10);
}

/* Returns 0, or 1 for an option that is none. */
static int apply(struct demo_options *opt, int o, int *documents)
{
	switch (o) {
	case 'm':
		opt->model = optarg;
		return 0;
	case 't':
		opt->tokens = number(optarg);
		return 0;
	case 'a':
		opt->answer = number(optarg);
		return 0;
	case 'j':
		opt->json = optarg;
		return 0;
	case 'D':
		opt->daemon = optarg;
		return 0;
	case 'C':
		opt->ctl = optarg;
		return 0;
	case 'p':
		opt->part = optarg;
		return 0;
	case 's':
		opt->socket = optarg;
		return 0;
	case 'q':
		opt->question = optarg;
		return 0;
	case 'S':
		opt->split = number(optarg);
		return 0;
	case 'r':
		opt->result_fd = (int)number(optarg);
		return 0;
	case 'd':
		if (*documents == 2)
			return 1;
		opt->document[(*documents)++] = optarg;
		return 0;
	default:
		return 1;
	}
}

int main(int argc, char **argv)
{
	struct demo_options opt = { .tokens = 2000, .answer = 24, .result_fd = -1 };
	int documents = 0, o;

	while ((o = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		if (o == 'h')
			return usage(stdout, 0);
		if (apply(&opt, o, &documents))
			return usage(stderr, 2);
	}
	if (opt.part)
		return demo_part(&opt);
	if (documents != 2 || optind != argc || opt.tokens < 100 || opt.tokens > 8000)
		return usage(stderr, 2);
	if (!opt.daemon)
		opt.daemon = private_program("daemon", "kvpoold");
	if (!opt.ctl)
		opt.ctl = private_program("tools", "kvpoolctl");
	return demo_stage(&opt);
}
