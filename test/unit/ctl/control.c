/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "ctl/client.h"
#include "fake_node.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/unixsock.h"
#include "wire/key.h"

static struct node node;

static int
setup(void **state)
{
	(void)state;
	fake_node_init(&node);
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

static int
open_client(void)
{
	int fd;
	assert_int_equal(os_unixsock_connect(node.control_path, soon(), &fd), WEFT_OK);
	return fd;
}

static json_t *
read_line(int fd)
{
	char text[4096];
	size_t len = 0, n;
	do {
		assert_int_equal(os_fd_wait(fd, false, soon()), WEFT_OK);
		assert_int_equal(os_fd_read(fd, text + len, 1, &n), WEFT_OK);
	} while (text[len++] != '\n' && len < sizeof(text));
	json_t *o = json_loadb(text, len, 0, NULL);
	assert_non_null(o);
	return o;
}

static void
expect_error(const char *request, size_t len, const char *code)
{
	int fd = open_client();
	assert_int_equal(os_fd_write_all(fd, request, len, soon()), WEFT_OK);
	json_t *o = read_line(fd), *error = json_object_get(o, "error");
	const char *got = json_string_value(json_object_get(error, "code"));
	if (!got || strcmp(got, code) != 0) {
		fail_msg("%s: %s instead of %s", request, got ? got : "no error", code);
	}
	assert_true(json_is_string(json_object_get(error, "text")));
	json_decref(o);
	os_fd_close(&fd);
}

static void
version_is_told(void **state)
{
	(void)state;
	json_t *o;
	fake_node_start(&node);
	assert_int_equal(ctl_client_op(node.control_path, "version", soon(), &o), WEFT_OK);
	assert_string_equal(json_string_value(json_object_get(o, "version")), "0.0-test");
	json_decref(o);
}

static json_t *
ask_why(const char *target)
{
	json_t *o, *request = json_pack("{s:s, s:s}", "op", "why", "target", target);
	assert_int_equal(ctl_client_request(node.control_path, request, soon(), &o), WEFT_OK);
	json_decref(request);
	return o;
}

static const char *
first_code(const json_t *o)
{
	const json_t *first = json_array_get(json_object_get(o, "findings"), 0);
	const char *code = json_string_value(json_object_get(first, "code"));
	return code ? code : "";
}

static void
why_finds_peers_by_key_beginning_and_address(void **state)
{
	(void)state;
	static const char *const ways[] = {"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAk=", "AQA"};
	fake_node_add_peer(&node, 1);
	fake_node_add_peer(&node, 2);
	fake_node_start(&node);
	for (size_t i = 0; i < WEFT_ARRAY_LEN(ways); i++) {
		json_t *o = ask_why(ways[i]);
		const json_t *target = json_object_get(o, "target");
		assert_true(json_is_false(json_object_get(o, "flows")));
		assert_string_equal(first_code(o), "no_key");
		assert_string_equal(
			json_string_value(json_object_get(target, "public_key")), ways[0]);
		assert_true(json_is_null(json_object_get(target, "address")));
		json_decref(o);
	}
	json_t *o = ask_why("192.0.2.200");
	assert_true(json_is_null(json_object_get(json_object_get(o, "target"), "public_key")));
	json_decref(o);
}

static void
why_refuses_what_is_nobodys(void **state)
{
	(void)state;
	static const char wrong[] = "{\"op\":\"why\"}\n",
			  probe[] = "{\"op\":\"why\",\"target\":"
				    "\"::1\",\"probe\":\"x\"}\n",
			  nobody[] = "{\"op\":\"why\",\"target\":\"nobody\"}\n",
			  brief[] = "{\"op\":\"why\",\"target\":\"A\"}\n",
			  expected[] = "{\"op\":\"why\",\"target\":\"10.0.0.1\",\"expect\":"
				       "\"nobody\"}\n";
	fake_node_add_peer(&node, 1);
	fake_node_start(&node);
	expect_error(wrong, sizeof(wrong) - 1, "value");
	expect_error(probe, sizeof(probe) - 1, "value");
	expect_error(nobody, sizeof(nobody) - 1, "unknown_peer");
	expect_error(brief, sizeof(brief) - 1, "unknown_peer");
	expect_error(expected, sizeof(expected) - 1, "unknown_peer");
}

/* A socket that is not connected yet: connecting it later takes no descriptor here. */
static int
make_client(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	return fd;
}

static void
connect_client(int fd)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", node.control_path);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
}

/* Lets the process have room more descriptors; returns what was. */
static struct rlimit
leave_descriptors(unsigned room)
{
	struct rlimit was;
	int first_free = make_client();
	close(first_free);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	struct rlimit is = {(rlim_t)first_free + room, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &is), 0);
	return was;
}

