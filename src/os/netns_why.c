/* SPDX-License-Identifier: Apache-2.0 */
/* Why os_netns_open() was refused, in words that say what to change. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/error.h"
#include "os/file.h"
#include "os/netns_msg.h"

#define PROC_FILE_MAX (1u << 20)
#define SECCOMP_FILTER 2

/* The way around every refusal of a user namespace. */
#define OR_PRIVILEGE ", or give the program CAP_SYS_ADMIN and CAP_NET_ADMIN"

static int64_t
sysctl_number(const char *key)
{
	char text[32];
	return os_sysctl_read(key, text, sizeof(text)) ? -1 : strtoll(text, NULL, 10);
}

static int64_t
seccomp_mode(void)
{
	char *text;
	size_t len;
	if (os_file_read("/proc/self/status", PROC_FILE_MAX, &text, &len)) {
		return -1;
	}
	const char *line = strstr(text, "\nSeccomp:");
	int64_t mode = line ? strtoll(line + strlen("\nSeccomp:"), NULL, 10) : -1;
	free(text);
	return mode;
}

static bool
is_chrooted(void)
{
	char *text;
	size_t len;
	if (os_file_read("/proc/self/mountinfo", PROC_FILE_MAX, &text, &len)) {
		return false;
	}
	/* "36 35 98:0 /mnt1 / rw": the fifth field is where it is mounted, below our root. */
	bool has_root = false;
	for (const char *line = text; *line;) {
		char at[4];
		has_root |= sscanf(line, "%*s %*s %*s %*s %3s", at) == 1 && strcmp(at, "/") == 0;
		const char *end = strchr(line, '\n');
		if (!end) {
			break;
		}
		line = end + 1;
	}
	free(text);
	return !has_root;
}

/* path: /proc/self/uid_map or gid_map. */
static bool
is_mapped(const char *path, uint64_t id)
{
	char *text;
	size_t len;
	if (os_file_read(path, PROC_FILE_MAX, &text, &len)) {
		return true;
	}
	bool is_found = false;
	uint64_t first, count;
	int used;
	for (const char *p = text;
		sscanf(p, "%" SCNu64 " %*u %" SCNu64 "%n", &first, &count, &used) == 2; p += used) {
		is_found |= id >= first && id - first < count;
	}
	free(text);
	return is_found;
}

static void
read_label(char *out, size_t cap)
{
	out[0] = 0;
	char *text;
	size_t len;
	if (os_file_read("/proc/self/attr/current", 4096, &text, &len)) {
		return;
	}
	text[strcspn(text, "\n")] = 0;
	snprintf(out, cap, "%s", text);
	free(text);
}

void
os_netns_facts_read(struct os_netns_facts *f)
{
	*f = (struct os_netns_facts){.user_max = sysctl_number("user/max_user_namespaces"),
		.net_max = sysctl_number("user/max_net_namespaces"),
		.userns_clone = sysctl_number("kernel/unprivileged_userns_clone"),
		.apparmor = sysctl_number("kernel/apparmor_restrict_unprivileged_userns"),
		.seccomp = seccomp_mode(),
		.is_chrooted = is_chrooted(),
		.is_uid_mapped = is_mapped("/proc/self/uid_map", geteuid()),
		.is_gid_mapped = is_mapped("/proc/self/gid_map", getegid())};
	read_label(f->label, sizeof(f->label));
}

/* ENOSPC: a limit, of this user namespace or of one around it. */
static enum weft_err
explain_limit(const struct os_netns_facts *f, char *out, size_t cap)
{
	if (f->user_max == 0 && !f->can_user_alone) {
		snprintf(out, cap,
			"user.max_user_namespaces = 0 forbids user namespaces: set it higher "
			"(sysctl -w user.max_user_namespaces=15000)" OR_PRIVILEGE);
		return WEFT_EPERM;
	}
	if (f->net_max == 0) {
		snprintf(out, cap,
			"user.max_net_namespaces = 0 forbids network namespaces: set it higher "
			"(sysctl -w user.max_net_namespaces=15000)");
		return WEFT_EPERM;
	}
	const char *name = f->can_user_alone ? "net" : "user";
	snprintf(out, cap,
		"too many %s namespaces: this user has reached user.max_%s_namespaces = %" PRId64
		", or that of a container around this one, which may be 0; set it higher, or end "
		"programs that hold some",
		f->can_user_alone ? "network" : "user", name,
		f->can_user_alone ? f->net_max : f->user_max);
	return WEFT_ENOMEM;
}

