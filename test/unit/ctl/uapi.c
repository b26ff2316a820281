/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ctl/client.h"
#include "ctl/server.h"
#include "fake_node.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/unixsock.h"
#include "wire/key.h"

#define KEY_HEX "a8dac1d8a70a751f0f699fb14ba1cff7b79bd3f1a2b8e4f0c5d6e7f8091a2b3c"
#define KEY2_HEX "b8dac1d8a70a751f0f699fb14ba1cff7b79bd3f1a2b8e4f0c5d6e7f8091a2b3d"
#define PRIVATE_HEX "e84b5a6d2717c1003a13b431570353dbaca9146cf150c5f8575680feba52027a"

static struct node node;

static int
setup(void **state)
{
	(void)state;
	fake_node_init(&node);
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

static int
open_client(void)
{
	int fd;
	assert_int_equal(os_unixsock_connect(node.uapi_path, soon(), &fd), WEFT_OK);
	return fd;
}

static void
send_text(int fd, const char *text)
{
	assert_int_equal(os_fd_write_all(fd, text, strlen(text), soon()), WEFT_OK);
}

/* Reads to "errno=..\n\n" or to the end. Returns the length. */
static size_t
read_reply(int fd, char *out, size_t cap, bool *has_ended)
{
	size_t len = 0, n;
	*has_ended = false;
	while (!uapi_reply_is_whole(out, len)) {
		assert_int_equal(os_fd_wait(fd, false, soon()), WEFT_OK);
		enum weft_err e = os_fd_read(fd, out + len, cap - len - 1, &n);
		if (e == WEFT_ECLOSED) {
			*has_ended = true;
			break;
		}
		assert_int_equal(e, WEFT_OK);
		len += n;
	}
	out[len] = 0;
	return len;
}

static void
expect_reply(int fd, const char *want)
{
	char text[4096];
	bool has_ended;
	read_reply(fd, text, sizeof(text), &has_ended);
	assert_string_equal(text, want);
}

static void
ask(const char *request, const char *want)
{
	int fd = open_client();
	send_text(fd, request);
	expect_reply(fd, want);
	os_fd_close(&fd);
}

static void
expect_end(int fd)
{
	char c;
	size_t n;
	assert_int_equal(os_fd_wait(fd, false, soon()), WEFT_OK);
	assert_int_equal(os_fd_read(fd, &c, 1, &n), WEFT_ECLOSED);
}

static void
set_takes_effect_and_get_shows_it(void **state)
{
	(void)state;
	ask("get=1\n\n", "listen_port=51820\nerrno=0\n\n");
	ask("set=1\nprivate_key=" PRIVATE_HEX "\nlisten_port=1234\nfwmark=99\npublic_key=" KEY_HEX
	    "\npreshared_key=" KEY2_HEX "\nendpoint=[2001:db8::1%5]:77\n"
	    "persistent_keepalive_interval=25\nallowed_ip=10.1.2.3/8\nallowed_ip=fd00::/8\n\n",
		"errno=0\n\n");
	ask("get=1\n\n",
		"private_key=" PRIVATE_HEX "\nlisten_port=1234\nfwmark=99\npublic_key=" KEY_HEX
		"\npreshared_key=" KEY2_HEX "\nprotocol_version=1\n"
		"endpoint=[2001:db8::1%5]:77\nlast_handshake_time_sec=0\n"
		"last_handshake_time_nsec=0\ntx_bytes=0\nrx_bytes=0\n"
		"persistent_keepalive_interval=25\nallowed_ip=10.0.0.0/8\n"
		"allowed_ip=fd00::/8\nerrno=0\n\n");
}

static size_t
count_allowed(const char *key_hex)
{
	uint8_t key[KEY_LEN];
	size_t n = 0;
	void *cursor = NULL;
	struct ip_prefix prefix;
	assert_int_equal(key_decode_hex(key_hex, KEY_HEX_LEN, key), WEFT_OK);
	const struct wg_peer *p = wg_peer_find(node_lock_shared(&node), key);
	while (p && wg_peer_allowed_next(p, &cursor, &prefix)) {
		n++;
	}
	node_unlock_shared(&node);
	return p ? n : SIZE_MAX;
}

static void
set_changes_peers_as_its_flags_say(void **state)
{
	(void)state;
	ask("set=1\npublic_key=" KEY_HEX "\nupdate_only=true\nallowed_ip=10.0.0.0/8\n\n",
		"errno=0\n\n");
	assert_int_equal(fake_node_peers(&node), 0);
	ask("set=1\npublic_key=" KEY_HEX "\nallowed_ip=10.0.0.0/8\nallowed_ip=11.0.0.0/8\n\n",
		"errno=0\n\n");
	assert_int_equal(count_allowed(KEY_HEX), 2);
	ask("set=1\npublic_key=" KEY_HEX "\nupdate_only=true\nallowed_ip=-10.0.0.0/8\n\n",
		"errno=0\n\n");
	assert_int_equal(count_allowed(KEY_HEX), 1);
	/* A prefix moves to the peer that is given it last. */
	ask("set=1\npublic_key=" KEY2_HEX "\nallowed_ip=11.0.0.0/8\nallowed_ip=::/0\n\n",
		"errno=0\n\n");
	assert_int_equal(count_allowed(KEY_HEX), 0);
	ask("set=1\npublic_key=" KEY2_HEX "\nreplace_allowed_ips=true\nallowed_ip=1.0.0.0/8\n\n",
		"errno=0\n\n");
	assert_int_equal(count_allowed(KEY2_HEX), 1);
	ask("set=1\npublic_key=" KEY_HEX "\nremove=true\n\n", "errno=0\n\n");
	assert_int_equal(fake_node_peers(&node), 1);
	ask("set=1\nreplace_peers=true\npublic_key=" KEY_HEX "\n\n", "errno=0\n\n");
	assert_int_equal(fake_node_peers(&node), 1);
	assert_int_equal(count_allowed(KEY2_HEX), SIZE_MAX);
	ask("set=1\nprivate_key="
	    "0000000000000000000000000000000000000000000000000000000000000000\n\n",
		"errno=0\n\n");
}

static void
replacing_counts_where_it_stands(void **state)
{
	(void)state;
	ask("set=1\npublic_key=" KEY_HEX "\nallowed_ip=9.0.0.0/8\n\n", "errno=0\n\n");
	ask("set=1\npublic_key=" KEY_HEX "\nallowed_ip=10.0.0.0/8\nreplace_allowed_ips=true\n"
	    "allowed_ip=11.0.0.0/8\nallowed_ip=12.0.0.0/8\n\n",
		"errno=0\n\n");
	assert_int_equal(count_allowed(KEY_HEX), 2);
}

/* What wg syncconf sends of a peer that has not changed. */
static void
set_of_what_a_peer_has_holds_the_device_for_nobody(void **state)
{
	(void)state;
	static const char peer[] =
		"set=1\npublic_key=" KEY_HEX "\npreshared_key=" KEY2_HEX "\nendpoint=192.0.2.1:7\n"
		"persistent_keepalive_interval=25\nreplace_allowed_ips=true\n"
		"allowed_ip=10.1.0.0/16\nallowed_ip=fd00::/8\npublic_key=" KEY2_HEX
		"\nremove=true\n\n";
	static const char *const others[] = {
		"preshared_key=" KEY_HEX,
		"endpoint=192.0.2.1:8",
		"persistent_keepalive_interval=0",
		"allowed_ip=11.0.0.0/8",
		"allowed_ip=-10.1.0.0/16",
		"replace_allowed_ips=true",
		"replace_allowed_ips=true\nallowed_ip=fd00::/8\nallowed_ip=10.1.0.0/16",
		"remove=true",
	};
	ask(peer, "errno=0\n\n");
	unsigned before = atomic_load(&node.holds);
	ask(peer, "errno=0\n\n");
	assert_int_equal(atomic_load(&node.holds), before);
	for (size_t i = 0; i < WEFT_ARRAY_LEN(others); i++) {
		char request[300];
		ask(peer, "errno=0\n\n");
		before = atomic_load(&node.holds);
		snprintf(request, sizeof(request), "set=1\npublic_key=" KEY_HEX "\n%s\n\n",
			others[i]);
		ask(request, "errno=0\n\n");
		assert_int_equal(atomic_load(&node.holds), before + 1);
	}
	assert_int_equal(fake_node_peers(&node), 0);
}

static void
set_many(const char *head, unsigned first, unsigned n)
{
	static char request[1 << 16];
	size_t len = (size_t)snprintf(
		request, sizeof(request), "set=1\npublic_key=" KEY_HEX "\n%s", head);
	for (unsigned i = first; i < first + n; i++) {
		len += (size_t)snprintf(request + len, sizeof(request) - len,
			"allowed_ip=10.0.%u.%u/32\n", i >> 8, i & 255);
	}
	snprintf(request + len, sizeof(request) - len, "\n");
	ask(request, "errno=0\n\n");
}

static void
many_prefixes_are_added_in_turns_and_replaced_at_once(void **state)
{
	(void)state;
	set_many("replace_allowed_ips=true\n", 0, 1000);
	assert_int_equal(count_allowed(KEY_HEX), 1000);
	assert_true(atomic_load(&node.holds) > 3);
	unsigned before = atomic_load(&node.holds);
	set_many("", 1000, 1000);
	assert_int_equal(count_allowed(KEY_HEX), 2000);
	assert_true(atomic_load(&node.holds) > before + 3);
	/* Nobody sees the peer without those that stay. */
	before = atomic_load(&node.holds);
	set_many("replace_allowed_ips=true\n", 500, 1000);
	assert_int_equal(count_allowed(KEY_HEX), 1000);
	assert_int_equal(atomic_load(&node.holds), before + 1);
}

static void
set_that_calls_a_peer_and_removes_it_leaves_no_news_of_it(void **state)
{
	(void)state;
	struct wg_out *out;
	struct wg_device *d = node_lock(&node, &out);
	wg_device_set_up(d, true, node_time(), out);
	node_unlock(&node);
	ask("set=1\nprivate_key=" PRIVATE_HEX "\npublic_key=" KEY_HEX
	    "\nendpoint=192.0.2.1:1000\npersistent_keepalive_interval=25\npublic_key=" KEY_HEX
	    "\nremove=true\n\n",
		"errno=0\n\n");
	assert_int_equal(fake_node_peers(&node), 0);
	assert_int_equal(atomic_load(&node.stale_news), 0);
}

static void
set_passes_over_the_own_key(void **state)
{
	(void)state;
	char request[400], hex[KEY_HEX_LEN + 1];
	uint8_t own[KEY_LEN];
	ask("set=1\nprivate_key=" PRIVATE_HEX "\n\n", "errno=0\n\n");
	assert_true(wg_device_public_key(node_lock_shared(&node), own));
	node_unlock_shared(&node);
	snprintf(request, sizeof(request), "set=1\npublic_key=%s\npublic_key=" KEY_HEX "\n\n",
		key_encode_hex(own, hex));
	ask(request, "errno=0\n\n");
	assert_int_equal(fake_node_peers(&node), 1);
}

static void
set_that_is_wrong_changes_nothing(void **state)
{
	(void)state;
	static const char *const tails[] = {"nonsense=1\n\n", "allowed_ip=1.2.3.4/33\n\n",
		"endpoint=[fe80::1%weft-no-such]:5\n\n", "no equals\n\n"};
	static const char *const answers[] = {
		"errno=-22\n\n", "errno=-22\n\n", "errno=-19\n\n", "errno=-71\n\n"};
	fake_node_add_peer(&node, 1);
	for (size_t i = 0; i < WEFT_ARRAY_LEN(tails); i++) {
		char request[600];
		snprintf(request, sizeof(request),
			"set=1\nprivate_key=" PRIVATE_HEX "\nlisten_port=99\nfwmark=5\n"
			"replace_peers=true\npublic_key=" KEY_HEX "\n%s",
			tails[i]);
		ask(request, answers[i]);
		ask("get=1\n\n",
			"listen_port=51820\npublic_key="
			"0100000000000000000000000000000000000000000000000000000000000009\n"
			"preshared_key="
			"0000000000000000000000000000000000000000000000000000000000000000\n"
			"protocol_version=1\nlast_handshake_time_sec=0\n"
			"last_handshake_time_nsec=0\ntx_bytes=0\nrx_bytes=0\n"
			"persistent_keepalive_interval=0\nallowed_ip=10.0.0.1/32\nerrno=0\n\n");
	}
}

static void
set_whose_port_is_taken_changes_nothing(void **state)
{
	(void)state;
	node.port_err = WEFT_EADDRINUSE;
	ask("set=1\nprivate_key=" PRIVATE_HEX "\nlisten_port=99\nfwmark=5\npublic_key=" KEY_HEX
	    "\n\n",
		"errno=-98\n\n");
	assert_int_equal(node.mark, 0);
	assert_int_equal(node.mark_changes, 2); /* there and back */
	ask("get=1\n\n", "listen_port=51820\nerrno=0\n\n");
	node.mark_err = WEFT_EPERM;
	ask("set=1\nfwmark=5\npublic_key=" KEY_HEX "\n\n", "errno=-1\n\n");
	ask("get=1\n\n", "listen_port=51820\nerrno=0\n\n");
}

static void
set_of_what_is_there_opens_no_socket(void **state)
{
	(void)state;
	ask("set=1\nlisten_port=51820\nfwmark=0\n\n", "errno=0\n\n");
	assert_int_equal(node.port_changes + node.mark_changes, 0);
	ask("set=1\nlisten_port=0\n\n", "errno=0\n\n");
	assert_int_equal(node.port, 40000);
}

static void
half_a_set_blocks_nobody_and_changes_nothing(void **state)
{
	(void)state;
	int half = open_client(), line = open_client();
	send_text(half, "set=1\nlisten_port=99\npublic_key=" KEY_HEX "\nallowed_ip=1.");
	send_text(line, "se");
	for (int i = 0; i < 10; i++) {
		ask("get=1\n\n", "listen_port=51820\nerrno=0\n\n");
	}
	/* It is not too late to finish. */
	send_text(line, "t=1\nlisten_port=77\n\n");
	expect_reply(line, "errno=0\n\n");
	assert_int_equal(fake_node_peers(&node), 0);
	os_fd_close(&half);
	os_fd_close(&line);
	ask("get=1\n\n", "listen_port=77\nerrno=0\n\n");
	assert_int_equal(fake_node_peers(&node), 0);
}

static void
client_that_never_reads_blocks_nobody(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		fake_node_add_peer(&node, i);
	}
	int deaf[3];
	for (size_t i = 0; i < 3; i++) {
		deaf[i] = open_client();
		for (int k = 0; k < 200; k++) {
			send_text(deaf[i], "get=1\n\n");
		}
	}
	char *reply;
	size_t len;
	assert_int_equal(ctl_client_get(node.uapi_path, soon(), &reply, &len), WEFT_OK);
	size_t peers = 0;
	for (const char *p = reply; (p = strstr(p, "public_key=")) != NULL; p++) {
		peers++;
	}
	assert_int_equal(peers, 3000);
	ctl_client_free(reply, len);
	ask("set=1\nlisten_port=5\n\n", "errno=0\n\n");
	for (size_t i = 0; i < 3; i++) {
		os_fd_close(&deaf[i]);
	}
	ask("set=1\nlisten_port=6\n\n", "errno=0\n\n");
}

