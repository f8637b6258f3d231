/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kvpool-llama.h - share what llama.cpp computed for a prompt between the processes of a machine.
 *
 * Include it after or instead of your llama.h: what depends on the version of llama.cpp is inline
 * here, and so compiled against the one that you use. Link libkvpool-llama, libkvpool and libllama
 * (pkg-config: kvpool-llama).
 *
 *	struct llama_context_params params = llama_context_default_params();
 *	params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;	// V must not be transposed
 *	params.kv_unified = true;	// required with more than one sequence
 *	params.n_seq_max = 2;		// one more than needed: blocks go without a copy
 *	ctx = llama_init_from_model(model, params);
 *
 *	kvpool_connect(NULL, &pool);
 *	kvpool_llama_options_init(&options, &params);
 *	options.model_path = "model.gguf";
 *	kvpool_llama_open(pool, ctx, &options, &shared);
 *
 *	have = kvpool_llama_restore(shared, 0, tokens, n);
 *	... sequence 0 holds tokens [0, have): llama_decode tokens [have, n) at their positions ...
 *	kvpool_llama_publish(shared, 0, tokens, n);
 *
 * What is restored is, bit for bit, what the process computed that published it. Compared with
 * decoding the same prompt without a cache, the logits are those of a run that splits the prompt at
 * the same token: llama.cpp itself does not give equal bits for other batch sizes.
 *
 * Fail-open, as kvpool.h says it: whatever goes wrong, restore answers 0 and the sequence is empty,
 * so the program goes on as if nothing had been cached. Use a handle from one thread at a time, the
 * one that uses the context.
 */
#ifndef KVPOOL_LLAMA_H
#define KVPOOL_LLAMA_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef KVPOOL_LLAMA_BUILD /* the library itself is built without llama.h */
#include <llama.h>
#endif

#include "kvpool.h"

