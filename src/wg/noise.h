/* SPDX-License-Identifier: Apache-2.0 */
/* Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s as in the WireGuard paper, section 5.4: what is inside
 * the initiation and the response, and the keys that come out.
 *
 * Owns no policy: timestamps, peers, indices, macs and rates are the callers'. Random bytes are
 * arguments. A message that does not authenticate changes nothing. */
#ifndef WEFT_WG_NOISE_H
#define WEFT_WG_NOISE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/wg.h"

#define WG_NOISE_KEY_LEN 32
#define WG_NOISE_HASH_LEN 32

struct crypto;

/* Our own key, and what is computed from it once. */
struct wg_noise_identity {
	bool has_key; /* nothing below is valid without */
	uint8_t private_key[WG_NOISE_KEY_LEN];
	uint8_t public_key[WG_NOISE_KEY_LEN];
	uint8_t chaining_key[WG_NOISE_HASH_LEN]; /* HASH(CONSTRUCTION) */
	uint8_t prologue[WG_NOISE_HASH_LEN];     /* HASH(chaining_key || IDENTIFIER) */
};

/* The other side as it is configured. */
struct wg_noise_remote {
	bool has_shared; /* shared is computed at the first handshake, not at configuration */
	uint8_t public_key[WG_NOISE_KEY_LEN];
	uint8_t psk[WG_NOISE_KEY_LEN];    /* zeros = none */
	uint8_t shared[WG_NOISE_KEY_LEN]; /* DH of both static keys */
};

/* An initiator between its initiation and the response. */
struct wg_noise_pending {
	uint8_t ephemeral_private[WG_NOISE_KEY_LEN];
	uint8_t chaining_key[WG_NOISE_HASH_LEN];
	uint8_t hash[WG_NOISE_HASH_LEN];
};

/* A responder between the initiation and its response. */
struct wg_noise_incoming {
	uint32_t sender;
	uint8_t remote_static[WG_NOISE_KEY_LEN];
	uint8_t remote_ephemeral[WG_NOISE_KEY_LEN];
	uint8_t stamp[WIRE_WG_STAMP_LEN];
	uint8_t chaining_key[WG_NOISE_HASH_LEN];
	uint8_t hash[WG_NOISE_HASH_LEN];
};

/* Of one session, seen from here. The keys of AES-256-GCM are weft's own: docs/protocol.md. */
struct wg_noise_keys {
	uint8_t send[WG_NOISE_KEY_LEN];
	uint8_t recv[WG_NOISE_KEY_LEN];
	uint8_t send_aes[WG_NOISE_KEY_LEN];
	uint8_t recv_aes[WG_NOISE_KEY_LEN];
};

/* NULL clears. WEFT_ENOMEM: cleared as well. */
WEFT_MUST_CHECK enum weft_err wg_noise_identity_set(struct crypto *c, struct wg_noise_identity *id,
	const uint8_t private_key[WG_NOISE_KEY_LEN]);

/* Initiator, first message. pending->ephemeral_private and msg->sender are the caller's; the
 * rest of both is filled in. WEFT_ECRYPTO: the remote's key is a point of small order. */
WEFT_MUST_CHECK enum weft_err wg_noise_initiate(struct crypto *c,
	const struct wg_noise_identity *id, struct wg_noise_remote *remote,
	struct wg_noise_pending *pending, const uint8_t stamp[WIRE_WG_STAMP_LEN],
	struct wire_wg_initiation *msg);

/* Responder, first message, in two steps, since the sender's key says who it is: this one
 * gives in->remote_static ... */
WEFT_MUST_CHECK enum weft_err wg_noise_open_static(struct crypto *c,
	const struct wg_noise_identity *id, const struct wire_wg_initiation *msg,
	struct wg_noise_incoming *in);
/* ... and this one, with the peer found, in->stamp. */
WEFT_MUST_CHECK enum weft_err wg_noise_open_stamp(struct crypto *c,
	const struct wg_noise_identity *id, struct wg_noise_remote *remote,
	const struct wire_wg_initiation *msg, struct wg_noise_incoming *in);
/* Responder, second message. msg->sender is the caller's. in is used up. */
WEFT_MUST_CHECK enum weft_err wg_noise_respond(struct crypto *c,
	const struct wg_noise_remote *remote, struct wg_noise_incoming *in,
	const uint8_t ephemeral_private[WG_NOISE_KEY_LEN], struct wire_wg_response *msg,
	struct wg_noise_keys *keys);
/* Initiator, second message. pending stays as it is, so that the true response can still come
 * after a forged one. */
WEFT_MUST_CHECK enum weft_err wg_noise_open_response(struct crypto *c,
	const struct wg_noise_identity *id, const struct wg_noise_remote *remote,
	const struct wg_noise_pending *pending, const struct wire_wg_response *msg,
	struct wg_noise_keys *keys);

#endif
