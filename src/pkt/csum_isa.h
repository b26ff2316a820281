/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of csum.c in files named for their instruction set. Only csum.c includes this. */
#ifndef WEFT_PKT_CSUM_ISA_H
#define WEFT_PKT_CSUM_ISA_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define CSUM_HAVE_X86 1
uint64_t csum_partial_avx2(const void *p, size_t len);
uint64_t csum_copy_avx2(void *dst, const void *src, size_t len);
uint64_t csum_partial_avx512(const void *p, size_t len);
uint64_t csum_copy_avx512(void *dst, const void *src, size_t len);
#else
#define CSUM_HAVE_X86 0
#endif

/* The portable kernel, which also does what a vector leaves over. */
uint64_t csum_partial_portable(const void *p, size_t len);
uint64_t csum_copy_portable(void *dst, const void *src, size_t len);

#endif
