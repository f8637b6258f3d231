/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "tools/bench/bench.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

void *bench_shared_memory(uint64_t bytes)
{
	_cleanup_fd_ int fd = fd_memory("bench", bytes, 1);
	void *p;

	if (fd < 0 || fd_map(fd, bytes, 1, &p) < 0)
		return NULL;
	memset(p, 0x5a, bytes);
	return p;
}

#ifdef __x86_64__
__attribute__((target("avx512f"))) static void copy_nt_512(char *d, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i += 64)
		_mm512_stream_si512((void *)(d + i), _mm512_loadu_si512((const void *)(s + i)));
	_mm_sfence();
}

__attribute__((target("avx2"))) static void copy_nt_256(char *d, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i += 32)
		_mm256_stream_si256((void *)(d + i), _mm256_loadu_si256((const void *)(s + i)));
	_mm_sfence();
}

/* n is a multiple of 64 and dst aligned to 64 here: blocks are. */
void bench_copy_nt(void *dst, const void *src, size_t n)
{
	if (__builtin_cpu_supports("avx512f"))
		copy_nt_512(dst, src, n);
	else if (__builtin_cpu_supports("avx2"))
		copy_nt_256(dst, src, n);
	else
		memcpy(dst, src, n);
}
#else
void bench_copy_nt(void *dst, const void *src, size_t n)
{
	memcpy(dst, src, n);
}
#endif
