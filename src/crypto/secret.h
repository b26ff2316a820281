/* SPDX-License-Identifier: Apache-2.0 */
/* What secrets need: wiping that the compiler keeps, comparing that takes the same time. */
#ifndef WEFT_CRYPTO_SECRET_H
#define WEFT_CRYPTO_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/* Overwrites len bytes with zeros, also when nobody reads them afterwards. */
void secret_wipe(void *p, size_t len);
/* The time depends on len alone. */
bool secret_is_equal(const void *a, const void *b, size_t len);
bool secret_is_zero(const void *p, size_t len);

#endif
