/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever bytes are called a state: nothing is read outside them, and what is accepted survives
 * cutting and joining.
 */
#undef NDEBUG
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "client/llama/blob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Cuts all cells one by one, joins them, and expects the state again, in order and as of sequence
 * 0.
 */
static void round_trip(const struct blob *b, size_t size)
{
	size_t image = shape_state_bytes(&b->shape, 1);
	uint32_t *order = malloc(b->n_cells * sizeof(*order));
	uint8_t *images = malloc(image * b->n_cells), *joined = malloc(size),
		*again = malloc(image);
	const void **list = malloc(b->n_cells * sizeof(*list));
	const char *why;
	struct blob j;

	assert(order && images && joined && again && list);
	if (blob_order(b, order) == 0) {
		for (uint32_t i = 0; i < b->n_cells; i++) {
			list[i] = images + image * i;
			blob_cut(b, order, b->first + i, 1, images + image * i);
			assert(blob_check_image(&b->shape, list[i], image, b->first + i, 1) == 0);
		}
		blob_join(&b->shape, list, b->n_cells, 1, b->first, joined);
		assert(blob_parse(joined, size, &j, &why) == 0);
		assert(j.sorted && j.seq == 0 && j.first == b->first &&
		       shape_equal(&j.shape, &b->shape));
		for (uint32_t i = 0; i < b->n_cells; i++) {
			blob_cut(&j, NULL, b->first + i, 1, again);
			assert(!memcmp(again, list[i], image));
		}
	}
	free(list);
	free(again);
	free(joined);
	free(images);
	free(order);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *why = NULL;
	struct blob b;

	if (blob_parse(data, size, &b, &why) < 0) {
		assert(why);
		return 0;
	}
	assert(shape_state_bytes(&b.shape, b.n_cells) == size);
	round_trip(&b, size);
	return 0;
}
