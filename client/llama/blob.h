/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts the state of a sequence into images of blocks and joins images into a state (shape.h has the
 * layout).
 *
 * Pure code over bytes that somebody else wrote: every offset is checked against the size before it
 * is used, and a state counts as understood only when a format explains it to its last byte. What
 * cannot be cut exactly is refused with a reason in words.
 */
#ifndef KVP_CLIENT_LLAMA_BLOB_H
#define KVP_CLIENT_LLAMA_BLOB_H

#include "client/llama/shape.h"

struct blob {
	const uint8_t *data; /* as given to blob_parse */
	uint32_t n_cells;
	uint32_t first; /* lowest position */
	int32_t seq; /* the sequence that it was taken from */
	bool sorted; /* cell i has position first + i */
	struct shape shape;
};

/*
 * Reads a state of size bytes. Returns 0; -ENODATA: the sequence is empty; -ENOTSUP: it is known
 * what it is, but it cannot be cut into blocks; -EINVAL: not understood. On failure *ret_why is a
 * reason in words that needs no freeing. The blob points into data, which must not change while it
 * is used.
 */
int blob_parse(const void *data, size_t size, struct blob *ret_blob, const char **ret_why);

/*
 * Fills order[i] with the cell that has position first + i, for a blob that is not sorted; order
 * has n_cells entries. Returns 0, or -EINVAL when a position occurs twice.
 */
int blob_order(const struct blob *b, uint32_t *order);

/*
 * Writes the image of the tokens at positions pos to pos + n - 1, which the blob must hold; dst has
 * shape_state_bytes(&b->shape, n) bytes. order is what blob_order gave, or NULL for a sorted blob.
 */
void blob_cut(const struct blob *b, const uint32_t *order, uint32_t pos, uint32_t n, void *dst);

/*
 * Succeeds when data is the image of n tokens at position pos in this shape: its size, and all
 * bytes that are not rows. Returns 0 or -EINVAL. Takes no trust in the bytes, which may lie in
 * memory that others write.
 */
int blob_check_image(const struct shape *s, const void *data, size_t size, uint32_t pos,
		     uint32_t n);

/*
 * The same without the heads of the tensors, for an image that goes to the engine as it is: the
 * engine compares them itself, and looking at them here would take a page fault for each.
 */
int blob_check_front(const struct shape *s, const void *data, size_t size, uint32_t pos,
		     uint32_t n);

/*
 * Joins images of n tokens each, of one shape, into the state of the tokens from position first on;
 * dst has shape_state_bytes(s, n_images * n) bytes. Only rows are taken from the images.
 */
void blob_join(const struct shape *s, const void *const *images, uint32_t n_images, uint32_t n,
	       uint32_t first, void *dst);

#endif
