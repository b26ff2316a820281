/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/spark.h"

#include <string.h>

#include "base/assert.h"

#define LEVELS 8

static void
append(char **p, const char *text)
{
	size_t len = strlen(text);
	memcpy(*p, text, len);
	*p += len;
}

char *
spark_draw(const float *v, size_t n, size_t width, bool is_utf8, char out[SPARK_TEXT_MAX])
{
	/* U+2581 to U+2588. */
	static const char *const bars[LEVELS] = {"\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83",
		"\xe2\x96\x84", "\xe2\x96\x85", "\xe2\x96\x86", "\xe2\x96\x87", "\xe2\x96\x88"};
	static const char *const plain[LEVELS] = {"_", ".", ":", "-", "=", "+", "*", "#"};
	float greatest = 0;
	char *p = out;

	weft_assert(width <= SPARK_WIDTH_MAX);
	size_t shown = n < width ? n : width;
	v += n - shown;
	for (size_t i = 0; i < shown; i++) {
		greatest = v[i] > greatest ? v[i] : greatest;
	}
	for (size_t i = shown; i < width; i++) {
		append(&p, " ");
	}
	for (size_t i = 0; i < shown; i++) {
		/* Only nothing is the lowest bar, and only the greatest is the highest. */
		size_t level = 0;
		if (v[i] >= greatest && greatest > 0) {
			level = LEVELS - 1;
		} else if (v[i] > 0) {
			level = 1 + (size_t)(v[i] / greatest * (LEVELS - 2));
			level = level > LEVELS - 2 ? LEVELS - 2 : level;
		}
		append(&p, is_utf8 ? bars[level] : plain[level]);
	}
	*p = 0;
	return out;
}
