/* SPDX-License-Identifier: Apache-2.0 */
/* The four messages of the WireGuard paper, section 5.4, as bytes and as structs.
 *
 * Handshake messages are copied into structs; data messages are read and written in place by
 * inlines, since they are the fast path. mac1 and mac2 cover the bytes before them, so whoever
 * computes them works on the encoded message: see WIRE_WG_*_MAC1_OFF. */
#ifndef WEFT_WIRE_WG_H
#define WEFT_WIRE_WG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/endian.h"
#include "crypto/aead.h"

#define WIRE_WG_KEY_LEN 32
#define WIRE_WG_TAG_LEN 16
#define WIRE_WG_MAC_LEN 16
#define WIRE_WG_STAMP_LEN 12 /* TAI64N */
#define WIRE_WG_NONCE_LEN 24
#define WIRE_WG_COOKIE_LEN 16
#define WIRE_WG_STATIC_SEALED_LEN (WIRE_WG_KEY_LEN + WIRE_WG_TAG_LEN)
#define WIRE_WG_STAMP_SEALED_LEN (WIRE_WG_STAMP_LEN + WIRE_WG_TAG_LEN)
#define WIRE_WG_COOKIE_SEALED_LEN (WIRE_WG_COOKIE_LEN + WIRE_WG_TAG_LEN)

#define WIRE_WG_INITIATION_LEN 148
#define WIRE_WG_RESPONSE_LEN 92
#define WIRE_WG_COOKIE_REPLY_LEN 64
#define WIRE_WG_DATA_HEADER_LEN 16
#define WIRE_WG_DATA_LEN_MIN 32 /* a keepalive: header and tag */
#define WIRE_WG_INITIATION_MAC1_OFF (WIRE_WG_INITIATION_LEN - 2 * WIRE_WG_MAC_LEN)
#define WIRE_WG_RESPONSE_MAC1_OFF (WIRE_WG_RESPONSE_LEN - 2 * WIRE_WG_MAC_LEN)

enum wire_wg_type {
	WIRE_WG_TYPE_NONE = 0,
	WIRE_WG_TYPE_INITIATION = 1,
	WIRE_WG_TYPE_RESPONSE = 2,
	WIRE_WG_TYPE_COOKIE_REPLY = 3,
	WIRE_WG_TYPE_DATA = 4,
};

struct wire_wg_initiation {
	uint32_t sender; /* the initiator's index */
	uint8_t ephemeral[WIRE_WG_KEY_LEN];
	uint8_t static_sealed[WIRE_WG_STATIC_SEALED_LEN];
	uint8_t stamp_sealed[WIRE_WG_STAMP_SEALED_LEN];
};

struct wire_wg_response {
	uint32_t sender;   /* the responder's index */
	uint32_t receiver; /* the initiator's index */
	uint8_t ephemeral[WIRE_WG_KEY_LEN];
	uint8_t empty_sealed[WIRE_WG_TAG_LEN];
};

struct wire_wg_cookie_reply {
	uint32_t receiver; /* sender index of the message that it answers */
	uint8_t nonce[WIRE_WG_NONCE_LEN];
	uint8_t cookie_sealed[WIRE_WG_COOKIE_SEALED_LEN];
};

/* Type and reserved bytes of a data message: all zero as in the paper, or the first of them is the
 * mark of weft's second cipher. */
#define WIRE_WG_DATA_WORD_CHACHA20_POLY1305 0x00000004u
#define WIRE_WG_DATA_WORD_AES_256_GCM 0x00000104u

/* The type in the first byte when it is known and the three reserved bytes are as they must be:
 * zero, except for the mark of a data message. */
static inline enum wire_wg_type
wire_wg_type(const uint8_t *data, size_t len)
{
	if (len < 4) {
		return WIRE_WG_TYPE_NONE;
	}
	uint32_t word = load_le32(data);
	if (word == WIRE_WG_DATA_WORD_AES_256_GCM) {
		return WIRE_WG_TYPE_DATA;
	}
	return word >= WIRE_WG_TYPE_INITIATION && word <= WIRE_WG_TYPE_DATA
		       ? (enum wire_wg_type)word
		       : WIRE_WG_TYPE_NONE;
}

/* Type, reserved bytes and exact length are checked; false leaves *out alone. */
bool wire_wg_initiation_decode(const uint8_t *data, size_t len, struct wire_wg_initiation *out);
bool wire_wg_response_decode(const uint8_t *data, size_t len, struct wire_wg_response *out);
bool wire_wg_cookie_reply_decode(const uint8_t *data, size_t len, struct wire_wg_cookie_reply *out);

/* Both macs are left zero. */
void wire_wg_initiation_encode(
	const struct wire_wg_initiation *m, uint8_t out[WIRE_WG_INITIATION_LEN]);
void wire_wg_response_encode(const struct wire_wg_response *m, uint8_t out[WIRE_WG_RESPONSE_LEN]);
void wire_wg_cookie_reply_encode(
	const struct wire_wg_cookie_reply *m, uint8_t out[WIRE_WG_COOKIE_REPLY_LEN]);

/* A data message: type, reserved bytes, shortest length. The length need not be a multiple of
 * 16: senders do not pad beyond their MTU, so that a full packet under MTU 1420 ends unpadded. */
static inline bool
wire_wg_data_is_well_formed(const uint8_t *data, size_t len)
{
	return len >= WIRE_WG_DATA_LEN_MIN && wire_wg_type(data, len) == WIRE_WG_TYPE_DATA;
}

/* As it is marked; whether the session allows it is the caller's question. */
static inline enum aead_cipher
wire_wg_data_cipher(const uint8_t *data)
{
	return load_le32(data) == WIRE_WG_DATA_WORD_AES_256_GCM ? AEAD_CIPHER_AES_256_GCM
								: AEAD_CIPHER_CHACHA20_POLY1305;
}

static inline uint32_t
wire_wg_data_receiver(const uint8_t *data)
{
	return load_le32(data + 4);
}

static inline uint64_t
wire_wg_data_counter(const uint8_t *data)
{
	return load_le64(data + 8);
}

static inline void
wire_wg_data_write_header(
	uint8_t *data, enum aead_cipher cipher, uint32_t receiver, uint64_t counter)
{
	store_le32(data, cipher == AEAD_CIPHER_AES_256_GCM ? WIRE_WG_DATA_WORD_AES_256_GCM
							   : WIRE_WG_DATA_WORD_CHACHA20_POLY1305);
	store_le32(data + 4, receiver);
	store_le64(data + 8, counter);
}

#endif
