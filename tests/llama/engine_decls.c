/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled, never run: a declaration in engine.h that differs from the one of the real llama.h is
 * an error here.
 */
#include <ggml.h>
#include <llama.h>

#include "client/llama/engine.h"

_Static_assert(ENGINE_ROPE_MROPE == (int)LLAMA_ROPE_TYPE_MROPE, "M-RoPE");
_Static_assert(ENGINE_ROPE_VISION == (int)LLAMA_ROPE_TYPE_VISION, "vision RoPE");
_Static_assert(ENGINE_ROPE_IMROPE == (int)LLAMA_ROPE_TYPE_IMROPE, "interleaved M-RoPE");
_Static_assert(sizeof(llama_token) == sizeof(int32_t), "token");
_Static_assert(LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED == -1, "unset RoPE scaling");
_Static_assert(LLAMA_ATTENTION_TYPE_UNSPECIFIED == -1, "unset attention");
_Static_assert(LLAMA_ATTENTION_TYPE_NON_CAUSAL == 1, "attention to later tokens");
