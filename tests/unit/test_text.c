/* SPDX-License-Identifier: Apache-2.0 */
/* What counts as clean text. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"
#include "proto/text.h"

static void clean_text(void **state)
{
	static const char *const good[] = {
		"", "a", " ~", "llama-3.2 (Q4_K_M)", "\xc2\xa0", "\xdf\xbf", "\xe0\xa0\x80",
		"\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80",
		"\xf4\x8f\xbf\xbf", "\xe6\xa8\xa1\xe5\x9e\x8b",
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(text_check(good[i], strlen(good[i])), 0);
}

static void unclean_text(void **state)
{
	static const char *const bad[] = {
		"\x01", "a\n", "\x1b[2J", "\x7f", "\xc2\x80", "\xc2\x9f", /* controls */
		"\x80", "\xbf", "a\xff", "\xfe",                          /* no first byte */
		"\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", /* longer than needed */
		"\xed\xa0\x80", "\xed\xbf\xbf",                            /* surrogates */
		"\xf4\x90\x80\x80", "\xf5\x80\x80\x80",                    /* beyond Unicode */
		"\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xc3(", "\xe2(\xa1",  /* cut */
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(text_check(bad[i], strlen(bad[i])), -EINVAL);
	assert_int_equal(text_check("a\0b", 3), -EINVAL);
}

/* The end of the buffer is the end of the text, whatever stands behind. */
static void nothing_is_read_behind(void **state)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(page != MAP_FAILED);
	assert_int_equal(mprotect(page + 4096, 4096, PROT_NONE), 0);
	for (size_t n = 1; n < 4; n++) {
		memcpy(page + 4096 - n, "\xf0\x90\x80", n);
		assert_int_equal(text_check(page + 4096 - n, n), -EINVAL);
	}
	munmap(page, 8192);
}

static void cut_between_characters(void **state)
{
	static const size_t expected[] = { 0, 1, 1, 3, 3, 3, 6, 7 };
	const char *text = "a\xc3\xa9\xe2\x82\xac!";

	for (size_t n = 0; n < ARRAY_SIZE(expected); n++) {
		assert_int_equal(text_cut(text, n), expected[n]);
		assert_int_equal(text_check(text, text_cut(text, n)), 0);
	}
}

static void made_clean(void **state)
{
	static const char *const texts[][2] = {
		{ "", "" },
		{ "all of it: gr\xc3\xb6\xc3\x9f"
		  "er",
		  "all of it: gr\xc3\xb6\xc3\x9f"
		  "er" },
		{ "a\x1b[31m\tb\x7f", "a?[31m?b?" },
		{ "\xc3(", "?(" },
		{ "\xc2\x85", "??" }, /* a control character of two bytes */
		{ "\xff\xfe\xed\xa0\x80", "?????" },
		{ "cut \xf0\x9f\x98", "cut ???" },
	};
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		strcpy(text, texts[i][0]);
		text_clean(text);
		assert_string_equal(text, texts[i][1]);
		assert_int_equal(text_check(text, strlen(text)), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean_text),
		cmocka_unit_test(unclean_text),
		cmocka_unit_test(nothing_is_read_behind),
		cmocka_unit_test(cut_between_characters),
		cmocka_unit_test(made_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
