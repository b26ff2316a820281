/* SPDX-License-Identifier: Apache-2.0 */
/* Replies: written by a device, read by who asked. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "crypto/secret.h"
#include "wire/uapi_internal.h"

WEFT_PRINTF(2, 3) static void put(struct writer *w, const char *fmt, ...)
{
	va_list ap;
	if (w->failed) {
		return;
	}
	size_t left = (size_t)(w->end - w->p);
	va_start(ap, fmt);
	int n = vsnprintf((char *)w->p, left, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= left) {
		w->failed = true;
		return;
	}
	w->p += n;
}

static void
put_key(struct writer *w, const char *name, const uint8_t key[KEY_LEN])
{
	char hex[KEY_HEX_LEN + 1];
	put(w, "%s=%s\n", name, key_encode_hex(key, hex));
	secret_wipe(hex, sizeof(hex));
}

void
uapi_encode_device(struct writer *w, const struct uapi_device_info *d)
{
	if (d->has_private_key) {
		put_key(w, "private_key", d->private_key);
	}
	if (d->listen_port) {
		put(w, "listen_port=%u\n", d->listen_port);
	}
	if (d->fwmark) {
		put(w, "fwmark=%" PRIu32 "\n", d->fwmark);
	}
}

void
uapi_encode_peer(struct writer *w, const struct uapi_peer_info *p)
{
	char endpoint[ENDPOINT_TEXT_MAX];
	put_key(w, "public_key", p->public_key);
	put_key(w, "preshared_key", p->psk);
	put(w, "protocol_version=1\n");
	if (p->endpoint.addr.family != IP_FAMILY_NONE) {
		put(w, "endpoint=%s\n", endpoint_format(&p->endpoint, endpoint));
	}
	put(w,
		"last_handshake_time_sec=%" PRId64 "\nlast_handshake_time_nsec=%" PRId64
		"\ntx_bytes=%" PRIu64 "\nrx_bytes=%" PRIu64 "\npersistent_keepalive_interval=%u\n",
		p->last_handshake_s, p->last_handshake_ns, p->tx_bytes, p->rx_bytes,
		p->keepalive_s);
}

void
uapi_encode_allowed(struct writer *w, const struct ip_prefix *p)
{
	char text[IP_PREFIX_TEXT_MAX];
	put(w, "allowed_ip=%s\n", ip_prefix_format(p, text));
}

void
uapi_encode_errno(struct writer *w, enum uapi_kind kind, int error)
{
	/* wg(8) takes the number of a failed set as it is for a negative result, and negates that
	 * of a get: with 22 for a set it says "Unknown error -22", with -22 for a get "Protocol
	 * error" (seen with wireguard-tools 1.0.20210914). */
	put(w, "errno=%d\n\n", kind == UAPI_SET ? -error : error);
}

bool
uapi_reply_is_whole(const char *text, size_t len)
{
	/* "errno=" begins a line; nothing but the end of a reply has an empty line. */
	if (len < 2 || memcmp(text + len - 2, "\n\n", 2) != 0) {
		return false;
	}
	size_t start = len - 2;
	while (start > 0 && text[start - 1] != '\n') {
		start--;
	}
	return len - start > 6 && memcmp(text + start, "errno=", 6) == 0;
}

static bool
read_errno(struct uapi_text t, int *out)
{
	uint64_t n;
	if (t.len > 0 && t.p[0] == '-') {
		t.p++;
		t.len--;
	}
	if (!uapi_text_number(&t, INT32_MAX, &n)) {
		return false;
	}
	*out = (int)n;
	return true;
}

enum weft_err
uapi_reply_begin(const char *text, size_t len, struct uapi_device_info *out, int *error,
	struct uapi_reply_cursor *cursor)
{
	struct uapi_line l;
	struct uapi_device_info d = {0};
	struct uapi_reply_cursor c = {text, len};
	uint64_t n;
	bool ok = true;

