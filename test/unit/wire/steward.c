/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/steward.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"

static struct wire_steward_request request;
static struct wire_steward_reply answer;
static uint8_t bytes[WIRE_STEWARD_REPLY_MAX + 64];

static void
requests_come_back_as_they_went(void **state)
{
	(void)state;
	for (unsigned op = 0; op < WIRE_STEWARD_OP_COUNT; op++) {
		struct wire_steward_request r = {.op = (enum wire_steward_op)op,
			.number = 0x01020304u + op,
			.value = UINT32_MAX - op,
			.has_v4 = op % 2 == 1};
		if (op == WIRE_STEWARD_READ) {
			snprintf(r.path, sizeof(r.path), "/etc/weft/home.conf");
		}
		size_t n = wire_steward_request_encode(&r, bytes);
		assert_int_equal(wire_steward_request_decode(bytes, n, &request), WEFT_OK);
		assert_int_equal(request.op, r.op);
		assert_int_equal(request.number, r.number);
		assert_int_equal(request.value, r.value);
		assert_int_equal(request.has_v4, r.has_v4);
		assert_string_equal(request.path, r.path);
	}
}

static void
requests_that_are_none_are_refused(void **state)
{
	(void)state;
	struct wire_steward_request r = {.op = WIRE_STEWARD_READ, .path = "/a"};
	size_t n = wire_steward_request_encode(&r, bytes);
	for (size_t k = 0; k + 2 < n; k++) {
		assert_int_equal(wire_steward_request_decode(bytes, k, &request), WEFT_EPARSE);
	}
	bytes[0] = WIRE_STEWARD_OP_COUNT;
	assert_int_equal(wire_steward_request_decode(bytes, n, &request), WEFT_EPARSE);
	bytes[0] = WIRE_STEWARD_END; /* has no path */
	assert_int_equal(wire_steward_request_decode(bytes, n, &request), WEFT_EPARSE);
	bytes[0] = WIRE_STEWARD_READ;
	bytes[1] = 2;
	assert_int_equal(wire_steward_request_decode(bytes, n, &request), WEFT_EPARSE);
	bytes[1] = 0;
	bytes[n - 2] = 'a'; /* relative */
	assert_int_equal(wire_steward_request_decode(bytes, n, &request), WEFT_EPARSE);
	bytes[n - 2] = '/';
	bytes[n - 1] = 0; /* inside of the path */
	assert_int_equal(wire_steward_request_decode(bytes, n, &request), WEFT_EPARSE);
	memset(bytes + n - 1, 'x', WIRE_STEWARD_PATH_MAX);
	assert_int_equal(
		wire_steward_request_decode(bytes, n - 2 + WIRE_STEWARD_PATH_MAX, &request),
		WEFT_EPARSE);
	assert_int_equal(
		wire_steward_request_decode(bytes, n - 3 + WIRE_STEWARD_PATH_MAX, &request),
		WEFT_OK);
}

static void
replies_come_back_and_long_texts_are_cut(void **state)
{
	(void)state;
	struct wire_steward_reply r = {
		.kind = WIRE_STEWARD_ANSWER, .number = 7, .result = WEFT_EEXIST, .text = "why"};
	size_t n = wire_steward_reply_encode(&r, bytes);
	assert_int_equal(wire_steward_reply_decode(bytes, n, &answer), WEFT_OK);
	assert_int_equal(answer.kind, r.kind);
	assert_int_equal(answer.number, 7);
	assert_int_equal(answer.result, WEFT_EEXIST);
	assert_string_equal(answer.text, "why");
	r.kind = WIRE_STEWARD_LINE;
	r.level = LOG_LEVEL_WARN;
	memset(r.text, 'a', sizeof(r.text));
	n = wire_steward_reply_encode(&r, bytes);
	assert_int_equal(wire_steward_reply_decode(bytes, n, &answer), WEFT_OK);
	assert_int_equal(answer.level, LOG_LEVEL_WARN);
	assert_int_equal(strlen(answer.text), WIRE_STEWARD_TEXT_MAX - 1);
	bytes[1] = LOG_LEVEL_DEBUG + 1;
	assert_int_equal(wire_steward_reply_decode(bytes, n, &answer), WEFT_EPARSE);
	bytes[1] = 0;
	bytes[2] = WEFT_ERR_COUNT;
	assert_int_equal(wire_steward_reply_decode(bytes, n, &answer), WEFT_EPARSE);
	bytes[2] = 0;
	bytes[0] = WIRE_STEWARD_KIND_COUNT;
	assert_int_equal(wire_steward_reply_decode(bytes, n, &answer), WEFT_EPARSE);
	assert_int_equal(wire_steward_reply_decode(bytes, 7, &answer), WEFT_EPARSE);
}

static struct ip_prefix prefixes[3];
static struct conf_state_peer peers[2];
static struct conf_state sample;

