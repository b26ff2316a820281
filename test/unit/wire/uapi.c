/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "wire/uapi.h"

#define KEY "a8dac1d8a70a751f0f699fb14ba1cff7b79bd3f1a2b8e4f0c5d6e7f8091a2b3c"
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define PEER "set=1\npublic_key=" KEY "\n"

/* Feeds a whole text that holds one request. */
static enum uapi_step
feed(struct uapi_decoder *d, const char *text)
{
	size_t used;
	*d = (struct uapi_decoder){0};
	enum uapi_step step = uapi_decoder_feed(d, text, strlen(text), &used);
	assert_int_equal(used, strlen(text));
	return step;
}

static void
uapi_reads_every_line_of_a_set(void **state)
{
	(void)state;
	struct uapi_decoder d;
	struct uapi_set_device device;
	struct uapi_set_cursor cursor;
	struct uapi_set_peer peer;
	struct ip_prefix prefix;
	bool is_removal;
	char text[IP_PREFIX_TEXT_MAX];

	assert_int_equal(
		feed(&d, "set=1\nprivate_key=" KEY "\nlisten_port=51820\nfwmark=4294967295\n"
			 "replace_peers=true\npublic_key=" KEY "\npreshared_key=" KEY "\n"
			 "endpoint=[fe80::1%eth0]:51820\npersistent_keepalive_interval=65535\n"
			 "replace_allowed_ips=true\nallowed_ip=10.1.2.3/8\nallowed_ip=-fd00::/8\n"
			 "allowed_ip=+1.2.3.4/32\nprotocol_version=1\n"
			 "public_key=" ZEROS "\nremove=true\nupdate_only=true\n"
			 "endpoint=[fe80::1%7]:1\n\n"),
		UAPI_STEP_DONE);
	assert_int_equal(d.request.error, 0);
	assert_int_equal(d.request.kind, UAPI_SET);
	uapi_set_begin(&d.request, &device, &cursor);
	assert_true(device.has_private_key && device.has_listen_port && device.has_fwmark);
	assert_true(device.has_replace_peers);
	assert_int_equal(device.private_key[0], 0xa8);
	assert_int_equal(device.listen_port, 51820);
	assert_int_equal(device.fwmark, UINT32_MAX);
	assert_true(uapi_set_peer(&cursor, &peer));
	assert_int_equal(peer.public_key[31], 0x3c);
	assert_true(peer.has_psk && peer.has_endpoint && peer.has_keepalive);
	assert_true(peer.has_replace_allowed && !peer.is_removed && !peer.is_update_only);
	assert_int_equal(peer.psk[1], 0xda);
	assert_string_equal(peer.scope, "eth0");
	assert_int_equal(peer.endpoint.port, 51820);
	assert_int_equal(peer.endpoint.addr.family, IP_FAMILY_V6);
	assert_int_equal(peer.keepalive_s, 65535);
	static const char *const want[] = {"10.0.0.0/8", "fd00::/8", "1.2.3.4/32"};
	for (size_t i = 0; i < 3; i++) {
		assert_true(uapi_set_allowed(&peer, &prefix, &is_removal));
		assert_string_equal(ip_prefix_format(&prefix, text), want[i]);
		assert_int_equal(is_removal, i == 1);
	}
	assert_false(uapi_set_allowed(&peer, &prefix, &is_removal));
	assert_true(uapi_set_peer(&cursor, &peer));
	assert_true(peer.is_removed && peer.is_update_only && !peer.has_psk);
	assert_string_equal(peer.scope, "");
	assert_int_equal(peer.endpoint.scope_id, 7);
	assert_false(uapi_set_allowed(&peer, &prefix, &is_removal));
	assert_false(uapi_set_peer(&cursor, &peer));
	uapi_decoder_fini(&d);
}

static void
uapi_empty_set_asks_for_nothing(void **state)
{
	(void)state;
	struct uapi_decoder d;
	struct uapi_set_device device;
	struct uapi_set_cursor cursor;
	struct uapi_set_peer peer;
	assert_int_equal(feed(&d, "set=1\n\n"), UAPI_STEP_DONE);
	assert_int_equal(d.request.error, 0);
	uapi_set_begin(&d.request, &device, &cursor);
	assert_false(device.has_private_key || device.has_listen_port || device.has_fwmark);
	assert_false(uapi_set_peer(&cursor, &peer));
	uapi_decoder_fini(&d);
}

