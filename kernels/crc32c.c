/* SPDX-License-Identifier: Apache-2.0 */
#include "base/compiler.h"
#include "kernels/copy_ops.h"
#include "kernels/crc32c.h"

/* Reflected: bit 31 of a register is x^0, bit 0 is x^31. */
#define CRC32C_POLY 0x82f63b78u

uint32_t crc32c(uint32_t crc, const void *data, size_t n)
{
	return kvp_copy_ops_cpu()->crc(crc, data, n);
}

/* a * b mod P. Without branches: the bits are random, so that one in two would be mispredicted. */
static uint32_t crc32c_product(uint32_t a, uint32_t b)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < 32; i++) {
		sum ^= b & -(a >> 31);
		a <<= 1;
		b = b >> 1 ^ (CRC32C_POLY & -(b & 1));
	}
	return sum;
}

/*
 * x^8 and its squares: entry k moves a register on by 2^k bytes. The powers of x repeat after
 * 2^31 - 1 of them, so that 31 squarings lead from x^8 to x^8.
 */
static const uint32_t powers[31] = {
	0x00800000, 0x00008000, 0x82f63b78, 0x6ea2d55c, 0x18b8ea18, 0x510ac59a,
	0xb82be955, 0xb8fdb1e7, 0x88e56f72, 0x74c360a4, 0xe4172b16, 0x0d65762a,
	0x35d73a62, 0x28461564, 0xbf455269, 0xe2ea32dc, 0xfe7740e6, 0xf946610b,
	0x3c204f8f, 0x538586e3, 0x59726915, 0x734d5309, 0xbc1ac763, 0x7d0722cc,
	0xd289cabe, 0xe94ca9bc, 0x05b74f3f, 0xa51e1f42, 0x40000000, 0x20000000,
	0x08000000,
};

/*
 * Appending B moves the register of A on by len_b bytes. The inversions need no care: those at the
 * end of A and at the start of B cancel out.
 */
uint32_t crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t len_b)
{
	if (!crc_a) /* mostly that of nothing */
		return crc_b;
	for (unsigned int k = 0; len_b; len_b >>= 1, k++)
		if (len_b & 1)
			crc_a = crc32c_product(crc_a, powers[k % ARRAY_SIZE(powers)]);
	return crc_a ^ crc_b;
}
