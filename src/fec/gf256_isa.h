/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels in files named for their instruction set. Only gf256.c and they include this. */
#ifndef WEFT_FEC_GF256_ISA_H
#define WEFT_FEC_GF256_ISA_H

#include "fec/gf256.h"

extern const struct gf256 gf256_scalar;

#endif