static void
peers_removed_under_a_slow_reader_are_left_out(void **state)
{
	(void)state;
	static char text[4 << 20];
	bool has_ended;
	for (unsigned i = 0; i < 5000; i++) {
		fake_node_add_peer(&node, i);
	}
	int slow = open_client();
	send_text(slow, "get=1\n\n");
	assert_int_equal(os_fd_wait(slow, false, soon()), WEFT_OK);
	ask("set=1\nreplace_peers=true\npublic_key=" KEY_HEX "\n\n", "errno=0\n\n");
	size_t len = read_reply(slow, text, sizeof(text), &has_ended), peers = 0;
	assert_false(has_ended);
	for (const char *p = text; (p = strstr(p, "public_key=")) != NULL; p++) {
		peers++;
	}
	assert_true(peers > 0 && peers < 5000);
	struct uapi_device_info device;
	struct uapi_reply_cursor cursor;
	int error;
	assert_int_equal(uapi_reply_begin(text, len, &device, &error, &cursor), WEFT_OK);
	assert_int_equal(error, 0);
	os_fd_close(&slow);
}

static void
requests_sent_at_once_are_answered_in_order(void **state)
{
	(void)state;
	int fd = open_client();
	char text[4096];
	size_t len = 0, n;
	send_text(fd, "get=1\n\nset=1\nlisten_port=7\n\nbad\n\nset=1\nbad=1\n\nget=1\n\n");
	static const char want[] =
		"listen_port=51820\nerrno=0\n\nerrno=0\n\nerrno=71\n\nerrno=-22\n\n"
		"listen_port=7\nerrno=0\n\n";
	while (len < sizeof(want) - 1) {
		assert_int_equal(os_fd_wait(fd, false, soon()), WEFT_OK);
		assert_int_equal(os_fd_read(fd, text + len, sizeof(text) - len - 1, &n), WEFT_OK);
		len += n;
	}
	text[len] = 0;
	assert_string_equal(text, want);
	os_fd_close(&fd);
}

