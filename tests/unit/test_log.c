/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines: one event is one line, whatever others call themselves. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/log.h"

static const char *line(const struct log_field *fields, size_t n)
{
	static char text[256];

	log_format(text, sizeof(text), "client ended", fields, n);
	return text;
}

#define LINE(...)                                                \
	({                                                       \
		const struct log_field f_[] = { __VA_ARGS__ };   \
		line(f_, ARRAY_SIZE(f_));                        \
	})

static void fields(void **state)
{
	assert_string_equal(line(NULL, 0), "client ended");
	assert_string_equal(LINE(LOG_TEXT("client", "llama"), LOG_NUMBER("pid", 12)),
			    "client ended client=llama pid=12");
	assert_string_equal(LINE(LOG_TEXT("detail", NULL), LOG_NUMBER("pid", UINT64_MAX)),
			    "client ended pid=18446744073709551615");
	assert_string_equal(LINE(LOG_ERRNO(-ENOMEM)),
			    "client ended error=\"Cannot allocate memory\"");
}

static void text_of_others(void **state)
{
	assert_string_equal(LINE(LOG_TEXT("client", "")), "client ended client=\"\"");
	assert_string_equal(LINE(LOG_TEXT("client", "a b")), "client ended client=\"a b\"");
	assert_string_equal(LINE(LOG_TEXT("client", "x reason=clean")),
			    "client ended client=\"x reason=clean\"");
	assert_string_equal(LINE(LOG_TEXT("client", "a=b")), "client ended client=\"a=b\"");
	assert_string_equal(LINE(LOG_TEXT("client", "\"\\")), "client ended client=\"\\\"\\\\\"");
	assert_string_equal(LINE(LOG_TEXT("client", "a\n<3>b\x1b[m")),
			    "client ended client=\"a\\x0a<3>b\\x1b[m\"");
}

static void long_text_is_cut(void **state)
{
	char name[400], text[32];
	const struct log_field f = LOG_TEXT("client", name);

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	log_format(text, sizeof(text), "client ended", &f, 1);
	assert_string_equal(text, "client ended client=aaaaaaaaaaa");
}

static void keys_are_shortened(void **state)
{
	const unsigned char key[32] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd };
	char hex[LOG_HEX_BYTES];

	assert_string_equal(log_hex(key, sizeof(key), hex), "0123456789ab");
	assert_string_equal(log_hex(key, 2, hex), "0123");
}

static void levels(void **state)
{
	assert_int_equal(log_level_parse("debug"), LOG_DEBUG);
	assert_int_equal(log_level_parse("err"), LOG_ERR);
	assert_int_equal(log_level_parse("error"), LOG_ERR);
	assert_int_equal(log_level_parse("warn"), LOG_WARNING);
	assert_int_equal(log_level_parse("warning"), LOG_WARNING);
	assert_int_equal(log_level_parse("DEBUG"), -1);
	assert_int_equal(log_level_parse(""), -1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields),
		cmocka_unit_test(text_of_others),
		cmocka_unit_test(long_text_is_cut),
		cmocka_unit_test(keys_are_shortened),
		cmocka_unit_test(levels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
