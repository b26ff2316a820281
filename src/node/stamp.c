/* SPDX-License-Identifier: Apache-2.0 */
#include "node/stamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "os/file.h"

/* Decimal digits and a newline. */
#define STAMP_TEXT_MAX 32
/* 2^62 marks TAI64; a value outside its first 2^62 seconds is no timestamp. */
#define TAI64_BASE (UINT64_C(1) << 62)

void
stamp_load(struct stamp *s, const char *state_dir, const char *name, const struct log *log)
{
	*s = (struct stamp){0};
	if (!state_dir) {
		return;
	}
	int n = snprintf(s->path, sizeof(s->path), "%s/%s.stamp", state_dir, name);
	if (n < 0 || (size_t)n >= sizeof(s->path)) {
		s->path[0] = 0;
		return;
	}
	if (os_file_mkdir(state_dir, 0700)) {
		log_debug(log, "%s: cannot make %s", name, state_dir);
	}
	char *text;
	size_t len;
	if (os_file_read(s->path, STAMP_TEXT_MAX, &text, &len)) {
		return;
	}
	char *end;
	unsigned long long v = strtoull(text, &end, 10);
	if (end == text || (*end != '\n' && *end != 0) || v < TAI64_BASE || v >= 2 * TAI64_BASE) {
		log_warn(log, "%s: %s holds no timestamp and is ignored", name, s->path);
	} else {
		s->seconds = v;
	}
	free(text);
}

void
stamp_save(struct stamp *s, uint64_t seconds, const struct log *log)
{
	s->seconds = seconds;
	if (s->path[0] == 0) {
		return;
	}
	char text[STAMP_TEXT_MAX];
	int n = snprintf(text, sizeof(text), "%" PRIu64 "\n", seconds);
	enum weft_err e = os_file_write_unsynced(s->path, text, (size_t)n, 0600);
	if (e && !s->has_warned) {
		s->has_warned = true;
		log_warn(log,
			"cannot save the last handshake timestamp in %s (%s): after a restart with "
			"the clock set back, peers refuse handshakes until it has caught up",
			s->path, weft_err_text(e));
	}
}

void
stamp_sync(const struct stamp *s, const struct log *log)
{
	if (s->path[0] != 0 && os_file_sync(s->path)) {
		log_debug(log, "cannot sync %s", s->path);
	}
}
