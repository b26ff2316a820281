/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void
weft_assert_fail(const char *expr, const char *file, int line)
{
	fprintf(stderr, "weft: assertion failed: %s (%s:%d)\n", expr, file, line);
	abort();
}
