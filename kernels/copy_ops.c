/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#ifdef __aarch64__
#include <sys/auxv.h>
#endif

#include "base/compiler.h"
#include "kernels/copy_ops.h"

static int cpu_any(void)
{
	return 1;
}

#ifdef __x86_64__
static int cpu_sse42(void)
{
	return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

static int cpu_avx2(void)
{
	return cpu_sse42() && __builtin_cpu_supports("avx2") &&
	       __builtin_cpu_supports("vpclmulqdq");
}

static int cpu_avx512(void)
{
	return cpu_avx2() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512vl");
}
#endif

#ifdef __aarch64__
/* getauxval() reads what the kernel left on the stack at exec. */
static int cpu_armv8(void)
{
	unsigned long caps = getauxval(AT_HWCAP);

	return caps & HWCAP_CRC32 && caps & HWCAP_PMULL;
}
#endif

static const struct {
	const struct kvp_copy_ops *ops;
	int (*usable)(void);
} variants[] = {
#ifdef __x86_64__
	{ &kvp_copy_ops_avx512, cpu_avx512 },
	{ &kvp_copy_ops_avx2, cpu_avx2 },
	{ &kvp_copy_ops_sse42, cpu_sse42 },
#endif
#ifdef __aarch64__
	{ &kvp_copy_ops_armv8, cpu_armv8 },
#endif
	{ &kvp_copy_ops_portable, cpu_any },
};

const struct kvp_copy_ops *kvp_copy_ops_nth(unsigned int i)
{
	for (unsigned int k = 0; k < ARRAY_SIZE(variants); k++)
		if (variants[k].usable() && i-- == 0)
			return variants[k].ops;
	return NULL;
}

const struct kvp_copy_ops *kvp_copy_ops_cpu(void)
{
	return kvp_copy_ops_nth(0);
}

const struct kvp_copy_ops *kvp_copy_ops_by_name(const char *name)
{
	const struct kvp_copy_ops *ops;

	for (unsigned int i = 0; (ops = kvp_copy_ops_nth(i)); i++)
		if (!strcmp(ops->name, name))
			return ops;
	return NULL;
}
