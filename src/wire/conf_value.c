/* SPDX-License-Identifier: Apache-2.0 */
/* Values of configuration keys: keys, numbers, words, addresses. */
#include <string.h>

#include "crypto/secret.h"
#include "wire/conf_internal.h"

/* Room for a value without its blanks; no right value of the kinds that wg(8) reads is longer. */
#define PACKED_MAX 128

bool
conf_char_is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r' && c != '\n');
}

static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool
conf_value_is(const struct conf_value *v, const char *word)
{
	size_t i = 0;
	while (i < v->len && word[i] && lower(v->p[i]) == word[i]) {
		i++;
	}
	return i == v->len && word[i] == 0;
}

struct conf_value
conf_value_trim(struct conf_value v)
{
	while (v.len > 0 && conf_char_is_blank(v.p[0])) {
		v.p++;
		v.len--;
		v.pos.column++;
	}
	while (v.len > 0 && conf_char_is_blank(v.p[v.len - 1])) {
		v.len--;
	}
	return v;
}

bool
conf_value_next(struct conf_value *rest, bool splits_at_blanks, struct conf_value *item)
{
	if (!rest->p) {
		return false;
	}
	if (splits_at_blanks) {
		*rest = conf_value_trim(*rest);
	}
	size_t n = 0;
	while (n < rest->len && rest->p[n] != ',' &&
		!(splits_at_blanks && conf_char_is_blank(rest->p[n]))) {
		n++;
	}
	*item = *rest;
	item->len = n;
	*item = conf_value_trim(*item);
	if (n == rest->len) {
		rest->p = NULL;
	} else {
		rest->p += n + 1;
		rest->len -= n + 1;
		rest->pos.column += (uint32_t)n + 1;
	}
	return true;
}

/* wg(8) removes every blank from its lines, so a value with blanks inside is right to it. */
static struct conf_value
pack(const struct conf_value *v, char out[PACKED_MAX])
{
	struct conf_value packed = *v;
	size_t n = 0;
	for (size_t i = 0; i < v->len; i++) {
		if (conf_char_is_blank(v->p[i])) {
			continue;
		}
		if (n == PACKED_MAX) {
			return *v;
		}
		out[n++] = v->p[i];
	}
	packed.p = out;
	packed.len = n;
	return packed;
}

static void
warn_of_blanks(struct conf_report *r, const struct conf_value *v, const struct conf_value *packed)
{
	if (packed->len != v->len) {
		conf_value_warn(r, v, "blanks inside the value are passed over");
	}
}

static bool
refuse_key(struct conf_report *r, const struct conf_value *v)
{
	bool has_blank = false, is_url_safe = false, is_template = false;
	for (size_t i = 0; i < v->len; i++) {
		has_blank |= conf_char_is_blank(v->p[i]);
		is_url_safe |= v->p[i] == '-' || v->p[i] == '_';
		is_template |= v->p[i] == '<' || v->p[i] == '>';
	}
	if (v->len == 0) {
		return conf_value_refuse(r, v, "no value; a key has %d characters", KEY_BASE64_LEN);
	}
	if (is_template) {
		return conf_value_refuse(r, v,
			"a placeholder is still here; put the key of %d characters",
			KEY_BASE64_LEN);
	}
	if (v->len != KEY_BASE64_LEN) {
		bool is_cut = v->len == KEY_BASE64_LEN - 1 && v->p[v->len - 1] != '=';
		return conf_value_refuse(r, v, "%zu characters%s; a key has %d and ends in '='%s",
			v->len, has_blank ? " with blanks inside" : "", KEY_BASE64_LEN,
			is_cut ? "; was the '=' lost?" : "");
	}
	if (is_url_safe) {
		return conf_value_refuse(r, v, "URL-safe base64; put '+' for '-' and '/' for '_'");
	}
	if (v->p[KEY_BASE64_LEN - 1] != '=') {
		return conf_value_refuse(
			r, v, "the last of %d characters is not '='", KEY_BASE64_LEN);
	}
	return conf_value_refuse(r, v, "not the base64 of 32 bytes; copy the key again");
}

