/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines as values: a level, a text, a sink that the owner supplies.
 *
 * Knows no file and no clock. Rate limiting is by a token bucket per call site, fed with the
 * time that the caller passes. */
#ifndef WEFT_BASE_LOG_H
#define WEFT_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/mono.h"

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARN,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
};

/* Writes one line; text has no newline. Threads: must accept calls from any. */
typedef void log_sink(void *ctx, enum log_level level, const char *text);

struct log {
	log_sink *sink; /* NULL: silent */
	void *ctx;
	enum log_level level; /* lines above it are dropped */
};

/* Allows burst lines a period. Zero-initialise, set burst and period_ns. */
struct log_limit {
	int64_t period_ns;
	uint32_t burst;
	uint32_t used;
	uint32_t suppressed; /* lines held back since the last one that passed */
	struct mono since;
};

WEFT_PRINTF(3, 4) void log_write(const struct log *l, enum log_level level, const char *fmt, ...);
/* Says whether a line may pass now, and counts it when not. */
bool log_limit_take(struct log_limit *ll, struct mono now);

#define log_error(l, ...) log_write(l, LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(l, ...) log_write(l, LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(l, ...) log_write(l, LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(l, ...) log_write(l, LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