static void
uapi_refuses_each_wrong_line_with_its_errno(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int error;
	} cases[] = {
		{"\n", UAPI_EPROTO},
		{"hello\n\n", UAPI_EPROTO},
		{"get=2\n\n", UAPI_EPROTO},
		{"get=1 \n\n", UAPI_EPROTO},
		{"get=1\nfoo=1\n\n", UAPI_EINVAL},
		{"set=1\nfoo=1\n\n", UAPI_EINVAL},
		{"set=1\nfoo\n\n", UAPI_EPROTO},
		{"set=1\nget=1\n\n", UAPI_EINVAL},
		{"set=1\nprivate_key=\n\n", UAPI_EINVAL},
		{"set=1\nprivate_key=" KEY "0\n\n", UAPI_EINVAL},
		{"set=1\nprivate_key=" KEY " \n\n", UAPI_EINVAL},
		{"set=1\nlisten_port=65536\n\n", UAPI_EINVAL},
		{"set=1\nlisten_port=-1\n\n", UAPI_EINVAL},
		{"set=1\nlisten_port=\n\n", UAPI_EINVAL},
		{"set=1\nlisten_port=1\r\n\n", UAPI_EINVAL},
		{"set=1\nfwmark=4294967296\n\n", UAPI_EINVAL},
		{"set=1\nfwmark=0x1\n\n", UAPI_EINVAL},
		{"set=1\nfwmark=99999999999999999999999999\n\n", UAPI_EINVAL},
		{"set=1\nreplace_peers=false\n\n", UAPI_EINVAL},
		{"set=1\nremove=true\n\n", UAPI_EINVAL},
		{"set=1\nallowed_ip=10.0.0.0/8\n\n", UAPI_EINVAL},
		{PEER "listen_port=1\n\n", UAPI_EINVAL},
		{PEER "remove=yes\n\n", UAPI_EINVAL},
		{PEER "update_only=\n\n", UAPI_EINVAL},
		{PEER "replace_allowed_ips=false\n\n", UAPI_EINVAL},
		{PEER "preshared_key=x\n\n", UAPI_EINVAL},
		{PEER "endpoint=\n\n", UAPI_EINVAL},
		{PEER "endpoint=a.example:1\n\n", UAPI_EINVAL},
		{PEER "endpoint=1.2.3.4\n\n", UAPI_EINVAL},
		{PEER "endpoint=1.2.3.4:0\n\n", UAPI_EINVAL},
		{PEER "endpoint=[fe80::1%]:1\n\n", UAPI_EINVAL},
		{PEER "endpoint=[fe80::1%abcdefghijklmnop]:1\n\n", UAPI_EINVAL},
		{PEER "endpoint=[1.2.3.4%eth0]:1\n\n", UAPI_EINVAL},
		{PEER "endpoint=%a]:1\n\n", UAPI_EINVAL},
		{PEER "persistent_keepalive_interval=65536\n\n", UAPI_EINVAL},
		{PEER "persistent_keepalive_interval=off\n\n", UAPI_EINVAL},
		{PEER "allowed_ip=\n\n", UAPI_EINVAL},
		{PEER "allowed_ip=-\n\n", UAPI_EINVAL},
		{PEER "allowed_ip=--1.2.3.4/8\n\n", UAPI_EINVAL},
		{PEER "allowed_ip=1.2.3.4/33\n\n", UAPI_EINVAL},
		{PEER "protocol_version=2\n\n", UAPI_EINVAL},
		{"set=1\npublic_key=zz\n\n", UAPI_EINVAL},
	};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		struct uapi_decoder d;
		enum uapi_step step = feed(&d, cases[i].text);
		if (step != UAPI_STEP_DONE || d.request.error != cases[i].error) {
			fail_msg("%s: step %d, errno %d", cases[i].text, step, d.request.error);
		}
		assert_null(d.request.text);
		uapi_decoder_fini(&d);
	}
	struct uapi_decoder d = {0};
	size_t used;
	static const char nul[] = "set=1\nlisten_port=1\0\n\n";
	assert_int_equal(uapi_decoder_feed(&d, nul, sizeof(nul) - 1, &used), UAPI_STEP_DONE);
	assert_int_equal(d.request.error, UAPI_EPROTO);
	uapi_decoder_fini(&d);
}

