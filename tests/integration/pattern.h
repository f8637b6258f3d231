/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Made-up prompts and blocks that say whose they are: a block's bytes follow from its chain and its
 * place, so one wrong byte is seen whoever reads it.
 */
#ifndef KVP_TESTS_INTEGRATION_PATTERN_H
#define KVP_TESTS_INTEGRATION_PATTERN_H

#include "client/kvpool.h"

#define PATTERN_BLOCK_TOKENS 4u

/* A namespace named model with blocks of block_bytes. Aborts the test on failure. */
struct kvpool_ns *pattern_ns(struct kvpool *pool, const char *model, uint64_t block_bytes);

/* A handle on socket that is connected. Aborts the test on failure. */
struct kvpool *pattern_connect(const char *socket, const char *name);

/* The tokens of chain c: blocks full blocks and one token more. */
void pattern_tokens(uint64_t c, size_t blocks, int32_t *tokens);

/* Writes block i of chain c; checks one, returns 1 when every byte is right. */
void pattern_fill(uint64_t c, size_t i, void *block, uint64_t bytes);
int pattern_check(uint64_t c, size_t i, const void *block, uint64_t bytes);

/* Publishes blocks blocks of chain c; what kvpool_publish returned. */
int pattern_publish(struct kvpool_ns *ns, uint64_t c, size_t blocks);

/* Acquires a chain: how many blocks were found. Aborts the test when one of them is wrong. */
size_t pattern_acquire(struct kvpool_ns *ns, struct kvpool_lease *lease, uint64_t c, size_t blocks);

#endif
