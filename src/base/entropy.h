/* SPDX-License-Identifier: Apache-2.0 */
/* A source of random bytes handed to the engines: the kernel's in a node, seeded in tests. */
#ifndef WEFT_BASE_ENTROPY_H
#define WEFT_BASE_ENTROPY_H

#include <stddef.h>

struct entropy {
	void (*fill)(void *ctx, void *out, size_t len); /* never fails */
	void *ctx;
};

#endif
