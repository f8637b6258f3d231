/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "client/llama/describe.h"
#include "client/llama/digest.h"
#define KVPOOL_LLAMA_BUILD
#include "client/llama/kvpool-llama.h"

#define BLOCK_TOKENS_DEFAULT   32
#define ROPE_FREQ_BASE_DEFAULT 10000.0 /* of a model that does not say */
#define ROPE_SCALING_UNSET     (-1)
#define ATTENTION_UNSET	       (-1)
#define ROTATED_HEAD_MULTIPLE  64 /* heads of other sizes are never rotated */

/* Element types that a KV cache can have, by their number in ggml. */
static const struct {
	int32_t type;
	const char *name;
	bool quantised;
} types[] = {
	{0, "f32", false},
	{1, "f16", false},
	{30, "bf16", false},
	{2, "q4_0", true},
	{3, "q4_1", true},
	{6, "q5_0", true},
	{7, "q5_1", true},
	{8, "q8_0", true},
	{20, "iq4_nl", true},
};

/* The type of tensors [from, to), or "mixed"; another number is named as such. */
static void type_name(const struct shape *s, uint32_t from, uint32_t to, char *buf, size_t n)
{
	for (uint32_t t = from + 1; t < to; t++) {
		if (s->tensors[t].type != s->tensors[from].type) {
			snprintf(buf, n, "mixed");
			return;
		}
	}
	if (from == to) {
		snprintf(buf, n, "none");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (types[i].type == s->tensors[from].type) {
			snprintf(buf, n, "%s", types[i].name);
			return;
		}
	}
	snprintf(buf, n, "ggml-%d", (int)s->tensors[from].type);
}

/* An unknown type counts as quantised: that only adds fields. */
static bool is_quantised(const struct shape *s, uint32_t from, uint32_t to)
{
	for (uint32_t t = from; t < to; t++) {
		bool plain = false;

		for (size_t i = 0; i < ARRAY_SIZE(types); i++)
			plain |= types[i].type == s->tensors[t].type && !types[i].quantised;
		if (!plain)
			return true;
	}
	return false;
}

/* The value of a key of this model's architecture, "llama.rope.freq_base", or "". */
static void meta_text(const struct llama_model *model, const char *key, char *buf, size_t n)
{
	char arch[64], full[128];

	buf[0] = '\0';
	if (llama_model_meta_val_str(model, "general.architecture", arch, sizeof(arch)) < 0)
		return;
	snprintf(full, sizeof(full), "%s.%s", arch, key);
	if (llama_model_meta_val_str(model, full, buf, n) < 0)
		buf[0] = '\0';
}

static double meta_number(const struct llama_model *model, const char *key, double otherwise)
{
	char text[64], *end;
	double x;

	meta_text(model, key, text, sizeof(text));
	x = strtod(text, &end);
	return end == text || *end ? otherwise : x;
}

static void describe_model(struct description *d, const struct llama_model *model,
			   const struct kvpool_llama_options *o)
{
	const char *slash = o->model_path ? strrchr(o->model_path, '/') : NULL;

	if (llama_model_meta_val_str(model, "general.name", d->model, sizeof(d->model)) <= 0 &&
	    llama_model_meta_val_str(model, "general.architecture", d->model, sizeof(d->model)) <=
		    0)
		snprintf(d->model, sizeof(d->model), "%s", slash ? slash + 1 : "unnamed");
	d->desc.model = d->model;
}

/*
 * A text that is cut off may end within a character of several bytes, and some models carry
 * whatever bytes in their name; the descriptor takes UTF-8 only.
 */
static void make_ascii(char *text)
{
	for (; *text; text++)
		if (*text < 0x20 || *text > 0x7e)
			*text = '?';
}

static uint32_t head_dim(const struct llama_model *model, const char *key)
{
	int32_t heads = llama_model_n_head(model);
	double otherwise = heads > 0 ? llama_model_n_embd(model) / heads : 1;
	double x = meta_number(model, key, otherwise);

	return x >= 1 && x <= UINT32_MAX ? (uint32_t)x : 1;
}

