/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <assert.h>
#include <string.h>

#include "base/sha256.h"
#include "tests/shm/tree.h"

static void make_node(struct tree *t, uint32_t i)
{
	struct tree_node *n = &t->node[i];
	struct {
		struct block_key before;
		uint64_t number;
	} in = { .number = i };

	do
		n->parent = random_below(&t->rnd, 6) ? random_below(&t->rnd, i + 1) - 1 : TREE_NONE;
	while (n->parent != TREE_NONE && t->node[n->parent].depth == TREE_DEPTH - 1);
	n->depth = 0;
	if (n->parent != TREE_NONE) {
		in.before = t->node[n->parent].key;
		n->depth = t->node[n->parent].depth + 1;
	}
	sha256(&in, sizeof(in), (uint8_t *)&n->key);
}

void tree_init(struct tree *t, struct region *r, uint64_t seed)
{
	memset(t, 0, sizeof(*t));
	t->r = r;
	t->rnd = random_seed(seed);
	for (uint32_t i = 0; i < TREE_NODES; i++) {
		make_node(t, i);
		t->desc[i] = DESC_NONE;
	}
}

uint32_t tree_chain(const struct tree *t, uint32_t node, struct block_key *keys)
{
	uint32_t n = t->node[node].depth + 1;

	for (uint32_t i = n; i-- > 0; node = t->node[node].parent)
		keys[i] = t->node[node].key;
	return n;
}

static enum desc_state state(const struct tree *t, uint32_t node)
{
	return t->desc[node] == DESC_NONE ? DESC_FREE : region_state(t->r, t->desc[node]);
}

/* The nodes of the subtree, as a set. */
static void subtree(const struct tree *t, uint32_t top, uint8_t in[TREE_NODES])
{
	for (uint32_t i = 0; i < TREE_NODES; i++) {
		uint32_t parent = t->node[i].parent;

		in[i] = i == top || (parent != TREE_NONE && parent >= top && in[parent]);
	}
}

static int reserve(struct tree *t, uint32_t node)
{
	uint32_t parent = t->node[node].parent;
	uint32_t above = parent == TREE_NONE ? DESC_NONE : t->desc[parent];

	if (t->desc[node] != DESC_NONE || (parent != TREE_NONE && above == DESC_NONE))
		return 0;
	t->desc[node] = region_reserve(t->r, &t->node[node].key, above, 0);
	return t->desc[node] != DESC_NONE;
}

static int commit(struct tree *t, uint32_t node)
{
	uint32_t parent = t->node[node].parent;

	if (state(t, node) != DESC_RESERVED ||
	    (parent != TREE_NONE && state(t, parent) != DESC_COMMITTED))
		return 0;
	region_commit(t->r, t->desc[node]);
	return 1;
}

static void publish(struct tree *t, uint32_t node)
{
	uint32_t path[TREE_DEPTH], n = t->node[node].depth + 1;

	for (uint32_t i = n; i-- > 0; node = t->node[node].parent)
		path[i] = node;
	for (uint32_t i = 0; i < n; i++) {
		/* RESERVED: another writer is at it, and this one stops. */
		if (state(t, path[i]) == DESC_RESERVED)
			return;
		if (state(t, path[i]) == DESC_FREE && !(reserve(t, path[i]) && commit(t, path[i])))
			return;
	}
}

/* Nodes from the top of a subtree on that are RESERVED, deepest first: their writer has died. */
static void void_reservations(struct tree *t, const uint8_t in[TREE_NODES])
{
	for (uint32_t i = TREE_NODES; i-- > 0;) {
		if (!in[i] || state(t, i) != DESC_RESERVED)
			continue;
		assert(t->n_quarantine < ARRAY_SIZE(t->quarantine));
		region_quarantine(t->r, t->desc[i]);
		t->quarantine[t->n_quarantine++] = t->desc[i];
		t->desc[i] = DESC_NONE;
	}
}

static void end_quarantine(struct tree *t)
{
	if (t->n_quarantine)
		region_end_quarantine(t->r, t->quarantine[--t->n_quarantine]);
}

/* Aborts a reservation that no other one stands on. */
static void abort_reservation(struct tree *t, uint32_t node)
{
	if (state(t, node) != DESC_RESERVED || t->r->children[t->desc[node]])
		return;
	region_abort(t->r, t->desc[node]);
	t->desc[node] = DESC_NONE;
}

