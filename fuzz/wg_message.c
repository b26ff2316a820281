/* SPDX-License-Identifier: Apache-2.0 */
/* Handshake messages to a device with one peer and an initiation under way.
 *
 * Input is a row of records: how, length, bytes. Bytes alone do not get past a mac, so a record
 * may have its macs made right, or be laid by XOR over a message that the true peer would send. */
#include <string.h>

#include "base/assert.h"
#include "base/rng.h"
#include "crypto/crypto.h"
#include "fuzz.h"
#include "wg/cookie.h"
#include "wg/device.h"
#include "wg/noise.h"

#define HOW_SIGN 1u      /* macs are made right */
#define HOW_ELSEWHERE 2u /* comes from another address */
#define HOW_WAIT_S 4u    /* a second passes before */
#define HOW_WAIT_LONG 8u /* a minute passes before */
#define HOW_INITIATION 16u
#define HOW_RESPONSE 32u
#define HOW_FLOOD 64u /* arrives 300 times, so that load is high */
#define RECORDS_MAX 12u

struct target {
	struct rng rng;
	struct crypto *crypto;
	struct wg_device *device;
	struct wg_peer *peer;
	uint8_t public_key[WG_KEY_LEN];
	/* The peer's own side. */
	struct wg_noise_identity there;
	struct wg_noise_remote here;
	struct wg_cookie_jar jar;
	uint64_t stamp;
	uint8_t initiation[WIRE_WG_INITIATION_LEN]; /* the last that the device sent */

	struct mono now;
	struct drop_counts drops;
	struct wg_msg msgs[WG_OUT_MSGS_MIN];
	struct wg_event events[WG_OUT_EVENTS_MIN];
	struct wg_out out;
};

static void
fill(void *ctx, void *out, size_t len)
{
	rng_fill(ctx, out, len);
}

static struct wg_time
time_of(const struct target *t)
{
	return (struct wg_time){t->now, INT64_C(1700000000) * WEFT_NS_PER_S + t->now.ns};
}

static struct endpoint
endpoint_of(uint8_t host)
{
	return (struct endpoint){
		.addr = {.family = IP_FAMILY_V4, .b = {192, 0, 2, host}}, .port = 51820};
}

/* Empties out, and keeps the device's initiation. Returns the bytes that were sent. */
static size_t
drain(struct target *t)
{
	size_t bytes = 0;
	for (size_t i = 0; i < t->out.msgs_n; i++) {
		const struct wg_msg *m = &t->msgs[i];
		weft_assert(m->len <= WG_MSG_MAX && m->to.addr.family == IP_FAMILY_V4);
		bytes += m->len;
		if (m->bytes[0] == WIRE_WG_TYPE_INITIATION) {
			memcpy(t->initiation, m->bytes, sizeof(t->initiation));
		}
	}
	t->out.msgs_n = 0;
	t->out.events_n = 0;
	return bytes;
}

static void
tick(struct target *t)
{
	for (int i = 0; i < 100 && wg_device_deadline(t->device).ns <= t->now.ns; i++) {
		wg_device_tick(t->device, time_of(t), &t->out);
		(void)drain(t);
	}
}

static void
setup(struct target *t)
{
	memset(t, 0, sizeof(*t));
	rng_init(&t->rng, 1);
	t->now.ns = WEFT_NS_PER_S;
	t->out = (struct wg_out){
		t->msgs, WG_OUT_MSGS_MIN, 0, t->events, WG_OUT_EVENTS_MIN, 0, &t->drops};
	uint8_t key[WG_KEY_LEN] = {1};
	struct wg_device_config c = {.entropy = {fill, &t->rng}};
	weft_assert(crypto_new(&t->crypto) == WEFT_OK);
	weft_assert(wg_device_new(&c, &t->device) == WEFT_OK);
	wg_device_set_private_key(t->device, key);
	weft_assert(wg_device_public_key(t->device, t->public_key));
	key[0] = 99;
	weft_assert(wg_noise_identity_set(t->crypto, &t->there, key) == WEFT_OK);
	memcpy(t->here.public_key, t->public_key, sizeof(t->public_key));
	weft_assert(wg_peer_add(t->device, t->there.public_key, &t->peer) == WEFT_OK);
	struct endpoint e = endpoint_of(1);
	wg_peer_set_endpoint(t->peer, &e);
	struct wg_note note;
	uint64_t counter;
	weft_assert(!wg_peer_begin_send(t->device, t->peer, t->now, 1, 64, &counter, &note));
	wg_device_settle(t->device, time_of(t), &note, 1, &t->out);
	weft_assert(drain(t) == WIRE_WG_INITIATION_LEN);
}

