/* SPDX-License-Identifier: Apache-2.0 */
/* Own slots that leave a sequence, as a write that holds them until they are given back. */
#ifndef KVP_CLIENT_SEQ_SLOTS_H
#define KVP_CLIENT_SEQ_SLOTS_H

#include "client/seq.h"
#include "client/write.h"

/* With room for n slots, of the connection that they are from. NULL: no memory. */
struct kvpool_write *seq_slots_new(const struct kvpool_seq *s, uint32_t n);

void seq_slots_add(struct kvpool_write *w, const struct seq_block *b);

/* Frees it without waiting. NULL is ignored. */
void seq_slots_give_back(struct kvpool_write *w);

#endif
