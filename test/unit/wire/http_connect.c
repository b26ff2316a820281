/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "wire/http_connect.h"

static enum weft_err
decode(const char *text, struct http_request *out, struct http_fault *fault)
{
	return http_head_decode(text, strlen(text), out, fault);
}

static void
cut_heads_wait_for_more_and_end_where_the_empty_line_does(void **state)
{
	(void)state;
	static const char *const heads[] = {
		"CONNECT peer:443 HTTP/1.1\r\nHost: peer:443\r\n\r\n",
		"GET http://peer/ HTTP/1.1\r\nHost: peer\r\nAccept: */*\r\n\r\n",
		"CONNECT [fd99::2]:22 HTTP/1.0\r\n\r\n",
	};
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		size_t whole = strlen(heads[i]);
		for (size_t n = 0; n <= whole; n++) {
			char *p = malloc(n ? n : 1);
			assert_non_null(p);
			memcpy(p, heads[i], n);
			struct http_request r;
			struct http_fault fault;
			enum weft_err e = http_head_decode(p, n, &r, &fault);
			assert_int_equal(e, n < whole ? WEFT_EAGAIN : WEFT_OK);
			if (!e) {
				assert_int_equal(r.head_len, whole);
			}
			free(p);
		}
		char more[256];
		snprintf(more, sizeof(more), "%s%s", heads[i], "\r\n\r\nbody");
		struct http_request r;
		struct http_fault fault;
		assert_int_equal(decode(more, &r, &fault), WEFT_OK);
		assert_int_equal(r.head_len, whole);
	}
}

