/* SPDX-License-Identifier: Apache-2.0 */
#include "wg/cookie.h"

#include <string.h>

#include "base/endian.h"
#include "crypto/hash.h"
#include "crypto/secret.h"
#include "crypto/xaead.h"

#define MACS_LEN (2 * WIRE_WG_MAC_LEN)

static void
derive(struct crypto *c, uint8_t out[WG_COOKIE_KEY_LEN], const char label[8],
	const uint8_t public_key[WIRE_WG_KEY_LEN])
{
	hash_blake2s(c, out, label, 8, public_key, WIRE_WG_KEY_LEN);
}

static void
mac1_key(
	struct crypto *c, uint8_t out[WG_COOKIE_KEY_LEN], const uint8_t public_key[WIRE_WG_KEY_LEN])
{
	derive(c, out, "mac1----", public_key);
}

static void
sealing_key(
	struct crypto *c, uint8_t out[WG_COOKIE_KEY_LEN], const uint8_t public_key[WIRE_WG_KEY_LEN])
{
	derive(c, out, "cookie--", public_key);
}

void
wg_cookie_checker_set_key(
	struct crypto *c, struct wg_cookie_checker *k, const uint8_t public_key[WIRE_WG_KEY_LEN])
{
	mac1_key(c, k->mac1_key, public_key);
	sealing_key(c, k->sealing_key, public_key);
}

bool
wg_cookie_check_mac1(
	struct crypto *c, const struct wg_cookie_checker *k, const struct wg_cookie_claim *m)
{
	uint8_t mac[MAC_LEN];
	size_t signed_len = m->len - MACS_LEN;
	mac_blake2s(c, mac, k->mac1_key, sizeof(k->mac1_key), m->msg, signed_len);
	return secret_is_equal(mac, m->msg + signed_len, sizeof(mac));
}

/* The cookie of a source: section 5.4.7 binds it to address and port. */
static void
cookie_of(struct crypto *c, const struct wg_cookie_checker *k, const struct endpoint *from,
	uint8_t out[WIRE_WG_COOKIE_LEN])
{
	uint8_t source[16 + 2];
	size_t len = ip_family_len(from->addr.family);
	memcpy(source, from->addr.b, len);
	store_be16(source + len, from->port);
	mac_blake2s(c, out, k->secret, sizeof(k->secret), source, len + 2);
}

static bool
has_fresh_secret(const struct wg_cookie_checker *k, struct mono now)
{
	return k->has_secret && mono_diff_ns(now, k->secret_born) < WG_COOKIE_SECRET_MAX_AGE_NS;
}

bool
wg_cookie_check_mac2(struct crypto *c, const struct wg_cookie_checker *k,
	const struct wg_cookie_claim *m, struct mono now)
{
	/* Zeros of whoever has no cookie (section 5.4.4), as most of a flood: two MACs less. */
	size_t signed_len = m->len - WIRE_WG_MAC_LEN;
	if (!has_fresh_secret(k, now) || secret_is_zero(m->msg + signed_len, WIRE_WG_MAC_LEN)) {
		return false;
	}
	uint8_t cookie[WIRE_WG_COOKIE_LEN];
	uint8_t mac[MAC_LEN];
	cookie_of(c, k, m->from, cookie);
	mac_blake2s(c, mac, cookie, sizeof(cookie), m->msg, signed_len);
	secret_wipe(cookie, sizeof(cookie));
	return secret_is_equal(mac, m->msg + signed_len, sizeof(mac));
}

void
wg_cookie_reply(struct crypto *c, struct wg_cookie_checker *k, const struct entropy *entropy,
	const struct wg_cookie_claim *m, struct mono now, uint8_t out[WIRE_WG_COOKIE_REPLY_LEN])
{
	if (!has_fresh_secret(k, now)) {
		entropy->fill(entropy->ctx, k->secret, sizeof(k->secret));
		k->secret_born = now;
		k->has_secret = true;
	}
	struct wire_wg_cookie_reply reply = {.receiver = load_le32(m->msg + 4)};
	uint8_t cookie[WIRE_WG_COOKIE_LEN];
	cookie_of(c, k, m->from, cookie);
	entropy->fill(entropy->ctx, reply.nonce, sizeof(reply.nonce));
	xaead_seal(c, reply.cookie_sealed, k->sealing_key, reply.nonce,
		(struct xaead_bytes){cookie, sizeof(cookie)},
		(struct xaead_bytes){m->msg + m->len - MACS_LEN, WIRE_WG_MAC_LEN});
	wire_wg_cookie_reply_encode(&reply, out);
	secret_wipe(cookie, sizeof(cookie));
}

static bool
has_fresh_cookie(const struct wg_cookie_jar *jar, struct mono now)
{
	return jar->has_cookie &&
	       mono_diff_ns(now, jar->born) < WG_COOKIE_SECRET_MAX_AGE_NS - WG_COOKIE_LATENCY_NS;
}

void
wg_cookie_jar_sign(struct crypto *c, struct wg_cookie_jar *jar,
	const uint8_t public_key[WIRE_WG_KEY_LEN], struct mono now, uint8_t *msg, size_t len)
{
	uint8_t key[WG_COOKIE_KEY_LEN];
	uint8_t *mac1 = msg + len - MACS_LEN;
	uint8_t *mac2 = msg + len - WIRE_WG_MAC_LEN;
	mac1_key(c, key, public_key);
	mac_blake2s(c, mac1, key, sizeof(key), msg, len - MACS_LEN);
	memcpy(jar->mac1, mac1, sizeof(jar->mac1));
	jar->has_mac1 = true;
	if (has_fresh_cookie(jar, now)) {
		mac_blake2s(c, mac2, jar->cookie, sizeof(jar->cookie), msg, len - WIRE_WG_MAC_LEN);
	} else {
		memset(mac2, 0, WIRE_WG_MAC_LEN);
	}
}

bool
wg_cookie_jar_take(struct crypto *c, struct wg_cookie_jar *jar,
	const uint8_t public_key[WIRE_WG_KEY_LEN], struct mono now,
	const struct wire_wg_cookie_reply *reply)
{
	if (!jar->has_mac1) {
		return false;
	}
	uint8_t key[WG_COOKIE_KEY_LEN];
	uint8_t cookie[WIRE_WG_COOKIE_LEN];
	sealing_key(c, key, public_key);
	if (xaead_open(c, cookie, key, reply->nonce,
		    (struct xaead_bytes){reply->cookie_sealed, sizeof(reply->cookie_sealed)},
		    (struct xaead_bytes){jar->mac1, sizeof(jar->mac1)})) {
		return false;
	}
	memcpy(jar->cookie, cookie, sizeof(jar->cookie));
	secret_wipe(cookie, sizeof(cookie));
	jar->born = now;
	jar->has_cookie = true;
	/* One message, one cookie: a replayed reply does not keep an old cookie young. */
	jar->has_mac1 = false;
	return true;
}
