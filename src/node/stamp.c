/* SPDX-License-Identifier: Apache-2.0 */
#include "node/stamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "os/fd.h"
#include "os/file.h"

/* Decimal digits and a newline. */
#define STAMP_TEXT_MAX 32
/* 2^62 marks TAI64; a value outside its first 2^62 seconds is no timestamp. */
#define TAI64_BASE (UINT64_C(1) << 62)

void
stamp_load(struct stamp *s, const char *state_dir, const char *name, const struct log *log)
{
	*s = (struct stamp){.fd = -1};
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
	char text[STAMP_TEXT_MAX + 1];
	size_t len = 0;
	enum weft_err e = os_file_open_record(s->path, 0600, &s->fd);
	e = e ? e : os_file_read_record(s->fd, text, STAMP_TEXT_MAX, &len);
	if (e || len == 0) {
		return;
	}
	text[len] = 0;
	char *end;
	unsigned long long v = strtoull(text, &end, 10);
	if (end == text || (*end != '\n' && *end != 0) || v < TAI64_BASE || v >= 2 * TAI64_BASE) {
		log_warn(log, "%s: %s holds no timestamp and is ignored", name, s->path);
	} else {
		s->seconds = v;
	}
}

void
stamp_fini(struct stamp *s)
{
	os_fd_close(&s->fd);
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
	/* All have as many digits. */
	enum weft_err e = s->fd < 0 ? WEFT_EPERM : os_file_write_record(s->fd, text, (size_t)n);
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
	if (s->fd >= 0 && os_file_sync_record(s->fd)) {
		log_debug(log, "cannot sync %s", s->path);
	}
}