static void
uapi_next_request_is_not_spoilt_by_a_wrong_one(void **state)
{
	(void)state;
	static const char text[] =
		"set=1\nfoo=1\nlisten_port=5\n\nset=1\nlisten_port=7\n\nget=1\n\n";
	struct uapi_decoder d = {0};
	struct uapi_set_device device;
	struct uapi_set_cursor cursor;
	/* No strlen(text + used): GCC 12 folds it with a later value of used. */
	size_t used, at = 0, len = sizeof(text) - 1;
	assert_int_equal(uapi_decoder_feed(&d, text, len, &used), UAPI_STEP_DONE);
	assert_int_equal(d.request.error, UAPI_EINVAL);
	at += used;
	uapi_decoder_next(&d);
	assert_int_equal(uapi_decoder_feed(&d, text + at, len - at, &used), UAPI_STEP_DONE);
	assert_int_equal(d.request.error, 0);
	uapi_set_begin(&d.request, &device, &cursor);
	assert_int_equal(device.listen_port, 7);
	at += used;
	uapi_decoder_next(&d);
	assert_int_equal(uapi_decoder_feed(&d, text + at, len - at, &used), UAPI_STEP_DONE);
	assert_int_equal(d.request.kind, UAPI_GET);
	assert_int_equal(at + used, len);
	uapi_decoder_next(&d);
	assert_false(uapi_decoder_is_midway(&d));
	uapi_decoder_fini(&d);
}

static void
uapi_endless_line_is_given_up(void **state)
{
	(void)state;
	/* In one piece, and byte by byte. */
	for (size_t piece = 1; piece <= 4096; piece *= 64) {
		struct uapi_decoder d = {0};
		char as[4096];
		size_t used, fed = 0;
		memset(as, 'a', sizeof(as));
		assert_int_equal(uapi_decoder_feed(&d, "set=1\n", 6, &used), UAPI_STEP_MORE);
		while (uapi_decoder_feed(&d, as, piece, &used) == UAPI_STEP_MORE) {
			fed += piece;
			assert_true(fed <= UAPI_LINE_MAX);
		}
		assert_int_equal(d.request.error, UAPI_EMSGSIZE);
		assert_int_equal(uapi_decoder_feed(&d, "\n\n", 2, &used), UAPI_STEP_BROKEN);
		uapi_decoder_fini(&d);
	}
	/* The longest line that is not too long is only wrong. */
	char line[UAPI_LINE_MAX + 16];
	snprintf(line, sizeof(line), "set=1\n%0*d\n\n", UAPI_LINE_MAX, 0);
	struct uapi_decoder d;
	assert_int_equal(feed(&d, line), UAPI_STEP_DONE);
	assert_int_equal(d.request.error, UAPI_EPROTO);
	uapi_decoder_fini(&d);
}

static void
uapi_endless_request_is_given_up(void **state)
{
	(void)state;
	/* Right lines are kept up to the limit; wrong ones are not kept, and end there too. */
	static const char *const lines[] = {"allowed_ip=10.0.0.0/8\n", "x\n"};
	for (size_t k = 0; k < 2; k++) {
		struct uapi_decoder d = {0};
		static char block[1 << 20];
		size_t used, n = 0, len = strlen(lines[k]), fed = 0;
		enum uapi_step step;
		while (n + len <= sizeof(block)) {
			memcpy(block + n, lines[k], len);
			n += len;
		}
		assert_int_equal(
			uapi_decoder_feed(&d, PEER, sizeof(PEER) - 1, &used), UAPI_STEP_MORE);
		while ((step = uapi_decoder_feed(&d, block, n, &used)) == UAPI_STEP_MORE) {
			fed += n;
			assert_true(fed <= UAPI_REQUEST_MAX);
			assert_true(k == 0 || d.request.cap == 0);
		}
		assert_int_equal(step, UAPI_STEP_BROKEN);
		assert_int_equal(d.request.error, UAPI_EMSGSIZE);
		assert_null(d.request.text);
		uapi_decoder_fini(&d);
	}
}

/* --- a random set against a model, cut anywhere --- */

struct model_peer {
	char key[KEY_HEX_LEN + 1];
	bool removed, update_only, replace;
	int keepalive, psk;  /* -1 = not there */
	unsigned allowed[8]; /* 10.x.y.0/24; bit 16: removal */
	size_t allowed_n;
};

