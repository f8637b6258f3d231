/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index that raises another counter than the readers look at: tests/litmus/listed.c must miss.
 */
#include "shm/index.h"

#define moved epoch

#include "shm/index.c"
