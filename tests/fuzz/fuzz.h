/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a fuzz target is made of. The same target runs in two ways: in driver.c, built like
 * everything else, and in libFuzzer, built by fuzz.sh.
 */
#ifndef KVP_TESTS_FUZZ_FUZZ_H
#define KVP_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Runs one input. Whatever is not as it must be ends the process. The name is libFuzzer's. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Tells inputs to start from: sound ones, and such as miss being sound by little. */
void fuzz_seeds(void (*tell)(const void *data, size_t n));

#endif
