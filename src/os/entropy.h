/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_OS_ENTROPY_H
#define WEFT_OS_ENTROPY_H

#include "base/entropy.h"

/* The kernel's random bytes (getrandom). Waits once after boot until the pool is seeded; a
 * kernel without getrandom ends the process by weft_assert. */
struct entropy os_entropy(void);

#endif
