/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of packets: what parses is written back the same. */
#undef NDEBUG
#include <assert.h>
#include <string.h>

#include "proto/frame.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct frame_header h = { .id = 4711 };
	uint8_t again[FRAME_HEADER_BYTES];
	const char *why = frame_parse(data, n, &h);

	if (why) {
		assert(*why && h.id == 4711 && h.magic == 0);
		return 0;
	}
	assert(n >= FRAME_HEADER_BYTES && n <= FRAME_MAX && h.magic == FRAME_MAGIC);
	frame_write(again, &h);
	assert(!memcmp(again, data, sizeof(again)));
	return 0;
}

void fuzz_seeds(void (*tell)(const void *data, size_t n))
{
	uint8_t packet[FRAME_HEADER_BYTES + 8] = { 0 };

	for (uint16_t flags = 0; flags < 8; flags++) {
		struct frame_header h = { .magic = FRAME_MAGIC, .op = 1, .flags = flags, .id = 7 };

		frame_write(packet, &h);
		tell(packet, FRAME_HEADER_BYTES - flags);
		tell(packet, sizeof(packet));
	}
}
