/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/detail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* No struct of any version comes near: a size above it was never set. */
#define RECORD_SIZE_MAX 65536

static size_t
size_of(const void *record)
{
	size_t size;
	memcpy(&size, record, sizeof(size));
	return size;
}

bool
record_take(void *ours, size_t ours_size, const void *theirs, size_t size_min)
{
	size_t size = size_of(theirs);
	if (size < size_min || size > RECORD_SIZE_MAX) {
		return false;
	}
	size_t n = size < ours_size ? size : ours_size;
	memset(ours, 0, ours_size);
	memcpy(ours, theirs, n);
	const unsigned char *p = theirs;
	for (size_t i = n; i < size; i++) {
		if (p[i]) {
			return false;
		}
	}
	return true;
}

bool
record_give(void *theirs, const void *ours, size_t ours_size, size_t size_min)
{
	size_t size = size_of(theirs);
	if (size < size_min || size > RECORD_SIZE_MAX) {
		return false;
	}
	size_t n = size < ours_size ? size : ours_size;
	memcpy((char *)theirs + sizeof(size), (const char *)ours + sizeof(size), n - sizeof(size));
	memset((char *)theirs + n, 0, size - n);
	return true;
}

static enum weft_err
give(struct weft_detail *why, const struct weft_detail *ours)
{
	if (why) {
		(void)record_give(why, ours, sizeof(*ours), sizeof(*ours));
	}
	return ours->code;
}

enum weft_err
detail_set(struct weft_detail *why, enum weft_err code, int errnum, const char *fmt, ...)
{
	struct weft_detail d = {.code = code, .os_errno = errnum};
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(d.text, sizeof(d.text), fmt, ap);
	va_end(ap);
	return give(why, &d);
}

enum weft_err
detail_set_at(struct weft_detail *why, enum weft_err code, uint32_t line, uint32_t column,
	const char *text)
{
	struct weft_detail d = {.code = code, .line = line, .column = column};
	snprintf(d.text, sizeof(d.text), "%s", text);
	return give(why, &d);
}
