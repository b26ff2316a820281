/* SPDX-License-Identifier: Apache-2.0 */
/* mac1, mac2 and cookies: WireGuard paper, sections 5.3, 5.4.4 and 5.4.7.
 *
 * The checker is a device's side: it tests the macs of arriving messages and makes cookie
 * replies. The jar is a peer's: it signs what goes out and keeps the cookie that came back. */
#ifndef WEFT_WG_COOKIE_H
#define WEFT_WG_COOKIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/entropy.h"
#include "base/mono.h"
#include "wire/wg.h"

#define WG_COOKIE_KEY_LEN 32
#define WG_COOKIE_SECRET_MAX_AGE_NS (120 * WEFT_NS_PER_S)
/* A cookie is not used in its last seconds, when it may expire on the way. */
#define WG_COOKIE_LATENCY_NS (5 * WEFT_NS_PER_S)

struct crypto;

struct wg_cookie_checker {
	uint8_t mac1_key[WG_COOKIE_KEY_LEN];    /* from our public key */
	uint8_t sealing_key[WG_COOKIE_KEY_LEN]; /* from our public key */
	uint8_t secret[WG_COOKIE_KEY_LEN];      /* random, new every two minutes */
	struct mono secret_born;
	bool has_secret;
};

struct wg_cookie_jar {
	uint8_t cookie[WIRE_WG_COOKIE_LEN];
	uint8_t mac1[WIRE_WG_MAC_LEN]; /* of the last message signed */
	struct mono born;
	bool has_cookie;
	bool has_mac1; /* and no cookie came for it yet */
};

/* An arrived handshake message with macs at its end. */
struct wg_cookie_claim {
	const uint8_t *msg;
	size_t len;
	const struct endpoint *from;
};

void wg_cookie_checker_set_key(
	struct crypto *c, struct wg_cookie_checker *k, const uint8_t public_key[WIRE_WG_KEY_LEN]);
bool wg_cookie_check_mac1(
	struct crypto *c, const struct wg_cookie_checker *k, const struct wg_cookie_claim *m);
/* Does mac2 prove that the sender has a cookie of us for its address and port? */
bool wg_cookie_check_mac2(struct crypto *c, const struct wg_cookie_checker *k,
	const struct wg_cookie_claim *m, struct mono now);
/* A reply to m, whose mac1 is right. Renews the secret when it is too old. */
void wg_cookie_reply(struct crypto *c, struct wg_cookie_checker *k, const struct entropy *entropy,
	const struct wg_cookie_claim *m, struct mono now, uint8_t out[WIRE_WG_COOKIE_REPLY_LEN]);

/* Writes both macs of a message to the owner of public_key. */
void wg_cookie_jar_sign(struct crypto *c, struct wg_cookie_jar *jar,
	const uint8_t public_key[WIRE_WG_KEY_LEN], struct mono now, uint8_t *msg, size_t len);
/* False when the reply is not an answer to the last message signed. */
bool wg_cookie_jar_take(struct crypto *c, struct wg_cookie_jar *jar,
	const uint8_t public_key[WIRE_WG_KEY_LEN], struct mono now,
	const struct wire_wg_cookie_reply *reply);

#endif
