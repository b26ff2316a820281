/* SPDX-License-Identifier: Apache-2.0 */
#include "os/privilege.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/error.h"

#define PASSWD "/etc/passwd"

struct sets {
	uint64_t effective, permitted, inheritable;
};

static bool
read_sets(struct sets *s)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3] = {0};
	if (syscall(SYS_capget, &head, d)) {
		return false;
	}
	s->effective = d[0].effective | (uint64_t)d[1].effective << 32;
	s->permitted = d[0].permitted | (uint64_t)d[1].permitted << 32;
	s->inheritable = d[0].inheritable | (uint64_t)d[1].inheritable << 32;
	return true;
}

bool
os_privilege_has_net_admin(void)
{
	struct sets s;
	return read_sets(&s) && (s.effective >> CAP_NET_ADMIN & 1) != 0;
}

const char *
os_privilege_net_admin_fix(bool is_root, char *out, size_t cap)
{
	snprintf(out, cap, "%s",
		is_root ? "root lacks it here, as in many containers: --cap-add NET_ADMIN (Docker, "
			  "Podman), or CAP_NET_ADMIN in CapabilityBoundingSet= of the unit"
			: "start weft as root, or give it the capability "
			  "(AmbientCapabilities=CAP_NET_ADMIN in the unit, with "
			  "RuntimeDirectory=weft "
			  "wireguard and StateDirectory=weft)");
	return out;
}

/* The file alone, without the modules that getpwnam(3) loads. */
static enum weft_err
find_in_file(const char *name, struct os_privilege_user *out)
{
	FILE *f = fopen(PASSWD, "re");
	if (!f) {
		return os_error(errno);
	}
	char room[4096];
	struct passwd p, *found = NULL;
	while (fgetpwent_r(f, &p, room, sizeof(room), &found) == 0 &&
		strcmp(p.pw_name, name) != 0) {
		found = NULL;
	}
	fclose(f);
	if (!found) {
		return WEFT_ENOENT;
	}
	snprintf(out->name, sizeof(out->name), "%s", name);
	out->uid = p.pw_uid;
	out->gid = p.pw_gid;
	return WEFT_OK;
}

enum weft_err
os_privilege_find_user(const char *name, struct os_privilege_user *out)
{
	char *end;
	unsigned long n = strtoul(name, &end, 10);
	if (name[0] < '0' || name[0] > '9') {
		return find_in_file(name, out);
	}
	if (*end || n >= UINT32_MAX) {
		return WEFT_ENOENT;
	}
	*out = (struct os_privilege_user){.uid = (uint32_t)n, .gid = (uint32_t)n};
	snprintf(out->name, sizeof(out->name), "%lu", n);
	return WEFT_OK;
}

enum weft_err
os_privilege_prepare(void)
{
	/* Where CAP_SETPCAP is missing, the bounding set stays: no_new_privs does for it. */
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
		(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	}
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); /* Linux 4.3 */
	return prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) ? os_error(errno) : WEFT_OK;
}

enum weft_err
os_privilege_become(const struct os_privilege_user *user)
{
	/* The C library has all threads do it. */
	if (setgroups(0, NULL) || setresgid(user->gid, user->gid, user->gid) ||
		setresuid(user->uid, user->uid, user->uid)) {
		return os_error(errno);
	}
	return WEFT_OK;
}

enum weft_err
os_privilege_keep(unsigned what)
{
	struct sets s;
	if (!read_sets(&s)) {
		return os_error(errno);
	}
	uint64_t keep =
		(what & OS_PRIVILEGE_NET_ADMIN ? UINT64_C(1) << CAP_NET_ADMIN : 0) |
		(what & OS_PRIVILEGE_NET_BIND_SERVICE ? UINT64_C(1) << CAP_NET_BIND_SERVICE : 0);
	keep &= s.permitted;
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3] = {
		{.effective = (uint32_t)keep, .permitted = (uint32_t)keep},
		{.effective = (uint32_t)(keep >> 32), .permitted = (uint32_t)(keep >> 32)}};
	/* Becoming another user makes a process undumpable; where it stays the same nothing else
	 * would. */
	if (syscall(SYS_capset, &head, d) || prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) ||
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		return os_error(errno);
	}
	return WEFT_OK;
}

void
os_privilege_stay_traceable(void)
{
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}
