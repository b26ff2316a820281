/* SPDX-License-Identifier: Apache-2.0 */
/* Broken invariants of our own. Input from outside is never asserted. */
#ifndef WEFT_BASE_ASSERT_H
#define WEFT_BASE_ASSERT_H

#include "base/compiler.h"

WEFT_NORETURN WEFT_COLD void weft_assert_fail(const char *expr, const char *file, int line);

/* Stays on in every build. */
#define weft_assert(x) (WEFT_LIKELY(x) ? (void)0 : weft_assert_fail(#x, __FILE__, __LINE__))

/* Per-packet assertions: on in debug, test and fuzz builds (WEFT_DEBUG). */
#ifdef WEFT_DEBUG
#define weft_dassert(x) weft_assert(x)
#else
#define weft_dassert(x) ((void)sizeof(x))
#endif

#endif
