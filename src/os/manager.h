/* SPDX-License-Identifier: Apache-2.0 */
/* Talking to a service manager as sd_notify(3) and sd-daemon(3) describe it, without their
 * library. */
#ifndef WEFT_OS_MANAGER_H
#define WEFT_OS_MANAGER_H

#include <stdbool.h>

#include "base/err.h"

/* A socket to the manager: address is NOTIFY_SOCKET of the environment, a path or '@' and an
 * abstract name. Opened once, since it may be where this process has no way later. WEFT_EINVAL:
 * another kind of address, or too long. */
WEFT_MUST_CHECK enum weft_err os_manager_open(const char *address, int *fd);
/* Sends assignments, one a line. Never waits. */
WEFT_MUST_CHECK enum weft_err os_manager_tell(int fd, const char *text);
/* "RELOADING=1" with the time that Type=notify-reload wants. */
WEFT_MUST_CHECK enum weft_err os_manager_tell_reloading(int fd);
/* Is fd the stream that JOURNAL_STREAM of the environment names as "DEVICE:INODE"? Lines there
 * may begin with their priority. */
bool os_manager_is_journal(int fd, const char *stream);

#endif