static uint32_t committed(const struct tree *t, const uint8_t in[TREE_NODES], uint32_t *batch)
{
	uint32_t n = 0;

	for (uint32_t i = TREE_NODES; i-- > 0;)
		if (in[i] && state(t, i) == DESC_COMMITTED)
			batch[n++] = t->desc[i];
	return n;
}

/* Every child of a member is a member: no RESERVED or DOOMED one holds it. */
static int closed_below(const struct tree *t, const uint32_t *batch, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t members = 0;

		for (uint32_t k = 0; k < i; k++)
			members += REGION_PEEK(&t->r->c.desc[batch[k]].parent) == batch[i];
		if (members != t->r->children[batch[i]])
			return 0;
	}
	return 1;
}

static void forget_freed(struct tree *t)
{
	for (uint32_t i = 0; i < TREE_NODES; i++)
		if (state(t, i) == DESC_FREE)
			t->desc[i] = DESC_NONE;
}

static void evict(struct tree *t, uint32_t node)
{
	uint32_t batch[TREE_NODES], n;
	uint8_t in[TREE_NODES];

	subtree(t, node, in);
	n = committed(t, in, batch);
	if (!closed_below(t, batch, n))
		return;
	region_evict(t->r, batch, n);
	forget_freed(t);
}

/* d goes behind everything deeper. */
void tree_add_doomed(struct tree *t, uint32_t d)
{
	uint32_t i = t->n_doomed++;

	assert(i < ARRAY_SIZE(t->doomed));
	for (; i && REGION_PEEK(&t->r->c.desc[t->doomed[i - 1]].depth) <
		    REGION_PEEK(&t->r->c.desc[d].depth); i--)
		t->doomed[i] = t->doomed[i - 1];
	t->doomed[i] = d;
}

static void settle(struct tree *t)
{
	t->n_doomed = region_doom_settle(t->r, t->doomed, t->n_doomed);
}

static void doom(struct tree *t, uint32_t node)
{
	uint32_t batch[TREE_NODES], n;
	uint8_t in[TREE_NODES];

	subtree(t, node, in);
	void_reservations(t, in);
	n = committed(t, in, batch);
	/* One batch for all that is doomed: an earlier doom may have left blocks below this one. */
	for (uint32_t i = 0; i < n; i++)
		tree_add_doomed(t, batch[i]);
	for (uint32_t i = 0; i < TREE_NODES; i++)
		if (in[i])
			t->desc[i] = DESC_NONE;
	doom_mark(&t->r->index, t->doomed, t->n_doomed);
	settle(t);
}

struct tree_op tree_pick(struct tree *t)
{
	static const enum tree_kind kinds[] = {
		TREE_PUBLISH, TREE_PUBLISH, TREE_PUBLISH, TREE_RESERVE, TREE_COMMIT, TREE_ABORT,
		TREE_VOID, TREE_EVICT, TREE_EVICT, TREE_DOOM, TREE_SETTLE, TREE_SETTLE,
	};
	struct tree_op op;

	op.kind = kinds[random_below(&t->rnd, ARRAY_SIZE(kinds))];
	op.node = random_below(&t->rnd, TREE_NODES);
	return op;
}

int tree_present(const struct tree *t, uint32_t node)
{
	return state(t, node) == DESC_COMMITTED;
}

void tree_affected(const struct tree *t, const struct tree_op *op, uint8_t in[TREE_NODES])
{
	memset(in, 0, TREE_NODES);
	if (op->kind == TREE_EVICT || op->kind == TREE_DOOM)
		subtree(t, op->node, in);
	if (op->kind == TREE_COMMIT)
		in[op->node] = 1;
	if (op->kind == TREE_PUBLISH)
		for (uint32_t i = op->node; i != TREE_NONE; i = t->node[i].parent)
			in[i] = !tree_present(t, i);
}

void tree_do(struct tree *t, const struct tree_op *op)
{
	uint8_t in[TREE_NODES];

	switch (op->kind) {
	case TREE_PUBLISH:
		publish(t, op->node);
		break;
	case TREE_RESERVE:
		reserve(t, op->node);
		break;
	case TREE_COMMIT:
		commit(t, op->node);
		break;
	case TREE_ABORT:
		abort_reservation(t, op->node);
		break;
	case TREE_VOID:
		subtree(t, op->node, in);
		void_reservations(t, in);
		break;
	case TREE_EVICT:
		evict(t, op->node);
		break;
	case TREE_DOOM:
		doom(t, op->node);
		break;
	case TREE_SETTLE:
		settle(t);
		end_quarantine(t);
		break;
	}
}
