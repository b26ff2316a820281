/* SPDX-License-Identifier: Apache-2.0 */
#include "base/addr.h"

#include <stdio.h>
#include <string.h>

#include "base/endian.h"

bool
ip_addr_is_loopback(const struct ip_addr *a)
{
	static const uint8_t one[16] = {[15] = 1};
	return a->family == IP_FAMILY_V4 ? a->b[0] == 127 : memcmp(a->b, one, sizeof(one)) == 0;
}

bool
ip_addr_is_equal(const struct ip_addr *a, const struct ip_addr *b)
{
	return a->family == b->family && memcmp(a->b, b->b, ip_family_len(a->family)) == 0;
}

bool
endpoint_is_same_remote(const struct endpoint *a, const struct endpoint *b)
{
	return a->port == b->port && a->scope_id == b->scope_id &&
	       ip_addr_is_equal(&a->addr, &b->addr);
}

size_t
ip_family_len(enum ip_family family)
{
	return family == IP_FAMILY_V4 ? 4 : family == IP_FAMILY_V6 ? 16 : 0;
}

/* Reads an unsigned decimal that is the whole of the text. */
static bool
parse_decimal(const char *s, size_t len, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;
	if (len == 0 || len > 10) {
		return false;
	}
	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9') {
			return false;
		}
		v = v * 10 + (uint64_t)(s[i] - '0');
	}
	if (v > max) {
		return false;
	}
	*out = v;
	return true;
}

static bool
parse_v4(const char *s, size_t len, uint8_t out[4])
{
	size_t start = 0;
	for (int i = 0; i < 4; i++) {
		size_t end = start;
		while (end < len && s[end] != '.') {
			end++;
		}
		uint64_t v;
		/* "010" is octal to some readers and decimal to others, so it is refused. */
		if ((end - start > 1 && s[start] == '0') ||
			!parse_decimal(s + start, end - start, 255, &v)) {
			return false;
		}
		out[i] = (uint8_t)v;
		if (i < 3 ? end >= len : end != len) {
			return false;
		}
		start = end + 1;
	}
	return true;
}

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9') {
		return c - '0';
	}
	if (c >= 'a' && c <= 'f') {
		return c - 'a' + 10;
	}
	if (c >= 'A' && c <= 'F') {
		return c - 'A' + 10;
	}
	return -1;
}

/* RFC 4291, section 2.2: groups, one "::", and a dotted IPv4 tail. */
static bool
parse_v6(const char *s, size_t len, uint8_t out[16])
{
	uint8_t bytes[16] = {0};
	size_t n = 0;          /* bytes filled */
	size_t gap = SIZE_MAX; /* where "::" stands */
	size_t i = 0;

	if (len >= 2 && s[0] == ':' && s[1] == ':') {
		gap = 0;
		i = 2;
	}
	while (i < len) {
		size_t end = i;
		while (end < len && s[end] != ':') {
			end++;
		}
		if (end == len && memchr(s + i, '.', end - i)) {
			if (n > 12 || !parse_v4(s + i, end - i, bytes + n)) {
				return false;
			}
			n += 4;
			i = end;
			break;
		}
		if (end == i || end - i > 4 || n > 14) {
			return false;
		}
		unsigned v = 0;
		for (size_t k = i; k < end; k++) {
			int h = hex_value(s[k]);
			if (h < 0) {
				return false;
			}
			v = v * 16 + (unsigned)h;
		}
		bytes[n] = (uint8_t)(v >> 8);
		bytes[n + 1] = (uint8_t)v;
		n += 2;
		i = end;
		if (i < len) {
			i++; /* the colon */
			if (i == len) {
				return false;
			}
			if (s[i] == ':') {
				if (gap != SIZE_MAX) {
					return false;
				}
				gap = n;
				i++;
			}
		}
	}
	if (gap == SIZE_MAX) {
		if (n != 16) {
			return false;
		}
		memcpy(out, bytes, 16);
		return true;
	}
	if (n > 14) {
		return false; /* "::" stands for at least one group */
	}
	memset(out, 0, 16);
	memcpy(out, bytes, gap);
	memcpy(out + 16 - (n - gap), bytes + gap, n - gap);
	return true;
}

enum weft_err
ip_addr_parse(const char *text, size_t len, struct ip_addr *out)
{
	struct ip_addr a = {0};
	if (parse_v4(text, len, a.b)) {
		a.family = IP_FAMILY_V4;
	} else {
		memset(a.b, 0, sizeof(a.b));
		if (!parse_v6(text, len, a.b)) {
			return WEFT_EPARSE;
		}
		a.family = IP_FAMILY_V6;
	}
	*out = a;
	return WEFT_OK;
}

enum weft_err
ip_prefix_parse(const char *text, size_t len, struct ip_prefix *out)
{
	const char *slash = memchr(text, '/', len);
	size_t addr_len = slash ? (size_t)(slash - text) : len;
	struct ip_prefix p;
	enum weft_err e = ip_addr_parse(text, addr_len, &p.addr);
	if (e) {
		return e;
	}
	uint64_t bits = ip_family_len(p.addr.family) * 8;
	if (slash && !parse_decimal(slash + 1, len - addr_len - 1, bits, &bits)) {
		return WEFT_EPARSE;
	}
	p.bits = (uint8_t)bits;
	*out = p;
	return WEFT_OK;
}