static void describe_cache(struct description *d, const struct llama_model *model,
			   const struct shape *s)
{
	struct kvpool_ns_desc *n = &d->desc;

	type_name(s, 0, s->n_layers, d->type_k, sizeof(d->type_k));
	type_name(s, s->n_layers, s->n_tensors, d->type_v, sizeof(d->type_v));
	n->type_k = d->type_k;
	n->type_v = d->type_v;
	n->n_layers = s->n_layers;
	n->n_kv_heads = (uint32_t)MAX(llama_model_n_head_kv(model), 1);
	n->head_dim_k = head_dim(model, "attention.key_length");
	/* Compressed attention keeps V inside K. */
	n->head_dim_v = s->n_tensors > s->n_layers ? head_dim(model, "attention.value_length") : 0;
}

/* Types and row sizes of all tensors in 16 digits: they may differ from layer to layer. */
static void describe_layout(struct description *d, const struct shape *s)
{
	uint8_t digest[SHA256_BYTES];
	char hex[2 * 8 + 1];

	sha256(s->tensors, s->n_tensors * sizeof(s->tensors[0]), digest);
	hex_encode(digest, 8, hex);
	snprintf(d->layout, sizeof(d->layout),
		 "state image, unified, %u K then %u V tensors, %u bytes a token, %s",
		 (unsigned)s->n_layers, (unsigned)(s->n_tensors - s->n_layers),
		 (unsigned)s->row_bytes, hex);
	snprintf(d->engine, sizeof(d->engine), "llama.cpp state format %u", (unsigned)s->format);
	d->desc.layout = d->layout;
	d->desc.engine = d->engine;
}

/*
 * What ggml_version() or ggml_commit() says, whichever library they are in; old ones do not have
 * them.
 */
static const char *ask_build(const char *function)
{
	const char *(*f)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, function);

	return f ? f() : "unknown";
}

/*
 * Quantised K and V are stored rotated by some versions, unless an environment variable says no.
 * Format 4 tells so in the state. Formats 2 and 3 do not, and a context that reads the one as the
 * other computes nonsense without an error: there the rule of the engine is repeated, and only
 * equal builds share.
 */
static void describe_rotation(struct description *d, const struct shape *s)
{
	bool k = is_quantised(s, 0, s->n_layers), v = is_quantised(s, s->n_layers, s->n_tensors);
	const char *off = getenv("LLAMA_ATTN_ROT_DISABLE");
	bool disabled = off && atoi(off);

	if (!k && !v)
		return;
	if (s->format >= 4)
		snprintf(d->rotation, sizeof(d->rotation), "k %u v %u", (unsigned)s->rot_k,
			 (unsigned)s->rot_v);
	else
		snprintf(d->rotation, sizeof(d->rotation), "k %s v %s, ggml %s %s",
			 k && !disabled && d->desc.head_dim_k % ROTATED_HEAD_MULTIPLE == 0 ? "yes"
											   : "no",
			 v && !disabled && d->desc.head_dim_v % ROTATED_HEAD_MULTIPLE == 0 ? "yes"
											   : "no",
			 ask_build("ggml_version"), ask_build("ggml_commit"));
	make_ascii(d->rotation);
	d->desc.rotation = d->rotation;
}

static void describe_rope_type(struct description *d, const struct llama_model *model)
{
	int type = llama_model_rope_type(model);

	if (type == -1)
		snprintf(d->rope_type, sizeof(d->rope_type), "none");
	else if (type == 0 || type == 2)
		snprintf(d->rope_type, sizeof(d->rope_type), "%s", type ? "neox" : "norm");
	else
		snprintf(d->rope_type, sizeof(d->rope_type), "type %d", type);
	d->desc.rope_type = d->rope_type;
}

/*
 * Appends "name value" when the application set the parameter; the model's own value is in the
 * weights file.
 */
static void append_set(char *text, size_t n, const char *name, double value, bool set)
{
	size_t len = strlen(text);

	if (set)
		snprintf(text + len, n - len, "%s%s %.9g", len ? ", " : "", name, value);
}

/*
 * Some models have two sets of frequency factors; the engine takes the one for the size of the
 * context.
 */
