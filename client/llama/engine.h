/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of libllama that the adapter calls, declared here so that it can be built where no
 * llama.h is installed, and tested against a made-up engine. Only pointers and numbers cross these
 * calls, no structure by value, so one build of the adapter fits every libllama that has them. A
 * test compiles this together with the real llama.h, so a declaration that differs is an error
 * there.
 */
#ifndef KVP_CLIENT_LLAMA_ENGINE_H
#define KVP_CLIENT_LLAMA_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct llama_context;
struct llama_model;
struct llama_memory_i;

/* What llama_model_rope_type answers for positions of more than one dimension. */
#define ENGINE_ROPE_MROPE  8
#define ENGINE_ROPE_VISION 24
#define ENGINE_ROPE_IMROPE 40

uint32_t llama_n_ctx(const struct llama_context *ctx);
uint32_t llama_n_seq_max(const struct llama_context *ctx);
void llama_synchronize(struct llama_context *ctx);
const struct llama_model *llama_get_model(const struct llama_context *ctx);
struct llama_memory_i *llama_get_memory(const struct llama_context *ctx);

int llama_model_rope_type(const struct llama_model *model);
float llama_model_rope_freq_scale_train(const struct llama_model *model);
int32_t llama_model_n_ctx_train(const struct llama_model *model);
int32_t llama_model_n_embd(const struct llama_model *model);
int32_t llama_model_n_head(const struct llama_model *model);
int32_t llama_model_n_head_kv(const struct llama_model *model);
int32_t llama_model_n_swa(const struct llama_model *model);
bool llama_model_has_encoder(const struct llama_model *model);
bool llama_model_is_recurrent(const struct llama_model *model);
bool llama_model_is_hybrid(const struct llama_model *model);
bool llama_model_is_diffusion(const struct llama_model *model);
int32_t llama_model_meta_val_str(const struct llama_model *model, const char *key, char *buf,
				 size_t size);

/* p0 < 0: from the start; p1 < 0: to the end; positions are -1 when the sequence is empty. */
bool llama_memory_seq_rm(struct llama_memory_i *mem, int32_t seq, int32_t p0, int32_t p1);
void llama_memory_seq_cp(struct llama_memory_i *mem, int32_t from, int32_t to, int32_t p0,
			 int32_t p1);
int32_t llama_memory_seq_pos_min(struct llama_memory_i *mem, int32_t seq);
int32_t llama_memory_seq_pos_max(struct llama_memory_i *mem, int32_t seq);

/* Bytes written or read, 0 on failure. set_data empties the sequence first. */
size_t llama_state_seq_get_size(struct llama_context *ctx, int32_t seq);
size_t llama_state_seq_get_data(struct llama_context *ctx, uint8_t *dst, size_t size, int32_t seq);
size_t llama_state_seq_set_data(struct llama_context *ctx, const uint8_t *src, size_t size,
				int32_t seq);

#endif
