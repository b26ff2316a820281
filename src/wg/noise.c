/* SPDX-License-Identifier: Apache-2.0 */
#include "wg/noise.h"

#include <string.h>

#include "crypto/dh.h"
#include "crypto/hash.h"
#include "crypto/kdf.h"
#include "crypto/secret.h"
#include "crypto/xaead.h"

/* Section 5.4: neither has a final NUL in the hash. */
static const char construction[] = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
static const char identifier[] = "WireGuard v1 zx2c4 Jason@zx2c4.com";
/* weft's own, likewise: what a key of ChaCha20-Poly1305 becomes one of AES-256-GCM by. */
static const char aes_label[] = "weft v1 AES-256-GCM";

/* The two running values of a handshake, in steps that Noise names. */
struct symmetric {
	uint8_t chaining_key[WG_NOISE_HASH_LEN];
	uint8_t hash[WG_NOISE_HASH_LEN];
	uint8_t key[WG_NOISE_KEY_LEN]; /* of the next sealed field; each is used once */
};

static void
mix_hash(struct crypto *c, struct symmetric *s, const void *data, size_t len)
{
	hash_blake2s(c, s->hash, s->hash, sizeof(s->hash), data, len);
}

/* HASH(CONSTRUCTION), IDENTIFIER and the responder's static key. */
static void
start(struct crypto *c, const struct wg_noise_identity *id, struct symmetric *s,
	const uint8_t responder[WG_NOISE_KEY_LEN])
{
	memcpy(s->chaining_key, id->chaining_key, sizeof(s->chaining_key));
	memcpy(s->hash, id->prologue, sizeof(s->hash));
	mix_hash(c, s, responder, WG_NOISE_KEY_LEN);
}

static void
mix_ephemeral(struct crypto *c, struct symmetric *s, const uint8_t public_key[WG_NOISE_KEY_LEN])
{
	mix_hash(c, s, public_key, WG_NOISE_KEY_LEN);
	kdf1(c, s->chaining_key, s->chaining_key, public_key, WG_NOISE_KEY_LEN);
}

static void
mix_key(struct crypto *c, struct symmetric *s, const uint8_t input[WG_NOISE_KEY_LEN])
{
	kdf2(c, s->chaining_key, s->key, s->chaining_key, input, WG_NOISE_KEY_LEN);
}

/* A DH whose result goes into the chaining key and yields a key. */
static enum weft_err
mix_dh(struct crypto *c, struct symmetric *s, const uint8_t private_key[WG_NOISE_KEY_LEN],
	const uint8_t public_key[WG_NOISE_KEY_LEN])
{
	uint8_t dh[DH_LEN];
	enum weft_err e = dh_x25519(c, dh, private_key, public_key);
	if (!e) {
		mix_key(c, s, dh);
	}
	secret_wipe(dh, sizeof(dh));
	return e;
}

static void
mix_psk(struct crypto *c, struct symmetric *s, const uint8_t psk[WG_NOISE_KEY_LEN])
{
	uint8_t tau[KDF_LEN];
	kdf3(c, s->chaining_key, tau, s->key, s->chaining_key, psk);
	mix_hash(c, s, tau, sizeof(tau));
	secret_wipe(tau, sizeof(tau));
}

static void
seal_and_hash(struct crypto *c, struct symmetric *s, uint8_t *out, const void *text, size_t len)
{
	aead_msg_seal(c, out, s->key, 0, (struct xaead_bytes){text, len},
		(struct xaead_bytes){s->hash, sizeof(s->hash)});
	mix_hash(c, s, out, len + XAEAD_TAG_LEN);
}

static enum weft_err
open_and_hash(
	struct crypto *c, struct symmetric *s, uint8_t *out, const uint8_t *sealed, size_t len)
{
	enum weft_err e = aead_msg_open(c, out, s->key, 0, (struct xaead_bytes){sealed, len},
		(struct xaead_bytes){s->hash, sizeof(s->hash)});
	if (!e) {
		mix_hash(c, s, sealed, len);
	}
	return e;
}

/* Section 5.4.5, of whose two keys the first is the initiator's for sending; then the keys of the
 * other cipher, from these. */
static void
split(struct crypto *c, const struct symmetric *s, bool is_initiator, struct wg_noise_keys *keys)
{
	uint8_t *to_responder = is_initiator ? keys->send : keys->recv;
	uint8_t *to_initiator = is_initiator ? keys->recv : keys->send;
	kdf2(c, to_responder, to_initiator, s->chaining_key, NULL, 0);
	kdf1(c, keys->send_aes, keys->send, aes_label, sizeof(aes_label) - 1);
	kdf1(c, keys->recv_aes, keys->recv, aes_label, sizeof(aes_label) - 1);
}

static enum weft_err
find_shared(struct crypto *c, const struct wg_noise_identity *id, struct wg_noise_remote *remote)
{
	if (remote->has_shared) {
		return WEFT_OK;
	}
	enum weft_err e = dh_x25519(c, remote->shared, id->private_key, remote->public_key);
	remote->has_shared = !e;
	return e;
}

enum weft_err
wg_noise_identity_set(
	struct crypto *c, struct wg_noise_identity *id, const uint8_t private_key[WG_NOISE_KEY_LEN])
{
	struct wg_noise_identity new = {0};
	enum weft_err e = WEFT_OK;
	if (private_key) {
		memcpy(new.private_key, private_key, sizeof(new.private_key));
		dh_clamp(new.private_key);
		hash_blake2s(c, new.chaining_key, construction, sizeof(construction) - 1, NULL, 0);
		hash_blake2s(c, new.prologue, new.chaining_key, sizeof(new.chaining_key),
			identifier, sizeof(identifier) - 1);
		e = dh_public(c, new.public_key, new.private_key);
		new.has_key = !e;
	}
	if (e) {
		secret_wipe(&new, sizeof(new));
	}
	*id = new;
	secret_wipe(&new, sizeof(new));
	return e;
}

