/* SPDX-License-Identifier: Apache-2.0 */
/* The peer behind an overlay address. */
#include <stdio.h>
#include <string.h>

#include "lib/detail.h"
#include "lib/node.h"
#include "node/node.h"
#include "os/inet.h"
#include "weft/dial.h"

bool
whois_find(struct weft_node *n, const struct ip_addr *at, struct weft_identity *out)
{
	struct wg_peer_info info;
	char text[ENDPOINT_TEXT_MAX];
	const struct wg_device *d = node_lock_shared(n->inner);
	const struct wg_peer *p = wg_device_route(d, at);
	if (p) {
		wg_peer_info(p, &info);
	}
	node_unlock_shared(n->inner);
	if (!p) {
		return false;
	}
	memcpy(out->public_key, info.public_key, WEFT_KEY_LEN);
	if (info.endpoint.addr.family != IP_FAMILY_NONE) {
		snprintf(out->endpoint, sizeof(out->endpoint), "%s",
			endpoint_format(&info.endpoint, text));
	}
	os_mutex_lock(&n->mutex);
	snprintf(out->name, sizeof(out->name), "%s", lib_names_of(&n->names, info.public_key));
	os_mutex_unlock(&n->mutex);
	return true;
}

enum weft_err
weft_whois(struct weft_node *n, const struct sockaddr *at, socklen_t len, struct weft_identity *who)
{
	struct endpoint from = {0};
	struct weft_identity id = {0};
	char text[ENDPOINT_TEXT_MAX];
	if (!n || !at || !who || !os_inet_read(at, len, &from.addr, &from.port) ||
		who->size < sizeof(id)) {
		return WEFT_EINVAL;
	}
	enum weft_err e = lib_node_enter(n);
	if (e) {
		return e;
	}
	bool is_found = whois_find(n, &from.addr, &id);
	lib_node_leave(n);
	if (!is_found) {
		return WEFT_ENOENT;
	}
	snprintf(id.overlay, sizeof(id.overlay), "%s", endpoint_format(&from, text));
	(void)record_give(who, &id, sizeof(id), sizeof(id));
	return WEFT_OK;
}
