/* SPDX-License-Identifier: Apache-2.0 */
#include "os/entropy.h"

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

#include "base/assert.h"

static void
fill(void *ctx, void *out, size_t len)
{
	(void)ctx;
	uint8_t *p = out;
	while (len > 0) {
		ssize_t n = getrandom(p, len, 0);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		weft_assert(n > 0);
		p += n;
		len -= (size_t)n;
	}
}

struct entropy
os_entropy(void)
{
	return (struct entropy){.fill = fill};
}
