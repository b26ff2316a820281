/* SPDX-License-Identifier: Apache-2.0 */
/* Link-local addresses of the overlay: the kernel takes them with their interface alone. */
#include "lib/node.h"
#include "node/device.h"
#include "node/node.h"

uint32_t
lib_node_zone(const struct weft_node *n, const struct ip_addr *a)
{
	bool is_link_local = a->family == IP_FAMILY_V6 && a->b[0] == 0xfe && a->b[1] >> 6 == 2;
	if (!is_link_local) {
		return 0;
	}
	(void)node_lock_shared(n->inner); /* control follows the interface's news meanwhile */
	uint32_t zone = node_device_of(n->inner)->ifindex;
	node_unlock_shared(n->inner);
	return zone;
}