static size_t
write_model(struct rng *r, struct model_peer *m, size_t n, char *out, size_t cap)
{
	size_t at = (size_t)snprintf(out, cap, "set=1\n");
	for (size_t i = 0; i < n; i++) {
		uint8_t key[KEY_LEN];
		rng_fill(r, key, sizeof(key));
		key_encode_hex(key, m[i].key);
		m[i].removed = rng_below(r, 4) == 0;
		m[i].update_only = rng_below(r, 4) == 0;
		m[i].replace = rng_below(r, 2) == 0;
		m[i].keepalive = rng_below(r, 2) ? (int)rng_below(r, 65536) : -1;
		m[i].psk = rng_below(r, 2) ? (int)rng_below(r, 256) : -1;
		m[i].allowed_n = rng_below(r, 9);
		at += (size_t)snprintf(out + at, cap - at, "public_key=%s\n%s%s%s", m[i].key,
			m[i].removed ? "remove=true\n" : "",
			m[i].update_only ? "update_only=true\n" : "",
			m[i].replace ? "replace_allowed_ips=true\n" : "");
		if (m[i].keepalive >= 0) {
			at += (size_t)snprintf(out + at, cap - at,
				"persistent_keepalive_interval=%d\n", m[i].keepalive);
		}
		for (size_t k = 0; k < m[i].allowed_n; k++) {
			unsigned v = (unsigned)rng_below(r, 1 << 17);
			m[i].allowed[k] = v;
			at += (size_t)snprintf(out + at, cap - at, "allowed_ip=%s10.%u.%u.9/24\n",
				v >> 16 ? "-" : "", v >> 8 & 255, v & 255);
		}
		if (m[i].psk >= 0) {
			at += (size_t)snprintf(
				out + at, cap - at, "preshared_key=%0*x\n", KEY_HEX_LEN, m[i].psk);
		}
	}
	return at + (size_t)snprintf(out + at, cap - at, "\n");
}

static bool
peer_is_as_modelled(struct uapi_set_peer *p, const struct model_peer *m)
{
	char hex[KEY_HEX_LEN + 1];
	struct ip_prefix prefix;
	bool is_removal;
	bool ok = strcmp(key_encode_hex(p->public_key, hex), m->key) == 0 &&
		  p->is_removed == m->removed && p->is_update_only == m->update_only &&
		  p->has_replace_allowed == m->replace && p->has_keepalive == (m->keepalive >= 0) &&
		  (!p->has_keepalive || p->keepalive_s == m->keepalive) &&
		  p->has_psk == (m->psk >= 0) && (!p->has_psk || p->psk[31] == m->psk) &&
		  !p->has_endpoint;
	for (size_t k = 0; k < m->allowed_n; k++) {
		ok = ok && uapi_set_allowed(p, &prefix, &is_removal) && prefix.bits == 24 &&
		     prefix.addr.b[0] == 10 && prefix.addr.b[1] == (m->allowed[k] >> 8 & 255) &&
		     prefix.addr.b[2] == (m->allowed[k] & 255) && prefix.addr.b[3] == 0 &&
		     is_removal == m->allowed[k] >> 16;
	}
	return ok && !uapi_set_allowed(p, &prefix, &is_removal);
}

static void
uapi_random_sets_cut_anywhere_read_as_modelled(void **state)
{
	(void)state;
	static char text[64 << 10];
	for (uint64_t seed = 0; seed < 500; seed++) {
		struct rng r;
		struct model_peer m[10];
		struct uapi_decoder d = {0};
		struct uapi_set_device device;
		struct uapi_set_cursor cursor;
		struct uapi_set_peer peer;
		rng_init(&r, seed);
		size_t n = rng_below(&r, 11), len = write_model(&r, m, n, text, sizeof(text)),
		       at = 0;
		enum uapi_step step = UAPI_STEP_MORE;
		while (step == UAPI_STEP_MORE && at < len) {
			size_t used, piece = 1 + rng_below(&r, 200);
			piece = piece < len - at ? piece : len - at;
			step = uapi_decoder_feed(&d, text + at, piece, &used);
			at += used;
		}
		bool ok = step == UAPI_STEP_DONE && at == len && d.request.error == 0;
		if (ok) {
			uapi_set_begin(&d.request, &device, &cursor);
			for (size_t i = 0; ok && i < n; i++) {
				ok = uapi_set_peer(&cursor, &peer) &&
				     peer_is_as_modelled(&peer, &m[i]);
			}
			ok = ok && !uapi_set_peer(&cursor, &peer);
		}
		uapi_decoder_fini(&d);
		if (!ok) {
			fail_msg("seed %llu\n%s", (unsigned long long)seed, text);
		}
	}
}