	if (!uapi_reply_is_whole(text, len)) {
		return WEFT_EPARSE;
	}
	c.left -= 1; /* the empty line */
	*error = 0;
	for (struct uapi_reply_cursor ahead = c; uapi_line_take(&ahead.p, &ahead.left, &l);
		c = ahead) {
		if (uapi_text_is(&l.key, "public_key")) {
			break;
		}
		if (uapi_text_is(&l.key, "private_key")) {
			ok &= uapi_text_key(&l.value, d.private_key);
			d.has_private_key = !secret_is_zero(d.private_key, KEY_LEN);
		} else if (uapi_text_is(&l.key, "listen_port")) {
			ok &= uapi_text_number(&l.value, UINT16_MAX, &n);
			d.listen_port = ok ? (uint16_t)n : 0;
		} else if (uapi_text_is(&l.key, "fwmark")) {
			ok &= uapi_text_number(&l.value, UINT32_MAX, &n);
			d.fwmark = ok ? (uint32_t)n : 0;
		} else if (uapi_text_is(&l.key, "errno")) {
			ok &= read_errno(l.value, error);
		}
	}
	if (ok) {
		*out = d;
		*cursor = c;
	}
	secret_wipe(&d, sizeof(d));
	return ok ? WEFT_OK : WEFT_EPARSE;
}

static bool
read_peer_line(const struct uapi_line *l, struct uapi_peer_info *p)
{
	const struct uapi_text *v = &l->value;
	uint64_t n = 0;
	bool ok = true;
	if (uapi_text_is(&l->key, "preshared_key")) {
		return uapi_text_key(v, p->psk);
	}
	if (uapi_text_is(&l->key, "endpoint")) {
		return uapi_text_endpoint(v, &p->endpoint, p->scope);
	}
	if (uapi_text_is(&l->key, "last_handshake_time_sec")) {
		ok = uapi_text_number(v, INT64_MAX, &n);
		p->last_handshake_s = (int64_t)n;
	} else if (uapi_text_is(&l->key, "last_handshake_time_nsec")) {
		ok = uapi_text_number(v, INT64_MAX, &n);
		p->last_handshake_ns = (int64_t)n;
	} else if (uapi_text_is(&l->key, "rx_bytes")) {
		ok = uapi_text_number(v, UINT64_MAX, &p->rx_bytes);
	} else if (uapi_text_is(&l->key, "tx_bytes")) {
		ok = uapi_text_number(v, UINT64_MAX, &p->tx_bytes);
	} else if (uapi_text_is(&l->key, "persistent_keepalive_interval")) {
		ok = uapi_text_number(v, UINT16_MAX, &n);
		p->keepalive_s = (uint16_t)n;
	}
	return ok;
}

enum weft_err
uapi_reply_peer(struct uapi_reply_cursor *cursor, struct uapi_peer_info *out,
	struct uapi_reply_cursor *lines)
{
	struct uapi_line l;
	struct uapi_peer_info p = {0};
	struct uapi_reply_cursor c = *cursor;

	if (!uapi_line_take(&c.p, &c.left, &l) || !uapi_text_is(&l.key, "public_key")) {
		return WEFT_ENOENT;
	}
	if (!uapi_text_key(&l.value, p.public_key)) {
		return WEFT_EPARSE;
	}
	lines->p = c.p;
	for (struct uapi_reply_cursor ahead = c; uapi_line_take(&ahead.p, &ahead.left, &l);
		c = ahead) {
		if (uapi_text_is(&l.key, "public_key") || uapi_text_is(&l.key, "errno")) {
			break;
		}
		if (!read_peer_line(&l, &p)) {
			return WEFT_EPARSE;
		}
	}
	lines->left = (size_t)(c.p - lines->p);
	*cursor = c;
	*out = p;
	return WEFT_OK;
}

enum weft_err
uapi_reply_allowed(struct uapi_reply_cursor *lines, struct ip_prefix *out)
{
	struct uapi_line l;
	while (uapi_line_take(&lines->p, &lines->left, &l)) {
		if (uapi_text_is(&l.key, "allowed_ip")) {
			return ip_prefix_parse(l.value.p, l.value.len, out);
		}
	}
	return WEFT_ENOENT;
}
