/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"
#include "lib/detail.h"
#include "os/file.h"
#include "wire/conf.h"

#define MTU_MIN 1280 /* what IPv6 needs, RFC 8200, section 5 */
#define LINE_MAX_BYTES 512
#define MESSAGE_MAX 480

void
config_text_fini(struct config_text *t)
{
	if (t->p) {
		secret_wipe(t->p, t->cap);
		free(t->p);
	}
	*t = (struct config_text){0};
}

/* Old blocks are wiped: realloc() would leave keys behind. */
static bool
reserve(struct config_text *t, size_t more)
{
	if (t->cap - t->len >= more) {
		return true;
	}
	size_t cap = t->cap * 2 + more;
	char *p = malloc(cap);
	if (!p) {
		return false;
	}
	if (t->p) {
		memcpy(p, t->p, t->len);
		secret_wipe(t->p, t->cap);
		free(t->p);
	}
	t->p = p;
	t->cap = cap;
	return true;
}

WEFT_PRINTF(2, 3)
static bool
put(struct config_text *t, const char *fmt, ...)
{
	if (!reserve(t, LINE_MAX_BYTES)) {
		return false;
	}
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(t->p + t->len, LINE_MAX_BYTES, fmt, ap);
	va_end(ap);
	t->len += (size_t)n;
	return true;
}

static bool
put_key(struct config_text *t, const char *name, const uint8_t key[WEFT_KEY_LEN])
{
	char text[KEY_BASE64_LEN + 1];
	bool ok = put(t, "%s = %s\n", name, key_encode_base64(key, text));
	secret_wipe(text, sizeof(text));
	return ok;
}

/* A value may not end its line, nor hold what ends it for the reader. where: "peers[2].name". */
static enum weft_err
put_value(struct config_text *t, const char *name, const char *value, const char *where,
	struct weft_detail *why)
{
	size_t len = value ? strlen(value) : 0;
	bool ok = len > 0 && len < LINE_MAX_BYTES / 2;
	for (size_t i = 0; i < len; i++) {
		ok = ok && value[i] > ' ' && value[i] < 0x7f && value[i] != '#' && value[i] != ',';
	}
	if (!ok) {
		return detail_set(why, WEFT_EINVAL, 0,
			"%s: must be of 1 to 255 printable characters without blanks, ',' and '#'",
			where);
	}
	return put(t, "%s = %s\n", name, value) ? WEFT_OK
						: detail_set(why, WEFT_ENOMEM, 0, "out of memory");
}

static enum weft_err
put_peer(struct config_text *t, const struct weft_peer_config *p, size_t i, struct weft_detail *why)
{
	char where[64];
	if (!p->public_key || (p->allowed_ips_n && !p->allowed_ips)) {
		return detail_set(why, WEFT_EINVAL, 0, "peers[%zu].%s: must be given", i,
			p->public_key ? "allowed_ips" : "public_key");
	}
	bool ok = put(t, "[Peer]\n") && put_key(t, "PublicKey", p->public_key) &&
		  (!p->preshared_key || put_key(t, "PresharedKey", p->preshared_key)) &&
		  (!p->keepalive_s || put(t, "PersistentKeepalive = %u\n", p->keepalive_s));
	enum weft_err e = ok ? WEFT_OK : detail_set(why, WEFT_ENOMEM, 0, "out of memory");
	if (!e && p->name) {
		snprintf(where, sizeof(where), "peers[%zu].name", i);
		e = put_value(t, "Name", p->name, where, why);
	}
	if (!e && p->endpoint) {
		snprintf(where, sizeof(where), "peers[%zu].endpoint", i);
		e = put_value(t, "Endpoint", p->endpoint, where, why);
	}
	for (size_t k = 0; k < p->allowed_ips_n && !e; k++) {
		snprintf(where, sizeof(where), "peers[%zu].allowed_ips[%zu]", i, k);
		e = put_value(t, "AllowedIPs", p->allowed_ips[k], where, why);
	}
	return e;
}

static enum weft_err
put_peers(struct config_text *t, const struct weft_config *c, struct weft_detail *why)
{
	enum weft_err e = WEFT_OK;
	/* The caller's array has the caller's size of an entry. */
	const char *at = (const char *)c->peers;
	for (size_t i = 0; i < c->peers_n && !e; i++) {
		struct weft_peer_config p;
		if (!record_take(&p, sizeof(p), at, sizeof(p)) || p.size != c->peers[0].size) {
			return detail_set(why, WEFT_EINVAL, 0,
				"peers[%zu].size: must be sizeof(struct weft_peer_config)", i);
		}
		e = put_peer(t, &p, i, why);
		at += p.size;
	}
	return e;
}

