/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/http_connect.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

/* Rewriting looks through all fields for each of them. */
#define FIELDS_MAX 200

struct text {
	const char *p;
	size_t n;
};

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_alnum(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* tchar of RFC 9110, section 5.6.2 */
static bool
is_token(struct text t)
{
	for (size_t i = 0; i < t.n; i++) {
		if (!is_alnum(t.p[i]) && (t.p[i] == 0 || !strchr("!#$%&'*+-.^_`|~", t.p[i]))) {
			return false;
		}
	}
	return t.n > 0;
}

static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool
is_same(struct text t, const char *word)
{
	size_t i = 0;
	while (i < t.n && word[i] && lower(t.p[i]) == lower(word[i])) {
		i++;
	}
	return i == t.n && !word[i];
}

static bool
starts_with(struct text t, const char *word)
{
	size_t n = strlen(word);
	return t.n >= n && is_same((struct text){t.p, n}, word);
}

/* Cuts t at the first c: what is before it is returned, t is what is behind it. False: none. */
static bool
cut(struct text *t, char c, struct text *before)
{
	const char *at = memchr(t->p, c, t->n);
	if (!at) {
		return false;
	}
	*before = (struct text){t->p, (size_t)(at - t->p)};
	t->n -= before->n + 1;
	t->p = at + 1;
	return true;
}

static struct text
trim(struct text t)
{
	while (t.n > 0 && (t.p[0] == ' ' || t.p[0] == '\t')) {
		t.p++;
		t.n--;
	}
	while (t.n > 0 && (t.p[t.n - 1] == ' ' || t.p[t.n - 1] == '\t')) {
		t.n--;
	}
	return t;
}

/* One line without its CRLF. False: there is no more, or it is no line. */
static bool
take_line(struct text *rest, struct text *line)
{
	if (!cut(rest, '\n', line) || line->n == 0 || line->p[line->n - 1] != '\r') {
		return false;
	}
	line->n--;
	for (size_t i = 0; i < line->n; i++) {
		uint8_t c = (uint8_t)line->p[i];
		if ((c < 0x20 && c != '\t') || c == 0x7f) {
			return false;
		}
	}
	return true;
}

static bool
read_port(struct text t, uint16_t *out)
{
	uint32_t v = 0;
	if (t.n == 0 || t.n > 5) {
		return false;
	}
	for (size_t i = 0; i < t.n; i++) {
		if (!is_digit(t.p[i])) {
			return false;
		}
		v = v * 10 + (uint32_t)(t.p[i] - '0');
	}
	if (v == 0 || v > UINT16_MAX) {
		return false;
	}
	*out = (uint16_t)v;
	return true;
}

/* "host:port", "[2001:db8::1]:port". otherwise: the port where none is written; 0: one must be. */
static bool
read_authority(struct text t, uint16_t otherwise, struct http_request *out)
{
	struct text host = t;
	bool has_brackets = t.n > 0 && t.p[0] == '[';
	if (has_brackets) {
		t.p++;
		t.n--;
		if (!cut(&t, ']', &host)) {
			return false;
		}
	} else {
		const char *colon = memchr(t.p, ':', t.n);
		host.n = colon ? (size_t)(colon - t.p) : t.n;
		t = (struct text){t.p + host.n, t.n - host.n};
	}
	if (host.n == 0 || host.n > HTTP_HOST_MAX) {
		return false;
	}
	for (size_t i = 0; i < host.n; i++) {
		/* What names and addresses are made of; no "@", so no user. */
		if (!is_alnum(host.p[i]) && !(host.p[i] == ':' && has_brackets) &&
			(host.p[i] == 0 || !strchr(has_brackets ? "." : ".-_", host.p[i]))) {
			return false;
		}
	}
	memcpy(out->host, host.p, host.n);
	out->host[host.n] = 0;
	out->port = otherwise;
	/* RFC 3986 allows "host:" for the default port. */
	if (t.n == 0 || (t.n == 1 && t.p[0] == ':' && otherwise)) {
		return otherwise != 0;
	}
	return t.p[0] == ':' && read_port((struct text){t.p + 1, t.n - 1}, &out->port);
}

static enum weft_err
refuse(struct http_fault *fault, unsigned status, const char *why)
{
	*fault = (struct http_fault){status, why};
	return WEFT_EPARSE;
}

static enum weft_err
read_uri(struct text uri, struct http_request *out, struct http_fault *fault)
{
	static const char scheme[] = "http://";
	if (!starts_with(uri, scheme)) {
		return uri.n > 0 && uri.p[0] != '/' && memchr(uri.p, ':', uri.n)
			       ? refuse(fault, 501,
					 "Only http: is passed on here; use CONNECT for others.")
			       : refuse(fault, 400, "This is a proxy: it wants an absolute URI.");
	}
	uri.p += strlen(scheme);
	uri.n -= strlen(scheme);
	size_t n = 0;
	while (n < uri.n && uri.p[n] != '/' && uri.p[n] != '?' && uri.p[n] != '#') {
		n++;
	}
	out->authority = uri.p;
	out->authority_len = n;
	out->path = uri.p + n;
	out->path_len = uri.n - n;
	if (memchr(out->path, '#', out->path_len) ||
		!read_authority((struct text){uri.p, n}, 80, out)) {
		return refuse(fault, 400, "The URI has no host and port that make sense.");
	}
	return WEFT_OK;
}

static enum weft_err
read_request_line(struct text line, struct http_request *out, struct http_fault *fault)
{
	struct text method, uri;
	if (!cut(&line, ' ', &method) || !is_token(method) || !cut(&line, ' ', &uri) ||
		memchr(uri.p, '\t', uri.n)) {
		return refuse(fault, 400, "The first line is not that of a request.");
	}
	if (!starts_with(line, "HTTP/") || memchr(line.p, ' ', line.n)) {
		return refuse(fault, 400, "The first line is not that of a request.");
	}
	if (line.n != 8 || memcmp(line.p, "HTTP/1.", 7) != 0 ||
		(line.p[7] != '0' && line.p[7] != '1')) {
		return refuse(fault, 505, "HTTP/1.0 and HTTP/1.1 are spoken here.");
	}
	out->version = line.p;
	out->method = method.p;
	out->method_len = method.n;
	out->is_connect = method.n == 7 && memcmp(method.p, "CONNECT", 7) == 0;
	if (!out->is_connect) {
		return read_uri(uri, out, fault);
	}
	return read_authority(uri, 0, out)
		       ? WEFT_OK
		       : refuse(fault, 400, "CONNECT wants HOST:PORT, or [ADDRESS]:PORT.");
}

static bool
read_field(struct text line, struct text *name, struct text *value)
{
	if (!cut(&line, ':', name) || !is_token(*name)) {
		return false;
	}
	*value = trim(line);
	return true;
}

static void
read_login(struct text value, struct http_request *out)
{
	struct text kind;
	if (cut(&value, ' ', &kind) && is_same(kind, "Basic")) {
		value = trim(value);
		out->login = value.p;
		out->login_len = value.n;
	}
}

enum weft_err
http_head_decode(const char *p, size_t len, struct http_request *out, struct http_fault *fault)
{
	static const char end[] = "\r\n\r\n";
	len = len < HTTP_HEAD_MAX ? len : HTTP_HEAD_MAX;
	const char *at = memmem(p, len, end, strlen(end));
	if (!at) {
		return len < HTTP_HEAD_MAX
			       ? WEFT_EAGAIN
			       : refuse(fault, 431, "The head of the request is too long.");
	}
	struct http_request q = {.head_len = (size_t)(at - p) + strlen(end)};
	struct text rest = {p, q.head_len - 2}, line, name, value;
	if (!take_line(&rest, &line)) {
		return refuse(fault, 400, "The first line is not that of a request.");
	}
	enum weft_err e = read_request_line(line, &q, fault);
	if (e) {
		return e;
	}
	for (unsigned n = 0; rest.n > 0; n++) {
		if (n == FIELDS_MAX) {
			return refuse(fault, 431, "The head of the request has too many fields.");
		}
		if (!take_line(&rest, &line) || !read_field(line, &name, &value)) {
			return refuse(fault, 400, "A field of the head is malformed.");
		}
		if (is_same(name, "Proxy-Authorization")) {
			read_login(value, &q);
		}
	}
	*out = q;
	return WEFT_OK;
}

struct sink {
	char *p;
	size_t n, cap;
	bool is_full;
};

static void
put(struct sink *s, struct text t)
{
	if (s->is_full || s->cap - s->n < t.n) {
		s->is_full = true;
		return;
	}
	memcpy(s->p + s->n, t.p, t.n);
	s->n += t.n;
}

static void
put_text(struct sink *s, const char *text)
{
	put(s, (struct text){text, strlen(text)});
}

/* Fields of the way to us alone (RFC 9110, section 7.6.1), and those that we write anew. The body
 * goes on as it is, and with it Transfer-Encoding. */
static bool
is_ours(struct text name)
{
	static const char *const names[] = {"Connection", "Proxy-Connection", "Proxy-Authorization",
		"Keep-Alive", "TE", "Upgrade", "Host"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
		if (is_same(name, names[i])) {
			return true;
		}
	}
	return false;
}

/* Does a Connection field of the head name it? fields: the lines behind the first. */
static bool
is_named(struct text fields, struct text name)
{
	struct text line, field, list, item;
	while (take_line(&fields, &line)) {
		if (!read_field(line, &field, &list) || !is_same(field, "Connection")) {
			continue;
		}
		bool has_more = true;
		while (has_more) {
			has_more = cut(&list, ',', &item);
			item = trim(has_more ? item : list);
			bool is_it = item.n == name.n;
			for (size_t i = 0; is_it && i < name.n; i++) {
				is_it = lower(item.p[i]) == lower(name.p[i]);
			}
			if (is_it) {
				return true;
			}
		}
	}
	return false;
}

/* These say where the body ends: Connection cannot take them away. */
static bool
is_framing(struct text name)
{
	return is_same(name, "Content-Length") || is_same(name, "Transfer-Encoding");
}

enum weft_err
http_head_rewrite(const char *p, const struct http_request *r, char *out, size_t cap, size_t *n)
{
	struct sink s = {.p = out, .cap = cap};
	struct text method = {r->method, r->method_len}, path = {r->path, r->path_len};
	struct text fields = {p, r->head_len - 2}, line, name, value;
	put(&s, method);
	put_text(&s, " ");
	if (path.n == 0 && is_same(method, "OPTIONS")) {
		put_text(&s, "*");
	} else if (path.n == 0 || path.p[0] != '/') {
		put_text(&s, "/");
	}
	put(&s, path);
	put_text(&s, " ");
	put(&s, (struct text){r->version, 8});
	put_text(&s, "\r\nHost: ");
	put(&s, (struct text){r->authority, r->authority_len});
	put_text(&s, "\r\nConnection: close\r\nVia: 1.1 weft\r\n");
	bool has_first = take_line(&fields, &line);
	struct text all = fields;
	while (has_first && take_line(&fields, &line)) {
		if (!read_field(line, &name, &value) || is_ours(name) ||
			(is_named(all, name) && !is_framing(name))) {
			continue;
		}
		put(&s, line);
		put_text(&s, "\r\n");
	}
	put_text(&s, "\r\n");
	*n = s.n;
	return s.is_full ? WEFT_EMSGSIZE : WEFT_OK;
}

static int
digit64(char c)
{
	return c >= 'A' && c <= 'Z'   ? c - 'A'
	       : c >= 'a' && c <= 'z' ? c - 'a' + 26
	       : c >= '0' && c <= '9' ? c - '0' + 52
	       : c == '+'             ? 62
	       : c == '/'             ? 63
				      : -1;
}

enum weft_err
http_login_decode(const char *base64, size_t len, struct http_login *out)
{
	if (len == 0 || len % 4 != 0 || len / 4 * 3 > sizeof(out->bytes)) {
		return WEFT_EPARSE;
	}
	size_t pad = base64[len - 1] != '=' ? 0 : base64[len - 2] != '=' ? 1 : 2, n = 0;
	uint32_t bits = 0;
	for (size_t i = 0; i < len; i++) {
		int d = i < len - pad ? digit64(base64[i]) : 0;
		if (d < 0) {
			return WEFT_EPARSE;
		}
		bits = bits << 6 | (uint32_t)d;
		if (i % 4 == 3) {
			out->bytes[n++] = (uint8_t)(bits >> 16);
			out->bytes[n++] = (uint8_t)(bits >> 8);
			out->bytes[n++] = (uint8_t)bits;
		}
	}
	n -= pad;
	const uint8_t *colon = memchr(out->bytes, ':', n);
	if (!colon) {
		return WEFT_EPARSE;
	}
	out->user = out->bytes;
	out->user_len = (size_t)(colon - out->bytes);
	out->password = colon + 1;
	out->password_len = n - out->user_len - 1;
	return WEFT_OK;
}

size_t
http_reply_encode(unsigned status, const char *why, char out[HTTP_REPLY_MAX])
{
	static const struct {
		unsigned status;
		const char *text;
	} names[] = {{400, "Bad Request"}, {403, "Forbidden"},
		{407, "Proxy Authentication Required"}, {408, "Request Timeout"},
		{431, "Request Header Fields Too Large"}, {500, "Internal Server Error"},
		{501, "Not Implemented"}, {502, "Bad Gateway"}, {503, "Service Unavailable"},
		{504, "Gateway Timeout"}, {505, "HTTP Version Not Supported"}};
	if (status == 200) {
		return (size_t)snprintf(
			out, HTTP_REPLY_MAX, "HTTP/1.1 200 Connection established\r\n\r\n");
	}
	const char *name = "Error";
	for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
		name = names[i].status == status ? names[i].text : name;
	}
	char body[600];
	int n = snprintf(body, sizeof(body), "%.590s\n", why);
	n = snprintf(out, HTTP_REPLY_MAX,
		"HTTP/1.1 %u %s\r\n%sContent-Type: text/plain; charset=utf-8\r\n"
		"Content-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, name,
		status == 407 ? "Proxy-Authenticate: Basic realm=\"weft\", charset=\"UTF-8\"\r\n"
			      : "",
		n, body);
	return (size_t)n;
}
