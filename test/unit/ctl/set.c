/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ctl/client.h"
#include "fake_node.h"
#include "os/clock.h"
#include "wire/key.h"

static struct node node;

static int
setup(void **state)
{
	(void)state;
	fake_node_init(&node);
	for (unsigned i = 1; i <= 3; i++) {
		fake_node_add_peer(&node, i);
	}
	fake_node_start(&node);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	fake_node_fini(&node);
	return 0;
}

static struct mono
soon(void)
{
	return mono_add_ns(os_clock_mono(), 30 * WEFT_NS_PER_S);
}

/* Of fake_node_add_peer(). */
static const char *
key_of(unsigned i)
{
	static char text[4][KEY_BASE64_LEN + 1];
	uint8_t key[KEY_LEN] = {(uint8_t)i, [31] = 9};
	return key_encode_base64(key, text[i % 4]);
}

static struct ally_policy
policy_of(unsigned i)
{
	uint8_t key[KEY_LEN] = {(uint8_t)i, [31] = 9};
	struct ally_info info;
	const struct wg_device *d = node_lock_shared(&node);
	node_ally_info(wg_peer_find(d, key), &info);
	node_unlock_shared(&node);
	return info.policy;
}

/* Takes the request. */
static json_t *
ask(json_t *request)
{
	json_t *o;
	assert_non_null(request);
	assert_int_equal(ctl_client_request(node.control_path, request, soon(), &o), WEFT_OK);
	json_decref(request);
	return o;
}

static void
expect_ok(json_t *request)
{
	json_t *o = ask(request);
	if (!json_is_true(json_object_get(o, "ok"))) {
		fail_msg("%s", json_dumps(o, 0));
	}
	json_decref(o);
}

static void
expect_refused(json_t *request, const char *code, const char *word)
{
	json_t *o = ask(request), *error = json_object_get(o, "error");
	const char *got = json_string_value(json_object_get(error, "code"));
	const char *text = json_string_value(json_object_get(error, "text"));
	if (!got || strcmp(got, code) != 0 || !text || !strstr(text, word)) {
		fail_msg(
			"%s: %s, not %s: %s", got ? got : "no error", text ? text : "", code, word);
	}
	json_decref(o);
}

static bool
is_default(unsigned i)
{
	const struct ally_policy p = policy_of(i), d = ALLY_POLICY_DEFAULT;
	return p.has_extensions == d.has_extensions && p.cipher == d.cipher &&
	       p.fec.mode == d.fec.mode && p.fec.percent == d.fec.percent &&
	       p.fec.budget_us == d.fec.budget_us;
}

static void
set_changes_what_is_named_and_leaves_the_rest(void **state)
{
	(void)state;
	expect_ok(json_pack("{s:s, s:[{s:s, s:s, s:i}]}", "op", "set", "peers", "public_key",
		key_of(2), "fec", "30%", "fec_delay_ms", 50));
	expect_ok(json_pack("{s:s, s:[{s:s, s:s}, {s:s, s:b}]}", "op", "set", "peers", "public_key",
		key_of(2), "cipher", "AES-256-GCM", "public_key", key_of(3), "extensions", 0));
	struct ally_policy p = policy_of(2);
	assert_true(p.has_extensions);
	assert_int_equal(p.fec.mode, FEC_MODE_FIXED);
	assert_int_equal(p.fec.percent, 30);
	assert_int_equal(p.fec.budget_us, 50000);
	assert_int_equal(p.cipher, ALLY_CIPHER_AES_256_GCM);
	p = policy_of(3);
	assert_false(p.has_extensions);
	assert_int_equal(p.fec.mode, FEC_MODE_AUTO);
	assert_true(is_default(1));
	/* And back. */
	expect_ok(json_pack("{s:s, s:[{s:s, s:s, s:i, s:s}, {s:s, s:b}]}", "op", "set", "peers",
		"public_key", key_of(2), "fec", "auto", "fec_delay_ms", 20, "cipher", "auto",
		"public_key", key_of(3), "extensions", 1));
	assert_true(is_default(2));
	assert_true(is_default(3));
}

static void
set_that_names_nothing_to_change_is_taken(void **state)
{
	(void)state;
	expect_ok(json_pack("{s:s, s:[{s:s}]}", "op", "set", "peers", "public_key", key_of(1)));
	assert_true(is_default(1));
}

