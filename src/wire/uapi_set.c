/* SPDX-License-Identifier: Apache-2.0 */
/* What a checked set asks for, section by section. */
#include <string.h>

#include "base/assert.h"
#include "wire/uapi_internal.h"

static bool
is_peer_start(const struct uapi_line *l)
{
	return uapi_text_is(&l->key, "public_key");
}

/* Every line was checked when it arrived. */
static uint64_t
number_of(const struct uapi_line *l)
{
	uint64_t n = 0;
	weft_assert(uapi_text_number(&l->value, UINT32_MAX, &n));
	return n;
}

static void
key_of(const struct uapi_line *l, uint8_t out[KEY_LEN])
{
	weft_assert(uapi_text_key(&l->value, out));
}

void
uapi_set_begin(
	const struct uapi_request *r, struct uapi_set_device *out, struct uapi_set_cursor *cursor)
{
	struct uapi_line l;
	weft_assert(r->kind == UAPI_SET && r->error == 0);
	*out = (struct uapi_set_device){0};
	*cursor = (struct uapi_set_cursor){r->text, r->len};
	for (;;) {
		struct uapi_set_cursor ahead = *cursor;
		if (!uapi_line_take(&ahead.p, &ahead.left, &l) || is_peer_start(&l)) {
			return;
		}
		*cursor = ahead;
		if (uapi_text_is(&l.key, "private_key")) {
			out->has_private_key = true;
			key_of(&l, out->private_key);
		} else if (uapi_text_is(&l.key, "listen_port")) {
			out->has_listen_port = true;
			out->listen_port = (uint16_t)number_of(&l);
		} else if (uapi_text_is(&l.key, "fwmark")) {
			out->has_fwmark = true;
			out->fwmark = (uint32_t)number_of(&l);
		} else {
			out->has_replace_peers = true;
		}
	}
}

static void
read_peer_line(const struct uapi_line *l, struct uapi_set_peer *out)
{
	if (uapi_text_is(&l->key, "preshared_key")) {
		out->has_psk = true;
		key_of(l, out->psk);
	} else if (uapi_text_is(&l->key, "update_only")) {
		out->is_update_only = true;
	} else if (uapi_text_is(&l->key, "remove")) {
		out->is_removed = true;
	} else if (uapi_text_is(&l->key, "replace_allowed_ips")) {
		out->has_replace_allowed = true;
	} else if (uapi_text_is(&l->key, "endpoint")) {
		out->has_endpoint = true;
		weft_assert(uapi_text_endpoint(&l->value, &out->endpoint, out->scope));
	} else if (uapi_text_is(&l->key, "persistent_keepalive_interval")) {
		out->has_keepalive = true;
		out->keepalive_s = (uint16_t)number_of(l);
	}
}

bool
uapi_set_peer(struct uapi_set_cursor *cursor, struct uapi_set_peer *out)
{
	struct uapi_line l;
	if (!uapi_line_take(&cursor->p, &cursor->left, &l)) {
		return false;
	}
	*out = (struct uapi_set_peer){.lines = cursor->p};
	key_of(&l, out->public_key);
	for (;;) {
		struct uapi_set_cursor ahead = *cursor;
		if (!uapi_line_take(&ahead.p, &ahead.left, &l) || is_peer_start(&l)) {
			break;
		}
		*cursor = ahead;
		read_peer_line(&l, out);
		if (uapi_text_is(&l.key, "replace_allowed_ips")) {
			out->lines = cursor->p; /* those before it are gone */
		}
	}
	out->lines_len = (size_t)(cursor->p - out->lines);
	return true;
}

bool
uapi_set_allowed(struct uapi_set_peer *peer, struct ip_prefix *out, bool *is_removal)
{
	struct uapi_line l;
	while (uapi_line_take(&peer->lines, &peer->lines_len, &l)) {
		if (!uapi_text_is(&l.key, "allowed_ip")) {
			continue;
		}
		*is_removal = l.value.p[0] == '-';
		size_t sign = *is_removal || l.value.p[0] == '+';
		weft_assert(ip_prefix_parse(l.value.p + sign, l.value.len - sign, out) == WEFT_OK);
		ip_prefix_mask(out);
		return true;
	}
	return false;
}
