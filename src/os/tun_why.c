/* SPDX-License-Identifier: Apache-2.0 */
#include "os/tun_why.h"

#include <errno.h>
#include <stdio.h>

#include "os/privilege.h"

static const char *
explain_open(int errnum)
{
	switch (errnum) {
	case ENOENT:
		return ": the device file is missing: load the driver (modprobe tun), or, in a "
		       "container, let it in (--device /dev/net/tun for Docker and Podman); by "
		       "hand: mkdir -p /dev/net && mknod -m 666 /dev/net/tun c 10 200";
	case ENODEV:
	case ENXIO:
		return ": the kernel's TUN driver is missing (CONFIG_TUN): modprobe tun; after an "
		       "update of the kernel its modules may be there only after a restart";
	case EPERM:
		return ": a device control group forbids it: --device /dev/net/tun (Docker, "
		       "Podman), lxc.cgroup2.devices.allow = c 10:200 rwm (LXC), or "
		       "DeviceAllow=/dev/net/tun rw in the unit";
	case EACCES:
		return ": its mode does not let this user in: start weft as root, or chmod 666 "
		       "/dev/net/tun, which gives nobody more rights than CAP_NET_ADMIN does";
	default:
		return "";
	}
}

const char *
os_tun_explain(const struct os_tun_refusal *r, char *out, size_t cap)
{
	char fix[256];
	if (r->is_open) {
		snprintf(out, cap, "%s", explain_open(r->errnum));
	} else if (r->errnum == EPERM && !r->has_net_admin) {
		snprintf(out, cap, ": CAP_NET_ADMIN is missing: %s",
			os_privilege_net_admin_fix(r->is_root, fix, sizeof(fix)));
	} else if (r->errnum == EPERM) {
		snprintf(out, cap,
			": CAP_NET_ADMIN is there, but not over this network namespace, or a "
			"security module forbids it");
	} else if (r->errnum == EBUSY) {
		snprintf(out, cap, ": an interface of that name is there and in use");
	} else {
		out[0] = 0;
	}
	return out;
}