enum weft_err
wg_noise_initiate(struct crypto *c, const struct wg_noise_identity *id,
	struct wg_noise_remote *remote, struct wg_noise_pending *pending,
	const uint8_t stamp[WIRE_WG_STAMP_LEN], struct wire_wg_initiation *msg)
{
	struct symmetric s;
	start(c, id, &s, remote->public_key);
	enum weft_err e = dh_public(c, msg->ephemeral, pending->ephemeral_private);
	if (!e) {
		mix_ephemeral(c, &s, msg->ephemeral);
		e = mix_dh(c, &s, pending->ephemeral_private, remote->public_key);
	}
	if (!e) {
		e = find_shared(c, id, remote);
	}
	if (!e) {
		seal_and_hash(c, &s, msg->static_sealed, id->public_key, sizeof(id->public_key));
		mix_key(c, &s, remote->shared);
		seal_and_hash(c, &s, msg->stamp_sealed, stamp, WIRE_WG_STAMP_LEN);
		memcpy(pending->chaining_key, s.chaining_key, sizeof(pending->chaining_key));
		memcpy(pending->hash, s.hash, sizeof(pending->hash));
	}
	secret_wipe(&s, sizeof(s));
	return e;
}

enum weft_err
wg_noise_open_static(struct crypto *c, const struct wg_noise_identity *id,
	const struct wire_wg_initiation *msg, struct wg_noise_incoming *in)
{
	struct symmetric s;
	start(c, id, &s, id->public_key);
	mix_ephemeral(c, &s, msg->ephemeral);
	enum weft_err e = mix_dh(c, &s, id->private_key, msg->ephemeral);
	if (!e) {
		e = open_and_hash(
			c, &s, in->remote_static, msg->static_sealed, sizeof(msg->static_sealed));
	}
	if (!e) {
		in->sender = msg->sender;
		memcpy(in->remote_ephemeral, msg->ephemeral, sizeof(in->remote_ephemeral));
		memcpy(in->chaining_key, s.chaining_key, sizeof(in->chaining_key));
		memcpy(in->hash, s.hash, sizeof(in->hash));
	}
	secret_wipe(&s, sizeof(s));
	return e;
}

/* Continues where in stands. */
static void
resume(struct symmetric *s, const uint8_t chaining_key[WG_NOISE_HASH_LEN],
	const uint8_t hash[WG_NOISE_HASH_LEN])
{
	memcpy(s->chaining_key, chaining_key, sizeof(s->chaining_key));
	memcpy(s->hash, hash, sizeof(s->hash));
}

enum weft_err
wg_noise_open_stamp(struct crypto *c, const struct wg_noise_identity *id,
	struct wg_noise_remote *remote, const struct wire_wg_initiation *msg,
	struct wg_noise_incoming *in)
{
	enum weft_err e = find_shared(c, id, remote);
	if (e) {
		return e;
	}
	struct symmetric s;
	resume(&s, in->chaining_key, in->hash);
	mix_key(c, &s, remote->shared);
	e = open_and_hash(c, &s, in->stamp, msg->stamp_sealed, sizeof(msg->stamp_sealed));
	if (!e) {
		memcpy(in->chaining_key, s.chaining_key, sizeof(in->chaining_key));
		memcpy(in->hash, s.hash, sizeof(in->hash));
	}
	secret_wipe(&s, sizeof(s));
	return e;
}

enum weft_err
wg_noise_respond(struct crypto *c, const struct wg_noise_remote *remote,
	struct wg_noise_incoming *in, const uint8_t ephemeral_private[WG_NOISE_KEY_LEN],
	struct wire_wg_response *msg, struct wg_noise_keys *keys)
{
	struct symmetric s;
	resume(&s, in->chaining_key, in->hash);
	msg->receiver = in->sender;
	enum weft_err e = dh_public(c, msg->ephemeral, ephemeral_private);
	if (!e) {
		mix_ephemeral(c, &s, msg->ephemeral);
		e = mix_dh(c, &s, ephemeral_private, in->remote_ephemeral);
	}
	if (!e) {
		e = mix_dh(c, &s, ephemeral_private, remote->public_key);
	}
	if (!e) {
		mix_psk(c, &s, remote->psk);
		seal_and_hash(c, &s, msg->empty_sealed, NULL, 0);
		split(c, &s, false, keys);
	}
	secret_wipe(&s, sizeof(s));
	secret_wipe(in, sizeof(*in));
	return e;
}

enum weft_err
wg_noise_open_response(struct crypto *c, const struct wg_noise_identity *id,
	const struct wg_noise_remote *remote, const struct wg_noise_pending *pending,
	const struct wire_wg_response *msg, struct wg_noise_keys *keys)
{
	struct symmetric s;
	resume(&s, pending->chaining_key, pending->hash);
	mix_ephemeral(c, &s, msg->ephemeral);
	enum weft_err e = mix_dh(c, &s, pending->ephemeral_private, msg->ephemeral);
	if (!e) {
		e = mix_dh(c, &s, id->private_key, msg->ephemeral);
	}
	if (!e) {
		mix_psk(c, &s, remote->psk);
		uint8_t empty[1]; /* nothing is written; some place must be named */
		e = open_and_hash(c, &s, empty, msg->empty_sealed, sizeof(msg->empty_sealed));
	}
	if (!e) {
		split(c, &s, true, keys);
	}
	secret_wipe(&s, sizeof(s));
	return e;
}
