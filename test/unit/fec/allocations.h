/* SPDX-License-Identifier: Apache-2.0 */
/* Counts calls of the allocator in the program that links this. */
#ifndef WEFT_TEST_FEC_ALLOCATIONS_H
#define WEFT_TEST_FEC_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>

/* False: not with this C library; then nothing is counted. Before the first count. */
bool allocations_begin(void);
size_t allocations_count(void);
/* From now on aligned_alloc() has no memory, or has it again. False: not with this C library. */
bool allocations_refuse_aligned(bool is_on);

#endif
