/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#define LOG_TEXT_MAX 512

void
log_write(const struct log *l, enum log_level level, const char *fmt, ...)
{
	if (!l->sink || level > l->level) {
		return;
	}
	char text[LOG_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	l->sink(l->ctx, level, text);
}

bool
log_limit_take(struct log_limit *ll, struct mono now)
{
	if (now.ns - ll->since.ns >= ll->period_ns) {
		ll->since = now;
		ll->used = 0;
	}
	if (ll->used < ll->burst) {
		ll->used++;
		ll->suppressed = 0;
		return true;
	}
	ll->suppressed++;
	return false;
}
