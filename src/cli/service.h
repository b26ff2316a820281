/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon in the foreground tells the service manager that started it. Without one, nothing
 * happens. */
#ifndef WEFT_CLI_SERVICE_H
#define WEFT_CLI_SERVICE_H

#include "base/compiler.h"

struct service {
	int fd; /* to NOTIFY_SOCKET; -1: nobody wants to know */
};

/* For nobody. */
#define SERVICE_NONE                                                                               \
	{                                                                                          \
		.fd = -1                                                                           \
	}

void service_init(struct service *s);
void service_fini(struct service *s);
/* The text, a line for people, has no newline in what is sent. */
WEFT_PRINTF(2, 3) void service_ready(const struct service *s, const char *fmt, ...);
void service_reloading(const struct service *s);
void service_stopping(const struct service *s);

#endif
