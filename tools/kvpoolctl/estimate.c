/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/estimate.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "tools/kvpoolctl/gguf.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/units.h"

#define BLOCK_BYTES_MIN KIB(4) /* what the pool takes */
#define BLOCK_BYTES_MAX MIB(256)

struct estimate {
	struct gguf model;
	uint64_t token_bytes, block_tokens, tokens, total_bytes;
	uint64_t pool_bytes; /* 0: not asked for */
};

int estimate_wanted(const struct options *o)
{
	return o->layers || o->kv_heads || o->head_dim || o->head_dim_v || o->latent || o->gguf ||
	       o->dtype || o->dtype_v || o->tokens;
}

/* "576" or "512+64". */
static enum ctl_exit parse_latent(const char *text, uint64_t *ret)
{
	const char *plus = strchr(text, '+'), *why;
	uint64_t a, b = 0;
	char first[24];

	snprintf(first, sizeof(first), "%.*s", plus ? (int)MIN(plus - text, 20) : 20, text);
	if (parse_count(first, 1, 1u << 20, &a, &why) ||
	    (plus && parse_count(plus + 1, 1, 1u << 20, &b, &why)))
		return say_error(EXIT_USAGE,
				 "--latent %s is no number of elements: write it as 576 or 512+64",
				 text);
	*ret = a + b;
	return EXIT_OK;
}

static enum ctl_exit shape_from_options(const struct options *o, struct shape *ret)
{
	struct shape s = { .layers = o->layers };
	enum ctl_exit rc;

	if (!o->layers || (!o->latent && (!o->kv_heads || !o->head_dim)))
		return say_error(EXIT_USAGE, "the shape of a model takes --layers with --kv-heads "
					     "and --head-dim, or with --latent; or --gguf FILE");
	if (o->latent) {
		rc = parse_latent(o->latent, &s.head_dim_k);
		if (rc)
			return rc;
		s.kv_heads = 1;
	} else {
		s.kv_heads = o->kv_heads;
		s.head_dim_k = o->head_dim;
		s.head_dim_v = o->head_dim_v ? o->head_dim_v : o->head_dim;
	}
	s.layer_heads = s.layers * s.kv_heads;
	*ret = s;
	return EXIT_OK;
}

static enum ctl_exit find_shape(const struct options *o, struct gguf *ret)
{
	struct gguf g = { 0 };
	enum ctl_exit rc;

	if (o->gguf && (o->layers || o->kv_heads || o->head_dim || o->head_dim_v || o->latent))
		return say_error(EXIT_USAGE,
				 "--gguf has the shape of the model: leave the other numbers out");
	if (o->latent && (o->kv_heads || o->head_dim || o->head_dim_v))
		return say_error(EXIT_USAGE, "--latent stands for the heads: leave --kv-heads and "
					     "--head-dim out");
	rc = o->gguf ? gguf_open(o->gguf, &g) : shape_from_options(o, &g.shape);
	if (!rc)
		*ret = g;
	return rc;
}

static enum ctl_exit set_types(const struct options *o, struct shape *s)
{
	const char *k = o->dtype ? o->dtype : "f16", *v = o->dtype_v ? o->dtype_v : k;

	s->k = shape_type(k);
	s->v = shape_type(v);
	if (s->k && s->v)
		return EXIT_OK;
	return say_error(EXIT_USAGE,
			 "--dtype%s %s is no type that is known (see kvpoolctl capacity --help)",
			 s->k ? "-v" : "", s->k ? v : k);
}

static enum ctl_exit compute(const struct options *o, struct estimate *e)
{
	struct shape *s = &e->model.shape;
	const char *why;

	if (shape_token_bytes(s, &e->token_bytes, &why))
		return say_error(EXIT_USAGE, "type %s%s%s %s", s->k->name, s->k == s->v ? "" : "/",
				 s->k == s->v ? "" : s->v->name, why);
	if (o->tokens && parse_count(o->tokens, 1, UINT64_MAX, &e->tokens, &why))
		return say_error(EXIT_USAGE, "--tokens %s is no number of tokens", o->tokens);
	e->block_tokens = o->block;
	if (__builtin_mul_overflow(e->tokens, e->token_bytes, &e->total_bytes) ||
	    e->token_bytes > UINT64_MAX / 65536)
		return say_error(EXIT_USAGE,
				 "%s tokens of %s bytes are more than 64 bits can count",
				 units_count(e->tokens).text, units_count(e->token_bytes).text);
	return EXIT_OK;
}