bool
conf_value_key(struct conf_report *r, const struct conf_value *v, uint8_t out[KEY_LEN])
{
	char buf[PACKED_MAX];
	struct conf_value packed = pack(v, buf);
	bool ok = key_decode_base64(packed.p, packed.len, out) == WEFT_OK;
	if (ok) {
		warn_of_blanks(r, v, &packed);
	} else {
		refuse_key(r, v);
	}
	secret_wipe(buf, sizeof(buf));
	return ok;
}

/* base 10, or 16 behind 0x. Saturates far above 32 bits. */
static bool
parse_digits(const char *p, size_t len, unsigned base, uint64_t *out)
{
	uint64_t n = 0;
	if (len == 0) {
		return false;
	}
	for (size_t i = 0; i < len; i++) {
		char c = lower(p[i]);
		unsigned d = is_digit(c)            ? (unsigned)(c - '0')
			     : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
						    : 99;
		if (d >= base) {
			return false;
		}
		n = n > UINT64_MAX / 32 ? n : n * base + d;
	}
	*out = n;
	return true;
}

bool
conf_value_number(struct conf_report *r, const struct conf_value *v, uint32_t min, uint32_t max,
	uint32_t *out)
{
	char buf[PACKED_MAX], quote[CONF_QUOTE_MAX];
	struct conf_value packed = pack(v, buf);
	uint64_t n;

	/* A blank between digits is passed over by wg(8), but not by the tools behind wg-quick(8).
	 */
	bool packs =
		v->key->id == CONF_KEY_LISTEN_PORT || v->key->id == CONF_KEY_PERSISTENT_KEEPALIVE;
	const struct conf_value *use = packs ? &packed : v;
	if (!parse_digits(use->p, use->len, 10, &n)) {
		return conf_value_refuse(r, v, "%sis not a number%s from %u to %u",
			conf_value_quote(v, quote),
			v->key->id == CONF_KEY_FEC_DELAY ? " of milliseconds" : "", min, max);
	}
	if (n < min || n > max) {
		return conf_value_refuse(
			r, v, "%sis not within %u to %u", conf_value_quote(v, quote), min, max);
	}
	if (packs) {
		warn_of_blanks(r, v, &packed);
	}
	*out = (uint32_t)n;
	return true;
}

bool
conf_value_fwmark(struct conf_report *r, const struct conf_value *v, uint32_t *out)
{
	char buf[PACKED_MAX], quote[CONF_QUOTE_MAX];
	struct conf_value packed = pack(v, buf);
	uint64_t n = 0;
	bool is_hex = packed.len > 2 && packed.p[0] == '0' && lower(packed.p[1]) == 'x';
	/* wg(8) reads a leading zero as octal. */
	bool is_octal = !is_hex && packed.len > 1 && packed.p[0] == '0';

	if (conf_value_is(&packed, "off")) {
		*out = 0;
		return true;
	}
	bool ok = is_hex ? parse_digits(packed.p + 2, packed.len - 2, 16, &n)
			 : parse_digits(packed.p, packed.len, is_octal ? 8 : 10, &n);
	if (!ok) {
		return conf_value_refuse(r, v,
			"%sis not a mark: off, or a number like 51820 or 0xca6c, without a mask",
			conf_value_quote(v, quote));
	}
	if (n > UINT32_MAX) {
		return conf_value_refuse(
			r, v, "%sis over 32 bits (0xffffffff)", conf_value_quote(v, quote));
	}
	if (is_octal) {
		conf_value_warn(r, v, "the leading 0 makes it octal: 0x%x", (unsigned)n);
	}
	warn_of_blanks(r, v, &packed);
	*out = (uint32_t)n;
	return true;
}