/* Each has peer 1 with a right change before what is wrong. */
static void
expect_wrong_member(const char *name, json_t *value, const char *word)
{
	json_t *wrong = json_pack("{s:s}", "public_key", key_of(2));
	assert_int_equal(json_object_set_new(wrong, name, value), 0);
	expect_refused(json_pack("{s:s, s:[{s:s, s:s}, o]}", "op", "set", "peers", "public_key",
			       key_of(1), "fec", "off", wrong),
		"value", word);
	assert_true(is_default(1));
	assert_true(is_default(2));
}

static void
set_with_one_wrong_value_changes_nothing(void **state)
{
	(void)state;
	expect_wrong_member("fec", json_string("on"), "\"on\" is neither off, auto nor");
	expect_wrong_member("fec", json_string("0%"), "neither off");
	expect_wrong_member("fec", json_string(""), "neither off");
	expect_wrong_member("fec", json_integer(30), "neither off");
	expect_wrong_member("fec", json_null(), "neither off");
	expect_wrong_member("fec_delay_ms", json_integer(0), "from 1 to 1000");
	expect_wrong_member("fec_delay_ms", json_integer(1001), "from 1 to 1000");
	expect_wrong_member("fec_delay_ms", json_integer(4294967316), "from 1 to 1000");
	expect_wrong_member("fec_delay_ms", json_real(20.0), "whole number");
	expect_wrong_member("fec_delay_ms", json_string("20"), "whole number");
	expect_wrong_member("cipher", json_string("aes"), "aes-256-gcm");
	expect_wrong_member("cipher", json_true(), "aes-256-gcm");
	expect_wrong_member("extensions", json_string("on"), "true or false");
	expect_wrong_member("extensions", json_integer(1), "true or false");
	expect_wrong_member("fecdelay", json_integer(5), "\"fecdelay\" cannot be set");
	expect_wrong_member("public_key", json_string("AAAA"), "32 bytes");
	expect_wrong_member("public_key", json_integer(1), "32 bytes");
	expect_wrong_member("public_key", json_string(key_of(1)), "twice");
}

static void
set_of_an_unknown_peer_changes_nothing(void **state)
{
	(void)state;
	char key[KEY_BASE64_LEN + 1];
	uint8_t unknown[KEY_LEN] = {77};
	key_encode_base64(unknown, key);
	expect_refused(
		json_pack("{s:s, s:[{s:s, s:s}, {s:s, s:s}]}", "op", "set", "peers", "public_key",
			key_of(1), "fec", "off", "public_key", key, "fec", "off"),
		"unknown_peer", key);
	assert_true(is_default(1));
}

static void
set_without_peers_is_no_request(void **state)
{
	(void)state;
	static const char *const requests[] = {"{\"op\":\"set\"}", "{\"op\":\"set\",\"peers\":[]}",
		"{\"op\":\"set\",\"peers\":{}}", "{\"op\":\"set\",\"peers\":[1]}",
		"{\"op\":\"set\",\"peers\":[[]]}",
		"{\"op\":\"set\",\"peers\":[{\"fec\":\"off\"}]}"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(requests); i++) {
		expect_refused(json_loads(requests[i], 0, NULL), "request", "peers");
	}
}

static void
set_repeats_no_key_that_was_pasted_to_a_wrong_place(void **state)
{
	(void)state;
	static const char key[] = "qLk5xQg+Vt+9iFvjJdhW/xYz3M62UGt4m4GX4QyQwFY=";
	static const char *const names[] = {"fec", "cipher", key};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
		json_t *o = ask(json_pack("{s:s, s:[{s:s, s:s}]}", "op", "set", "peers",
			"public_key", key_of(1), names[i], key));
		char *text = json_dumps(o, 0);
		assert_non_null(strstr(text, "\"value\""));
		assert_null(strstr(text, "qLk5"));
		free(text);
		json_decref(o);
	}
}

static void
set_that_runs_out_of_memory_says_how_far_it_came(void **state)
{
	(void)state;
	node.policies_left = 1;
	expect_refused(
		json_pack("{s:s, s:[{s:s, s:s}, {s:s, s:s}]}", "op", "set", "peers", "public_key",
			key_of(1), "fec", "off", "public_key", key_of(2), "fec", "off"),
		"memory", "after 1 of 2");
}

