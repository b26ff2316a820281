/* SPDX-License-Identifier: Apache-2.0 */
/* What this process may do, and giving up what it need not. Capabilities are the calling thread's
 * alone: each thread of the process gives up its own. */
#ifndef WEFT_OS_PRIVILEGE_H
#define WEFT_OS_PRIVILEGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Is CAP_NET_ADMIN in effect for the calling thread? */
bool os_privilege_has_net_admin(void);
/* What to do about it when it is not, for this user, in words. Returns out. */
const char *os_privilege_net_admin_fix(bool is_root, char *out, size_t cap);

#define OS_PRIVILEGE_NET_ADMIN 1u
#define OS_PRIVILEGE_NET_BIND_SERVICE 2u

struct os_privilege_user {
	char name[33];
	uint32_t uid, gid;
};
/* Of /etc/passwd, or a number. WEFT_ENOENT. */
WEFT_MUST_CHECK enum weft_err os_privilege_find_user(
	const char *name, struct os_privilege_user *out);

/* In every thread, before os_privilege_become(): what is kept survives it, and no program that is
 * executed later gets anything. */
WEFT_MUST_CHECK enum weft_err os_privilege_prepare(void);
/* The whole process becomes that user, without further groups. WEFT_EPERM: not root; WEFT_EINVAL:
 * the user does not exist in this user namespace. */
WEFT_MUST_CHECK enum weft_err os_privilege_become(const struct os_privilege_user *user);
/* In every thread, after it: keeps those of OS_PRIVILEGE_ that it has, and nothing else; no
 * program that is executed can get more (no_new_privs), and memory, with its keys, is in no core
 * dump. */
WEFT_MUST_CHECK enum weft_err os_privilege_keep(unsigned what);
/* Lets debuggers and sanitizers of the same user look at this process after all. */
void os_privilege_stay_traceable(void);

#endif