#ifdef __cplusplus
extern "C" {
#endif

struct llama_context;
struct kvpool_llama;

enum kvpool_llama_flag {
	/**
	 * Restore does not reserve what is missing: every process computes a new prompt for itself.
	 */
	KVPOOL_LLAMA_NO_CLAIM = 1,
};

/** Fill it with kvpool_llama_options_init(), then set what applies. Everything is copied. */
struct kvpool_llama_options {
	size_t size; /**< sizeof(struct kvpool_llama_options) */

	/**
	 * The file that the model was loaded from; of a split model, the first. Its whole content
	 * is part of the identity of what is shared: SHA-256, computed once and cached. Required
	 * unless weights is set.
	 */
	const char *model_path;
	const uint8_t *weights; /**< 32 bytes, instead of the digest of model_path */

	const struct kvpool_adapter *adapters; /**< LoRA adapters that are set on the context */
	size_t n_adapters;
	/** whatever else changes K or V: overrides of metadata, control vectors */
	const struct kvpool_field *extra;
	size_t n_extra;
	const void *salt; /**< up to 64 bytes that separate users */
	size_t salt_len;

	uint32_t block_tokens; /**< 0: 32 */
	/** how long restore waits for another process that computes the same; 0: 30000 */
	uint32_t wait_ms;
	uint32_t flags; /**< enum kvpool_llama_flag */

	/* Set by kvpool_llama_options_init(). */
	int32_t rope_scaling_type, attention_type;
	float rope_freq_base, rope_freq_scale;
	float yarn_ext_factor, yarn_attn_factor, yarn_beta_fast, yarn_beta_slow;
	uint32_t yarn_orig_ctx;
	int (*decode_one)(struct llama_context *ctx, int32_t token);
};

#ifndef KVPOOL_LLAMA_BUILD

static inline int kvpool_llama_decode_one(struct llama_context *ctx, int32_t token)
{
	return llama_decode(ctx, llama_batch_get_one(&token, 1));
}

/** The parameters that the context was made with. */
static inline void kvpool_llama_options_init(struct kvpool_llama_options *o,
					     const struct llama_context_params *p)
{
	memset(o, 0, sizeof(*o));
	o->size = sizeof(*o);
	o->rope_scaling_type = (int32_t)p->rope_scaling_type;
	o->attention_type = (int32_t)p->attention_type;
	o->rope_freq_base = p->rope_freq_base;
	o->rope_freq_scale = p->rope_freq_scale;
	o->yarn_ext_factor = p->yarn_ext_factor;
	o->yarn_attn_factor = p->yarn_attn_factor;
	o->yarn_beta_fast = p->yarn_beta_fast;
	o->yarn_beta_slow = p->yarn_beta_slow;
	o->yarn_orig_ctx = p->yarn_orig_ctx;
	o->decode_one = kvpool_llama_decode_one;
}

#endif

/**
 * Connects a context with a pool: learns the layout of its KV cache and opens the namespace of what
 * may be shared.
 *
 * Best called before the first llama_decode: when all sequences are empty it decodes one token and
 * removes it again, and the logits of the last decode are gone. The pool and the context must
 * outlive the handle. Works without a daemon.
 *
 * -ENOTSUP: this model or context cannot be cut into blocks exactly (V transposed, several KV
 * buffers, a sliding window, recurrent state, M-RoPE). -EINVAL: options. -ENOENT, -EACCES,
 * -EBUSY...: the weights file cannot be read, or changed meanwhile. -EIO: the engine did not
 * decode. -ENOMEM. When why is not NULL it gets the reason in words (n bytes with the NUL).
 */
int kvpool_llama_open(struct kvpool *pool, struct llama_context *ctx,
		      const struct kvpool_llama_options *options, struct kvpool_llama **ret,
		      char *why, size_t n);

/** Gives up claims and frees. NULL is ignored. Returns NULL. */
struct kvpool_llama *kvpool_llama_close(struct kvpool_llama *shared);

/**
 * Makes the sequence hold the longest cached prefix of a prompt: whole blocks, and at most n_tokens
 * - 1 tokens, since the last one must be decoded for its logits. What the sequence held before is
 * removed. Returns the number of tokens; then decode the rest, from that position on.
 *
 * What is missing is claimed for this handle, so that a process that comes with the same prefix
 * meanwhile waits for it, at most wait_ms, instead of computing it too. A claim ends with
 * kvpool_llama_publish() of the sequence, the next restore of it, kvpool_llama_abandon(), or the
 * close or death of the process.
 */
size_t kvpool_llama_restore(struct kvpool_llama *shared, int32_t seq, const int32_t *tokens,
			    size_t n_tokens);

/**
 * Stores the full blocks of a sequence that are not cached yet; tokens are those that it holds,
 * from position 0 on, each decoded with only those before it in view (not after a context shift).
 * Returns how many blocks it stored; 0 when all were there. The sequence is not changed. -errno as
 * kvpool_publish, and -EINVAL: the sequence does not hold so many tokens.
 */
long kvpool_llama_publish(struct kvpool_llama *shared, int32_t seq, const int32_t *tokens,
			  size_t n_tokens);

/** Gives up what restore claimed for a sequence, when its prompt will not be computed after all. */
void kvpool_llama_abandon(struct kvpool_llama *shared, int32_t seq);

/**
 * Why the last restore has no more tokens, or why the last call failed, in words. Like
 * kvpool_error().
 */
size_t kvpool_llama_why(const struct kvpool_llama *shared, char *buf, size_t n);

/** The namespace that the context shares in; it belongs to the handle. */
struct kvpool_ns *kvpool_llama_ns(const struct kvpool_llama *shared);

/** Where the time of all calls so far went. The times of the engine are inside its functions. */
struct kvpool_llama_stats {
	size_t size; /**< set to sizeof(struct kvpool_llama_stats) by the caller */
	uint64_t restores, restored_tokens, waits, published_blocks;
	uint64_t restore_ns, restore_engine_ns, wait_ns;
	uint64_t publish_ns, publish_engine_ns;
};

/** Returns 0, or -EINVAL when size is none that this version knows. */
int kvpool_llama_get_stats(const struct kvpool_llama *shared, struct kvpool_llama_stats *ret);

#ifdef __cplusplus
}
#endif

#endif
