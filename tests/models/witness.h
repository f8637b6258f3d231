/* SPDX-License-Identifier: Apache-2.0 */
/* Where a model must be able to get: with -DWITNESS it fails there, so that no row passes idly. */
#ifdef WITNESS
#define reached() assert(false)
#else
#define reached() skip
#endif