static void
expect_end(int fd)
{
	char byte;
	size_t n;
	assert_int_equal(os_fd_wait(fd, false, soon()), WEFT_OK);
	assert_int_equal(os_fd_read(fd, &byte, 1, &n), WEFT_ECLOSED);
}

static void
client_without_a_descriptor_is_turned_away(void **state)
{
	(void)state;
	fake_node_start(&node);
	int fd = make_client();
	struct rlimit was = leave_descriptors(0);
	connect_client(fd);
	expect_end(fd);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	os_fd_close(&fd);
	json_t *o;
	assert_int_equal(ctl_client_op(node.control_path, "version", soon(), &o), WEFT_OK);
	json_decref(o);
}

static void
quietest_client_gives_its_descriptor_to_a_new_one(void **state)
{
	(void)state;
	static const char request[] = "{\"op\":\"version\"}\n";
	fake_node_start(&node);
	int quiet = make_client(), fresh = make_client();
	struct rlimit was = leave_descriptors(1);
	connect_client(quiet);
	assert_int_equal(os_fd_write_all(quiet, request, sizeof(request) - 1, soon()), WEFT_OK);
	json_decref(read_line(quiet));
	connect_client(fresh);
	expect_end(quiet);
	assert_int_equal(os_fd_write_all(fresh, request, sizeof(request) - 1, soon()), WEFT_OK);
	json_decref(read_line(fresh));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	os_fd_close(&quiet);
	os_fd_close(&fresh);
}

static void
wrong_requests_get_an_error_and_the_connection_stays(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		const char *code;
	} cases[] = {{"\n", "parse"}, {"hello\n", "parse"}, {"{\n", "parse"}, {"{}{}\n", "parse"},
		{"{\"op\":\"status\",\"op\":\"stop\"}\n", "parse"}, {"{}\n", "request"},
		{"[]\n", "request"}, {"{\"op\":1}\n", "request"}, {"{\"op\":null}\n", "request"},
		{"{\"op\":\"\"}\n", "unknown_op"}, {"{\"op\":\"Status\"}\n", "unknown_op"},
		{"{\"op\":\"st\\u0061tu\"}\n", "unknown_op"}};
	fake_node_start(&node);
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		expect_error(cases[i].text, strlen(cases[i].text), cases[i].code);
	}
	expect_error("{\"op\":\"a\0b\"}\n", 14, "parse");
	int fd = open_client();
	static const char text[] = "x\n{\"op\":\"version\"}\r\n{\"op\":\"nothing\"}\n";
	assert_int_equal(os_fd_write_all(fd, text, sizeof(text) - 1, soon()), WEFT_OK);
	static const char *const members[] = {"error", "version", "error"};
	for (size_t i = 0; i < 3; i++) {
		json_t *o = read_line(fd);
		assert_non_null(json_object_get(o, members[i]));
		json_decref(o);
	}
	os_fd_close(&fd);
	assert_int_equal(atomic_load(&node.stops), 0);
}

static void
endless_request_is_ended(void **state)
{
	(void)state;
	static char text[CTL_REQUEST_MAX + 1];
	memset(text, ' ', sizeof(text));
	fake_node_start(&node);
	int fd = open_client();
	assert_int_equal(os_fd_write_all(fd, text, sizeof(text), soon()), WEFT_OK);
	json_t *o = read_line(fd);
	json_t *error = json_object_get(o, "error");
	assert_string_equal(json_string_value(json_object_get(error, "code")), "too_long");
	json_decref(o);
	char c;
	size_t n;
	assert_int_equal(os_fd_wait(fd, false, soon()), WEFT_OK);
	assert_int_equal(os_fd_read(fd, &c, 1, &n), WEFT_ECLOSED);
	os_fd_close(&fd);
}

static void
set_up_one_peer(void)
{
	struct wg_out *out;
	struct wg_peer *p;
	uint8_t private_key[KEY_LEN], psk[KEY_LEN], key[KEY_LEN] = {5};
	struct ip_prefix prefix = {.addr = {.family = IP_FAMILY_V6, .b = {0xfd}}, .bits = 8};
	struct endpoint endpoint = {
		.addr = {.family = IP_FAMILY_V4, .b = {192, 0, 2, 1}}, .port = 7};
	memset(private_key, 0x41, sizeof(private_key));
	memset(psk, 0x42, sizeof(psk));
	struct wg_device *d = node_lock(&node, &out);
	wg_device_set_private_key(d, private_key);
	assert_int_equal(wg_peer_add(d, key, &p), WEFT_OK);
	wg_peer_set_psk(p, psk);
	wg_peer_set_endpoint(p, &endpoint);
	assert_int_equal(wg_peer_allow(d, p, &prefix), WEFT_OK);
	node_unlock(&node);
	for (unsigned i = 0; i < DROP_COUNT; i++) {
		node.stats.drops.n[i] = i;
	}
	node.stats.link.rx_bytes = 1234567890123;
}

