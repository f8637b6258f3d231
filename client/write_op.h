/* SPDX-License-Identifier: Apache-2.0 */
/* Start and finish forms of reserve and commit, and giving back without waiting. */
#ifndef KVP_CLIENT_WRITE_OP_H
#define KVP_CLIENT_WRITE_OP_H

#include "client/write.h"

/* Gives back what it holds, and frees it then. Under the lock of the operations. */
void write_op_give_back(struct kvpool_write *w);

/* Ends the commit that is under way, if one is. */
void write_op_cancel(struct kvpool_write *w);

/* In a child that frees it: the commit that the parent has under way no longer knows it. */
void write_op_forget(struct kvpool_write *w);

int write_op_is_under_way(const struct kvpool_write *w);

#endif