bool
conf_value_switch(struct conf_report *r, const struct conf_value *v, const char *on,
	const char *off, bool *out)
{
	char quote[CONF_QUOTE_MAX];
	bool is_on = conf_value_is(v, on);
	if (!is_on && !conf_value_is(v, off)) {
		return conf_value_refuse(
			r, v, "%sis neither %s nor %s", conf_value_quote(v, quote), on, off);
	}
	*out = is_on;
	return true;
}

static bool
is_table_name(const struct conf_value *v)
{
	if (v->len == 0 || v->len > CONF_TABLE_MAX) {
		return false;
	}
	for (size_t i = 0; i < v->len; i++) {
		char c = lower(v->p[i]);
		bool is_letter = c >= 'a' && c <= 'z';
		if (!is_letter && (i == 0 || !(is_digit(c) || c == '_' || c == '-' || c == '.'))) {
			return false;
		}
	}
	return true;
}

bool
conf_value_table(struct conf_report *r, const struct conf_value *v, struct conf_interface *out)
{
	char quote[CONF_QUOTE_MAX];
	uint64_t n;
	bool is_hex = v->len > 2 && v->p[0] == '0' && lower(v->p[1]) == 'x';

	if (conf_value_is(v, "auto") || conf_value_is(v, "off")) {
		out->table = conf_value_is(v, "off") ? CONF_TABLE_OFF : CONF_TABLE_AUTO;
		return true;
	}
	if (is_hex ? parse_digits(v->p + 2, v->len - 2, 16, &n)
		   : parse_digits(v->p, v->len, 10, &n)) {
		if (n > UINT32_MAX) {
			return conf_value_refuse(
				r, v, "%sis over 32 bits", conf_value_quote(v, quote));
		}
		out->table = CONF_TABLE_NUMBER;
		out->table_number = (uint32_t)n;
		return true;
	}
	if (!is_table_name(v)) {
		return conf_value_refuse(r, v,
			"%sis neither auto, off, a table's number nor its name",
			conf_value_quote(v, quote));
	}
	out->table = CONF_TABLE_NAME;
	memcpy(out->table_name, v->p, v->len);
	out->table_name[v->len] = 0;
	return true;
}

/* Says what is wrong with an address or a prefix. */
static bool
refuse_prefix(struct conf_report *r, const struct conf_value *v)
{
	char quote[CONF_QUOTE_MAX];
	struct ip_addr addr;
	const char *hint = "";
	size_t addr_len = 0;
	bool has_name = false;

	while (addr_len < v->len && v->p[addr_len] != '/') {
		addr_len++;
	}
	for (size_t i = 0; i < addr_len; i++) {
		char c = lower(v->p[i]);
		has_name |= c >= 'g' && c <= 'z';
	}
	conf_value_quote(v, quote);
	if (v->len == 0) {
		return conf_value_refuse(r, v, "an empty item; is a comma too many here?");
	}
	if (ip_addr_parse(v->p, addr_len, &addr) == WEFT_OK) {
		return conf_value_refuse(r, v, "%shas no prefix length of 0 to %zu behind the '/'",
			quote, ip_family_len(addr.family) * 8);
	}
	const char *colon = memchr(v->p, ':', addr_len);
	if (v->len == 1 && v->p[0] == '\\') {
		hint = "; a backslash does not join lines, repeat the key instead";
	} else if (v->key->id == CONF_KEY_ALLOWED_IPS && (v->p[0] == '+' || v->p[0] == '-')) {
		hint = "; '+' and '-' are for wg set, a file has what the peer has";
	} else if (v->p[0] == '[') {
		hint = "; write it without brackets";
	} else if (memchr(v->p, '-', addr_len)) {
		hint = "; a range must be given as prefixes";
	} else if (has_name) {
		hint = "; names are not allowed here";
	} else if (colon && memchr(v->p, '.', (size_t)(colon - v->p))) {
		hint = "; a port does not belong here";
	}
	return conf_value_refuse(
		r, v, "%sis not an address like 10.0.0.0/8 or 2001:db8::/32%s", quote, hint);
}