/* What the true peer would send; returns its length, 0 when it would send nothing. */
static size_t
true_message(struct target *t, unsigned how, uint8_t *out)
{
	uint8_t ephemeral[32];
	struct wg_noise_keys keys;
	rng_fill(&t->rng, ephemeral, sizeof(ephemeral));
	if (how & HOW_INITIATION) {
		struct wire_wg_initiation m = {.sender = 7};
		struct wg_noise_pending pending;
		uint8_t stamp[WIRE_WG_STAMP_LEN] = {0x40};
		store_be64(stamp + 4, ++t->stamp);
		memcpy(pending.ephemeral_private, ephemeral, sizeof(ephemeral));
		weft_assert(wg_noise_initiate(t->crypto, &t->there, &t->here, &pending, stamp,
				    &m) == WEFT_OK);
		wire_wg_initiation_encode(&m, out);
		return WIRE_WG_INITIATION_LEN;
	}
	struct wire_wg_initiation m;
	struct wg_noise_incoming in;
	struct wire_wg_response r = {.sender = 8};
	weft_assert(wire_wg_initiation_decode(t->initiation, sizeof(t->initiation), &m));
	weft_assert(wg_noise_open_static(t->crypto, &t->there, &m, &in) == WEFT_OK);
	weft_assert(wg_noise_open_stamp(t->crypto, &t->there, &t->here, &m, &in) == WEFT_OK);
	weft_assert(wg_noise_respond(t->crypto, &t->here, &in, ephemeral, &r, &keys) == WEFT_OK);
	wire_wg_response_encode(&r, out);
	return WIRE_WG_RESPONSE_LEN;
}

static void
run_record(struct target *t, unsigned how, const uint8_t *bytes, size_t len)
{
	uint8_t msg[256] = {0};
	size_t msg_len = len;
	if (how & (HOW_INITIATION | HOW_RESPONSE)) {
		msg_len = true_message(t, how, msg);
	}
	for (size_t i = 0; i < len && i < msg_len; i++) {
		msg[i] ^= bytes[i];
	}
	if (how & HOW_SIGN && msg_len >= 2 * WIRE_WG_MAC_LEN) {
		wg_cookie_jar_sign(t->crypto, &t->jar, t->public_key, t->now, msg, msg_len);
	}
	t->now.ns += (how & HOW_WAIT_S ? WEFT_NS_PER_S : 0) +
		     (how & HOW_WAIT_LONG ? 60 * WEFT_NS_PER_S : 0);
	tick(t);
	struct endpoint from = endpoint_of(how & HOW_ELSEWHERE ? 66 : 1);
	for (int i = 0; i < (how & HOW_FLOOD ? 300 : 1); i++) {
		wg_device_handle(t->device, time_of(t), msg, msg_len, &from, &t->out);
		/* Nothing is amplified. */
		weft_assert(drain(t) <= msg_len);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct target t;
	setup(&t);
	for (unsigned n = 0; size >= 2 && n < RECORDS_MAX; n++) {
		unsigned how = data[0];
		size_t len = data[1];
		data += 2;
		size -= 2;
		len = len < size ? len : size;
		run_record(&t, how, data, len);
		data += len;
		size -= len;
	}
	t.now.ns += 1000 * WEFT_NS_PER_S;
	tick(&t);
	wg_device_free(t.device);
	crypto_free(t.crypto);
	return 0;
}
