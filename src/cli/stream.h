/* SPDX-License-Identifier: Apache-2.0 */
/* The asking side of the control socket's watch: lines of one device as they come. */
#ifndef WEFT_CLI_STREAM_H
#define WEFT_CLI_STREAM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "cli/device.h"

struct os_loop;
struct stream;

struct stream_sink {
	/* An event or a line of a sample, as text, too; valid during the call. Must not close the
	 * stream. */
	void (*line)(void *ctx, const json_t *o, const char *text);
	/* It is closed: WEFT_ECLOSED: by the device; WEFT_ENOTSUP: that does not know of it. The
	 * stream may be opened again. */
	void (*ended)(void *ctx, enum weft_err e);
	void *ctx;
};

/* Zero-initialised, but for fd -1, it is closed. */
struct stream {
	int fd; /* -1: closed */
	struct os_loop *loop;
	struct stream_sink sink;
	bool has_begun; /* the device agreed */
	char *text;     /* an unfinished line */
	size_t len, cap;
};

/* every_ms 0: no samples. WEFT_ENOENT: no such device is running. */
WEFT_MUST_CHECK enum weft_err stream_open(struct stream *s, const char *device, unsigned every_ms,
	struct os_loop *loop, const struct stream_sink *sink);
bool stream_is_open(const struct stream *s);
void stream_close(struct stream *s);
/* "home: ...", as cli_device_fail(); returns CLI_FAILED. */
int stream_fail(const char *device, enum weft_err e);

#endif
