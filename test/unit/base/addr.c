/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/addr.h"

static void
addr_round_trips_canonical_text(void **state)
{
	(void)state;
	static const char *const texts[] = {"0.0.0.0", "192.0.2.1", "255.255.255.255", "::", "::1",
		"1::", "2001:db8::1", "2001:db8:0:1:1:1:1:1", "2001:0:0:1::1", "fe80::1",
		"::ffff:192.0.2.1", "1:2:3:4:5:6:7:8", "0:1:2:3:4:5:6:7", "1:2:3:4:5:6:7:0"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(texts); i++) {
		struct ip_addr a;
		char out[IP_ADDR_TEXT_MAX];
		assert_int_equal(ip_addr_parse(texts[i], strlen(texts[i]), &a), WEFT_OK);
		assert_string_equal(ip_addr_format(&a, out), texts[i]);
	}
}

static void
addr_parse_refuses_what_is_no_address(void **state)
{
	(void)state;
	static const char *const texts[] = {"", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4",
		"1.2.3.4 ", ":", ":::", "1:", ":1", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9",
		"12345::", "g::", "1:2:3:4:5:6:7:8::", "::1.2.3", "1:2:3:4:5:6:7:1.2.3.4",
		"fe80::1%eth0", "1.2.3.-4"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(texts); i++) {
		struct ip_addr a;
		if (ip_addr_parse(texts[i], strlen(texts[i]), &a) != WEFT_EPARSE) {
			fail_msg("accepted: %s", texts[i]);
		}
	}
}

static void
prefix_mask_clears_host_bits(void **state)
{
	(void)state;
	static const struct {
		const char *in, *out;
	} cases[] = {{"10.1.2.3/8", "10.0.0.0/8"}, {"10.1.2.3", "10.1.2.3/32"},
		{"10.1.2.255/25", "10.1.2.128/25"}, {"2001:db8::1/32", "2001:db8::/32"},
		{"::1/0", "::/0"}, {"1.2.3.4/0", "0.0.0.0/0"}};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		struct ip_prefix p;
		char out[IP_PREFIX_TEXT_MAX];
		assert_int_equal(ip_prefix_parse(cases[i].in, strlen(cases[i].in), &p), WEFT_OK);
		ip_prefix_mask(&p);
		assert_string_equal(ip_prefix_format(&p, out), cases[i].out);
	}
	struct ip_prefix p;
	assert_int_equal(ip_prefix_parse("1.2.3.4/33", 10, &p), WEFT_EPARSE);
	assert_int_equal(ip_prefix_parse("::/129", 6, &p), WEFT_EPARSE);
	assert_int_equal(ip_prefix_parse("1.2.3.4/", 8, &p), WEFT_EPARSE);
}

static void
endpoint_parses_both_families_and_scope(void **state)
{
	(void)state;
	static const char *const good[] = {
		"192.0.2.1:51820", "[2001:db8::1]:1", "[fe80::1%3]:65535"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(good); i++) {
		struct endpoint e;
		char out[ENDPOINT_TEXT_MAX];
		assert_int_equal(endpoint_parse(good[i], strlen(good[i]), &e), WEFT_OK);
		assert_string_equal(endpoint_format(&e, out), good[i]);
	}
	static const char *const bad[] = {"", ":", ":1", "1.2.3.4", "1.2.3.4:", "1.2.3.4:0",
		"1.2.3.4:65536", "2001:db8::1:51820", "[1.2.3.4]:1", "[::1]1", "[::1:1",
		"[fe80::1%eth0]:1"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(bad); i++) {
		struct endpoint e;
		if (endpoint_parse(bad[i], strlen(bad[i]), &e) == WEFT_OK) {
			fail_msg("accepted: %s", bad[i]);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addr_round_trips_canonical_text),
		cmocka_unit_test(addr_parse_refuses_what_is_no_address),
		cmocka_unit_test(prefix_mask_clears_host_bits),
		cmocka_unit_test(endpoint_parses_both_families_and_scope),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
