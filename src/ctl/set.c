/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/set.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/ally.h"
#include "node/node.h"
#include "node/policy.h"
#include "wire/conf.h"
#include "wire/key.h"

/* A longer value is not repeated in an error: it may be a key that was pasted to a wrong place. */
#define QUOTE_MAX 24

/* What is asked for one peer. */
struct change {
	uint8_t key[KEY_LEN];
	bool has_extensions, has_fec, has_fec_delay, has_cipher;
	struct conf_policy to; /* what of it is asked for */
	struct wg_peer *peer;  /* under the device's lock */
};

struct changes {
	struct change *v;
	size_t n;
};

WEFT_PRINTF(3, 4)
static bool
refuse(struct ctl_set_error *out, const char *code, const char *fmt, ...)
{
	va_list ap;
	out->code = code;
	va_start(ap, fmt);
	vsnprintf(out->text, sizeof(out->text), fmt, ap);
	va_end(ap);
	return false;
}

/* The text in quotes, or other words for it. */
static const char *
quote(const char *text, char out[QUOTE_MAX + 3])
{
	if (!text || strlen(text) > QUOTE_MAX) {
		return "the value";
	}
	snprintf(out, QUOTE_MAX + 3, "\"%s\"", text);
	return out;
}

static bool
read_extensions(struct change *c, const json_t *v, struct ctl_set_error *out)
{
	if (!json_is_boolean(v)) {
		return refuse(out, "value", "extensions: true or false is wanted");
	}
	c->has_extensions = true;
	c->to.has_extensions = json_is_true(v);
	return true;
}

static bool
read_fec(struct change *c, const json_t *v, struct ctl_set_error *out)
{
	const char *text = json_string_value(v);
	if (!text || !conf_fec_parse(text, strlen(text), &c->to)) {
		char quoted[QUOTE_MAX + 3];
		return refuse(out, "value",
			"fec: %s is neither off, auto nor a share from 1%% to 100%%",
			quote(text, quoted));
	}
	c->has_fec = true;
	return true;
}

static bool
read_fec_delay(struct change *c, const json_t *v, struct ctl_set_error *out)
{
	json_int_t ms = json_integer_value(v);
	if (!json_is_integer(v) || ms < 1 || ms > CONF_FEC_DELAY_MS_MAX) {
		return refuse(out, "value", "fec_delay_ms: a whole number from 1 to %d is wanted",
			CONF_FEC_DELAY_MS_MAX);
	}
	c->has_fec_delay = true;
	c->to.fec_delay_ms = (uint16_t)ms;
	return true;
}

static bool
read_cipher(struct change *c, const json_t *v, struct ctl_set_error *out)
{
	const char *text = json_string_value(v);
	if (!text || !conf_cipher_parse(text, strlen(text), &c->to)) {
		char quoted[QUOTE_MAX + 3];
		return refuse(out, "value",
			"cipher: %s is neither auto, chacha20poly1305 nor aes-256-gcm",
			quote(text, quoted));
	}
	c->has_cipher = true;
	return true;
}

static bool
read_public_key(struct change *c, const json_t *v, struct ctl_set_error *out)
{
	const char *text = json_string_value(v);
	if (!text || key_decode_base64(text, strlen(text), c->key)) {
		return refuse(out, "value", "public_key: the base64 of 32 bytes is wanted");
	}
	return true;
}

static const struct {
	const char *name;
	bool (*read)(struct change *c, const json_t *v, struct ctl_set_error *out);
} members[] = {{"public_key", read_public_key}, {"extensions", read_extensions}, {"fec", read_fec},
	{"fec_delay_ms", read_fec_delay}, {"cipher", read_cipher}};

static bool
read_member(struct change *c, const char *name, const json_t *v, struct ctl_set_error *out)
{
	for (size_t i = 0; i < WEFT_ARRAY_LEN(members); i++) {
		if (strcmp(members[i].name, name) == 0) {
			return members[i].read(c, v, out);
		}
	}
	/* Passed over, it would be taken for set. */
	char quoted[QUOTE_MAX + 3];
	return refuse(out, "value",
		"%s cannot be set; extensions, fec, fec_delay_ms and cipher can",
		quote(name, quoted));
}

static bool
read_change(json_t *o, struct change *c, struct ctl_set_error *out)
{
	const char *name;
	json_t *v;
	if (!json_is_object(o) || !json_object_get(o, "public_key")) {
		return refuse(out, "request", "each of \"peers\" is an object with a public_key");
	}
	json_object_foreach(o, name, v)
	{
		if (!read_member(c, name, v, out)) {
			return false;
		}
	}
	return true;
}

static bool
read_request(const json_t *request, struct changes *all, struct ctl_set_error *out)
{
	json_t *peers = json_object_get(request, "peers");
	size_t n = json_array_size(peers);
	if (n == 0) {
		return refuse(out, "request", "\"peers\" is an array of at least one peer");
	}
	all->v = calloc(n, sizeof(*all->v));
	if (!all->v) {
		return refuse(out, "memory", "out of memory");
	}
	for (; all->n < n; all->n++) {
		struct change *c = &all->v[all->n];
		if (!read_change(json_array_get(peers, all->n), c, out)) {
			return false;
		}
		/* A request is bounded, and so are these comparisons: about 500 peers. */
		for (size_t i = 0; i < all->n; i++) {
			if (memcmp(all->v[i].key, c->key, KEY_LEN) == 0) {
				char text[KEY_BASE64_LEN + 1];
				return refuse(out, "value", "the peer %s is there twice",
					key_encode_base64(c->key, text));
			}
		}
	}
	return true;
}

static bool
find_peers(const struct wg_device *d, struct changes *all, struct ctl_set_error *out)
{
	for (size_t i = 0; i < all->n; i++) {
		struct change *c = &all->v[i];
		char text[KEY_BASE64_LEN + 1];
		c->peer = wg_peer_find(d, c->key);
		if (!c->peer) {
			return refuse(out, "unknown_peer", "no peer has the public key %s",
				key_encode_base64(c->key, text));
		}
	}
	return true;
}

static enum weft_err
apply(struct node *n, const struct change *c)
{
	struct ally_info info;
	struct conf_policy policy;
	node_ally_info(c->peer, &info);
	policy_to_conf(&info.policy, &policy);
	if (c->has_extensions) {
		policy.has_extensions = c->to.has_extensions;
	}
	if (c->has_fec) {
		policy.fec = c->to.fec;
		policy.fec_percent = c->to.fec_percent;
	}
	if (c->has_fec_delay) {
		policy.fec_delay_ms = c->to.fec_delay_ms;
	}
	if (c->has_cipher) {
		policy.cipher = c->to.cipher;
	}
	policy_from_conf(&policy, &info.policy);
	return node_set_policy(n, c->peer, &info.policy);
}

void
ctl_set(struct node *n, const json_t *request, struct ctl_set_error *out)
{
	struct changes all = {0};
	*out = (struct ctl_set_error){0};
	if (read_request(request, &all, out)) {
		struct wg_out *events;
		const struct wg_device *d = node_lock(n, &events);
		bool ok = find_peers(d, &all, out);
		for (size_t i = 0; ok && i < all.n; i++) {
			ok = apply(n, &all.v[i]) == WEFT_OK;
			if (!ok) {
				refuse(out, "memory", "out of memory after %zu of %zu peers", i,
					all.n);
			}
		}
		node_unlock(n);
	}
	free(all.v);
}
