/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts and endpoints of configuration files. */
#include <stdlib.h>
#include <string.h>

#include "wire/conf_internal.h"

#define LABEL_MAX 63 /* RFC 1035, section 2.3.4 */

static bool
is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A name whose last label is a number would be read as an address by the resolver. */
static bool
is_number(const char *p, size_t len)
{
	bool is_hex = len >= 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
	for (size_t i = is_hex ? 2 : 0; i < len; i++) {
		bool is_hex_letter = (p[i] >= 'a' && p[i] <= 'f') || (p[i] >= 'A' && p[i] <= 'F');
		if (!is_digit(p[i]) && !(is_hex && is_hex_letter)) {
			return false;
		}
	}
	return len > 0;
}

/* All but the last character of a key in base64: hosts have one letter case, a key nearly always
 * has both and digits. */
static bool
is_key(const char *p, size_t len)
{
	bool has_upper = false, has_lower = false, has_digit = false;
	for (size_t i = 0; i < len; i++) {
		has_upper |= p[i] >= 'A' && p[i] <= 'Z';
		has_lower |= p[i] >= 'a' && p[i] <= 'z';
		has_digit |= is_digit(p[i]);
	}
	return len == KEY_BASE64_LEN - 1 && has_upper && has_lower && has_digit;
}

const char *
conf_host_fault(const char *p, size_t len)
{
	size_t start = 0;
	if (len > 0 && p[len - 1] == '.') {
		len--;
	}
	if (len == 0) {
		return "it is empty";
	}
	if (len > CONF_HOST_MAX) {
		return "it is longer than 253 characters";
	}
	for (size_t i = 0; i <= len; i++) {
		if (i < len && p[i] != '.') {
			if (!is_alnum(p[i]) && p[i] != '-' && p[i] != '_') {
				return "a character in it is not a letter, digit, '-' or '.'";
			}
			continue;
		}
		if (i == start) {
			return "a label between its dots is empty";
		}
		if (i - start > LABEL_MAX) {
			return "a label of it is longer than 63 characters";
		}
		if (is_key(p + start, i - start)) {
			return "it looks like a key";
		}
		if (p[start] == '-' || p[i - 1] == '-') {
			return "a label of it begins or ends with '-'";
		}
		if (i == len && is_number(p + start, i - start)) {
			return "it is no valid IPv4 address";
		}
		start = i + 1;
	}
	return NULL;
}

bool
conf_name_is_valid(const char *name, size_t len)
{
	if (len == 0 || len > CONF_SCOPE_MAX) {
		return false;
	}
	for (size_t i = 0; i < len; i++) {
		if (!is_alnum(name[i]) && !memchr("_=+.-", name[i], 5)) {
			return false;
		}
	}
	/* The kernel forbids these two. */
	return !(len <= 2 && name[0] == '.' && name[len - 1] == '.');
}

/* Pieces of an endpoint within the value. */
struct pieces {
	const char *host;
	size_t host_len;
	const char *scope;
	size_t scope_len;
	const char *port;
	size_t port_len;
	bool is_bracketed;
};

static bool
split_brackets(struct conf_report *r, const struct conf_value *v, const char *p, size_t len,
	struct pieces *out)
{
	const char *end = memchr(p, ']', len);
	if (!end) {
		return conf_value_refuse(r, v, "']' is missing: [2001:db8::1]:51820");
	}
	out->is_bracketed = true;
	out->host = p + 1;
	out->host_len = (size_t)(end - p) - 1;
	const char *percent = memchr(out->host, '%', out->host_len);
	if (percent) {
		out->scope = percent + 1;
		out->scope_len = (size_t)(end - percent) - 1;
		out->host_len = (size_t)(percent - out->host);
		if (!conf_name_is_valid(out->scope, out->scope_len)) {
			return conf_value_refuse(
				r, v, "the scope behind '%%' is not an interface's name or index");
		}
	}
	const char *rest = end + 1;
	size_t rest_len = len - (size_t)(rest - p);
	if (rest_len == 0) {
		return conf_value_refuse(
			r, v, "no port; add one behind the ']': [2001:db8::1]:51820");
	}
	if (rest[0] != ':') {
		return conf_value_refuse(r, v, "a ':' and the port must follow the ']'");
	}
	out->port = rest + 1;
	out->port_len = rest_len - 1;
	return true;
}

static bool
is_port_number(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!is_digit(p[i])) {
			return false;
		}
	}
	return len > 0 && len <= 5;
}

static bool
split(struct conf_report *r, const struct conf_value *v, const char *p, size_t len,
	struct pieces *out)
{
	*out = (struct pieces){0};
	if (len > 0 && p[0] == '[') {
		return split_brackets(r, v, p, len, out);
	}
	size_t colon = len;
	while (colon > 0 && p[colon - 1] != ':') {
		colon--;
	}
	struct ip_addr addr;
	bool is_whole_v6 = ip_addr_parse(p, len, &addr) == WEFT_OK && addr.family == IP_FAMILY_V6;
	if (colon == 0) {
		return conf_value_refuse(r, v, "no port; add one: HOST:51820");
	}
	out->host = p;
	out->host_len = colon - 1;
	out->port = p + colon;
	out->port_len = len - colon;
	bool is_v6 = memchr(p, ':', out->host_len) != NULL;
	if (is_v6 && (is_whole_v6 || ip_addr_parse(p, out->host_len, &addr))) {
		/* "2001:db8::1:443" is an address and is an address with a port, too. */
		return conf_value_refuse(r, v, "%s; write [ADDRESS]:PORT",
			is_whole_v6
				? "an IPv6 address, whose port is missing or cannot be told from it"
				: "more than one ':', and not an IPv6 address with a port");
	}
	if (is_v6) {
		/* What stands there instead of a port is not repeated: it may be a key. */
		bool is_port = is_port_number(out->port, out->port_len);
		conf_value_warn(r, v, "an IPv6 address without brackets; write [%.*s]:%.*s",
			(int)out->host_len, out->host, is_port ? (int)out->port_len : 4,
			is_port ? out->port : "PORT");
	}
	return true;
}

