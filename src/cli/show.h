/* SPDX-License-Identifier: Apache-2.0 */
/* A device as `weft show` prints it, in the forms of wg(8). */
#ifndef WEFT_CLI_SHOW_H
#define WEFT_CLI_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/uapi.h"

struct crypto;

struct show_peer {
	struct uapi_peer_info info;
	struct uapi_reply_cursor lines; /* in the device's reply */
};

struct show_device {
	const char *name;
	struct uapi_device_info info;
	bool has_public_key;
	uint8_t public_key[KEY_LEN];
	struct show_peer *peers;
	size_t n;
};

/* One value a line, for scripts; with the device's name before it when is_named. */
struct show_field {
	const char *name;
	void (*print)(const struct show_device *d, bool is_named);
};

/* NULL: there is no such field. */
const struct show_field *show_field_find(const char *name);
/* Sorts the peers, the latest handshake first. */
void show_pretty(struct show_device *d, int64_t now_s);
/* "[fe80::1%eth0]:51820", or "(none)". */
#define SHOW_ENDPOINT_MAX (ENDPOINT_TEXT_MAX + UAPI_SCOPE_MAX)
char *show_endpoint(const struct uapi_peer_info *p, char out[SHOW_ENDPOINT_MAX]);

#endif
