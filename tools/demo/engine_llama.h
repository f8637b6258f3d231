/* SPDX-License-Identifier: Apache-2.0 */
/* What engine_llama.c has beside engine.h, for who wants to look into the adapter. */
#ifndef KVP_TOOLS_DEMO_ENGINE_LLAMA_H
#define KVP_TOOLS_DEMO_ENGINE_LLAMA_H

struct engine;
struct kvpool_llama;

/* The adapter of an engine that was opened with a socket; it belongs to the engine. */
struct kvpool_llama *engine_adapter(const struct engine *e);

#endif