/* Without a privilege: what may stand behind EPERM and the like, the certain ones first. */
static void
explain_forbidden(const struct os_netns_facts *f, int errnum, char *out, size_t cap)
{
	char text[OS_ERROR_TEXT_MAX];
	if (f->userns_clone == 0) {
		snprintf(out, cap,
			"kernel.unprivileged_userns_clone = 0 forbids user namespaces: set it to 1 "
			"(sysctl -w kernel.unprivileged_userns_clone=1)" OR_PRIVILEGE);
	} else if (f->is_chrooted) {
		snprintf(out, cap,
			"a program in a chroot may make no user namespace: start it outside, or "
			"with pivot_root(2) in place of chroot(2)" OR_PRIVILEGE);
	} else if (!f->is_uid_mapped || !f->is_gid_mapped) {
		snprintf(out, cap,
			"%s id %u has no mapping in this user namespace (/proc/self/%s): map it, "
			"or run as one that is mapped",
			f->is_uid_mapped ? "group" : "user",
			f->is_uid_mapped ? getegid() : geteuid(),
			f->is_uid_mapped ? "gid_map" : "uid_map");
	} else if (f->seccomp == SECCOMP_FILTER) {
		snprintf(out, cap,
			"a seccomp filter forbids user namespaces (Seccomp: 2 in "
			"/proc/self/status; %s): allow clone(2) with CLONE_NEWUSER and "
			"CLONE_NEWNET in its profile (Docker, Podman: --security-opt "
			"seccomp=PROFILE.json; systemd: RestrictNamespaces=)" OR_PRIVILEGE,
			os_error_text(errnum, text, sizeof(text)));
	} else if (f->apparmor == 1) {
		snprintf(out, cap,
			"AppArmor forbids it (kernel.apparmor_restrict_unprivileged_userns = 1): "
			"add a profile with \"userns,\" for this program in /etc/apparmor.d, or "
			"set it to 0 (sysctl -w "
			"kernel.apparmor_restrict_unprivileged_userns=0)" OR_PRIVILEGE);
	} else {
		snprintf(out, cap,
			"user namespaces are forbidden (%s), probably by a security module "
			"(label \"%s\"): allow user namespaces in its policy" OR_PRIVILEGE,
			os_error_text(errnum, text, sizeof(text)), f->label);
	}
}

/* With the privileges: a plain namespace was refused. */
static enum weft_err
explain_plain(const struct os_netns_facts *f, int errnum, char *out, size_t cap)
{
	char text[OS_ERROR_TEXT_MAX];
	if (errnum == ENOSPC) {
		struct os_netns_facts net = *f;
		net.can_user_alone = true; /* none was asked for */
		return explain_limit(&net, out, cap);
	}
	snprintf(out, cap,
		"network namespaces are forbidden, though CAP_SYS_ADMIN is there (%s): %s",
		os_error_text(errnum, text, sizeof(text)),
		f->seccomp == SECCOMP_FILTER
			? "a seccomp filter (Seccomp: 2 in /proc/self/status) must allow clone(2) "
			  "with CLONE_NEWNET"
			: "a security module's policy must allow them");
	return WEFT_EPERM;
}

static enum weft_err
explain_resources(int errnum, char *out, size_t cap)
{
	char text[OS_ERROR_TEXT_MAX];
	snprintf(out, cap, "cannot start the process that holds the namespace: %s%s",
		os_error_text(errnum, text, sizeof(text)),
		errnum == EAGAIN
			? " (RLIMIT_NPROC of this user, ulimit -u, or pids.max of the control "
			  "group is reached)"
			: "");
	return WEFT_ENOMEM;
}

/* A namespace is there, and its owner may do nothing in it. */
static enum weft_err
explain_powerless(const struct os_netns_facts *f, enum os_netns_stage stage, int errnum, char *out,
	size_t cap)
{
	char text[OS_ERROR_TEXT_MAX];
	if (f->apparmor == 1 || f->seccomp == SECCOMP_FILTER) {
		explain_forbidden(f, errnum, out, cap);
		return WEFT_EPERM;
	}
	snprintf(out, cap, "a user namespace was made, but %s failed: %s (%s, label \"%s\")",
		stage == OS_NETNS_STAGE_MAP ? "writing its uid_map and gid_map"
					    : "setting up its loopback interface",
		os_error_text(errnum, text, sizeof(text)),
		errnum == ENOENT  ? "is /proc mounted?"
		: errnum == EROFS ? "/proc must be mounted to be written to"
				  : "a security module forbids it",
		f->label);
	return os_error(errnum);
}

enum weft_err
os_netns_explain(const struct os_netns_facts *f, enum os_netns_stage stage, int errnum,
	struct os_netns_fault *why)
{
	char *out = why->text;
	size_t cap = sizeof(why->text);
	why->errnum = errnum;
	if (stage == OS_NETNS_STAGE_MAP || stage == OS_NETNS_STAGE_LOOPBACK) {
		return explain_powerless(f, stage, errnum, out, cap);
	}
	if (errnum == EAGAIN || errnum == ENOMEM) {
		return explain_resources(errnum, out, cap);
	}
	if (errnum == EINVAL) {
		snprintf(out, cap, "this kernel is built without %s namespaces (CONFIG_%s_NS)",
			f->can_user_alone ? "network" : "user", f->can_user_alone ? "NET" : "USER");
		return WEFT_ENOTSUP;
	}
	if (stage == OS_NETNS_STAGE_CLONE_NET) {
		return explain_plain(f, errnum, out, cap);
	}
	if (errnum == ENOSPC || errnum == EUSERS) {
		return explain_limit(f, out, cap);
	}
	explain_forbidden(f, errnum, out, cap);
	return WEFT_EPERM;
}