static void
target_gives_host_and_port(void **state)
{
	(void)state;
	static const struct {
		const char *line, *host;
		uint16_t port;
		bool is_connect;
	} cases[] = {
		{"CONNECT peer:443 HTTP/1.1", "peer", 443, true},
		{"CONNECT 10.0.0.2:1 HTTP/1.1", "10.0.0.2", 1, true},
		{"CONNECT [fd99::2]:65535 HTTP/1.1", "fd99::2", 65535, true},
		{"GET http://peer HTTP/1.1", "peer", 80, false},
		{"GET HTTP://peer:/x HTTP/1.1", "peer", 80, false},
		{"GET http://a.b-c_d.:8080/x?y HTTP/1.0", "a.b-c_d.", 8080, false},
		{"GET http://[::1]?q HTTP/1.1", "::1", 80, false},
		{"PROPFIND http://[::ffff:10.0.0.2]:99/ HTTP/1.1", "::ffff:10.0.0.2", 99, false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char head[256];
		snprintf(head, sizeof(head), "%s\r\n\r\n", cases[i].line);
		struct http_request r;
		struct http_fault fault;
		assert_int_equal(decode(head, &r, &fault), WEFT_OK);
		assert_string_equal(r.host, cases[i].host);
		assert_int_equal(r.port, cases[i].port);
		assert_int_equal(r.is_connect, cases[i].is_connect);
	}
}

static void
malformed_heads_get_the_status_that_fits(void **state)
{
	(void)state;
	static const struct {
		const char *head;
		unsigned status;
	} cases[] = {
		{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"GET https://peer/ HTTP/1.1\r\n\r\n", 501},
		{"GET ftp://peer/ HTTP/1.1\r\n\r\n", 501},
		{"GET http://peer/ HTTP/2.0\r\n\r\n", 505},
		{"GET http://peer/ HTTP/1.1 \r\n\r\n", 400},
		{"GET http://peer/ FTP/1.1\r\n\r\n", 400},
		{"GET  http://peer/ HTTP/1.1\r\n\r\n", 400},
		{"G T http://peer/ HTTP/1.1\r\n\r\n", 400},
		{"G(T http://peer/ HTTP/1.1\r\n\r\n", 400},
		{"GET http://user@peer/ HTTP/1.1\r\n\r\n", 400},
		{"GET http://u:p@peer/ HTTP/1.1\r\n\r\n", 400},
		{"GET http:///x HTTP/1.1\r\n\r\n", 400},
		{"GET http://peer/#x HTTP/1.1\r\n\r\n", 400},
		{"GET http://peer:0/ HTTP/1.1\r\n\r\n", 400},
		{"GET http://peer:65536/ HTTP/1.1\r\n\r\n", 400},
		{"GET http://peer:+80/ HTTP/1.1\r\n\r\n", 400},
		{"GET http://fd99::2/ HTTP/1.1\r\n\r\n", 400},
		{"GET http://[fd99::2/ HTTP/1.1\r\n\r\n", 400},
		{"CONNECT peer HTTP/1.1\r\n\r\n", 400},
		{"CONNECT peer: HTTP/1.1\r\n\r\n", 400},
		{"CONNECT http://peer:80 HTTP/1.1\r\n\r\n", 400},
		{"CONNECT peer:80/x HTTP/1.1\r\n\r\n", 400},
		{"CONNECT peer:80 HTTP/1.1\r\nA : b\r\n\r\n", 400},
		{"CONNECT peer:80 HTTP/1.1\r\nA: b\r\n c\r\n\r\n", 400},
		{"CONNECT peer:80 HTTP/1.1\r\nA: b\nC: d\r\n\r\n", 400},
		{"CONNECT peer:80 HTTP/1.1\r\nA: b\rC: d\r\n\r\n", 400},
		{"CONNECT peer:80 HTTP/1.1\r\nno colon\r\n\r\n", 400},
		{"CONNECT peer:80 HTTP/1.1\r\n: b\r\n\r\n", 400},
		{"\r\n\r\n", 400},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct http_request r;
		struct http_fault fault = {0};
		if (decode(cases[i].head, &r, &fault) != WEFT_EPARSE ||
			fault.status != cases[i].status || !fault.why) {
			fail_msg("%s: status %u", cases[i].head, fault.status);
		}
	}
	struct http_request r;
	struct http_fault fault = {0};
	static const char nul[] = "CONNECT pe\0er:80 HTTP/1.1\r\n\r\n";
	assert_int_equal(http_head_decode(nul, sizeof(nul) - 1, &r, &fault), WEFT_EPARSE);
}

static void
head_has_bounds_in_bytes_and_in_fields(void **state)
{
	(void)state;
	static char p[HTTP_HEAD_MAX + 64];
	struct http_request r;
	struct http_fault fault;
	memset(p, 'a', sizeof(p));
	assert_int_equal(http_head_decode(p, HTTP_HEAD_MAX - 1, &r, &fault), WEFT_EAGAIN);
	assert_int_equal(http_head_decode(p, sizeof(p), &r, &fault), WEFT_EPARSE);
	assert_int_equal(fault.status, 431);
	int n = snprintf(p, sizeof(p), "CONNECT peer:80 HTTP/1.1\r\n");
	for (int i = 0; i < 201; i++) {
		n += snprintf(p + n, sizeof(p) - (size_t)n, "A: b\r\n");
	}
	n += snprintf(p + n, sizeof(p) - (size_t)n, "\r\n");
	assert_int_equal(http_head_decode(p, (size_t)n, &r, &fault), WEFT_EPARSE);
	assert_int_equal(fault.status, 431);
}

static void
rewritten(const char *head, const char *want)
{
	struct http_request r;
	struct http_fault fault;
	char out[1024];
	size_t n;
	assert_int_equal(decode(head, &r, &fault), WEFT_OK);
	assert_int_equal(http_head_rewrite(head, &r, out, sizeof(out) - 1, &n), WEFT_OK);
	out[n] = 0;
	assert_string_equal(out, want);
	for (size_t cap = 0; cap < n; cap++) {
		char *p = malloc(cap ? cap : 1);
		size_t m;
		assert_non_null(p);
		assert_int_equal(http_head_rewrite(head, &r, p, cap, &m), WEFT_EMSGSIZE);
		free(p);
	}
}

static void
rewritten_head_has_the_path_and_no_field_of_ours(void **state)
{
	(void)state;
	rewritten("GET http://peer:81/a?b=c HTTP/1.1\r\nHost: other\r\nAccept: */*\r\n\r\n",
		"GET /a?b=c HTTP/1.1\r\nHost: peer:81\r\nConnection: close\r\nVia: 1.1 weft\r\n"
		"Accept: */*\r\n\r\n");
	rewritten("GET http://peer?b HTTP/1.0\r\n\r\n",
		"GET /?b HTTP/1.0\r\nHost: peer\r\nConnection: close\r\nVia: 1.1 weft\r\n\r\n");
	rewritten("OPTIONS http://peer HTTP/1.1\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: peer\r\nConnection: close\r\nVia: 1.1 weft\r\n\r\n");
	rewritten("POST http://peer/ HTTP/1.1\r\nProxy-Connection: keep-alive\r\n"
		  "proxy-authorization: Basic YTpi\r\nTE: x\r\nX-Hop: 1\r\nX-End: 2\r\n"
		  "Connection: close , x-hop,content-length\r\nContent-Length: 3\r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: peer\r\nConnection: close\r\nVia: 1.1 weft\r\n"
		"X-End: 2\r\nContent-Length: 3\r\n\r\n");
}

static void
login_is_found_and_decoded(void **state)
{
	(void)state;
	struct http_request r;
	struct http_fault fault;
	struct http_login l;
	assert_int_equal(decode("CONNECT peer:80 HTTP/1.1\r\n"
				"Proxy-Authorization:  basic  YWxpY2U6czpl  \r\n\r\n",
				 &r, &fault),
		WEFT_OK);
	assert_non_null(r.login);
	assert_int_equal(http_login_decode(r.login, r.login_len, &l), WEFT_OK);
	assert_int_equal(l.user_len, 5);
	assert_memory_equal(l.user, "alice", 5);
	assert_int_equal(l.password_len, 3);
	assert_memory_equal(l.password, "s:e", 3);
	assert_int_equal(decode("CONNECT peer:80 HTTP/1.1\r\nProxy-Authorization: Digest x\r\n\r\n",
				 &r, &fault),
		WEFT_OK);
	assert_null(r.login);
}

static void
malformed_logins_are_refused(void **state)
{
	(void)state;
	static const char *const cases[] = {
		"", "YQ==", "YTp", "YT=i", "YTpi=", "====", "Y===", "YT*i", "YWFh"};
	struct http_login l;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(http_login_decode(cases[i], strlen(cases[i]), &l), WEFT_EPARSE);
	}
	char longest[1024];
	memset(longest, 'A', sizeof(longest));
	assert_int_equal(http_login_decode(longest, sizeof(longest), &l), WEFT_EPARSE);
	assert_int_equal(http_login_decode("YTo=", 4, &l), WEFT_OK);
	assert_int_equal(l.password_len, 0);
}