static void
status_has_the_device_every_drop_reason_and_every_peer(void **state)
{
	(void)state;
	json_t *o;
	set_up_one_peer();
	fake_node_start(&node);
	assert_int_equal(ctl_client_op(node.control_path, "status", soon(), &o), WEFT_OK);
	json_t *device = json_object_get(o, "device"), *drops = json_object_get(o, "drops");
	assert_string_equal(json_string_value(json_object_get(device, "name")), "fake0");
	assert_true(json_is_string(json_object_get(device, "public_key")));
	assert_int_equal(json_integer_value(json_object_get(device, "listen_port")), 51820);
	assert_int_equal(json_integer_value(json_object_get(device, "workers")), 2);
	assert_true(json_real_value(json_object_get(device, "uptime_s")) == 12.345);
	json_t *offload = json_object_get(device, "offload");
	assert_true(json_is_true(json_object_get(offload, "tso")));
	assert_true(json_is_false(json_object_get(offload, "udp_gso")));
	assert_int_equal(json_object_size(drops), DROP_COUNT);
	for (unsigned i = 0; i < DROP_COUNT; i++) {
		json_t *n = json_object_get(drops, drop_name((enum drop_reason)i));
		assert_true(json_is_integer(n));
		assert_int_equal(json_integer_value(n), i);
	}
	json_t *link = json_object_get(o, "link");
	assert_int_equal(json_integer_value(json_object_get(link, "rx_bytes")), 1234567890123);
	assert_int_equal(json_integer_value(json_object_get(o, "peer_count")), 1);
	json_t *peer = json_array_get(json_object_get(o, "peers"), 0);
	assert_string_equal(json_string_value(json_object_get(peer, "endpoint")), "192.0.2.1:7");
	assert_true(json_is_true(json_object_get(peer, "has_preshared_key")));
	assert_true(json_is_null(json_object_get(peer, "handshake_age_s")));
	json_t *allowed = json_object_get(peer, "allowed_ips");
	assert_int_equal(json_array_size(allowed), 1);
	assert_string_equal(json_string_value(json_array_get(allowed, 0)), "fd00::/8");
	json_decref(o);
}

static bool
ends_a_line(const char *text, size_t len)
{
	return text[len - 1] == '\n';
}

static void
status_holds_no_secret_key(void **state)
{
	(void)state;
	char *reply, text[KEY_HEX_LEN + 1];
	uint8_t key[KEY_LEN];
	size_t len;
	set_up_one_peer();
	fake_node_start(&node);
	assert_int_equal(ctl_client_ask(node.control_path, "{\"op\":\"status\"}\n", soon(),
				 ends_a_line, &reply, &len),
		WEFT_OK);
	assert_non_null(strstr(reply, "\"peers\":[{"));
	for (uint8_t byte = 0x41; byte <= 0x42; byte++) {
		memset(key, byte, sizeof(key));
		assert_null(strstr(reply, key_encode_hex(key, text)));
		/* The middle alone: its ends depend on what stands beside it. */
		key_encode_base64(key, text)[40] = 0;
		assert_null(strstr(reply, text + 4));
	}
	ctl_client_free(reply, len);
}

static void
status_of_many_peers_is_one_object(void **state)
{
	(void)state;
	json_t *o;
	for (unsigned i = 0; i < 2000; i++) {
		fake_node_add_peer(&node, i);
	}
	/* One with many prefixes, so that its list takes several pieces. */
	struct wg_out *out;
	struct wg_device *d = node_lock(&node, &out);
	struct wg_peer *first = wg_peer_next(d, NULL);
	for (unsigned i = 0; i < 3000; i++) {
		struct ip_prefix prefix = {.addr = {.family = IP_FAMILY_V6,
						   .b = {0xfd, 0, (uint8_t)(i >> 8), (uint8_t)i}},
			.bits = 64};
		assert_int_equal(wg_peer_allow(d, first, &prefix), WEFT_OK);
	}
	node_unlock(&node);
	fake_node_start(&node);
	assert_int_equal(ctl_client_op(node.control_path, "status", soon(), &o), WEFT_OK);
	json_t *peers = json_object_get(o, "peers");
	assert_int_equal(json_array_size(peers), 2000);
	size_t allowed = 0;
	for (size_t i = 0; i < json_array_size(peers); i++) {
		allowed +=
			json_array_size(json_object_get(json_array_get(peers, i), "allowed_ips"));
	}
	assert_int_equal(allowed, 5000);
	json_decref(o);
}

