/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "wire/socks.h"

/* Of one message of a stream: the error, and how much is needed. */
typedef enum weft_err decoder(const uint8_t *p, size_t len, size_t *need);

static enum weft_err
greeting(const uint8_t *p, size_t len, size_t *need)
{
	struct socks_greeting g;
	return socks_greeting_decode(p, len, &g, need);
}

static enum weft_err
login(const uint8_t *p, size_t len, size_t *need)
{
	struct socks_login l;
	return socks_login_decode(p, len, &l, need);
}

static enum weft_err
request(const uint8_t *p, size_t len, size_t *need)
{
	struct socks_request r;
	return socks_request_decode(p, len, &r, need);
}

static const struct {
	const char *what;
	decoder *decode;
	const char *bytes;
	size_t len;
} messages[] = {
	{"one method", greeting, "\5\1\0", 3},
	{"three methods", greeting, "\5\3\0\1\2", 5},
	{"login", login, "\1\5alice\6secret", 14},
	{"empty login", login, "\1\0\0", 3},
	{"IPv4", request, "\5\1\0\1\x0a\0\0\2\0\x50", 10},
	{"IPv6", request, "\5\1\0\4\xfd\x99\0\0\0\0\0\0\0\0\0\0\0\0\0\2\0\x50", 22},
	{"name", request, "\5\3\0\3\4host\1\xbb", 11},
};

static void
stream_decoders_ask_for_the_rest_and_never_for_more(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		for (size_t n = 0; n <= messages[i].len; n++) {
			/* A block of its own: reads past its end are found. */
			uint8_t *p = malloc(n ? n : 1);
			assert_non_null(p);
			memcpy(p, messages[i].bytes, n);
			size_t need = 0;
			enum weft_err e = messages[i].decode(p, n, &need);
			free(p);
			assert_int_equal(e, n < messages[i].len ? WEFT_EAGAIN : WEFT_OK);
			assert_true(need <= messages[i].len);
			assert_true(e == WEFT_OK ? need == n : need > n);
		}
	}
}

static void
what_follows_a_message_is_not_read(void **state)
{
	(void)state;
	uint8_t p[64];
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		memset(p, 0xff, sizeof(p));
		memcpy(p, messages[i].bytes, messages[i].len);
		size_t need = 0;
		assert_int_equal(messages[i].decode(p, sizeof(p), &need), WEFT_OK);
		assert_int_equal(need, messages[i].len);
	}
}

static void
greeting_tells_the_methods_that_are_known(void **state)
{
	(void)state;
	struct socks_greeting g;
	size_t need;
	assert_int_equal(socks_greeting_decode((const uint8_t *)"\5\2\1\2", 4, &g, &need), WEFT_OK);
	assert_false(g.has_none);
	assert_true(g.has_login);
	assert_int_equal(socks_greeting_decode((const uint8_t *)"\5\1\0", 3, &g, &need), WEFT_OK);
	assert_true(g.has_none);
	assert_false(g.has_login);
}

static void
login_gives_user_and_password(void **state)
{
	(void)state;
	struct socks_login l;
	size_t need;
	assert_int_equal(socks_login_decode((const uint8_t *)"\1\2ab\3xyz", 8, &l, &need), WEFT_OK);
	assert_int_equal(l.user_len, 2);
	assert_memory_equal(l.user, "ab", 2);
	assert_int_equal(l.password_len, 3);
	assert_memory_equal(l.password, "xyz", 3);
}

static void
longest_messages_fit_their_bounds(void **state)
{
	(void)state;
	uint8_t p[SOCKS_MESSAGE_MAX];
	struct socks_login l;
	struct socks_request r;
	size_t need;
	memset(p, 'a', sizeof(p));
	p[0] = 1;
	p[1] = 255;
	p[2 + 255] = 255;
	assert_int_equal(socks_login_decode(p, sizeof(p), &l, &need), WEFT_OK);
	assert_int_equal(need, SOCKS_MESSAGE_MAX);
	memcpy(p, "\5\1\0\3\xff", 5);
	assert_int_equal(socks_request_decode(p, sizeof(p), &r, &need), WEFT_OK);
	assert_int_equal(need, SOCKS_HEADER_MAX);
	assert_int_equal(strlen(r.to.host), SOCKS_HOST_MAX);
}

static void
request_gives_command_address_and_port(void **state)
{
	(void)state;
	struct socks_request r;
	size_t need;
	assert_int_equal(socks_request_decode(
				 (const uint8_t *)"\5\2\x77\1\x0a\0\0\2\x1f\x90", 10, &r, &need),
		WEFT_OK);
	assert_int_equal(r.command, SOCKS_COMMAND_BIND);
	assert_int_equal(r.to.addr.family, IP_FAMILY_V4);
	assert_memory_equal(r.to.addr.b, "\x0a\0\0\2", 4);
	assert_int_equal(r.to.port, 8080);
	assert_string_equal(r.to.host, "");
	assert_int_equal(
		socks_request_decode((const uint8_t *)"\5\1\0\3\4peer\0\x16", 11, &r, &need),
		WEFT_OK);
	assert_int_equal(r.to.addr.family, IP_FAMILY_NONE);
	assert_string_equal(r.to.host, "peer");
	assert_int_equal(r.to.port, 22);
}