static uint64_t block_bytes(const struct estimate *e)
{
	return e->token_bytes * e->block_tokens;
}

static uint64_t pool_tokens(const struct estimate *e)
{
	return shape_pool_blocks(e->pool_bytes, block_bytes(e)) * e->block_tokens;
}

static void print_shape(const struct shape *s)
{
	printf("K/V     %s layers, ", units_count(s->layers).text);
	if (!s->head_dim_v)
		printf("one latent of %s elements each", units_count(s->head_dim_k).text);
	else if (s->kv_heads)
		printf("%s heads of %s", units_count(s->kv_heads).text,
		       units_count(s->head_dim_k).text);
	else
		printf("%s heads of %s in all", units_count(s->layer_heads).text,
		       units_count(s->head_dim_k).text);
	if (s->head_dim_v && s->head_dim_v != s->head_dim_k)
		printf(" and %s", units_count(s->head_dim_v).text);
	printf(", %s", s->k->name);
	if (s->v != s->k && s->head_dim_v)
		printf("/%s", s->v->name);
	putchar('\n');
}

static void print_notes(const struct estimate *e)
{
	if (block_bytes(e) < BLOCK_BYTES_MIN || block_bytes(e) > BLOCK_BYTES_MAX)
		printf("Note    blocks are 4 KiB to 256 MiB: choose another --block\n");
	if (e->model.window)
		printf("Note    some layers keep only a window of %s tokens: this is what all take "
		       "without it\n",
		       units_count(e->model.window).text);
	if (e->model.recurrent)
		printf("Note    some layers are recurrent and have no K/V: this is more than it "
		       "takes\n");
}

static void print(const struct estimate *e, int exact)
{
	print_shape(&e->model.shape);
	printf("Token   %s bytes\n", units_count(e->token_bytes).text);
	printf("Block   %s tokens, %s\n", units_count(e->block_tokens).text,
	       units_bytes(block_bytes(e), exact).text);
	if (e->tokens)
		printf("Total   %s tokens take %s (%s bytes)\n", units_count(e->tokens).text,
		       units_bytes(e->total_bytes, exact).text, units_count(e->total_bytes).text);
	if (e->pool_bytes)
		printf("Pool    %s hold %s tokens\n", units_bytes(e->pool_bytes, exact).text,
		       units_count(pool_tokens(e)).text);
	else if (!e->tokens)
		printf("Pool    (--pool-size SIZE says how many tokens fit, --tokens N what they "
		       "take)\n");
	print_notes(e);
}

static json_t *estimate_json(const struct estimate *e)
{
	const struct shape *s = &e->model.shape;
	json_t *o = report_new("kvpool.capacity.model/1");

	report_text(o, "architecture", e->model.architecture);
	report_u64(o, "layers", s->layers);
	report_known(o, "kv_heads", s->kv_heads);
	report_u64(o, "head_dim_k", s->head_dim_k);
	report_u64(o, "head_dim_v", s->head_dim_v);
	report_text(o, "type_k", s->k->name);
	report_text(o, "type_v", s->v->name);
	report_u64(o, "bytes_per_token", e->token_bytes);
	report_u64(o, "block_tokens", e->block_tokens);
	report_u64(o, "block_bytes", block_bytes(e));
	report_known(o, "tokens", e->tokens);
	report_known(o, "total_bytes", e->total_bytes);
	report_known(o, "pool_bytes", e->pool_bytes);
	if (e->pool_bytes)
		report_u64(o, "pool_tokens", pool_tokens(e));
	else
		report_add(o, "pool_tokens", json_null());
	report_known(o, "sliding_window", e->model.window);
	return o;
}

enum ctl_exit estimate_print(const struct ctl *ctl, uint64_t pool_bytes)
{
	struct estimate e = { .pool_bytes = pool_bytes };
	enum ctl_exit rc;

	if (ctl->opt.namespace)
		return say_error(EXIT_USAGE,
				 "--namespace asks the daemon, a shape does not: leave one out");
	rc = find_shape(&ctl->opt, &e.model);
	if (!rc)
		rc = set_types(&ctl->opt, &e.model.shape);
	if (!rc)
		rc = compute(&ctl->opt, &e);
	if (rc)
		return rc;
	if (report_wanted(ctl))
		return report_print(ctl, estimate_json(&e));
	if (!ctl->opt.quiet)
		print(&e, ctl->opt.bytes);
	return EXIT_OK;
}
