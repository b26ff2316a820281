/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/service.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "os/fd.h"
#include "os/manager.h"

#define STATUS_MAX 512

void
service_init(struct service *s)
{
	const char *address = getenv("NOTIFY_SOCKET");
	s->fd = -1;
	if (address && address[0] && os_manager_open(address, &s->fd)) {
		s->fd = -1; /* a manager that does not listen is no reason for a device to fail */
	}
}

void
service_fini(struct service *s)
{
	os_fd_close(&s->fd);
}

static void
tell(const struct service *s, const char *text)
{
	if (s->fd >= 0) {
		enum weft_err ignored = os_manager_tell(s->fd, text);
		(void)ignored;
	}
}

void
service_ready(const struct service *s, const char *fmt, ...)
{
	char status[STATUS_MAX], text[STATUS_MAX + 32];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(status, sizeof(status), fmt, ap);
	va_end(ap);
	for (char *p = status; *p; p++) {
		*p = *p == '\n' ? ' ' : *p;
	}
	snprintf(text, sizeof(text), "READY=1\nSTATUS=%s", status);
	tell(s, text);
}

void
service_reloading(const struct service *s)
{
	if (s->fd >= 0) {
		enum weft_err ignored = os_manager_tell_reloading(s->fd);
		(void)ignored;
	}
}

void
service_stopping(const struct service *s)
{
	tell(s, "STOPPING=1");
}
