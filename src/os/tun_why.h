/* SPDX-License-Identifier: Apache-2.0 */
/* Why a TUN device was refused, in words that say what to change. */
#ifndef WEFT_OS_TUN_WHY_H
#define WEFT_OS_TUN_WHY_H

#include <stdbool.h>
#include <stddef.h>

struct os_tun_refusal {
	bool is_open;       /* of /dev/net/tun itself; else the interface was refused */
	int errnum;         /* of the system call */
	bool is_root;       /* user 0 */
	bool has_net_admin; /* CAP_NET_ADMIN is in effect */
};

/* What is missing and what to do, beginning with ": "; empty where nothing can be said. Returns
 * out. */
const char *os_tun_explain(const struct os_tun_refusal *r, char *out, size_t cap);

#endif