static int
make_sample(void **state)
{
	(void)state;
	const char *const texts[] = {"10.0.0.0/8", "fd00::/64", "0.0.0.0/0"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(prefixes); i++) {
		if (ip_prefix_parse(texts[i], strlen(texts[i]), &prefixes[i])) {
			return -1;
		}
	}
	memset(peers, 0, sizeof(peers));
	peers[0] = (struct conf_state_peer){.public_key = {1},
		.has_psk = true,
		.psk = {9},
		.allowed = prefixes,
		.allowed_n = 2,
		.addr = prefixes[1].addr,
		.port = 51820,
		.scope = 3,
		.keepalive_s = 25};
	peers[1] = (struct conf_state_peer){
		.public_key = {2}, .allowed = prefixes + 2, .allowed_n = 1};
	sample = (struct conf_state){.has_private_key = true,
		.private_key = {7},
		.has_listen_port = true,
		.listen_port = 500,
		.fwmark = 5,
		.peers = peers,
		.peers_n = 2};
	return 0;
}

static void
state_comes_back_as_it_went(void **state)
{
	(void)state;
	char *out;
	size_t n;
	struct conf_state s;
	assert_int_equal(wire_steward_state_encode(&sample, &out, &n), WEFT_OK);
	assert_int_equal(wire_steward_state_decode(out, n, &s), WEFT_OK);
	conf_text_free(out, n);
	assert_true(s.has_private_key && s.has_listen_port && !s.has_fwmark);
	assert_memory_equal(s.private_key, sample.private_key, KEY_LEN);
	assert_int_equal(s.listen_port, 500);
	assert_int_equal(s.fwmark, 5);
	assert_int_equal(s.peers_n, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct conf_state_peer *p = &s.peers[i];
		assert_memory_equal(p->public_key, peers[i].public_key, KEY_LEN);
		assert_memory_equal(p->psk, peers[i].psk, KEY_LEN);
		assert_int_equal(p->has_psk, peers[i].has_psk);
		assert_true(ip_addr_is_equal(&p->addr, &peers[i].addr));
		assert_int_equal(p->port, peers[i].port);
		assert_int_equal(p->scope, peers[i].scope);
		assert_int_equal(p->keepalive_s, peers[i].keepalive_s);
		assert_int_equal(p->allowed_n, peers[i].allowed_n);
		for (size_t k = 0; k < p->allowed_n; k++) {
			assert_true(
				ip_addr_is_equal(&p->allowed[k].addr, &peers[i].allowed[k].addr));
			assert_int_equal(p->allowed[k].bits, peers[i].allowed[k].bits);
		}
	}
	wire_steward_state_fini(&s);
}

static void
state_that_is_cut_or_too_long_is_refused(void **state)
{
	(void)state;
	char *out;
	size_t n;
	struct conf_state s;
	assert_int_equal(wire_steward_state_encode(&sample, &out, &n), WEFT_OK);
	for (size_t k = 0; k < n; k++) {
		assert_int_equal(wire_steward_state_decode(out, k, &s), WEFT_EPARSE);
	}
	assert_int_equal(wire_steward_state_decode(out, n + 1, &s), WEFT_EPARSE); /* its NUL */
	conf_text_free(out, n);
}

static void
state_with_values_that_no_file_has_is_refused(void **state)
{
	(void)state;
	char *out;
	size_t n;
	struct conf_state s;
	peers[1].public_key[0] = 1; /* twice */
	assert_int_equal(wire_steward_state_encode(&sample, &out, &n), WEFT_OK);
	assert_int_equal(wire_steward_state_decode(out, n, &s), WEFT_EPARSE);
	conf_text_free(out, n);
	peers[1].public_key[0] = 2;
	prefixes[0].bits = 33;
	assert_int_equal(wire_steward_state_encode(&sample, &out, &n), WEFT_OK);
	assert_int_equal(wire_steward_state_decode(out, n, &s), WEFT_EPARSE);
	conf_text_free(out, n);
	prefixes[0].bits = 8;
	prefixes[0].addr.family = (enum ip_family)5;
	assert_int_equal(wire_steward_state_encode(&sample, &out, &n), WEFT_OK);
	assert_int_equal(wire_steward_state_decode(out, n, &s), WEFT_EPARSE);
	conf_text_free(out, n);
}

static void
state_of_no_peers_is_one(void **state)
{
	(void)state;
	char *out;
	size_t n;
	struct conf_state s, empty = {0};
	assert_int_equal(wire_steward_state_encode(&empty, &out, &n), WEFT_OK);
	assert_int_equal(wire_steward_state_decode(out, n, &s), WEFT_OK);
	conf_text_free(out, n);
	assert_int_equal(s.peers_n, 0);
	wire_steward_state_fini(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_come_back_as_they_went),
		cmocka_unit_test(requests_that_are_none_are_refused),
		cmocka_unit_test(replies_come_back_and_long_texts_are_cut),
		cmocka_unit_test_setup(state_comes_back_as_it_went, make_sample),
		cmocka_unit_test_setup(state_that_is_cut_or_too_long_is_refused, make_sample),
		cmocka_unit_test_setup(state_with_values_that_no_file_has_is_refused, make_sample),
		cmocka_unit_test(state_of_no_peers_is_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
