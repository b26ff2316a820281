/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "netns.h"
#include "os/netlink.h"
#include "os/tun.h"

static void
ignore_line(void *ctx, enum log_level level, const char *text)
{
	(void)level;
	++*(unsigned *)ctx;
	assert_true(strlen(text) > 0);
}

static unsigned lines;
static const struct log log_lines = {.sink = ignore_line, .ctx = &lines, .level = LOG_LEVEL_DEBUG};

static void
device_lives_as_long_as_its_descriptors(void **state)
{
	(void)state;
	netns_fresh();
	struct os_tun t;
	assert_int_equal(os_tun_open(&t, "weft0", 1, OS_TUN_OFFLOAD_USO, &log_lines), WEFT_OK);
	assert_string_equal(t.name, "weft0");
	assert_int_equal(t.queues, 1);
	assert_true(t.offload >= OS_TUN_OFFLOAD_TSO);
	netns_run("ip link show weft0 >/dev/null");
	assert_int_equal(fcntl(t.fds[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fcntl(t.fds[0], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	os_tun_close(&t);
	netns_run("! ip link show weft0 >/dev/null 2>&1");
}

static void
name_pattern_is_filled_by_the_kernel_and_bad_names_are_refused(void **state)
{
	(void)state;
	netns_fresh();
	struct os_tun a, b;
	assert_int_equal(os_tun_open(&a, "wt%d", 1, OS_TUN_OFFLOAD_TSO, &log_lines), WEFT_OK);
	assert_int_equal(os_tun_open(&b, "wt%d", 1, OS_TUN_OFFLOAD_TSO, &log_lines), WEFT_OK);
	assert_string_equal(a.name, "wt0");
	assert_string_equal(b.name, "wt1");
	os_tun_close(&b);
	static const char *const bad[] = {"", ".", "..", "a/b", "a b", "a:b", "%s", "wt%d%d",
		"sixteen-letters.", "tab\there"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(bad); i++) {
		lines = 0;
		assert_int_equal(
			os_tun_open(&b, bad[i], 1, OS_TUN_OFFLOAD_TSO, &log_lines), WEFT_EINVAL);
		assert_int_equal(lines, 1);
	}
	/* Taken by a TUN, and by something that is none. */
	lines = 0;
	assert_int_equal(
		os_tun_open(&b, "wt0", 1, OS_TUN_OFFLOAD_TSO, &log_lines), WEFT_EADDRINUSE);
	assert_int_equal(lines, 1);
	assert_int_equal(os_tun_open(&b, "lo", 1, OS_TUN_OFFLOAD_TSO, &log_lines), WEFT_EADDRINUSE);
	assert_int_equal(os_tun_open(&b, "wt1", 0, OS_TUN_OFFLOAD_TSO, &log_lines), WEFT_EINVAL);
	os_tun_close(&a);
}

static void
queues_of_another_device_are_not_joined(void **state)
{
	(void)state;
	netns_fresh();
	struct os_tun a, b;
	assert_int_equal(os_tun_open(&a, "wt0", 2, OS_TUN_OFFLOAD_TSO, &log_lines), WEFT_OK);
	assert_int_equal(
		os_tun_open(&b, "wt0", 2, OS_TUN_OFFLOAD_TSO, &log_lines), WEFT_EADDRINUSE);
	os_tun_close(&a);
}

static void
several_queues_are_one_device(void **state)
{
	(void)state;
	netns_fresh();
	struct os_tun t;
	assert_int_equal(os_tun_open(&t, "wt%d", 4, OS_TUN_OFFLOAD_USO, &log_lines), WEFT_OK);
	assert_string_equal(t.name, "wt0");
	assert_int_equal(t.queues, 4);
	char *link = netns_output("ip -d link show wt0");
	assert_non_null(strstr(link, "multi_queue"));
	free(link);
	os_tun_close(&t);
}

static void
offload_levels_are_what_was_asked_for(void **state)
{
	(void)state;
	for (int level = OS_TUN_OFFLOAD_NONE; level <= OS_TUN_OFFLOAD_TSO; level++) {
		netns_fresh();
		struct os_tun t;
		assert_int_equal(
			os_tun_open(&t, "wt0", 1, (enum os_tun_offload)level, &log_lines), WEFT_OK);
		assert_int_equal(t.offload, level);
		char *link = netns_output("ip -d link show wt0");
		assert_int_equal(strstr(link, "vnet_hdr on") != NULL, level != OS_TUN_OFFLOAD_NONE);
		free(link);
		os_tun_close(&t);
	}
	netns_fresh();
	struct os_tun t;
	assert_int_equal(os_tun_open(&t, "wt0", 1, OS_TUN_OFFLOAD_USO, &log_lines), WEFT_OK);
	assert_int_equal(os_tun_set_offload(&t, OS_TUN_OFFLOAD_CSUM), WEFT_OK);
	assert_int_equal(t.offload, OS_TUN_OFFLOAD_CSUM);
	os_tun_close(&t);
}

static int
as_plain_user(void)
{
	struct os_tun t;
	lines = 0;
	return setuid(65534) ||
	       os_tun_open(&t, "wt0", 1, OS_TUN_OFFLOAD_USO, &log_lines) != WEFT_EPERM ||
	       lines != 1;
}

static void
plain_user_is_told_that_it_is_forbidden(void **state)
{
	(void)state;
	netns_fresh();
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		_exit(as_plain_user());
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

static void
gso_size_of_the_interface_fits_one_udp_send(void **state)
{
	(void)state;
	netns_fresh();
	struct os_tun t;
	struct os_netlink *n;
	struct os_link_info i;
	struct os_link_change c = {.gso_max_size = 61000, .mtu = 1420};
	assert_int_equal(os_tun_open(&t, "wt0", 1, OS_TUN_OFFLOAD_USO, &log_lines), WEFT_OK);
	assert_int_equal(os_netlink_open(&n), WEFT_OK);
	assert_int_equal(os_netlink_link_by_name(n, "wt0", &i), WEFT_OK);
	assert_string_equal(i.kind, "tun");
	assert_int_equal(os_netlink_link_change(n, i.index, &c), WEFT_OK);
	assert_int_equal(os_netlink_link_by_index(n, i.index, &i), WEFT_OK);
	assert_int_equal(i.gso_max_size, 61000);
	assert_true(i.gso_ipv4_max_size == 61000 || i.gso_ipv4_max_size == 0);
	os_netlink_close(n);
	os_tun_close(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(device_lives_as_long_as_its_descriptors),
		cmocka_unit_test(name_pattern_is_filled_by_the_kernel_and_bad_names_are_refused),
		cmocka_unit_test(queues_of_another_device_are_not_joined),
		cmocka_unit_test(several_queues_are_one_device),
		cmocka_unit_test(offload_levels_are_what_was_asked_for),
		cmocka_unit_test(plain_user_is_told_that_it_is_forbidden),
		cmocka_unit_test(gso_size_of_the_interface_fits_one_udp_send),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
