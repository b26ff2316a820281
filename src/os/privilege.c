/* SPDX-License-Identifier: Apache-2.0 */
#include "os/privilege.h"

#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t
effective(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
	if (syscall(SYS_capget, &head, data)) {
		return 0;
	}
	return data[0].effective | (uint64_t)data[1].effective << 32;
}

bool
os_privilege_has_net_admin(void)
{
	return (effective() >> CAP_NET_ADMIN & 1) != 0;
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