static void
replies_hold_their_reason_and_its_length(void **state)
{
	(void)state;
	char out[HTTP_REPLY_MAX], why[2000];
	size_t n = http_reply_encode(502, "nobody is there", out);
	assert_int_equal(n, strlen(out));
	assert_memory_equal(out, "HTTP/1.1 502 Bad Gateway\r\n", 26);
	assert_non_null(strstr(out, "\r\nContent-Length: 16\r\n"));
	assert_non_null(strstr(out, "\r\n\r\nnobody is there\n"));
	http_reply_encode(407, "who are you", out);
	assert_non_null(strstr(out, "\r\nProxy-Authenticate: Basic "));
	http_reply_encode(200, "", out);
	assert_string_equal(out, "HTTP/1.1 200 Connection established\r\n\r\n");
	memset(why, 'x', sizeof(why) - 1);
	why[sizeof(why) - 1] = 0;
	assert_in_range(http_reply_encode(504, why, out), 500, HTTP_REPLY_MAX - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_heads_wait_for_more_and_end_where_the_empty_line_does),
		cmocka_unit_test(target_gives_host_and_port),
		cmocka_unit_test(malformed_heads_get_the_status_that_fits),
		cmocka_unit_test(head_has_bounds_in_bytes_and_in_fields),
		cmocka_unit_test(rewritten_head_has_the_path_and_no_field_of_ours),
		cmocka_unit_test(login_is_found_and_decoded),
		cmocka_unit_test(malformed_logins_are_refused),
		cmocka_unit_test(replies_hold_their_reason_and_its_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
