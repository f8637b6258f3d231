/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "client/llama/adapter.h"
#include "client/llama/describe.h"
#include "client/llama/probe.h"

#define WAIT_MS_DEFAULT	     30000
#define ATTENTION_NON_CAUSAL 1

#define EXPORT __attribute__((visibility("default")))

void adapter_why(struct kvpool_llama *k, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(k->why, sizeof(k->why), format, ap);
	va_end(ap);
}

static int check_options(const struct kvpool_llama_options *o, const char **ret_why)
{
	*ret_why = "the options were not filled by kvpool_llama_options_init()";
	if (!o || o->size != sizeof(*o) || !o->decode_one)
		return -EINVAL;
	*ret_why =
		"the attention of the context is not causal, so a prefix has no state of its own";
	return o->attention_type == ATTENTION_NON_CAUSAL ? -ENOTSUP : 0;
}

/* Memory for the longest prompt that the context can hold, so that later calls need none. */
static int make_room(struct kvpool_llama *k)
{
	k->max_blocks = MAX(llama_n_ctx(k->ctx) / k->block_tokens, 1u);
	k->n_claims = llama_n_seq_max(k->ctx);
	k->keys = calloc(k->max_blocks, sizeof(*k->keys));
	k->images = calloc(k->max_blocks, sizeof(*k->images));
	k->claims = calloc(k->n_claims, sizeof(*k->claims));
	if (!k->keys || !k->images || !k->claims)
		return -ENOMEM;
	return kvpool_lease_new(k->pool, k->max_blocks, &k->lease);
}

static int open_namespace(struct kvpool_llama *k, const struct kvpool_llama_options *o,
			  const char **ret_why)
{
	struct description *d = malloc(sizeof(*d));
	int r;

	*ret_why = "no memory";
	if (!d)
		return -ENOMEM;
	r = describe(d, llama_get_model(k->ctx), llama_n_ctx(k->ctx), &k->shape, o, ret_why);
	if (r == 0) {
		r = kvpool_ns_open(k->pool, &d->desc, &k->ns);
		if (r < 0 && kvpool_error(k->pool, k->why, sizeof(k->why)))
			*ret_why = k->why;
	}
	if (r == 0)
		k->block_tokens = d->desc.block_tokens;
	free(d);
	return r;
}

static int open_steps(struct kvpool_llama *k, const struct kvpool_llama_options *o,
		      const char **ret_why)
{
	int r;

	r = check_options(o, ret_why);
	if (r < 0)
		return r;
	r = probe_shape(k->ctx, o->decode_one, &k->shape, ret_why);
	if (r < 0)
		return r;
	r = open_namespace(k, o, ret_why);
	if (r < 0)
		return r;
	k->wait_ms = o->wait_ms ? o->wait_ms : WAIT_MS_DEFAULT;
	k->flags = o->flags;
	*ret_why = "no memory, or no lease left in the pool handle";
	return make_room(k);
}

EXPORT int kvpool_llama_open(struct kvpool *pool, struct llama_context *ctx,
			     const struct kvpool_llama_options *options, struct kvpool_llama **ret,
			     char *why, size_t n)
{
	struct kvpool_llama *k = calloc(1, sizeof(*k));
	const char *reason = "no memory";
	int r = -ENOMEM;

	if (k) {
		k->pool = pool;
		k->ctx = ctx;
		r = open_steps(k, options, &reason);
	}
	if (r == 0) {
		*ret = k;
		return 0;
	}
	if (why && n)
		snprintf(why, n, "%s", reason);
	kvpool_llama_close(k);
	return r;
}

EXPORT struct kvpool_llama *kvpool_llama_close(struct kvpool_llama *k)
{
	if (!k)
		return NULL;
	for (uint32_t i = 0; k->claims && i < k->n_claims; i++)
		claim_drop(&k->claims[i]);
	kvpool_lease_free(k->lease);
	kvpool_ns_close(k->ns);
	free(k->claims);
	free(k->images);
	free(k->keys);
	free(k);
	return NULL;
}

EXPORT void kvpool_llama_abandon(struct kvpool_llama *k, int32_t seq)
{
	if (seq >= 0 && (uint32_t)seq < k->n_claims)
		claim_drop(&k->claims[seq]);
}

EXPORT size_t kvpool_llama_why(const struct kvpool_llama *k, char *buf, size_t n)
{
	if (n)
		snprintf(buf, n, "%s", k->why);
	return strlen(k->why);
}

EXPORT struct kvpool_ns *kvpool_llama_ns(const struct kvpool_llama *k)
{
	return k->ns;
}

EXPORT int kvpool_llama_get_stats(const struct kvpool_llama *k, struct kvpool_llama_stats *ret)
{
	if (ret->size != sizeof(*ret))
		return -EINVAL;
	*ret = k->stats;
	ret->size = sizeof(*ret);
	return 0;
}
