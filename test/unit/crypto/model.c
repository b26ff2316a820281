/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/endian.h"

static uint32_t
rotate_left(uint32_t v, unsigned n)
{
	return (v << n) | (v >> (32 - n));
}

/* --- BLAKE2s --- */

static const uint32_t blake2s_iv[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
	0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static const uint8_t blake2s_sigma[10][16] = {
	{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	{14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
	{11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
	{7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
	{9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
	{2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
	{12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
	{13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
	{6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
	{10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static void
blake2s_mix(uint32_t v[16], const uint8_t at[4], uint32_t x, uint32_t y)
{
	uint32_t *a = &v[at[0]], *b = &v[at[1]], *c = &v[at[2]], *d = &v[at[3]];
	*a += *b + x;
	*d = rotate_left(*d ^ *a, 16);
	*c += *d;
	*b = rotate_left(*b ^ *c, 20);
	*a += *b + y;
	*d = rotate_left(*d ^ *a, 24);
	*c += *d;
	*b = rotate_left(*b ^ *c, 25);
}

static void
blake2s_compress(uint32_t h[8], const uint8_t block[64], uint64_t total, bool is_last)
{
	static const uint8_t lanes[8][4] = {{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14},
		{3, 7, 11, 15}, {0, 5, 10, 15}, {1, 6, 11, 12}, {2, 7, 8, 13}, {3, 4, 9, 14}};
	uint32_t v[16], m[16];
	for (size_t i = 0; i < 16; i++) {
		m[i] = load_le32(block + 4 * i);
		v[i] = i < 8 ? h[i] : blake2s_iv[i - 8];
	}
	v[12] ^= (uint32_t)total;
	v[13] ^= (uint32_t)(total >> 32);
	v[14] ^= is_last ? UINT32_MAX : 0;
	for (size_t round = 0; round < 10; round++) {
		const uint8_t *s = blake2s_sigma[round];
		for (size_t i = 0; i < 8; i++) {
			blake2s_mix(v, lanes[i], m[s[2 * i]], m[s[2 * i + 1]]);
		}
	}
	for (size_t i = 0; i < 8; i++) {
		h[i] ^= v[i] ^ v[i + 8];
	}
}

void
model_blake2s(uint8_t *out, size_t out_len, const uint8_t *key, size_t key_len, const uint8_t *data,
	size_t len)
{
	/* Key block and data in one piece. */
	const size_t head = key_len > 0 ? 64 : 0;
	uint8_t *all = calloc(1, head + len + 64);
	assert_non_null(all);
	if (key_len > 0) {
		memcpy(all, key, key_len);
	}
	if (len > 0) {
		memcpy(all + head, data, len);
	}
	uint32_t h[8];
	memcpy(h, blake2s_iv, sizeof(h));
	h[0] ^= 0x01010000 ^ (uint32_t)(key_len << 8) ^ (uint32_t)out_len;
	const size_t total = head + len;
	size_t at = 0;
	for (; total - at > 64; at += 64) {
		blake2s_compress(h, all + at, at + 64, false);
	}
	blake2s_compress(h, all + at, total, true);
	for (size_t i = 0; i < out_len; i++) {
		out[i] = (uint8_t)(h[i / 4] >> (8 * (i % 4)));
	}
	free(all);
}

void
model_hmac(uint8_t out[32], const uint8_t *key, size_t key_len, const uint8_t *data, size_t len)
{
	uint8_t *inner = calloc(1, 64 + len);
	uint8_t outer[64 + 32] = {0};
	assert_non_null(inner);
	assert_true(key_len <= 64);
	memcpy(inner, key, key_len);
	memcpy(outer, key, key_len);
	for (size_t i = 0; i < 64; i++) {
		inner[i] ^= 0x36;
		outer[i] ^= 0x5c;
	}
	if (len > 0) {
		memcpy(inner + 64, data, len);
	}
	model_blake2s(outer + 64, 32, NULL, 0, inner, 64 + len);
	model_blake2s(out, 32, NULL, 0, outer, sizeof(outer));
	free(inner);
}

/* --- ChaCha20 --- */

static void
quarter_round(uint32_t v[16], const uint8_t at[4])
{
	uint32_t *a = &v[at[0]], *b = &v[at[1]], *c = &v[at[2]], *d = &v[at[3]];
	*a += *b;
	*d = rotate_left(*d ^ *a, 16);
	*c += *d;
	*b = rotate_left(*b ^ *c, 12);
	*a += *b;
	*d = rotate_left(*d ^ *a, 8);
	*c += *d;
	*b = rotate_left(*b ^ *c, 7);
}

static void
chacha20_rounds(uint32_t start[16], uint32_t v[16], const uint8_t key[32], const uint8_t in[16])
{
	static const uint8_t lanes[8][4] = {{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14},
		{3, 7, 11, 15}, {0, 5, 10, 15}, {1, 6, 11, 12}, {2, 7, 8, 13}, {3, 4, 9, 14}};
	const char *constants = "expand 32-byte k";
	for (size_t i = 0; i < 4; i++) {
		start[i] = load_le32(constants + 4 * i);
		start[4 + i] = load_le32(key + 4 * i);
		start[8 + i] = load_le32(key + 16 + 4 * i);
		start[12 + i] = load_le32(in + 4 * i);
	}
	memcpy(v, start, 64);
	for (size_t i = 0; i < 80; i++) {
		quarter_round(v, lanes[i % 8]);
	}
}

void
model_chacha20_block(uint8_t out[64], const uint8_t key[32], const uint8_t in[16])
{
	uint32_t start[16], v[16];
	chacha20_rounds(start, v, key, in);
	for (size_t i = 0; i < 16; i++) {
		store_le32(out + 4 * i, v[i] + start[i]);
	}
}

void
model_hchacha20(uint8_t out[32], const uint8_t key[32], const uint8_t in[16])
{
	uint32_t start[16], v[16];
	chacha20_rounds(start, v, key, in);
	for (size_t i = 0; i < 4; i++) {
		store_le32(out + 4 * i, v[i]);
		store_le32(out + 16 + 4 * i, v[12 + i]);
	}
}

/* --- Poly1305 --- */

/* Numbers below 2^136 as 17 bytes, least significant first, each in a wider cell. */
struct wide {
	uint32_t b[17];
};

/* Brings every cell below 256 and the number near 2^130, using 2^130 = 5. Twice, as the first
 * pass may carry into the top again. */
static void
wide_carry(struct wide *w)
{
	for (int pass = 0; pass < 2; pass++) {
		uint32_t carry = 0;
		for (size_t i = 0; i < 17; i++) {
			w->b[i] += carry;
			carry = w->b[i] >> 8;
			w->b[i] &= 0xff;
		}
		/* Bits 130 and up: the top cell starts at bit 128. */
		uint32_t over = (carry << 6) + (w->b[16] >> 2);
		w->b[16] &= 3;
		w->b[0] += 5 * over;
	}
}

static void
wide_multiply(struct wide *h, const struct wide *r)
{
	struct wide product = {{0}};
	for (size_t i = 0; i < 17; i++) {
		for (size_t j = 0; j < 17; j++) {
			/* Position 17 stands for 2^136 = 2^6 * 2^130 = 320. */
			uint32_t p = h->b[i] * r->b[j];
			if (i + j < 17) {
				product.b[i + j] += p;
			} else {
				product.b[i + j - 17] += 320 * p;
			}
		}
	}
	*h = product;
	wide_carry(h);
}

static void
poly1305(uint8_t tag[16], const uint8_t key[32], const uint8_t *data, size_t len)
{
	struct wide r = {{0}}, h = {{0}}, less = {{0}};
	for (size_t i = 0; i < 16; i++) {
		r.b[i] = key[i] & (i % 4 == 3 ? 0x0f : i % 4 == 0 && i > 0 ? 0xfc : 0xff);
	}
	for (size_t at = 0; at < len; at += 16) {
		size_t n = len - at < 16 ? len - at : 16;
		for (size_t i = 0; i < n; i++) {
			h.b[i] += data[at + i];
		}
		h.b[n] += 1;
		wide_multiply(&h, &r);
	}
	wide_carry(&h);
	/* h mod p: h + 5 reaches 2^130 exactly when h >= p. */
	less = h;
	uint32_t carry = 5;
	for (size_t i = 0; i < 17; i++) {
		less.b[i] += carry;
		carry = less.b[i] >> 8;
		less.b[i] &= 0xff;
	}
	const struct wide *reduced = less.b[16] >= 4 ? &less : &h;
	carry = 0;
	for (size_t i = 0; i < 16; i++) {
		carry += reduced->b[i] + key[16 + i];
		tag[i] = (uint8_t)carry;
		carry >>= 8;
	}
}

/* --- AEAD --- */

static size_t
padded(size_t len)
{
	return (len + 15) / 16 * 16;
}

void
model_aead_seal(uint8_t *out, const uint8_t key[32], const uint8_t nonce[12],
	struct model_text text, struct model_text ad)
{
	uint8_t in[16], block[64];
	memcpy(in + 4, nonce, 12);
	for (size_t at = 0; at < text.len; at += 64) {
		store_le32(in, (uint32_t)(at / 64 + 1));
		model_chacha20_block(block, key, in);
		for (size_t i = at; i < text.len && i < at + 64; i++) {
			out[i] = text.p[i] ^ block[i - at];
		}
	}
	const size_t total = padded(ad.len) + padded(text.len) + 16;
	uint8_t *mac = calloc(1, total);
	assert_non_null(mac);
	if (ad.len > 0) {
		memcpy(mac, ad.p, ad.len);
	}
	memcpy(mac + padded(ad.len), out, text.len);
	store_le64(mac + total - 16, ad.len);
	store_le64(mac + total - 8, text.len);
	store_le32(in, 0);
	model_chacha20_block(block, key, in);
	poly1305(out + text.len, block, mac, total);
	free(mac);
}

/* --- test vectors --- */

static int
hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c == 0 ? NULL : strchr(digits, c);
	return at == NULL ? -1 : (int)(at - digits);
}

/* --- AES-256-GCM --- */

/* FIPS 197, section 4.2. */
static uint8_t
aes_multiply(uint8_t a, uint8_t b)
{
	uint8_t product = 0;
	for (unsigned i = 0; i < 8; i++) {
		product ^= (b >> i) & 1 ? a : 0;
		a = (uint8_t)((a << 1) ^ (a & 0x80 ? 0x1b : 0));
	}
	return product;
}

/* FIPS 197, section 5.1.1: the inverse, found by trying, and the affine map. */
static uint8_t
aes_substitute(uint8_t a)
{
	unsigned inverse = 0;
	while (a != 0 && aes_multiply(a, (uint8_t)inverse) != 1) {
		inverse++;
	}
	uint8_t out = 0x63;
	for (unsigned i = 0; i < 5; i++) {
		out ^= (uint8_t)((inverse << i) | (inverse >> (8 - i)));
	}
	return out;
}

/* What the tests of many packets need of one key. */
struct aes {
	uint8_t sbox[256];
	uint8_t round_keys[15][16];
};

static void
aes_init(struct aes *x, const uint8_t key[32])
{
	uint8_t *w = x->round_keys[0];
	uint8_t constant = 1;
	for (unsigned i = 0; i < 256; i++) {
		x->sbox[i] = aes_substitute((uint8_t)i);
	}
	memcpy(w, key, 32);
	for (unsigned i = 8; i < 60; i++) { /* words */
		uint8_t t[4];
		memcpy(t, w + 4 * (i - 1), 4);
		if (i % 8 == 0) {
			const uint8_t first = t[0];
			t[0] = x->sbox[t[1]] ^ constant;
			t[1] = x->sbox[t[2]];
			t[2] = x->sbox[t[3]];
			t[3] = x->sbox[first];
			constant = aes_multiply(constant, 2);
		} else if (i % 8 == 4) {
			for (unsigned k = 0; k < 4; k++) {
				t[k] = x->sbox[t[k]];
			}
		}
		for (unsigned k = 0; k < 4; k++) {
			w[4 * i + k] = w[4 * (i - 8) + k] ^ t[k];
		}
	}
}

static void
aes_block(const struct aes *x, const uint8_t in[16], uint8_t out[16])
{
	static const uint8_t mix[4] = {2, 3, 1, 1};
	uint8_t s[16];
	for (unsigned i = 0; i < 16; i++) {
		s[i] = in[i] ^ x->round_keys[0][i];
	}
	for (unsigned round = 1; round <= 14; round++) {
		uint8_t t[16];
		for (unsigned i = 0; i < 16; i++) { /* row i % 4 moves left by i % 4 columns */
			t[i] = x->sbox[s[(i + 4 * (i % 4)) % 16]];
		}
		for (unsigned i = 0; i < 16; i++) {
			s[i] = x->round_keys[round][i];
			for (unsigned k = 0; k < 4 && round < 14; k++) {
				s[i] ^= aes_multiply(t[i / 4 * 4 + (i + k) % 4], mix[k]);
			}
			s[i] ^= round == 14 ? t[i] : 0;
		}
	}
	memcpy(out, s, 16);
}

/* SP 800-38D, section 6.3: bit 0 is the highest of byte 0. */
static void
gcm_multiply(uint8_t x[16], const uint8_t h[16])
{
	uint64_t z[2] = {0, 0}, v[2] = {load_be64(h), load_be64(h + 8)};
	for (unsigned i = 0; i < 128; i++) {
		if (x[i / 8] >> (7 - i % 8) & 1) {
			z[0] ^= v[0];
			z[1] ^= v[1];
		}
		const uint64_t carry = v[1] & 1;
		v[1] = v[1] >> 1 | v[0] << 63;
		v[0] = v[0] >> 1 ^ (carry ? UINT64_C(0xe1) << 56 : 0);
	}
	for (unsigned i = 0; i < 16; i++) {
		x[i] = (uint8_t)(z[i / 8] >> (56 - 8 * (i % 8)));
	}
}

static void
gcm_hash(uint8_t y[16], const uint8_t h[16], const uint8_t *data, size_t len)
{
	for (size_t at = 0; at < len; at += 16) {
		for (size_t i = 0; i < 16 && at + i < len; i++) {
			y[i] ^= data[at + i];
		}
		gcm_multiply(y, h);
	}
}

void
model_gcm_seal(uint8_t *out, const uint8_t key[32], const uint8_t nonce[12], struct model_text text,
	struct model_text ad)
{
	struct aes x;
	uint8_t h[16] = {0}, y[16] = {0}, counter[16] = {0}, stream[16], lengths[16] = {0};
	aes_init(&x, key);
	aes_block(&x, h, h);
	memcpy(counter, nonce, 12);
	for (size_t at = 0; at < text.len; at += 16) {
		const uint32_t n = (uint32_t)(at / 16) + 2;
		for (unsigned i = 0; i < 4; i++) {
			counter[12 + i] = (uint8_t)(n >> (24 - 8 * i));
		}
		aes_block(&x, counter, stream);
		for (size_t i = 0; i < 16 && at + i < text.len; i++) {
			out[at + i] = text.p[at + i] ^ stream[i];
		}
	}
	for (unsigned i = 0; i < 8; i++) {
		lengths[i] = (uint8_t)((uint64_t)ad.len * 8 >> (56 - 8 * i));
		lengths[8 + i] = (uint8_t)((uint64_t)text.len * 8 >> (56 - 8 * i));
	}
	gcm_hash(y, h, ad.p, ad.len);
	gcm_hash(y, h, out, text.len);
	gcm_hash(y, h, lengths, 16);
	memset(counter + 12, 0, 4);
	counter[15] = 1;
	aes_block(&x, counter, stream);
	for (unsigned i = 0; i < 16; i++) {
		out[text.len + i] = y[i] ^ stream[i];
	}
}

size_t
model_unhex(uint8_t *out, size_t cap, const char *text)
{
	size_t n = strlen(text) / 2;
	assert_int_equal(strlen(text) % 2, 0);
	assert_true(n <= cap);
	for (size_t i = 0; i < n; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
		assert_true(high >= 0 && low >= 0);
		out[i] = (uint8_t)(high * 16 + low);
	}
	return n;
}
