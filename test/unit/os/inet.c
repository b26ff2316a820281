/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/fd.h"
#include "os/inet.h"
#include "os/thread.h"

static struct os_inet_name
name_of(const char *text, uint16_t port)
{
	struct ip_addr a;
	struct os_inet_name name;
	assert_int_equal(ip_addr_parse(text, strlen(text), &a), WEFT_OK);
	os_inet_name(&a, port, 0, &name);
	return name;
}

static void
inet_addresses_read_back_and_mapped_ones_as_ipv4(void **state)
{
	(void)state;
	static const struct {
		const char *in, *out;
	} cases[] = {{"192.0.2.1", "192.0.2.1"}, {"2001:db8::1", "2001:db8::1"},
		{"::ffff:192.0.2.7", "192.0.2.7"}, {"::", "::"}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct os_inet_name name = name_of(cases[i].in, 4711);
		struct ip_addr a;
		uint16_t port;
		char text[IP_ADDR_TEXT_MAX];
		assert_true(os_inet_read((struct sockaddr *)&name.at, name.len, &a, &port));
		assert_string_equal(ip_addr_format(&a, text), cases[i].out);
		assert_int_equal(port, 4711);
		assert_false(os_inet_read((struct sockaddr *)&name.at, 7, &a, &port));
		name.at.ss_family = AF_UNIX;
		assert_false(os_inet_read((struct sockaddr *)&name.at, name.len, &a, &port));
	}
}

static void
inet_services_are_numbers_or_names(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"", "65536", "99999999999999999999", "-1", "80x", "no-such"};
	uint16_t port = 1;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(os_inet_service(bad[i], false, &port), WEFT_ENOENT);
	}
	assert_int_equal(port, 1);
	assert_int_equal(os_inet_service("65535", false, &port), WEFT_OK);
	assert_int_equal(port, 65535);
	assert_int_equal(os_inet_service("0", true, &port), WEFT_OK);
	assert_int_equal(port, 0);
	assert_int_equal(os_inet_service("domain", true, &port), WEFT_OK);
	assert_int_equal(port, 53);
}

static int
tcp(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(fd >= 0);
	return fd;
}

static void
inet_connection_from_bind_to_accept(void **state)
{
	(void)state;
	struct os_inet_name at = name_of("127.0.0.1", 0), elsewhere = name_of("192.0.2.1", 0);
	int listener = tcp(), out = tcp(), other = tcp(), in, errnum = 0;
	size_t woken;
	bool is_blocking;
	assert_int_equal(os_inet_bind(other, &elsewhere, 0, &errnum), WEFT_EUNREACH);
	assert_int_equal(errnum, EADDRNOTAVAIL);
	assert_int_equal(os_inet_bind(listener, &at, OS_INET_REUSEADDR, &errnum), WEFT_OK);
	at.len = sizeof(at.at);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at.at, &at.len), 0);
	assert_int_equal(os_inet_accept(listener, false, &in, &errnum), WEFT_EINVAL);
	enum weft_err e = os_inet_connect(other, &at, &errnum);
	if (e == WEFT_EAGAIN) {
		assert_int_equal(os_inet_wait(other, true, NULL, 0, MONO_NEVER, &woken), WEFT_OK);
		e = os_inet_result(other, &errnum);
	}
	assert_int_equal(e, WEFT_EREFUSED);
	assert_int_equal(errnum, ECONNREFUSED);
	assert_int_equal(os_inet_listen(listener, 5, &errnum), WEFT_OK);
	assert_int_equal(os_inet_accept(listener, false, &in, &errnum), WEFT_EAGAIN);
	e = os_inet_connect(out, &at, &errnum);
	assert_true(e == WEFT_OK || e == WEFT_EAGAIN);
	assert_int_equal(os_inet_wait(out, true, NULL, 0, MONO_NEVER, &woken), WEFT_OK);
	assert_int_equal(os_inet_result(out, &errnum), WEFT_OK);
	assert_int_equal(os_inet_wait(listener, false, NULL, 0, MONO_NEVER, &woken), WEFT_OK);
	assert_int_equal(os_inet_accept(listener, true, &in, &errnum), WEFT_OK);
	assert_int_equal(os_inet_is_blocking(in, &is_blocking), WEFT_OK);
	assert_false(is_blocking);
	assert_int_equal(os_inet_set_blocking(in, true), WEFT_OK);
	assert_int_equal(os_inet_is_blocking(in, &is_blocking), WEFT_OK);
	assert_true(is_blocking);
	assert_int_equal(os_inet_is_blocking(-1, &is_blocking), WEFT_EINVAL);
	struct ip_addr peer;
	uint16_t port;
	assert_int_equal(os_inet_peer(in, &peer, &port), WEFT_OK);
	assert_int_equal(peer.b[0], 127);
	assert_int_not_equal(os_inet_peer(listener, &peer, &port), WEFT_OK);
	close(listener);
	close(out);
	close(other);
	close(in);
}

static void
inet_wait_prefers_the_socket_then_the_first_wake(void **state)
{
	(void)state;
	struct os_wake a, b, socket_like;
	size_t woken = 9;
	assert_int_equal(os_wake_init(&a), WEFT_OK);
	assert_int_equal(os_wake_init(&b), WEFT_OK);
	assert_int_equal(os_wake_init(&socket_like), WEFT_OK);
	const int wakes[] = {-1, a.fd, b.fd};
	struct mono soon = mono_add_ns(os_clock_mono(), 20 * WEFT_NS_PER_MS);
	assert_int_equal(
		os_inet_wait(socket_like.fd, false, wakes, 3, soon, &woken), WEFT_ETIMEDOUT);
	assert_false(mono_is_before(os_clock_mono(), soon));
	os_wake_signal(&b);
	assert_int_equal(
		os_inet_wait(socket_like.fd, false, wakes, 3, MONO_NEVER, &woken), WEFT_OK);
	assert_int_equal(woken, 2);
	os_wake_signal(&a);
	assert_int_equal(
		os_inet_wait(socket_like.fd, false, wakes, 3, MONO_NEVER, &woken), WEFT_OK);
	assert_int_equal(woken, 1);
	os_wake_signal(&socket_like);
	assert_int_equal(
		os_inet_wait(socket_like.fd, false, wakes, 3, MONO_NEVER, &woken), WEFT_OK);
	assert_int_equal(woken, 3);
	os_wake_fini(&a);
	os_wake_fini(&b);
	os_wake_fini(&socket_like);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inet_addresses_read_back_and_mapped_ones_as_ipv4),
		cmocka_unit_test(inet_services_are_numbers_or_names),
		cmocka_unit_test(inet_connection_from_bind_to_accept),
		cmocka_unit_test(inet_wait_prefers_the_socket_then_the_first_wake),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
