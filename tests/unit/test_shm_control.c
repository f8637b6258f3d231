/* SPDX-License-Identifier: Apache-2.0 */
/* The geometry of a control region, and what control_attach refuses. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "shm/control.h"

static const struct control_config sound = {
	.pool_bytes = MIB(64),
	.max_blocks = 1000,
	.max_namespaces = 20,
	.granule_shift = 20,
	.domain_id = 42,
	.index_salt = { 1, 2 },
	.boot_id = { 3 },
};

static void *made(uint64_t *ret_size)
{
	uint64_t size = control_size(&sound);
	void *base = aligned_alloc(LAYOUT_PAGE, size);

	assert_non_null(base);
	memset(base, 0, size);
	control_format(base, &sound);
	*ret_size = size;
	return base;
}

static void parts_follow_each_other(void **state)
{
	struct control c;
	uint64_t size;
	char *base = made(&size);

	assert_null(control_attach(base, size, &c));
	assert_ptr_equal(c.head, base);
	assert_ptr_equal(c.ns, base + LAYOUT_PAGE);
	assert_true((char *)c.granule >= (char *)(c.ns + sound.max_namespaces));
	assert_true((char *)c.index >= (char *)(c.granule + 64));
	assert_true((char *)c.desc >= (char *)(c.index + c.bucket_mask + 1));
	assert_true((char *)c.aux >= (char *)(c.desc + sound.max_blocks));
	assert_true(base + size >= (char *)(c.aux + sound.max_blocks));
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(((&c.head->ns_offset)[i]) % LAYOUT_PAGE, 0);
	assert_int_equal(size % LAYOUT_PAGE, 0);
	free(base);
}

static void header_says_what_was_asked(void **state)
{
	struct control c;
	uint64_t size;
	char *base = made(&size);

	assert_null(control_attach(base, size, &c));
	assert_int_equal(c.head->domain_id, 42);
	assert_memory_equal(c.head->boot_id, sound.boot_id, 16);
	assert_int_equal(c.head->total_bytes, size);
	assert_int_equal(c.head->pool_bytes, MIB(64));
	assert_int_equal(c.head->n_granules, 64);
	assert_int_equal(c.head->epoch, 1);
	assert_int_equal(c.head->state, CONTROL_ACTIVE);
	assert_int_equal(c.max_blocks, 1000);
	assert_int_equal(c.max_namespaces, 20);
	assert_int_equal(c.salt[0], 1);
	assert_int_equal(c.salt[1], 2);
	for (uint32_t i = 0; i < 64; i++) {
		assert_int_equal(c.granule[i].ns, NS_NONE);
		assert_int_equal(c.granule[i].count, 0);
	}
	free(base);
}

/* At most half of the places are ever in use. */
static void index_has_twice_the_places(void **state)
{
	static const uint32_t blocks[] = { 1, 3, 4, 5, 1000, 1u << 20, CONTROL_BLOCKS_MAX };

	for (unsigned int i = 0; i < ARRAY_SIZE(blocks); i++) {
		struct control_config cfg = sound;
		struct control_header h = { .magic = 0 };
		uint64_t places;

		cfg.max_blocks = blocks[i];
		if (blocks[i] <= 1000) {
			char *base = calloc(1, control_size(&cfg));

			assert_non_null(base);
			control_format(base, &cfg);
			memcpy(&h, base, sizeof(h));
			free(base);
			places = h.n_buckets * BUCKET_ENTRIES;
			assert_true(is_pow2(h.n_buckets));
			assert_true(places >= 2ull * blocks[i]);
		}
		/* index, descriptors and what goes with them: nothing overflows at the top */
		assert_true(control_size(&cfg) > blocks[i] * 80ull + blocks[i] * 16ull);
	}
}

static void sizes_out_of_bounds(void **state)
{
	static const struct {
		const char *what;
		size_t at, n;
		uint64_t value;
	} rows[] = {
#define AT(f) offsetof(struct control_config, f), sizeof(((struct control_config *)0)->f)
		{ "no block", AT(max_blocks), 0 },
		{ "one block too many", AT(max_blocks), CONTROL_BLOCKS_MAX + 1ull },
		{ "no namespace", AT(max_namespaces), 0 },
		{ "too many namespaces", AT(max_namespaces), 65537 },
		{ "granule below a slot", AT(granule_shift), SLOT_SHIFT - 1 },
		{ "granule too large", AT(granule_shift), 41 },
		{ "no pool", AT(pool_bytes), 0 },
		{ "pool below a granule", AT(pool_bytes), KIB(512) },
		{ "half a granule", AT(pool_bytes), MIB(64) + KIB(512) },
		{ "pool beyond slot numbers", AT(pool_bytes), GIB(16) << 10 },
#undef AT
	};

	assert_int_not_equal(control_size(&sound), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct control_config cfg = sound;

		memcpy((char *)&cfg + rows[i].at, &rows[i].value, rows[i].n);
		if (control_size(&cfg))
			fail_msg("%s: accepted", rows[i].what);
	}
}