static void
reload_takes_a_file_or_none_and_says_what_is_wrong(void **state)
{
	(void)state;
	fake_node_start(&node);
	static const char requests[] =
		"{\"op\":\"reload\"}\n{\"op\":\"reload\",\"file\":\"/a/b.conf\"}\n"
		"{\"op\":\"reload\",\"file\":\"/bad\"}\n";
	int fd = open_client();
	assert_int_equal(os_fd_write_all(fd, requests, sizeof(requests) - 1, soon()), WEFT_OK);
	for (unsigned i = 0; i < 2; i++) {
		json_t *o = read_line(fd);
		assert_true(json_is_true(json_object_get(o, "ok")));
		json_decref(o);
	}
	json_t *o = read_line(fd), *error = json_object_get(o, "error");
	assert_string_equal(json_string_value(json_object_get(error, "code")), "config");
	assert_string_equal(json_string_value(json_object_get(error, "text")),
		"/bad:1:2: error: \"two\"\n/bad:2:1: error: lines");
	json_decref(o);
	os_fd_close(&fd);
	assert_int_equal(atomic_load(&node.reloads), 101);
	static const char number[] = "{\"op\":\"reload\",\"file\":7}\n";
	expect_error(number, sizeof(number) - 1, "value");
}

static void
stop_is_told_after_its_answer(void **state)
{
	(void)state;
	fake_node_start(&node);
	int fd = open_client();
	static const char text[] = "{\"op\":\"stop\"}\n";
	assert_int_equal(os_fd_write_all(fd, text, sizeof(text) - 1, soon()), WEFT_OK);
	json_t *o = read_line(fd);
	assert_true(json_is_true(json_object_get(o, "ok")));
	json_decref(o);
	struct mono deadline = soon();
	while (atomic_load(&node.stops) == 0 && mono_is_before(os_clock_mono(), deadline)) {
		os_clock_sleep_ns(WEFT_NS_PER_MS);
	}
	assert_int_equal(atomic_load(&node.stops), 1);
	os_fd_close(&fd);
}

static void
stop_of_a_client_that_went_away_is_told_once(void **state)
{
	(void)state;
	int fd = open_client();
	static const char text[] = "{\"op\":\"stop\"}\n";
	assert_int_equal(os_fd_write_all(fd, text, sizeof(text) - 1, soon()), WEFT_OK);
	os_fd_close(&fd);
	fake_node_start(&node);
	json_t *o;
	assert_int_equal(ctl_client_op(node.control_path, "version", soon(), &o), WEFT_OK);
	json_decref(o);
	assert_int_equal(atomic_load(&node.stops), 1);
}

static void
client_says_what_is_wrong(void **state)
{
	(void)state;
	json_t *o;
	char path[CTL_PATH_MAX + 8];
	snprintf(path, sizeof(path), "%s.no", node.control_path);
	assert_int_equal(ctl_client_op(path, "version", soon(), &o), WEFT_ENOENT);
	/* Nobody runs the loop. */
	struct mono now = os_clock_mono();
	assert_int_equal(ctl_client_op(node.control_path, "version",
				 mono_add_ns(now, 50 * WEFT_NS_PER_MS), &o),
		WEFT_ETIMEDOUT);
	assert_true(mono_diff_ns(os_clock_mono(), now) >= 50 * WEFT_NS_PER_MS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(version_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(
			why_finds_peers_by_key_beginning_and_address, setup, teardown),
		cmocka_unit_test_setup_teardown(why_refuses_what_is_nobodys, setup, teardown),
		cmocka_unit_test_setup_teardown(
			client_without_a_descriptor_is_turned_away, setup, teardown),
		cmocka_unit_test_setup_teardown(
			quietest_client_gives_its_descriptor_to_a_new_one, setup, teardown),
		cmocka_unit_test_setup_teardown(
			wrong_requests_get_an_error_and_the_connection_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(endless_request_is_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(
			status_has_the_device_every_drop_reason_and_every_peer, setup, teardown),
		cmocka_unit_test_setup_teardown(status_holds_no_secret_key, setup, teardown),
		cmocka_unit_test_setup_teardown(
			status_of_many_peers_is_one_object, setup, teardown),
		cmocka_unit_test_setup_teardown(
			reload_takes_a_file_or_none_and_says_what_is_wrong, setup, teardown),
		cmocka_unit_test_setup_teardown(stop_is_told_after_its_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(
			stop_of_a_client_that_went_away_is_told_once, setup, teardown),
		cmocka_unit_test_setup_teardown(client_says_what_is_wrong, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