enum weft_err
endpoint_parse(const char *text, size_t len, struct endpoint *out)
{
	struct endpoint e = {0};
	size_t colon = len;
	while (colon > 0 && text[colon - 1] != ':') {
		colon--;
	}
	uint64_t port;
	if (colon < 2 || !parse_decimal(text + colon, len - colon, 65535, &port) || port == 0) {
		return WEFT_EPARSE;
	}
	size_t host_len = colon - 1;
	const char *host = text;
	bool is_bracketed = host[0] == '[';
	if (is_bracketed) {
		if (host_len < 2 || host[host_len - 1] != ']') {
			return WEFT_EPARSE;
		}
		host++;
		host_len -= 2;
		const char *percent = memchr(host, '%', host_len);
		if (percent) {
			uint64_t scope;
			size_t scope_len = host_len - (size_t)(percent - host) - 1;
			if (!parse_decimal(percent + 1, scope_len, UINT32_MAX, &scope)) {
				return WEFT_EPARSE;
			}
			e.scope_id = (uint32_t)scope;
			host_len = (size_t)(percent - host);
		}
	}
	enum weft_err err = ip_addr_parse(host, host_len, &e.addr);
	if (err) {
		return err;
	}
	if (is_bracketed != (e.addr.family == IP_FAMILY_V6)) {
		return WEFT_EPARSE;
	}
	e.port = (uint16_t)port;
	*out = e;
	return WEFT_OK;
}

void
ip_prefix_mask(struct ip_prefix *p)
{
	for (unsigned i = 0; i < 16; i++) {
		unsigned first = i * 8;
		if (p->bits <= first) {
			p->addr.b[i] = 0;
		} else if (p->bits < first + 8) {
			p->addr.b[i] &= (uint8_t)(0xff << (first + 8 - p->bits));
		}
	}
}

static char *
format_v6(const uint8_t b[16], char *out, size_t cap)
{
	/* RFC 5952: the longest run of two or more zero groups becomes "::", the first if equal. */
	unsigned best = 8, best_len = 1;
	for (unsigned i = 0; i < 8; i++) {
		unsigned n = 0;
		while (i + n < 8 && b[2 * (i + n)] == 0 && b[2 * (i + n) + 1] == 0) {
			n++;
		}
		if (n > best_len) {
			best = i;
			best_len = n;
		}
	}
	bool is_mapped = best == 0 && best_len == 5 && b[10] == 0xff && b[11] == 0xff;
	if (is_mapped) {
		snprintf(out, cap, "::ffff:%u.%u.%u.%u", b[12], b[13], b[14], b[15]);
		return out;
	}
	size_t n = 0;
	out[0] = 0;
	for (unsigned i = 0; i < 8 && n < cap; i++) {
		if (i == best) {
			n += (size_t)snprintf(out + n, cap - n, "::");
			i += best_len - 1;
			continue;
		}
		bool has_colon = i > 0 && i != best + best_len;
		n += (size_t)snprintf(out + n, cap - n, "%s%x", has_colon ? ":" : "",
			(unsigned)load_be16(b + 2 * i));
	}
	return out;
}

char *
ip_addr_format(const struct ip_addr *a, char out[IP_ADDR_TEXT_MAX])
{
	switch (a->family) {
	case IP_FAMILY_V4:
		snprintf(out, IP_ADDR_TEXT_MAX, "%u.%u.%u.%u", a->b[0], a->b[1], a->b[2], a->b[3]);
		return out;
	case IP_FAMILY_V6:
		return format_v6(a->b, out, IP_ADDR_TEXT_MAX);
	case IP_FAMILY_NONE:
		break;
	}
	snprintf(out, IP_ADDR_TEXT_MAX, "(none)");
	return out;
}

char *
ip_prefix_format(const struct ip_prefix *p, char out[IP_PREFIX_TEXT_MAX])
{
	char addr[IP_ADDR_TEXT_MAX];
	snprintf(out, IP_PREFIX_TEXT_MAX, "%s/%u", ip_addr_format(&p->addr, addr), p->bits);
	return out;
}

char *
endpoint_format(const struct endpoint *e, char out[ENDPOINT_TEXT_MAX])
{
	char addr[IP_ADDR_TEXT_MAX];
	ip_addr_format(&e->addr, addr);
	if (e->addr.family == IP_FAMILY_V6 && e->scope_id != 0) {
		snprintf(out, ENDPOINT_TEXT_MAX, "[%s%%%u]:%u", addr, e->scope_id, e->port);
	} else if (e->addr.family == IP_FAMILY_V6) {
		snprintf(out, ENDPOINT_TEXT_MAX, "[%s]:%u", addr, e->port);
	} else if (e->addr.family == IP_FAMILY_V4) {
		snprintf(out, ENDPOINT_TEXT_MAX, "%s:%u", addr, e->port);
	} else {
		snprintf(out, ENDPOINT_TEXT_MAX, "(none)");
	}
	return out;
}