static void
random_peer_info(struct rng *r, struct uapi_peer_info *p)
{
	*p = (struct uapi_peer_info){.last_handshake_s = (int64_t)rng_below(r, INT64_MAX),
		.last_handshake_ns = (int64_t)rng_below(r, 1000000000),
		.rx_bytes = rng_u64(r),
		.tx_bytes = rng_u64(r),
		.keepalive_s = (uint16_t)rng_u64(r)};
	rng_fill(r, p->public_key, KEY_LEN);
	rng_fill(r, p->psk, KEY_LEN);
	if (rng_below(r, 3)) {
		p->endpoint.addr.family = rng_below(r, 2) ? IP_FAMILY_V4 : IP_FAMILY_V6;
		rng_fill(r, p->endpoint.addr.b, ip_family_len(p->endpoint.addr.family));
		p->endpoint.port = (uint16_t)(1 + rng_below(r, 65535));
		if (p->endpoint.addr.family == IP_FAMILY_V6) {
			p->endpoint.scope_id = (uint32_t)rng_u64(r);
		}
	}
}

static bool
peer_info_is_same(const struct uapi_peer_info *a, const struct uapi_peer_info *b)
{
	return memcmp(a->public_key, b->public_key, KEY_LEN) == 0 &&
	       memcmp(a->psk, b->psk, KEY_LEN) == 0 &&
	       endpoint_is_same_remote(&a->endpoint, &b->endpoint) &&
	       a->last_handshake_s == b->last_handshake_s &&
	       a->last_handshake_ns == b->last_handshake_ns && a->rx_bytes == b->rx_bytes &&
	       a->tx_bytes == b->tx_bytes && a->keepalive_s == b->keepalive_s;
}

static void
uapi_reply_reads_back_as_it_was_written(void **state)
{
	(void)state;
	static uint8_t buf[64 << 10];
	for (uint64_t seed = 0; seed < 500; seed++) {
		struct rng r;
		struct writer w;
		struct uapi_device_info device = {.has_private_key = true}, device2;
		struct uapi_peer_info peers[8], peer2;
		struct ip_prefix allowed[8], prefix;
		struct uapi_reply_cursor cursor, lines;
		int error;
		rng_init(&r, seed);
		writer_init(&w, buf, sizeof(buf));
		rng_fill(&r, device.private_key, KEY_LEN);
		device.listen_port = (uint16_t)rng_u64(&r);
		device.fwmark = (uint32_t)rng_u64(&r);
		uapi_encode_device(&w, &device);
		size_t n = rng_below(&r, 9);
		for (size_t i = 0; i < n; i++) {
			random_peer_info(&r, &peers[i]);
			allowed[i] = (struct ip_prefix){
				.addr = {.family = IP_FAMILY_V4, .b = {10, (uint8_t)i}},
				.bits = 16};
			uapi_encode_peer(&w, &peers[i]);
			uapi_encode_allowed(&w, &allowed[i]);
		}
		uapi_encode_errno(&w, UAPI_GET, 0);
		assert_false(w.failed);
		size_t len = (size_t)(w.p - buf);
		assert_int_equal(
			uapi_reply_begin((char *)buf, len, &device2, &error, &cursor), WEFT_OK);
		bool ok = error == 0 && device2.has_private_key &&
			  memcmp(device2.private_key, device.private_key, KEY_LEN) == 0 &&
			  device2.listen_port == device.listen_port &&
			  device2.fwmark == device.fwmark;
		for (size_t i = 0; ok && i < n; i++) {
			ok = uapi_reply_peer(&cursor, &peer2, &lines) == WEFT_OK &&
			     peer_info_is_same(&peer2, &peers[i]) &&
			     uapi_reply_allowed(&lines, &prefix) == WEFT_OK &&
			     ip_addr_is_equal(&prefix.addr, &allowed[i].addr) &&
			     uapi_reply_allowed(&lines, &prefix) == WEFT_ENOENT;
		}
		if (!ok || uapi_reply_peer(&cursor, &peer2, &lines) != WEFT_ENOENT) {
			fail_msg("seed %llu\n%.*s", (unsigned long long)seed, (int)len, buf);
		}
		for (size_t cut = 0; cut < len; cut += 1 + len / 50) {
			assert_false(uapi_reply_is_whole((char *)buf, cut));
		}
	}
}

