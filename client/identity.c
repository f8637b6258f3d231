/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/identity.h"

#define WEIGHTS_BYTES 32u

/* False when one of them is no name and value. */
static int put_extra(struct nsdesc_builder *b, const struct kvpool_ns_desc *d)
{
	for (size_t i = 0; i < d->n_extra; i++) {
		const struct kvpool_field *f = &d->extra[i];
		char item[NSDESC_TEXT_MAX + 2];

		if (!f->name || !f->value || strchr(f->name, '='))
			return 0;
		/* What is cut here is still too long there. */
		snprintf(item, sizeof(item), "%s=%s", f->name, f->value);
		nsdesc_put_text(b, NSDESC_EXTRA, item);
	}
	return 1;
}

static void put_shape(struct nsdesc_builder *b, const struct kvpool_ns_desc *d)
{
	nsdesc_put_text(b, NSDESC_TYPE_K, d->type_k);
	nsdesc_put_text(b, NSDESC_TYPE_V, d->type_v);
	nsdesc_put_number(b, NSDESC_LAYERS, d->n_layers);
	nsdesc_put_number(b, NSDESC_KV_HEADS, d->n_kv_heads);
	nsdesc_put_number(b, NSDESC_HEAD_DIM_K, d->head_dim_k);
	nsdesc_put_number(b, NSDESC_HEAD_DIM_V, d->head_dim_v);
	nsdesc_put_text(b, NSDESC_LAYOUT, d->layout);
	nsdesc_put_text(b, NSDESC_ROTATION, d->rotation);
	nsdesc_put_number(b, NSDESC_BLOCK_TOKENS, d->block_tokens);
	nsdesc_put_number(b, NSDESC_BLOCK_BYTES, d->block_bytes);
	nsdesc_put_text(b, NSDESC_ENGINE, d->engine);
}

static void put_rope(struct nsdesc_builder *b, const struct kvpool_ns_desc *d)
{
	nsdesc_put_text(b, NSDESC_ROPE_TYPE, d->rope_type);
	if (d->rope_freq_base != 0)
		nsdesc_put_double(b, NSDESC_ROPE_FREQ_BASE, d->rope_freq_base);
	if (d->rope_freq_scale != 0)
		nsdesc_put_double(b, NSDESC_ROPE_FREQ_SCALE, d->rope_freq_scale);
	nsdesc_put_text(b, NSDESC_ROPE_SCALING, d->rope_scaling);
}

static void put_parts(struct nsdesc_builder *b, const struct kvpool_ns_desc *d)
{
	if (d->tp_size || d->tp_rank) {
		nsdesc_put_number(b, NSDESC_TP_RANK, d->tp_rank);
		nsdesc_put_number(b, NSDESC_TP_SIZE, d->tp_size);
	}
	nsdesc_put_number(b, NSDESC_GROUP_RULE, d->group_rule);
	if (d->group_n)
		nsdesc_put_number(b, NSDESC_GROUP_N, d->group_n);
	if (d->group_count || d->group_index) {
		nsdesc_put_number(b, NSDESC_GROUP_INDEX, d->group_index);
		nsdesc_put_number(b, NSDESC_GROUP_COUNT, d->group_count);
	}
	if (d->salt || d->salt_len)
		nsdesc_put(b, NSDESC_SALT, d->salt, d->salt ? d->salt_len : 0);
}

static int refuse(struct kvpool *p, const struct kvpool_ns_desc *d, const char *field,
		  const char *why)
{
	return handle_error(p, -EINVAL, "namespace \"%s\": %s %s; see struct kvpool_ns_desc",
			    d->model ? d->model : "", field, why);
}

/* Errors stick to the builder, and nsdesc_finish tells. */
static int put_all(struct nsdesc_builder *b, const struct kvpool_ns_desc *d)
{
	nsdesc_begin(b);
	nsdesc_put_text(b, NSDESC_MODEL, d->model);
	if (d->weights)
		nsdesc_put(b, NSDESC_WEIGHTS, d->weights, WEIGHTS_BYTES);
	for (size_t i = 0; i < d->n_adapters; i++)
		nsdesc_put_adapter(b, d->adapters[i].digest, d->adapters[i].scale);
	put_shape(b, d);
	put_rope(b, d);
	put_parts(b, d);
	return put_extra(b, d);
}

int identity_make(struct kvpool *p, const struct kvpool_ns_desc *d, struct identity *ret,
		  struct nsdesc_values *ret_values)
{
	struct nsdesc_builder *b = &ret->builder;
	const struct nsdesc_field *f;
	struct nsdesc_error error;
	long n;

	if (d->size != sizeof(*d))
		return handle_error(p, -EINVAL, "namespace: size of the descriptor is %zu, not %zu",
				    d->size, sizeof(*d));
	if (!put_all(b, d))
		return refuse(p, d, "extra", "is not a name without '=' and a value");
	n = nsdesc_finish(b, ret->data);
	f = n < 0 ? nsdesc_field_find(b->tag) : NULL;
	if (n < 0)
		return refuse(p, d, f ? f->name : "descriptor", b->why);
	/* What a daemon would refuse is not sent; and it gives the values. */
	if (nsdesc_check(ret->data, (size_t)n, ret_values, &error) < 0)
		return refuse(p, d, error.field ? error.field : "descriptor", error.why);
	if (ret_values->group_rule != KVPOOL_GROUP_ALL)
		return handle_error(
			p, -EOPNOTSUPP,
			"namespace \"%s\": group_rule %u is not served by this version, only "
			"full attention is",
			d->model, d->group_rule);
	ret->n = (size_t)n;
	return 0;
}
