/* SPDX-License-Identifier: Apache-2.0 */
/* What this process may do. */
#ifndef WEFT_OS_PRIVILEGE_H
#define WEFT_OS_PRIVILEGE_H

#include <stdbool.h>
#include <stddef.h>

/* Is CAP_NET_ADMIN in effect for the calling thread? */
bool os_privilege_has_net_admin(void);
/* What to do about it when it is not, for this user, in words. Returns out. */
const char *os_privilege_net_admin_fix(bool is_root, char *out, size_t cap);

#endif