static enum weft_err
put_struct(struct config_text *t, const struct weft_config *c, struct weft_detail *why)
{
	char where[64];
	t->is_struct = true;
	if (c->mtu && c->mtu < MTU_MIN) {
		return detail_set(why, WEFT_EINVAL, 0, "mtu: must be 0, or %d to 65535", MTU_MIN);
	}
	if ((c->addresses_n && !c->addresses) || (c->peers_n && !c->peers)) {
		return detail_set(why, WEFT_EINVAL, 0, "%s: is NULL, and its number is not 0",
			c->peers ? "addresses" : "peers");
	}
	bool ok = put(t, "[Interface]\n") && put_key(t, "PrivateKey", c->private_key) &&
		  (!c->listen_port || put(t, "ListenPort = %u\n", c->listen_port)) &&
		  (!c->mtu || put(t, "MTU = %u\n", c->mtu));
	enum weft_err e = ok ? WEFT_OK : detail_set(why, WEFT_ENOMEM, 0, "out of memory");
	for (size_t i = 0; i < c->addresses_n && !e; i++) {
		snprintf(where, sizeof(where), "addresses[%zu]", i);
		e = put_value(t, "Address", c->addresses[i], where, why);
	}
	return e ? e : put_peers(t, c, why);
}

static enum weft_err
read_file(struct config_text *t, const char *path, struct weft_detail *why)
{
	enum weft_err e = os_file_read(path, CONF_BYTES_MAX, &t->p, &t->len);
	t->cap = e ? 0 : t->len;
	return e ? detail_set(why, e, 0, "%s: %s", path, weft_err_text(e)) : WEFT_OK;
}

static enum weft_err
copy_text(struct config_text *t, const char *text, size_t len, struct weft_detail *why)
{
	len = len ? len : strlen(text);
	if (!reserve(t, len + 1)) {
		return detail_set(why, WEFT_ENOMEM, 0, "out of memory");
	}
	memcpy(t->p, text, len);
	t->len = len;
	return WEFT_OK;
}

enum weft_err
config_read(const struct weft_config *c, struct config_text *out, struct weft_detail *why)
{
	if ((c->file != NULL) + (c->text != NULL) + (c->private_key != NULL) != 1) {
		return detail_set(why, WEFT_EINVAL, 0,
			"exactly one of file, text and private_key must be given");
	}
	struct config_text t = {0};
	enum weft_err e = c->file   ? read_file(&t, c->file, why)
			  : c->text ? copy_text(&t, c->text, c->text_len, why)
				    : put_struct(&t, c, why);
	if (e) {
		config_text_fini(&t);
		return e;
	}
	*out = t;
	return WEFT_OK;
}

/* Index of the peer whose section holds the line; SIZE_MAX: none. */
static size_t
peer_of_line(const struct config_text *t, uint32_t line)
{
	static const char head[] = "[Peer]\n";
	size_t index = SIZE_MAX;
	uint32_t number = 1;
	for (size_t at = 0; at < t->len && number <= line; number++) {
		const char *end = memchr(t->p + at, '\n', t->len - at);
		if (strncmp(t->p + at, head, strlen(head)) == 0) {
			index++;
		}
		at = (size_t)(end - t->p) + 1;
	}
	return index;
}

static enum weft_err
refuse(const struct config_text *t, const struct conf_report *r, struct weft_detail *why)
{
	const struct conf_note *n = r->notes;
	for (size_t i = 0; i < r->n; i++) {
		if (r->notes[i].severity == CONF_SEVERITY_ERROR) {
			n = &r->notes[i];
			break;
		}
	}
	char text[MESSAGE_MAX];
	const char *colon = n->key[0] ? ": " : "";
	if (!t->is_struct) {
		snprintf(text, sizeof(text), "%s%s%s", n->key, colon, n->text);
		return detail_set_at(why, WEFT_EPARSE, n->pos.line, n->pos.column, text);
	}
	size_t peer = peer_of_line(t, n->pos.line);
	if (peer == SIZE_MAX) {
		snprintf(text, sizeof(text), "%s%s%s", n->key, colon, n->text);
	} else if (n->line2) {
		/* The text speaks of a line that the caller never wrote. */
		snprintf(text, sizeof(text), "peers[%zu]: %s%sthe same as of peers[%zu]", peer,
			n->key, colon, peer_of_line(t, n->line2));
	} else {
		snprintf(text, sizeof(text), "peers[%zu]: %s%s%s", peer, n->key, colon, n->text);
	}
	return detail_set(why, WEFT_EINVAL, 0, "%s", text);
}

enum weft_err
config_parse(const struct config_text *t, struct conf **out, struct weft_detail *why)
{
	struct conf *c = NULL;
	struct conf_report *report = malloc(sizeof(*report)); /* 25 KiB: too much for a stack */
	enum weft_err e = report ? conf_parse(t->p, t->len, NULL, &c, report) : WEFT_ENOMEM;
	if (e == WEFT_EPARSE) {
		e = refuse(t, report, why);
	} else if (e) {
		detail_set(why, e, 0, "%s", weft_err_text(e));
	} else if (!c->interface.has_private_key) {
		e = detail_set_at(why, WEFT_EPARSE, c->interface.pos.line, c->interface.pos.column,
			"[Interface]: PrivateKey is missing; weft_key_generate() makes one");
		conf_free(c);
	} else {
		c->interface.table = CONF_TABLE_AUTO;
		*out = c;
	}
	free(report);
	return e;
}
