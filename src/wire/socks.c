/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/socks.h"

#include <string.h>

#include "base/bytes.h"

#define VERSION 5
#define LOGIN_VERSION 1
#define REQUEST_FIRST 5 /* version, command, reserved, kind of address, first byte of it */

enum address_type {
	TYPE_V4 = 1,
	TYPE_NAME = 3,
	TYPE_V6 = 4,
};

enum weft_err
socks_greeting_decode(const uint8_t *p, size_t len, struct socks_greeting *out, size_t *need)
{
	if (len > 0 && p[0] != VERSION) {
		return WEFT_EPARSE;
	}
	size_t whole = len < 2 ? 2 : 2u + p[1];
	if (len < whole) {
		*need = whole;
		return WEFT_EAGAIN;
	}
	if (p[1] == 0) {
		return WEFT_EPARSE;
	}
	*out = (struct socks_greeting){0};
	for (size_t i = 2; i < whole; i++) {
		out->has_none |= p[i] == SOCKS_METHOD_NONE;
		out->has_login |= p[i] == SOCKS_METHOD_LOGIN;
	}
	*need = whole;
	return WEFT_OK;
}

enum weft_err
socks_login_decode(const uint8_t *p, size_t len, struct socks_login *out, size_t *need)
{
	if (len > 0 && p[0] != LOGIN_VERSION) {
		return WEFT_EPARSE;
	}
	/* The length of the password stands behind the user. */
	size_t whole = len < 2 ? 2 : 3u + p[1];
	if (len >= 2 && len >= whole) {
		whole += p[whole - 1];
	}
	if (len < whole) {
		*need = whole;
		return WEFT_EAGAIN;
	}
	*out = (struct socks_login){.user = p + 2,
		.user_len = p[1],
		.password = p + 3 + p[1],
		.password_len = p[2 + p[1]]};
	*need = whole;
	return WEFT_OK;
}

/* Bytes of a kind of address, its port and what comes before it. 0: there is no such kind.
 * first: the byte behind the kind. */
static size_t
address_bytes(uint8_t type, uint8_t first)
{
	switch (type) {
	case TYPE_V4:
		return 4 + 2;
	case TYPE_V6:
		return 16 + 2;
	case TYPE_NAME:
		return 1u + first + 2;
	default:
		return 0;
	}
}

/* Reads kind, address and port. WEFT_EPARSE: a name that is none. */
static enum weft_err
read_target(struct reader *r, struct socks_target *out)
{
	*out = (struct socks_target){0};
	uint8_t type = reader_u8(r);
	if (type == TYPE_NAME) {
		uint8_t n = reader_u8(r);
		reader_copy(r, out->host, n);
		/* A NUL would show one name to checks and another to a resolver. */
		if (n == 0 || memchr(out->host, 0, n)) {
			r->failed = true;
		}
	} else if (type == TYPE_V4 || type == TYPE_V6) {
		out->addr.family = type == TYPE_V4 ? IP_FAMILY_V4 : IP_FAMILY_V6;
		reader_copy(r, out->addr.b, ip_family_len(out->addr.family));
	} else {
		return r->failed ? WEFT_EPARSE : WEFT_ENOTSUP;
	}
	out->port = reader_be16(r);
	return r->failed ? WEFT_EPARSE : WEFT_OK;
}

enum weft_err
socks_request_decode(const uint8_t *p, size_t len, struct socks_request *out, size_t *need)
{
	if (len > 0 && p[0] != VERSION) {
		return WEFT_EPARSE;
	}
	if (len < REQUEST_FIRST) {
		*need = REQUEST_FIRST;
		return WEFT_EAGAIN;
	}
	size_t address = address_bytes(p[3], p[4]);
	if (address == 0) {
		return WEFT_ENOTSUP;
	}
	size_t whole = REQUEST_FIRST - 1 + address;
	if (len < whole) {
		*need = whole;
		return WEFT_EAGAIN;
	}
	struct reader r;
	reader_init(&r, p, whole);
	reader_take(&r, 1);
	struct socks_request q = {.command = reader_u8(&r)};
	reader_take(&r, 1); /* reserved: clients are known to leave it unset */
	enum weft_err e = read_target(&r, &q.to);
	if (e) {
		return e;
	}
	*out = q;
	*need = whole;
	return WEFT_OK;
}

enum weft_err
socks_datagram_decode(const uint8_t *p, size_t len, struct socks_datagram *out)
{
	struct reader r;
	reader_init(&r, p, len);
	reader_take(&r, 2);
	struct socks_datagram d = {.fragment = reader_u8(&r)};
	enum weft_err e = read_target(&r, &d.to);
	if (e) {
		return e;
	}
	d.header_len = len - reader_left(&r);
	*out = d;
	return WEFT_OK;
}

void
socks_method_encode(enum socks_method m, uint8_t out[2])
{
	out[0] = VERSION;
	out[1] = (uint8_t)m;
}

void
socks_login_reply_encode(bool is_right, uint8_t out[2])
{
	out[0] = LOGIN_VERSION;
	out[1] = !is_right;
}

static size_t
write_message(const uint8_t head[3], const struct ip_addr *addr, uint16_t port, uint8_t *out)
{
	static const struct ip_addr none = {.family = IP_FAMILY_V4};
	if (addr->family == IP_FAMILY_NONE) {
		addr = &none;
	}
	size_t n = ip_family_len(addr->family);
	memcpy(out, head, 3);
	out[3] = addr->family == IP_FAMILY_V4 ? TYPE_V4 : TYPE_V6;
	memcpy(out + 4, addr->b, n);
	store_be16(out + 4 + n, port);
	return 4 + n + 2;
}

size_t
socks_reply_encode(enum socks_reply code, const struct ip_addr *addr, uint16_t port,
	uint8_t out[SOCKS_REPLY_MAX])
{
	return write_message((const uint8_t[3]){VERSION, (uint8_t)code, 0}, addr, port, out);
}

size_t
socks_header_encode(const struct ip_addr *from, uint16_t port, uint8_t out[SOCKS_ANSWER_HEADER_MAX])
{
	return write_message((const uint8_t[3]){0}, from, port, out);
}
