/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels in files named for their instruction set. Only gf256.c and they include this. */
#ifndef WEFT_FEC_GF256_ISA_H
#define WEFT_FEC_GF256_ISA_H

#include "fec/gf256.h"

#if defined(__x86_64__)
#define GF256_HAVE_X86 1
#else
#define GF256_HAVE_X86 0
#endif
#if defined(__aarch64__)
#define GF256_HAVE_NEON 1
#else
#define GF256_HAVE_NEON 0
#endif

extern const struct gf256 gf256_scalar;
#if GF256_HAVE_X86
extern const struct gf256 gf256_ssse3;
extern const struct gf256 gf256_avx2;
extern const struct gf256 gf256_gfni;
#endif
#if GF256_HAVE_NEON
extern const struct gf256 gf256_neon;
#endif

#endif
