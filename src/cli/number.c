/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

/* Three digits, so that a column of them is quiet. The bounds are where rounding would give a
 * fourth. */
static unsigned
decimals(double v)
{
	return v < 9.995 ? 2 : v < 99.95 ? 1 : 0;
}

char *
number_rate(double bits_per_s, char out[NUMBER_TEXT_MAX])
{
	static const char *const units[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
	double v = bits_per_s > 0 ? bits_per_s : 0;
	size_t i = 0;
	while (v >= 999.5 && i + 1 < WEFT_ARRAY_LEN(units)) {
		v /= 1000;
		i++;
	}
	/* There are no parts of a bit. */
	snprintf(out, NUMBER_TEXT_MAX, "%.*f %s", i == 0 ? 0 : (int)decimals(v), v, units[i]);
	return out;
}

char *
number_share(double share, char out[NUMBER_TEXT_MAX])
{
	double percent = share * 100;
	if (!(percent > 0)) {
		snprintf(out, NUMBER_TEXT_MAX, "0");
	} else if (percent < 0.005) {
		snprintf(out, NUMBER_TEXT_MAX, "<0.01 %%");
	} else {
		snprintf(out, NUMBER_TEXT_MAX, "%.*f %%",
			percent < 0.995   ? 2
			: percent < 99.95 ? 1
					  : 0,
			percent);
	}
	return out;
}

char *
number_count(uint64_t n, char out[NUMBER_TEXT_MAX])
{
	char digits[24];
	size_t len = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, n), at = 0;
	for (size_t i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0) {
			out[at++] = ',';
		}
		out[at++] = digits[i];
	}
	out[at] = 0;
	return out;
}

char *
number_ms(double ms, char out[NUMBER_TEXT_MAX])
{
	if (!(ms > 0)) {
		snprintf(out, NUMBER_TEXT_MAX, "0");
	} else if (ms < 0.005) {
		snprintf(out, NUMBER_TEXT_MAX, "<0.01 ms");
	} else {
		snprintf(out, NUMBER_TEXT_MAX, "%.*f ms", ms < 0.995 ? 2 : ms < 99.95 ? 1 : 0, ms);
	}
	return out;
}

char *
number_age(int64_t seconds, char out[NUMBER_TEXT_MAX])
{
	static const struct {
		int64_t seconds;
		const char *name;
	} units[] = {{24 * 3600, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
	size_t i = 0;
	/* Up to 119 s in seconds, and so on: the greater unit alone would be coarse. */
	while (i + 1 < WEFT_ARRAY_LEN(units) && seconds < 2 * units[i].seconds) {
		i++;
	}
	snprintf(out, NUMBER_TEXT_MAX, "%" PRId64 " %s",
		seconds > 0 ? seconds / units[i].seconds : 0, units[i].name);
	return out;
}