static bool
parse_port(
	struct conf_report *r, const struct conf_value *v, const char *p, size_t len, uint16_t *out)
{
	uint32_t n = 0;
	bool is_number = len > 0;
	for (size_t i = 0; i < len; i++) {
		is_number &= is_digit(p[i]);
		n = n > 65535 || !is_number ? n : n * 10 + (uint32_t)(p[i] - '0');
	}
	if (len == 0) {
		return conf_value_refuse(r, v, "no port behind the ':'");
	}
	if (!is_number) {
		return conf_value_refuse(r, v, "the port is not a number from 1 to 65535");
	}
	if (n == 0 || n > 65535) {
		return conf_value_refuse(r, v, "the port is not within 1 to 65535");
	}
	*out = (uint16_t)n;
	return true;
}

static bool
check_host(struct conf_report *r, const struct conf_value *v, const struct pieces *s,
	struct ip_addr *addr)
{
	char quote[CONF_QUOTE_MAX];
	const struct conf_value host = {.p = s->host, .len = s->host_len};

	if (ip_addr_parse(s->host, s->host_len, addr) == WEFT_OK) {
		if (s->is_bracketed && addr->family != IP_FAMILY_V6) {
			return conf_value_refuse(r, v, "brackets are for IPv6 addresses alone");
		}
		return true;
	}
	conf_value_quote(&host, quote);
	if (s->is_bracketed) {
		return conf_value_refuse(r, v, "%sbetween the brackets is no IPv6 address",
			s->host_len == 0 ? "nothing " : quote);
	}
	addr->family = IP_FAMILY_NONE;
	const char *fault = conf_host_fault(s->host, s->host_len);
	if (fault) {
		return conf_value_refuse(r, v, "the host %sis wrong: %s", quote, fault);
	}
	return true;
}

static void
warn_of_address(
	struct conf_report *r, const struct conf_value *v, const struct ip_addr *a, bool has_scope)
{
	static const struct ip_addr any4 = {.family = IP_FAMILY_V4},
				    any6 = {.family = IP_FAMILY_V6};
	bool is_v4 = a->family == IP_FAMILY_V4, is_v6 = a->family == IP_FAMILY_V6;
	if (ip_addr_is_equal(a, &any4) || ip_addr_is_equal(a, &any6)) {
		conf_value_warn(r, v, "the unspecified address reaches this machine itself");
	} else if (is_v6 && a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80 && !has_scope) {
		conf_value_warn(
			r, v, "a link-local address needs its interface: [fe80::1%%eth0]:51820");
	} else if ((is_v4 && a->b[0] >= 224) || (is_v6 && a->b[0] == 0xff)) {
		conf_value_warn(r, v, "a multicast or broadcast address is nobody's endpoint");
	}
}

static bool
parse_endpoint(struct conf_report *r, const struct conf_value *v, const struct conf_value *packed,
	struct conf_endpoint *out, bool *has_memory)
{
	struct pieces s;
	struct conf_endpoint e = {.pos = v->pos};

	if (!split(r, v, packed->p, packed->len, &s) || !check_host(r, v, &s, &e.addr) ||
		!parse_port(r, v, s.port, s.port_len, &e.port)) {
		return false;
	}
	warn_of_address(r, v, &e.addr, s.scope_len > 0);
	e.host = malloc(s.host_len + 1);
	if (!e.host) {
		*has_memory = false;
		return false;
	}
	memcpy(e.host, s.host, s.host_len);
	e.host[s.host_len] = 0;
	memcpy(e.scope, s.scope ? s.scope : "", s.scope_len);
	*out = e;
	return true;
}

bool
conf_value_endpoint(struct conf_report *r, const struct conf_value *v, struct conf_endpoint *out,
	bool *has_memory)
{
	/* Host, brackets, scope and port of the longest right value, with room to spare. */
	char buf[CONF_HOST_MAX + CONF_SCOPE_MAX + 32];
	struct conf_value packed = *v;
	size_t n = 0;

	if (memchr(v->p, ',', v->len)) {
		return conf_value_refuse(r, v, "a ',' inside; a peer has one endpoint");
	}
	if (memchr(v->p, '"', v->len) || memchr(v->p, '\'', v->len)) {
		return conf_value_refuse(r, v, "remove the quotes");
	}
	for (size_t i = 0; i < v->len; i++) {
		if (conf_char_is_blank(v->p[i])) {
			continue;
		}
		if (n == sizeof(buf)) {
			return conf_value_refuse(r, v, "longer than any host and port");
		}
		buf[n++] = v->p[i];
	}
	packed.p = buf;
	packed.len = n;
	if (!parse_endpoint(r, v, &packed, out, has_memory)) {
		return false;
	}
	if (n != v->len) {
		conf_value_warn(r, v, "blanks inside the value are passed over");
	}
	return true;
}