static void
malformed_messages_are_refused(void **state)
{
	(void)state;
	static const struct {
		decoder *decode;
		const char *bytes;
		size_t len;
		enum weft_err e;
	} cases[] = {
		{greeting, "\4", 1, WEFT_EPARSE},                    /* SOCKS 4 */
		{greeting, "GET / HTTP/1.1", 14, WEFT_EPARSE},       /* another protocol */
		{greeting, "\5\0", 2, WEFT_EPARSE},                  /* no method at all */
		{login, "\5\1a\1b", 5, WEFT_EPARSE},                 /* version */
		{request, "\4\1\0\1\0\0\0\0\0\1", 10, WEFT_EPARSE},  /* version */
		{request, "\5\1\0\2\0\0\0\0\0\1", 10, WEFT_ENOTSUP}, /* kind of address */
		{request, "\5\1\0\3\0\0\1", 7, WEFT_EPARSE},         /* empty name */
		{request, "\5\1\0\3\3a\0b\0\1", 10, WEFT_EPARSE},    /* a NUL in a name */
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t need = 0;
		assert_int_equal(
			cases[i].decode((const uint8_t *)cases[i].bytes, cases[i].len, &need),
			cases[i].e);
	}
}

static void
datagram_header_is_read_and_cut_ones_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t len, header;
		uint8_t fragment;
	} cases[] = {
		{"\0\0\0\1\x0a\0\0\2\0\x35payload", 17, 10, 0},
		{"\0\0\x81\1\x0a\0\0\2\0\x35payload", 17, 10, 0x81},
		{"\0\0\0\3\4peer\0\x35", 11, 11, 0},
		{"\0\0\0\4\xfd\x99\0\0\0\0\0\0\0\0\0\0\0\0\0\2\0\x50x", 23, 22, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t n = 0; n <= cases[i].len; n++) {
			uint8_t *p = malloc(n ? n : 1);
			assert_non_null(p);
			memcpy(p, cases[i].bytes, n);
			struct socks_datagram d;
			enum weft_err e = socks_datagram_decode(p, n, &d);
			free(p);
			assert_int_equal(e, n < cases[i].header ? WEFT_EPARSE : WEFT_OK);
			if (!e) {
				assert_int_equal(d.header_len, cases[i].header);
				assert_int_equal(d.fragment, cases[i].fragment);
			}
		}
	}
	struct socks_datagram d;
	assert_int_equal(socks_datagram_decode((const uint8_t *)"\0\0\0\7\0\0\0\0\0\0", 10, &d),
		WEFT_ENOTSUP);
}

static void
replies_are_written_as_the_rfc_has_them(void **state)
{
	(void)state;
	struct ip_addr none = {0}, v4 = {.family = IP_FAMILY_V4, .b = {10, 0, 0, 2}},
		       v6 = {.family = IP_FAMILY_V6, .b = {0xfd, 0x99}};
	v6.b[15] = 2;
	uint8_t out[SOCKS_REPLY_MAX];
	assert_int_equal(socks_reply_encode(SOCKS_REPLY_DONE, &v4, 80, out), 10);
	assert_memory_equal(out, "\5\0\0\1\x0a\0\0\2\0\x50", 10);
	assert_int_equal(socks_reply_encode(SOCKS_REPLY_REFUSED, &none, 0, out), 10);
	assert_memory_equal(out, "\5\5\0\1\0\0\0\0\0\0", 10);
	assert_int_equal(socks_header_encode(&v6, 53, out), 22);
	assert_memory_equal(out, "\0\0\0\4\xfd\x99\0\0\0\0\0\0\0\0\0\0\0\0\0\2\0\x35", 22);
	socks_method_encode(SOCKS_METHOD_REFUSED, out);
	assert_memory_equal(out, "\5\xff", 2);
	socks_login_reply_encode(true, out);
	assert_memory_equal(out, "\1\0", 2);
	socks_login_reply_encode(false, out);
	assert_memory_equal(out, "\1\1", 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stream_decoders_ask_for_the_rest_and_never_for_more),
		cmocka_unit_test(what_follows_a_message_is_not_read),
		cmocka_unit_test(greeting_tells_the_methods_that_are_known),
		cmocka_unit_test(login_gives_user_and_password),
		cmocka_unit_test(longest_messages_fit_their_bounds),
		cmocka_unit_test(request_gives_command_address_and_port),
		cmocka_unit_test(malformed_messages_are_refused),
		cmocka_unit_test(datagram_header_is_read_and_cut_ones_are_refused),
		cmocka_unit_test(replies_are_written_as_the_rfc_has_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
