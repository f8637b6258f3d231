/* SPDX-License-Identifier: Apache-2.0 */
/* Memory nodes, on whatever machine this is: one node at least, and some that there are not. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/fd.h"
#include "base/numa.h"

static void nodes_in_words(void **state)
{
	static const struct {
		unsigned long bits;
		const char *text;
	} cases[] = {
		{ 0, "" },  { 1, "0" },       { 3, "0-1" },
		{ 8, "3" }, { 0xb, "0-1,3" }, { 0x75, "0,2,4-6" },
	};
	char text[64], tiny[4];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct numa_nodes n = { .bits = { cases[i].bits } };

		numa_print(&n, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
		numa_print(&n, tiny, sizeof(tiny));
		assert_int_equal(strncmp(tiny, text, sizeof(tiny) - 1), 0);
	}
	assert_false(numa_has(&(struct numa_nodes){ .bits = { ~0ul } }, NUMA_NODES_MAX));
}

/* The policies on a mapping that cannot write, as the daemon has it. */
static void policies(void **state)
{
	struct numa_nodes nodes;
	int n = numa_allowed(&nodes), fd;
	uint32_t node = 0;
	void *base;

	if (n < 0) {
		printf("skipped: this kernel, or a filter, has no memory nodes: %s\n",
		       strerror(-n));
		exit(77);
	}
	assert_true(n >= 1);
	while (!numa_has(&nodes, node))
		node++;
	fd = fd_memory("test", MIB(1), 1);
	assert_true(fd >= 0);
	assert_int_equal(fd_map(fd, MIB(1), 0, &base), 0);
	assert_int_equal(numa_interleave(base, MIB(1), &nodes), 0);
	assert_int_equal(numa_local(base, MIB(1)), 0);
	assert_int_equal(numa_bind(base, MIB(1), node), 0);
	assert_int_equal(fd_allocate(fd, 0, 0, MIB(1)), 0);
	assert_int_equal(fd_resident(fd), MIB(1));
	assert_int_equal(numa_bind(base, MIB(1), NUMA_NODES_MAX - 1), -EINVAL);
	assert_int_equal(numa_bind(base, MIB(1), NUMA_NODES_MAX), -EINVAL);
	fd_unmap(base, MIB(1));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_in_words),
		cmocka_unit_test(policies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