bool
conf_value_allowed(struct conf_report *r, const struct conf_value *v, struct ip_prefix *out)
{
	char buf[PACKED_MAX], text[IP_PREFIX_TEXT_MAX];
	struct conf_value packed = pack(v, buf);
	struct ip_prefix p;

	if (ip_prefix_parse(packed.p, packed.len, &p)) {
		return refuse_prefix(r, v);
	}
	warn_of_blanks(r, v, &packed);
	*out = p;
	ip_prefix_mask(out);
	if (!ip_addr_is_equal(&p.addr, &out->addr)) {
		conf_value_warn(r, v, "bits are set behind the prefix length; it means %s%s",
			ip_prefix_format(out, text),
			out->bits == 0 ? ", every address there is" : "");
	}
	return true;
}

/* "10.0.0.1/255.255.255.0", which ip(8) takes. */
static bool
parse_netmask(const struct conf_value *v, struct ip_prefix *out)
{
	const char *slash = memchr(v->p, '/', v->len);
	struct ip_addr mask;
	if (!slash) {
		return false;
	}
	size_t addr_len = (size_t)(slash - v->p);
	if (ip_addr_parse(v->p, addr_len, &out->addr) || out->addr.family != IP_FAMILY_V4 ||
		ip_addr_parse(slash + 1, v->len - addr_len - 1, &mask) ||
		mask.family != IP_FAMILY_V4) {
		return false;
	}
	uint32_t m = ((uint32_t)mask.b[0] << 24) | ((uint32_t)mask.b[1] << 16) |
		     ((uint32_t)mask.b[2] << 8) | mask.b[3];
	uint8_t bits = 0;
	while (bits < 32 && (m << bits) & 0x80000000u) {
		bits++;
	}
	out->bits = bits;
	return bits == 32 || (m << bits) == 0;
}

bool
conf_value_address(struct conf_report *r, const struct conf_value *v, struct ip_prefix *out)
{
	struct ip_prefix p;
	if (ip_prefix_parse(v->p, v->len, &p) && !parse_netmask(v, &p)) {
		return refuse_prefix(r, v);
	}
	*out = p;
	return true;
}

bool
conf_value_dns(struct conf_report *r, const struct conf_value *v, bool *is_server)
{
	char quote[CONF_QUOTE_MAX];
	struct ip_addr addr;
	const char *percent = memchr(v->p, '%', v->len);
	bool is_numeric = v->len > 0;

	conf_value_quote(v, quote);
	for (size_t i = 0; i < v->len; i++) {
		is_numeric &= is_digit(v->p[i]) || v->p[i] == '.';
	}
	size_t addr_len = percent ? (size_t)(percent - v->p) : v->len;
	if (ip_addr_parse(v->p, addr_len, &addr) == WEFT_OK) {
		size_t scope_len = v->len - addr_len;
		if (scope_len > 0 && (addr.family != IP_FAMILY_V6 ||
					     !conf_name_is_valid(percent + 1, scope_len - 1))) {
			return conf_value_refuse(r, v, "%shas a bad scope behind the '%%'", quote);
		}
		*is_server = true;
		return true;
	}
	if (memchr(v->p, '/', v->len)) {
		return conf_value_refuse(
			r, v, "%shas a prefix length; a server is an address alone", quote);
	}
	if (memchr(v->p, ':', v->len)) {
		return conf_value_refuse(
			r, v, "%sis no IPv6 address; a port does not belong here", quote);
	}
	if (is_numeric) {
		return conf_value_refuse(r, v, "%sis no IPv4 address", quote);
	}
	/* A leading '~' makes the domain one for routing queries alone (systemd-resolved). */
	size_t skip = v->len > 0 && v->p[0] == '~';
	bool is_root = v->len == 2 && skip && v->p[1] == '.';
	const char *fault = is_root ? NULL : conf_host_fault(v->p + skip, v->len - skip);
	if (fault) {
		return conf_value_refuse(r, v,
			"%sis neither a server's address nor a search domain: %s", quote, fault);
	}
	*is_server = false;
	return true;
}
