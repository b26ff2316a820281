/* SPDX-License-Identifier: Apache-2.0 */
/* Handshakes recorded with wireguard-go: recorded/README.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/endian.h"
#include "crypto/aead.h"
#include "crypto/crypto.h"
#include "wg/cookie.h"
#include "wg/noise.h"

struct recording {
	struct crypto *crypto;
	struct wg_noise_identity us;
	struct wg_noise_remote them;
	struct wg_cookie_checker checker;
	char text[8192];
};

/* Bytes of a field; fails the test when it is missing. */
static size_t
field(const struct recording *r, const char *name, uint8_t *out, size_t cap)
{
	char key[64];
	snprintf(key, sizeof(key), "\n%s ", name);
	const char *p = strstr(r->text, key);
	if (!p) {
		fail_msg("no field %s", name);
	}
	size_t n = 0;
	unsigned byte;
	for (p += strlen(key); n < cap && sscanf(p, "%2x", &byte) == 1 && *p != '\n'; p += 2) {
		out[n++] = (uint8_t)byte;
	}
	return n;
}

static void
load(struct recording *r, const char *name)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/unit/wg/recorded/%s", WEFT_TEST_DIR, name);
	memset(r, 0, sizeof(*r));
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	r->text[0] = '\n';
	size_t n = fread(r->text + 1, 1, sizeof(r->text) - 2, f);
	assert_true(n > 0);
	fclose(f);
	uint8_t key[32];
	assert_int_equal(crypto_new(&r->crypto), WEFT_OK);
	assert_int_equal(field(r, "private_key", key, 32), 32);
	assert_int_equal(wg_noise_identity_set(r->crypto, &r->us, key), WEFT_OK);
	assert_int_equal(field(r, "their_public_key", r->them.public_key, 32), 32);
	assert_int_equal(field(r, "psk", r->them.psk, 32), 32);
	wg_cookie_checker_set_key(r->crypto, &r->checker, r->us.public_key);
}

static void
assert_mac1(struct recording *r, const uint8_t *msg, size_t len)
{
	struct wg_cookie_claim claim = {msg, len, NULL};
	assert_true(wg_cookie_check_mac1(r->crypto, &r->checker, &claim));
}

/* Their first data packet is an IPv4 packet of this ICMP type, from 10.9.0.2 to 10.9.0.1. */
static void
assert_data_opens(
	struct recording *r, const struct wg_noise_keys *keys, uint32_t index, uint8_t icmp)
{
	uint8_t data[2048];
	size_t len = field(r, "data", data, sizeof(data));
	assert_true(wire_wg_data_is_well_formed(data, len));
	assert_int_equal(wire_wg_data_receiver(data), index);
	struct aead *a;
	struct aead_key k;
	assert_int_equal(aead_new(AEAD_BACKEND_LIBCRYPTO, &a), WEFT_OK);
	aead_key_init(&k, AEAD_CIPHER_CHACHA20_POLY1305, keys->recv);
	struct aead_op op = {data + 16, (uint32_t)len - 32, false, wire_wg_data_counter(data)};
	assert_int_equal(aead_open(a, &k, &op, 1), 1);
	aead_free(a);
	static const uint8_t addresses[] = {10, 9, 0, 2, 10, 9, 0, 1};
	assert_int_equal(op.data[0], 0x45);
	assert_memory_equal(op.data + 12, addresses, sizeof(addresses));
	assert_int_equal(op.data[20], icmp);
}

static void
our_initiation_and_their_response_make_the_session_that_they_used(void **state)
{
	(void)state;
	struct recording r;
	load(&r, "initiator.txt");
	uint8_t want[256], got[WIRE_WG_INITIATION_LEN], stamp[WIRE_WG_STAMP_LEN];
	struct wg_noise_pending pending;
	struct wg_cookie_jar jar = {0};
	assert_int_equal(field(&r, "initiation", want, sizeof(want)), WIRE_WG_INITIATION_LEN);
	assert_int_equal(field(&r, "stamp", stamp, sizeof(stamp)), sizeof(stamp));
	assert_int_equal(field(&r, "ephemeral_private", pending.ephemeral_private, 32), 32);
	struct wire_wg_initiation m = {.sender = load_le32(want + 4)};
	assert_int_equal(wg_noise_initiate(r.crypto, &r.us, &r.them, &pending, stamp, &m), WEFT_OK);
	wire_wg_initiation_encode(&m, got);
	wg_cookie_jar_sign(r.crypto, &jar, r.them.public_key, (struct mono){0}, got, sizeof(got));
	assert_memory_equal(got, want, sizeof(got));

	uint8_t bytes[256];
	struct wire_wg_response response;
	struct wg_noise_keys keys;
	size_t len = field(&r, "response", bytes, sizeof(bytes));
	assert_true(wire_wg_response_decode(bytes, len, &response));
	assert_int_equal(response.receiver, m.sender);
	assert_mac1(&r, bytes, len);
	assert_int_equal(
		wg_noise_open_response(r.crypto, &r.us, &r.them, &pending, &response, &keys),
		WEFT_OK);
	assert_data_opens(&r, &keys, m.sender, 0); /* echo reply */
	crypto_free(r.crypto);
}

static void
their_initiation_and_our_response_make_the_session_that_they_used(void **state)
{
	(void)state;
	struct recording r;
	load(&r, "responder.txt");
	uint8_t bytes[256], want[256], got[WIRE_WG_RESPONSE_LEN], ephemeral[32];
	struct wire_wg_initiation m;
	struct wg_noise_incoming in;
	size_t len = field(&r, "initiation", bytes, sizeof(bytes));
	assert_true(wire_wg_initiation_decode(bytes, len, &m));
	assert_mac1(&r, bytes, len);
	assert_int_equal(wg_noise_open_static(r.crypto, &r.us, &m, &in), WEFT_OK);
	assert_memory_equal(in.remote_static, r.them.public_key, 32);
	assert_int_equal(wg_noise_open_stamp(r.crypto, &r.us, &r.them, &m, &in), WEFT_OK);
	assert_int_equal(in.stamp[0], 0x40);

	assert_int_equal(field(&r, "response", want, sizeof(want)), WIRE_WG_RESPONSE_LEN);
	assert_int_equal(field(&r, "ephemeral_private", ephemeral, 32), 32);
	struct wire_wg_response response = {.sender = load_le32(want + 4)};
	struct wg_noise_keys keys;
	struct wg_cookie_jar jar = {0};
	assert_int_equal(
		wg_noise_respond(r.crypto, &r.them, &in, ephemeral, &response, &keys), WEFT_OK);
	wire_wg_response_encode(&response, got);
	wg_cookie_jar_sign(r.crypto, &jar, r.them.public_key, (struct mono){0}, got, sizeof(got));
	assert_memory_equal(got, want, sizeof(got));
	assert_data_opens(&r, &keys, response.sender, 8); /* echo request */
	crypto_free(r.crypto);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_initiation_and_their_response_make_the_session_that_they_used),
		cmocka_unit_test(their_initiation_and_our_response_make_the_session_that_they_used),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
