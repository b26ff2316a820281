/* SPDX-License-Identifier: Apache-2.0 */
/* Public structs that begin with their size, and why a call failed. */
#ifndef WEFT_LIB_DETAIL_H
#define WEFT_LIB_DETAIL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "weft/node.h"

/* Copies a caller's struct into ours. One of an older library is shorter: the rest is zero. False:
 * shorter than the first version (size_min), or longer with something set that we do not know. */
bool record_take(void *ours, size_t ours_size, const void *theirs, size_t size_min);
/* Copies ours into a caller's struct, as much as it holds, and leaves its size as it is; what a
 * later library would fill becomes zero. False: it is shorter than the first version. */
bool record_give(void *theirs, const void *ours, size_t ours_size, size_t size_min);

/* Fills why, when there is one, and returns code. */
WEFT_PRINTF(4, 5)
enum weft_err detail_set(
	struct weft_detail *why, enum weft_err code, int errnum, const char *fmt, ...);
/* The same with a place in a configuration. */
enum weft_err detail_set_at(struct weft_detail *why, enum weft_err code, uint32_t line,
	uint32_t column, const char *text);

#endif
