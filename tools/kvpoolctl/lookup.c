/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/lookup.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "proto/reason.h"
#include "tools/kvpoolctl/cell.h"
#include "tools/kvpoolctl/flow.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/style.h"
#include "tools/kvpoolctl/units.h"

#define INDENT 2u
/* Fewer continuations are a few conversations, not a value that differs each time. */
#define CHILDREN_MANY 8u

static uint64_t missed(const struct lookup *l)
{
	return l->asked_tokens - MIN(l->hit_tokens, l->asked_tokens);
}

/* The token that was missed first. */
static uint64_t broke_at(const struct lookup *l)
{
	return l->from_token + l->hit_tokens;
}

static void print_text(FILE *out, const char *text)
{
	flow_text(out, INDENT, STYLE_COLUMNS, text);
}

static void print_miss(const struct lookup *l, FILE *out)
{
	fprintf(out, "  miss %s token%s   %s at ", units_count(missed(l)).text,
		missed(l) == 1 ? "" : "s", miss_reason_name(l->reason));
	if (l->block_tokens)
		fprintf(out, "block %s, ", units_count(broke_at(l) / l->block_tokens).text);
	fprintf(out, "token %s", units_count(broke_at(l)).text);
	if (l->reason_ago_ns)
		fprintf(out, ", %s ago", units_duration(l->reason_ago_ns).text);
	fputc('\n', out);
}

static void print_writer(const struct lookup *l, FILE *out)
{
	_cleanup_free_ char *writer = cell_clean(l->writer ? l->writer : "");
	char text[256];

	if (writer && *writer) {
		snprintf(text, sizeof(text), "Client %s writes it.", writer);
		print_text(out, text);
	}
}

/* What the tree looks like where it broke. */
static void print_children(const struct lookup *l, FILE *out)
{
	int per_request = l->children >= CHILDREN_MANY && 2 * l->children_once >= l->children;
	char text[512];

	if (!l->children || l->reason == MISS_PARTIAL_BLOCK)
		return;
	if (per_request)
		snprintf(text, sizeof(text),
			 "Looks like a per-request value: %" PRIu32 " different continuations "
			 "follow token %" PRIu64 ", %" PRIu32 " of them used once. Move dates, ids "
			 "and tool lists behind the fixed part of the prompt.",
			 l->children, broke_at(l), l->children_once);
	else
		snprintf(text, sizeof(text),
			 "%" PRIu32 " other continuation%s of token %" PRIu64 " %s cached.",
			 l->children, l->children == 1 ? "" : "s", broke_at(l),
			 l->children == 1 ? "is" : "are");
	print_text(out, text);
	if (l->readers > 1) {
		snprintf(text, sizeof(text), "What is before it is shared by %" PRIu32 " clients.",
			 l->readers);
		print_text(out, text);
	}
}

void lookup_print(const struct lookup *l, FILE *out)
{
	char text[128];

	fprintf(out, "  hit  %s tokens", units_count(l->hit_tokens).text);
	if (l->block_tokens)
		fprintf(out, " (%s blocks)", units_count(l->hit_tokens / l->block_tokens).text);
	if (l->id && *l->id)
		fprintf(out, "   prefix %.16s", l->id);
	fputc('\n', out);
	if (!missed(l))
		return;
	print_miss(l, out);
	snprintf(text, sizeof(text), "%s: %s.", miss_reason_name(l->reason),
		 miss_reason_help(l->reason));
	print_text(out, text);
	print_writer(l, out);
	print_children(l, out);
}

void lookup_members(const struct lookup *l, json_t *o)
{
	report_u64(o, "lookup_tokens", l->asked_tokens);
	report_u64(o, "hit_tokens", l->hit_tokens);
	report_u64(o, "miss_tokens", missed(l));
	report_u64(o, "from_token", l->from_token);
	report_u64(o, "tail_tokens", l->tail_tokens);
	report_known(o, "block_tokens", l->block_tokens);
	report_text(o, "reason", miss_reason_name(l->reason));
	report_known_seconds(o, "reason_ago_seconds", l->reason_ago_ns);
	report_text(o, "id", l->id ? l->id : "");
	report_text(o, "writer", l->writer ? l->writer : "");
	report_u64(o, "children", l->children);
	report_u64(o, "children_once", l->children_once);
	report_u64(o, "readers", l->readers);
}
