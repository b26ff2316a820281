/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as they arrive: lines, limits, and the check of each line in its place. */
#include "wire/uapi.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"
#include "wire/uapi_internal.h"

#define TEXT_MIN 1024

bool
uapi_line_split(const char *p, size_t len, struct uapi_line *out)
{
	const char *equals = memchr(p, '=', len);
	*out = (struct uapi_line){{p, 0}, {p, len}};
	if (!equals) {
		return false;
	}
	out->key.len = (size_t)(equals - p);
	out->value.p = equals + 1;
	out->value.len = len - out->key.len - 1;
	return true;
}

bool
uapi_line_take(const char **p, size_t *left, struct uapi_line *out)
{
	const char *end = *left ? memchr(*p, '\n', *left) : NULL;
	if (!end) {
		return false;
	}
	uapi_line_split(*p, (size_t)(end - *p), out);
	*left -= (size_t)(end - *p) + 1;
	*p = end + 1;
	return true;
}

bool
uapi_text_is(const struct uapi_text *t, const char *word)
{
	return t->len == strlen(word) && memcmp(t->p, word, t->len) == 0;
}

bool
uapi_text_number(const struct uapi_text *t, uint64_t max, uint64_t *out)
{
	uint64_t n = 0;
	for (size_t i = 0; i < t->len; i++) {
		unsigned digit = (unsigned)(t->p[i] - '0');
		if (digit > 9 || n > (max - digit) / 10) {
			return false;
		}
		n = n * 10 + digit;
	}
	*out = n;
	return t->len > 0;
}

bool
uapi_text_key(const struct uapi_text *t, uint8_t out[KEY_LEN])
{
	return key_decode_hex(t->p, t->len, out) == WEFT_OK;
}

bool
uapi_text_endpoint(const struct uapi_text *t, struct endpoint *out, char scope[UAPI_SCOPE_MAX + 1])
{
	char plain[UAPI_LINE_MAX];
	const char *percent = memchr(t->p, '%', t->len);

	scope[0] = 0;
	if (endpoint_parse(t->p, t->len, out) == WEFT_OK) {
		return true;
	}
	const char *bracket =
		percent ? memchr(percent, ']', t->len - (size_t)(percent - t->p)) : NULL;
	size_t scope_len = bracket ? (size_t)(bracket - percent) - 1 : 0;
	if (scope_len == 0 || scope_len > UAPI_SCOPE_MAX || t->len > sizeof(plain)) {
		return false;
	}
	/* Without the scope it must be an endpoint. */
	size_t head = (size_t)(percent - t->p), tail = t->len - (size_t)(bracket - t->p);
	memcpy(plain, t->p, head);
	memcpy(plain + head, bracket, tail);
	if (endpoint_parse(plain, head + tail, out)) {
		return false;
	}
	memcpy(scope, percent + 1, scope_len);
	scope[scope_len] = 0;
	return true;
}

/* The errno of a line of a set. */
static int
check_true(const struct uapi_text *value)
{
	return uapi_text_is(value, "true") ? 0 : UAPI_EINVAL;
}

static int
check_number(const struct uapi_text *value, uint64_t max)
{
	uint64_t n;
	return uapi_text_number(value, max, &n) ? 0 : UAPI_EINVAL;
}

static int
check_key(const struct uapi_text *value)
{
	uint8_t key[KEY_LEN];
	bool ok = uapi_text_key(value, key);
	secret_wipe(key, sizeof(key));
	return ok ? 0 : UAPI_EINVAL;
}

static int
check_peer_line(const struct uapi_line *l)
{
	const struct uapi_text *v = &l->value;
	struct endpoint endpoint;
	struct ip_prefix prefix;
	char scope[UAPI_SCOPE_MAX + 1];

	if (uapi_text_is(&l->key, "preshared_key")) {
		return check_key(v);
	}
	if (uapi_text_is(&l->key, "update_only") || uapi_text_is(&l->key, "remove") ||
		uapi_text_is(&l->key, "replace_allowed_ips")) {
		return check_true(v);
	}
	if (uapi_text_is(&l->key, "endpoint")) {
		return uapi_text_endpoint(v, &endpoint, scope) ? 0 : UAPI_EINVAL;
	}
	if (uapi_text_is(&l->key, "persistent_keepalive_interval")) {
		return check_number(v, UINT16_MAX);
	}
	if (uapi_text_is(&l->key, "allowed_ip")) {
		size_t sign = v->len > 0 && (v->p[0] == '-' || v->p[0] == '+');
		bool has_bits = memchr(v->p, '/', v->len) != NULL;
		return !has_bits || ip_prefix_parse(v->p + sign, v->len - sign, &prefix)
			       ? UAPI_EINVAL
			       : 0;
	}
	if (uapi_text_is(&l->key, "protocol_version")) {
		return uapi_text_is(v, "1") ? 0 : UAPI_EINVAL;
	}
	return UAPI_EINVAL;
}