static bool uses_long_factors(const struct llama_model *model, uint32_t n_ctx,
			      const struct kvpool_llama_options *o)
{
	double trained = meta_number(model, "context_length", llama_model_n_ctx_train(model));
	double original = meta_number(model, "rope.scaling.original_context_length", trained);

	return n_ctx > (o->yarn_orig_ctx ? o->yarn_orig_ctx : original);
}

static void describe_rope(struct description *d, const struct llama_model *model, uint32_t n_ctx,
			  const struct kvpool_llama_options *o)
{
	char *text = d->rope_scaling;
	size_t n = sizeof(d->rope_scaling);

	describe_rope_type(d, model);
	d->desc.rope_freq_base = o->rope_freq_base != 0 ? (double)o->rope_freq_base
							: meta_number(model, "rope.freq_base",
								      ROPE_FREQ_BASE_DEFAULT);
	d->desc.rope_freq_scale =
		(double)(o->rope_freq_scale != 0 ? o->rope_freq_scale
						 : llama_model_rope_freq_scale_train(model));
	append_set(text, n, "type", o->rope_scaling_type,
		   o->rope_scaling_type != ROPE_SCALING_UNSET);
	append_set(text, n, "ext", (double)o->yarn_ext_factor, o->yarn_ext_factor >= 0);
	append_set(text, n, "attn", (double)o->yarn_attn_factor, o->yarn_attn_factor >= 0);
	append_set(text, n, "fast", (double)o->yarn_beta_fast, o->yarn_beta_fast >= 0);
	append_set(text, n, "slow", (double)o->yarn_beta_slow, o->yarn_beta_slow >= 0);
	append_set(text, n, "orig", o->yarn_orig_ctx, o->yarn_orig_ctx != 0);
	append_set(text, n, "long factors", 1, uses_long_factors(model, n_ctx, o));
	d->desc.rope_scaling = text[0] ? text : NULL;
}

static int describe_extra(struct description *d, const struct kvpool_llama_options *o,
			  const char **ret_why)
{
	size_t n = 0;

	if (o->n_extra >= DESCRIBE_EXTRA_MAX) {
		*ret_why = "too many extra fields";
		return -EINVAL;
	}
	for (; n < o->n_extra; n++)
		d->extra[n] = o->extra[n];
	if (o->attention_type != ATTENTION_UNSET) {
		snprintf(d->attention, sizeof(d->attention), "%d", (int)o->attention_type);
		d->extra[n++] = (struct kvpool_field){"attention_type", d->attention};
	}
	d->desc.extra = d->extra;
	d->desc.n_extra = n;
	return 0;
}

static int describe_weights(struct description *d, const struct kvpool_llama_options *o,
			    const char **ret_why)
{
	int r = 0;

	if (o->weights) {
		memcpy(d->weights, o->weights, sizeof(d->weights));
	} else if (o->model_path) {
		r = digest_model(o->model_path, d->weights);
		*ret_why = r == -EBUSY ? "the weights file was changed while it was read"
				       : "the weights file cannot be read";
	} else {
		*ret_why = "neither model_path nor weights is set";
		r = -EINVAL;
	}
	d->desc.weights = d->weights;
	return r;
}

int describe(struct description *d, const struct llama_model *model, uint32_t n_ctx,
	     const struct shape *shape, const struct kvpool_llama_options *options,
	     const char **ret_why)
{
	uint32_t block_tokens =
		options->block_tokens ? options->block_tokens : BLOCK_TOKENS_DEFAULT;
	int r;

	memset(d, 0, sizeof(*d));
	d->desc.size = sizeof(d->desc);
	r = describe_weights(d, options, ret_why);
	if (r == 0)
		r = describe_extra(d, options, ret_why);
	if (r < 0)
		return r;
	describe_model(d, model, options);
	make_ascii(d->model);
	describe_cache(d, model, shape);
	describe_layout(d, shape);
	describe_rotation(d, shape);
	describe_rope(d, model, n_ctx, options);
	d->desc.adapters = options->adapters;
	d->desc.n_adapters = options->n_adapters;
	d->desc.salt = options->salt;
	d->desc.salt_len = options->salt_len;
	d->desc.block_tokens = block_tokens;
	d->desc.block_bytes = shape_state_bytes(shape, block_tokens);
	return 0;
}