static void
uapi_errno_has_the_sign_that_wg_wants(void **state)
{
	(void)state;
	static const struct {
		enum uapi_kind kind;
		int error;
		const char *text;
	} cases[] = {{UAPI_GET, 0, "errno=0\n\n"}, {UAPI_SET, 0, "errno=0\n\n"},
		{UAPI_GET, UAPI_EINVAL, "errno=22\n\n"}, {UAPI_SET, UAPI_EINVAL, "errno=-22\n\n"}};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		char buf[32] = "";
		struct writer w;
		struct uapi_device_info device;
		struct uapi_reply_cursor cursor;
		int error;
		writer_init(&w, buf, sizeof(buf));
		uapi_encode_errno(&w, cases[i].kind, cases[i].error);
		assert_string_equal(buf, cases[i].text);
		assert_int_equal(
			uapi_reply_begin(buf, strlen(buf), &device, &error, &cursor), WEFT_OK);
		assert_int_equal(error, cases[i].error);
	}
}

static void
uapi_encoders_fit_their_stated_room(void **state)
{
	(void)state;
	char buf[UAPI_ENCODE_MAX];
	struct writer w;
	struct uapi_peer_info p = {.last_handshake_s = INT64_MAX,
		.last_handshake_ns = 999999999,
		.rx_bytes = UINT64_MAX,
		.tx_bytes = UINT64_MAX,
		.keepalive_s = UINT16_MAX,
		.endpoint = {
			.addr = {.family = IP_FAMILY_V6}, .port = 65535, .scope_id = UINT32_MAX}};
	const struct uapi_device_info d = {true, {0}, 65535, UINT32_MAX};
	memset(p.endpoint.addr.b, 0xff, 16);
	writer_init(&w, buf, sizeof(buf));
	uapi_encode_peer(&w, &p);
	assert_false(w.failed);
	writer_init(&w, buf, sizeof(buf));
	uapi_encode_device(&w, &d);
	assert_false(w.failed);
	/* One byte too few fails, and nothing is written past the end. */
	size_t len = (size_t)((char *)w.p - buf);
	memset(buf, 'x', sizeof(buf));
	writer_init(&w, buf, len);
	uapi_encode_device(&w, &d);
	assert_true(w.failed);
	assert_int_equal(buf[len], 'x');
}

static void
uapi_reply_refuses_what_is_none(void **state)
{
	(void)state;
	static const char *const texts[] = {"", "\n\n", "errno=0\n", "errno=\n\n", "errno=x\n\n",
		"listen_port=1\n\n", "listen_port=65536\nerrno=0\n\n", "xerrno=0\n\n",
		"errno=99999999999\n\n", "private_key=1\nerrno=0\n\n"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(texts); i++) {
		struct uapi_device_info device;
		struct uapi_reply_cursor cursor;
		int error;
		if (uapi_reply_begin(texts[i], strlen(texts[i]), &device, &error, &cursor) !=
			WEFT_EPARSE) {
			fail_msg("accepted: %s", texts[i]);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uapi_reads_every_line_of_a_set),
		cmocka_unit_test(uapi_empty_set_asks_for_nothing),
		cmocka_unit_test(uapi_refuses_each_wrong_line_with_its_errno),
		cmocka_unit_test(uapi_next_request_is_not_spoilt_by_a_wrong_one),
		cmocka_unit_test(uapi_endless_line_is_given_up),
		cmocka_unit_test(uapi_endless_request_is_given_up),
		cmocka_unit_test(uapi_random_sets_cut_anywhere_read_as_modelled),
		cmocka_unit_test(uapi_reply_reads_back_as_it_was_written),
		cmocka_unit_test(uapi_errno_has_the_sign_that_wg_wants),
		cmocka_unit_test(uapi_encoders_fit_their_stated_room),
		cmocka_unit_test(uapi_reply_refuses_what_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