static void
endless_line_gets_its_errno_and_the_end(void **state)
{
	(void)state;
	int fd = open_client();
	char as[300];
	memset(as, 'a', sizeof(as));
	send_text(fd, "set=1\n");
	assert_int_equal(os_fd_write_all(fd, as, sizeof(as), soon()), WEFT_OK);
	expect_reply(fd, "errno=-90\n\n");
	expect_end(fd);
	os_fd_close(&fd);
}

static void
one_client_too_many_takes_the_place_of_the_quietest(void **state)
{
	(void)state;
	int fds[CTL_CLIENTS_MAX];
	for (size_t i = 0; i < CTL_CLIENTS_MAX; i++) {
		fds[i] = open_client();
		send_text(fds[i], "get=1\n\n");
		expect_reply(fds[i], "listen_port=51820\nerrno=0\n\n");
	}
	send_text(fds[0], "get=1\n\n");
	expect_reply(fds[0], "listen_port=51820\nerrno=0\n\n");
	ask("get=1\n\n", "listen_port=51820\nerrno=0\n\n");
	expect_end(fds[1]);
	for (size_t i = 0; i < CTL_CLIENTS_MAX; i++) {
		if (i != 1) {
			send_text(fds[i], "get=1\n\n");
			expect_reply(fds[i], "listen_port=51820\nerrno=0\n\n");
		}
		os_fd_close(&fds[i]);
	}
}