static int
check_device_line(const struct uapi_line *l)
{
	if (uapi_text_is(&l->key, "private_key")) {
		return check_key(&l->value);
	}
	if (uapi_text_is(&l->key, "listen_port")) {
		return check_number(&l->value, UINT16_MAX);
	}
	if (uapi_text_is(&l->key, "fwmark")) {
		return check_number(&l->value, UINT32_MAX);
	}
	if (uapi_text_is(&l->key, "replace_peers")) {
		return check_true(&l->value);
	}
	return UAPI_EINVAL;
}

static int
check_line(struct uapi_decoder *d, const char *p, size_t len)
{
	struct uapi_line l;
	if (memchr(p, 0, len) || !uapi_line_split(p, len, &l)) {
		return UAPI_EPROTO;
	}
	if (uapi_text_is(&l.key, "public_key")) {
		d->is_in_peer = true;
		return check_key(&l.value);
	}
	return d->is_in_peer ? check_peer_line(&l) : check_device_line(&l);
}

static void
drop_text(struct uapi_request *r)
{
	if (r->text) {
		secret_wipe(r->text, r->len);
		free(r->text);
	}
	r->text = NULL;
	r->len = r->cap = 0;
}

static void
refuse(struct uapi_decoder *d, int error)
{
	drop_text(&d->request);
	d->request.error = error;
}

/* Keeps the line with its newline. */
static void
keep_line(struct uapi_decoder *d, const char *p, size_t len)
{
	struct uapi_request *r = &d->request;
	if (r->cap - r->len < len + 1) {
		size_t cap = r->cap ? r->cap * 2 : TEXT_MIN;
		char *bigger = malloc(cap);
		if (!bigger) {
			refuse(d, UAPI_ENOMEM);
			return;
		}
		size_t n = r->len;
		if (n > 0) {
			memcpy(bigger, r->text, n);
		}
		drop_text(r);
		*r = (struct uapi_request){.kind = r->kind, .text = bigger, .len = n, .cap = cap};
	}
	memcpy(r->text + r->len, p, len);
	r->text[r->len + len] = '\n';
	r->len += len + 1;
}

/* A line without its newline. Returns true at the end of the request. */
static bool
take_line(struct uapi_decoder *d, const char *p, size_t len)
{
	struct uapi_request *r = &d->request;
	const struct uapi_text line = {p, len};

	if (r->kind == UAPI_NONE && r->error == 0) {
		r->kind = uapi_text_is(&line, "get=1")   ? UAPI_GET
			  : uapi_text_is(&line, "set=1") ? UAPI_SET
							 : UAPI_NONE;
		if (r->kind == UAPI_NONE) {
			refuse(d, UAPI_EPROTO);
		}
		return r->kind == UAPI_NONE && len == 0;
	}
	if (len == 0) {
		return true;
	}
	if (r->error == 0) {
		int error = r->kind == UAPI_GET ? UAPI_EINVAL : check_line(d, p, len);
		if (error) {
			refuse(d, error);
		} else {
			keep_line(d, p, len);
		}
	}
	return false;
}

static enum uapi_step
give_up(struct uapi_decoder *d, int error)
{
	refuse(d, error);
	d->is_broken = true;
	return UAPI_STEP_BROKEN;
}

enum uapi_step
uapi_decoder_feed(struct uapi_decoder *d, const char *data, size_t len, size_t *used)
{
	size_t at = 0;
	*used = len;
	if (d->is_broken) {
		return UAPI_STEP_BROKEN;
	}
	while (at < len) {
		const char *end = memchr(data + at, '\n', len - at);
		size_t n = (end ? (size_t)(end - data) : len) - at;
		if (n > UAPI_LINE_MAX - d->line_len) {
			return give_up(d, UAPI_EMSGSIZE);
		}
		d->taken += n + (end != NULL);
		if (d->taken > UAPI_REQUEST_MAX) {
			return give_up(d, UAPI_EMSGSIZE);
		}
		memcpy(d->line + d->line_len, data + at, n);
		d->line_len += n;
		at += n + 1;
		if (!end) {
			break;
		}
		size_t line_len = d->line_len;
		d->line_len = 0;
		if (take_line(d, d->line, line_len)) {
			*used = at;
			return UAPI_STEP_DONE;
		}
	}
	return UAPI_STEP_MORE;
}

void
uapi_decoder_next(struct uapi_decoder *d)
{
	uapi_decoder_fini(d);
}

bool
uapi_decoder_is_midway(const struct uapi_decoder *d)
{
	return d->taken > 0;
}

void
uapi_decoder_fini(struct uapi_decoder *d)
{
	drop_text(&d->request);
	secret_wipe(d, sizeof(*d));
}
