/* SPDX-License-Identifier: Apache-2.0 */
/* Files of token ids, and the keys of doc/keys.md from them. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/hex.h"
#include "tools/kvpoolctl/tokens.h"

static enum ctl_exit read_text(const char *text, struct tokens *ret)
{
	FILE *f = fmemopen((char *)text, strlen(text), "r");
	enum ctl_exit rc;

	assert_non_null(f);
	rc = tokens_read(f, "a file", ret);
	fclose(f);
	return rc;
}

static void test_separators(void **state)
{
	struct tokens t = { 0 };

	assert_int_equal(read_text("1,2 3\n\n  4294967295\t,0,\r\n", &t), EXIT_OK);
	assert_int_equal(t.n, 5);
	assert_int_equal(t.ids[2], 3);
	assert_int_equal(t.ids[3], UINT32_MAX);
	assert_int_equal(t.ids[4], 0);
	tokens_free(&t);
}

/* What stderr says, and the status. */
static enum ctl_exit read_bad(const char *text, char *said, size_t size)
{
	struct tokens t = { .n = 42 };
	int pipes[2], saved = dup(2);
	enum ctl_exit rc;
	ssize_t n;

	assert_int_equal(pipe(pipes), 0);
	dup2(pipes[1], 2);
	rc = read_text(text, &t);
	dup2(saved, 2);
	close(saved);
	close(pipes[1]);
	n = read(pipes[0], said, size - 1);
	close(pipes[0]);
	said[MAX(n, 0)] = '\0';
	assert_int_equal(t.n, 42);
	return rc;
}

static void test_errors(void **state)
{
	static const struct {
		const char *text, *said;
	} rows[] = {
		{ "1 2\n3\nx4\n", "a file, line 3: \"x4\" is no token id" },
		{ "-1", "a file, line 1: \"-1\"" },
		{ "1\n\n4294967296", "a file, line 3: \"4294967296\"" },
		{ "1.5", "line 1: \"1.5\"" },
		{ "[1, 2]", "line 1: \"[1\"" },
		{ "99999999999999999999999999999999", "line 1: " },
		{ "1 \033[0m", "line 1: \"?[0m\"" },
		{ " \n, ", "a file has no token ids" },
	};
	char said[512];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(read_bad(rows[i].text, said, sizeof(said)), EXIT_FAILED);
		assert_non_null(strstr(said, rows[i].said));
	}
}

static void test_files(void **state)
{
	struct tokens t;

	assert_int_equal(tokens_open("/nonexistent/file", &t), EXIT_FAILED);
	assert_int_equal(tokens_open("/tmp", &t), EXIT_FAILED);
}

/* The last token is always computed: a block that ends with it is not asked for. */
static void test_blocks(void **state)
{
	struct tokens t = { .n = 0 };

	assert_int_equal(tokens_blocks(&t, 16), 0);
	t.n = 16;
	assert_int_equal(tokens_blocks(&t, 16), 0);
	t.n = 17;
	assert_int_equal(tokens_blocks(&t, 16), 1);
	t.n = 33;
	assert_int_equal(tokens_blocks(&t, 16), 2);
	assert_int_equal(tokens_blocks(&t, 0), 0);
}

/* The vectors of doc/keys.md, "minimal". */
static void test_keys(void **state)
{
	static const char *const want[] = {
		"96a231236c91d696f2b94293ea3c11bf106024771dbeef417cd6e76c3cf850a4",
		"9a0f9cc1f8dfb3a05485b9459099dba8b2e131d7e90a3b711d83fae8857b56e0",
		"8dda62e93acafd5a112d7781135f78f8d2bf23bd467f40eae5bc58a11f3d2582",
		"2d6d79e0b58b6bb7a6ddaf2008b939908dcddcd8007ca7d5b593778e5dd43287",
	};
	uint8_t seed[TOKENS_KEY_BYTES], keys[4 * TOKENS_KEY_BYTES];
	char hex[2 * TOKENS_KEY_BYTES + 1];
	uint32_t ids[64];
	struct tokens t = { ids, ARRAY_SIZE(ids) };

	for (uint32_t i = 0; i < 64; i++)
		ids[i] = i * 2654435761u % 32000;
	assert_int_equal(
		hex_decode("1fde06cb1a1965217dd36195a15f7fd743acfe114805b63624c58a75d2c16d66", seed,
			   sizeof(seed)),
		0);
	tokens_keys(&t, 16, seed, 4, keys);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		hex_encode(keys + i * TOKENS_KEY_BYTES, TOKENS_KEY_BYTES, hex);
		assert_string_equal(hex, want[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_separators), cmocka_unit_test(test_errors),
		cmocka_unit_test(test_files),      cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