static void
status_tells_what_is_set_and_what_is_agreed(void **state)
{
	(void)state;
	struct wg_out *out;
	json_t *o;
	struct wg_device *d = node_lock(&node, &out);
	struct ally_info *info = fake_node_ally(wg_peer_next(d, NULL));
	*info = (struct ally_info){
		.policy = {.has_extensions = true,
			.cipher = ALLY_CIPHER_AES_256_GCM,
			.fec = {.mode = FEC_MODE_FIXED, .percent = 30, .budget_us = 50000}},
		.state = ALLY_STATE_AGREED,
		.name = "gw1",
		.cipher = AEAD_CIPHER_AES_256_GCM,
		.has_fec = true,
		.fec = {.why = FEC_WHY_CONGESTED,
			.loss = 0.049,
			.burst = 1.5,
			.overhead = (double)INFINITY,
			.rtt_ns = 10500000,
			.sources = 1000,
			.ce_marked = 9,
			.peer_recovered_answer = 56,
			.rx = {.received = 7,
				.held = 4,
				.hold_ns_sum = 6000000,
				.hold_ns_max = 3000000}},
	};
	node_unlock(&node);
	assert_int_equal(ctl_client_op(node.control_path, "status", soon(), &o), WEFT_OK);
	json_t *p = json_array_get(json_object_get(o, "peers"), 0);
	json_t *policy = json_object_get(p, "policy"), *fec = json_object_get(p, "fec");
	json_t *extensions = json_object_get(p, "extensions"), *rx = json_object_get(fec, "rx");
	assert_true(json_is_true(json_object_get(policy, "extensions")));
	assert_string_equal(json_string_value(json_object_get(policy, "fec")), "30%");
	assert_int_equal(json_integer_value(json_object_get(policy, "fec_delay_ms")), 50);
	assert_string_equal(json_string_value(json_object_get(policy, "cipher")), "aes-256-gcm");
	assert_string_equal(json_string_value(json_object_get(extensions, "state")), "agreed");
	assert_string_equal(json_string_value(json_object_get(extensions, "name")), "gw1");
	assert_string_equal(json_string_value(json_object_get(p, "cipher")), "aes-256-gcm");
	assert_string_equal(json_string_value(json_object_get(fec, "mode")), "fixed");
	assert_string_equal(json_string_value(json_object_get(fec, "why")), "congested");
	assert_true(json_real_value(json_object_get(fec, "loss")) == 0.049);
	assert_true(json_is_null(json_object_get(fec, "overhead")));
	assert_true(json_real_value(json_object_get(fec, "rtt_ms")) == 10.5);
	assert_int_equal(json_integer_value(json_object_get(fec, "sources")), 1000);
	assert_int_equal(json_integer_value(json_object_get(fec, "peer_recovered_answer")), 56);
	assert_int_equal(json_integer_value(json_object_get(fec, "ce_marked")), 9);
	assert_int_equal(json_integer_value(json_object_get(rx, "received")), 7);
	assert_true(json_real_value(json_object_get(rx, "hold_avg_ms")) == 1.5);
	assert_true(json_real_value(json_object_get(rx, "hold_max_ms")) == 3);
	assert_true(json_is_array(json_object_get(p, "allowed_ips")));
	/* Of one that was never heard of. */
	p = json_array_get(json_object_get(o, "peers"), 1);
	fec = json_object_get(p, "fec");
	extensions = json_object_get(p, "extensions");
	assert_string_equal(json_string_value(json_object_get(extensions, "state")), "unknown");
	assert_string_equal(json_string_value(json_object_get(extensions, "name")), "");
	assert_string_equal(json_string_value(json_object_get(p, "cipher")), "chacha20poly1305");
	assert_string_equal(json_string_value(json_object_get(fec, "mode")), "auto");
	assert_string_equal(json_string_value(json_object_get(fec, "why")), "not_agreed");
	assert_true(json_is_string(json_object_get(fec, "why_text")));
	assert_null(json_object_get(fec, "rx"));
	json_decref(o);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			set_changes_what_is_named_and_leaves_the_rest, setup, teardown),
		cmocka_unit_test_setup_teardown(
			set_that_names_nothing_to_change_is_taken, setup, teardown),
		cmocka_unit_test_setup_teardown(
			set_with_one_wrong_value_changes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			set_of_an_unknown_peer_changes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(set_without_peers_is_no_request, setup, teardown),
		cmocka_unit_test_setup_teardown(
			set_repeats_no_key_that_was_pasted_to_a_wrong_place, setup, teardown),
		cmocka_unit_test_setup_teardown(
			set_that_runs_out_of_memory_says_how_far_it_came, setup, teardown),
		cmocka_unit_test_setup_teardown(
			status_tells_what_is_set_and_what_is_agreed, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