/* Each header field wrong in turn: refused with a word about it, and *c stays as it was. */
static void attach_refuses(void **state)
{
	static const struct {
		size_t at, n;
		uint64_t value;
		const char *text;
	} rows[] = {
#define AT(f) offsetof(struct control_header, f), sizeof(((struct control_header *)0)->f)
		{ AT(magic), 0, "magic" },
		{ AT(magic), SESSION_MAGIC, "magic" },
		{ AT(layout_version), 0, "layout version" },
		{ AT(layout_version), LAYOUT_VERSION + 1, "layout version" },
		{ AT(header_bytes), LAYOUT_PAGE * 2, "layout version" },
		{ AT(total_bytes), 0, "another size" },
		{ AT(total_bytes), UINT64_MAX, "another size" },
		{ AT(pool_bytes), 0, "out of bounds" },
		{ AT(pool_bytes), UINT64_MAX, "out of bounds" },
		{ AT(pool_bytes), MIB(63), "offsets" },
		{ AT(ns_offset), 0, "offsets" },
		{ AT(ns_offset), UINT64_MAX, "offsets" },
		{ AT(granule_offset), 0, "offsets" },
		{ AT(index_offset), LAYOUT_PAGE, "offsets" },
		{ AT(desc_offset), UINT64_MAX - 63, "offsets" },
		{ AT(aux_offset), 8, "offsets" },
		{ AT(n_buckets), 0, "offsets" },
		{ AT(n_buckets), UINT64_C(1) << 40, "offsets" },
		{ AT(max_blocks), 0, "out of bounds" },
		{ AT(max_blocks), UINT32_MAX, "out of bounds" },
		{ AT(max_blocks), 2000, "offsets" },
		{ AT(max_namespaces), 0, "out of bounds" },
		{ AT(max_namespaces), UINT32_MAX, "out of bounds" },
		{ AT(max_namespaces), 65536, "offsets" },
		{ AT(n_granules), UINT32_MAX, "offsets" },
		{ AT(granule_shift), 64, "out of bounds" },
		{ AT(granule_shift), 21, "offsets" },
#undef AT
	};
	uint64_t size;
	char *base = made(&size);

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct control c = { .max_blocks = 12345 };
		uint64_t saved = 0;
		const char *wrong;

		memcpy(&saved, base + rows[i].at, rows[i].n);
		memcpy(base + rows[i].at, &rows[i].value, rows[i].n);
		wrong = control_attach(base, size, &c);
		if (!wrong || !strstr(wrong, rows[i].text))
			fail_msg("row %u: \"%s\", expected \"%s\"", i, wrong ? wrong : "accepted",
				 rows[i].text);
		assert_int_equal(c.max_blocks, 12345);
		memcpy(base + rows[i].at, &saved, rows[i].n);
		assert_null(control_attach(base, size, &c));
	}
	free(base);
}

static void attach_refuses_another_size(void **state)
{
	struct control c;
	uint64_t size;
	char *base = made(&size);

	assert_non_null(control_attach(base, 0, &c));
	assert_non_null(control_attach(base, LAYOUT_PAGE - 1, &c));
	assert_non_null(control_attach(base, LAYOUT_PAGE, &c));
	assert_non_null(control_attach(base, size - LAYOUT_PAGE, &c));
	assert_non_null(control_attach(base, size + LAYOUT_PAGE, &c));
	free(base);
}

static void slot_of_each_tier(void **state)
{
	struct control c;
	uint64_t size;
	char *base = made(&size);

	assert_null(control_attach(base, size, &c));
	for (int t = 0; t < TIER_MEMORY_MAX; t++)
		*control_slot(&c, 999, (enum tier)t) = 100 + (uint32_t)t;
	assert_int_equal(c.desc[999].slot[0], 100);
	assert_int_equal(c.desc[999].slot[1], 101);
	assert_int_equal(c.desc[999].crc, 0);
	assert_int_equal(c.desc[999].parent, 0);
	assert_int_equal(slot_offset(0xfffffffe), 0xfffffffeull << 12);
	free(base);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_follow_each_other),
		cmocka_unit_test(header_says_what_was_asked),
		cmocka_unit_test(index_has_twice_the_places),
		cmocka_unit_test(sizes_out_of_bounds),
		cmocka_unit_test(attach_refuses),
		cmocka_unit_test(attach_refuses_another_size),
		cmocka_unit_test(slot_of_each_tier),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