static void
path_is_made_of_interface_names_alone(void **state)
{
	(void)state;
	char path[CTL_PATH_MAX];
	assert_int_equal(ctl_path_make(CTL_UAPI_DIR, "wg0", path), WEFT_OK);
	assert_string_equal(path, "/var/run/wireguard/wg0.sock");
	assert_int_equal(ctl_path_make(CTL_UAPI_DIR, "../x", path), WEFT_EINVAL);
	assert_int_equal(ctl_path_make(CTL_UAPI_DIR, "", path), WEFT_EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(set_takes_effect_and_get_shows_it, setup, teardown),
		cmocka_unit_test_setup_teardown(
			set_changes_peers_as_its_flags_say, setup, teardown),
		cmocka_unit_test_setup_teardown(replacing_counts_where_it_stands, setup, teardown),
		cmocka_unit_test_setup_teardown(
			set_of_what_a_peer_has_holds_the_device_for_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(
			many_prefixes_are_added_in_turns_and_replaced_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(
			set_that_calls_a_peer_and_removes_it_leaves_no_news_of_it, setup, teardown),
		cmocka_unit_test_setup_teardown(set_passes_over_the_own_key, setup, teardown),
		cmocka_unit_test_setup_teardown(set_that_is_wrong_changes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			set_whose_port_is_taken_changes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			set_of_what_is_there_opens_no_socket, setup, teardown),
		cmocka_unit_test_setup_teardown(
			half_a_set_blocks_nobody_and_changes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			client_that_never_reads_blocks_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(
			peers_removed_under_a_slow_reader_are_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(
			requests_sent_at_once_are_answered_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(
			endless_line_gets_its_errno_and_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(
			one_client_too_many_takes_the_place_of_the_quietest, setup, teardown),
		cmocka_unit_test(path_is_made_of_interface_names_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
