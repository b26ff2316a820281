/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "cli/forward_rule.h"

static void
check_good(enum forward_side side, const char *text, const struct forward_rule *want)
{
	struct forward_rule r, again;
	char why[FORWARD_WHY_MAX] = "", out[FORWARD_RULE_TEXT_MAX];
	if (!forward_rule_parse(side, text, &r, why)) {
		fail_msg("%s: %s", text, why);
	}
	assert_int_equal(r.side, side);
	assert_int_equal(r.is_udp, want->is_udp);
	assert_int_equal(r.has_bind, want->has_bind);
	assert_string_equal(r.bind, want->bind);
	assert_int_equal(r.port, want->port);
	assert_string_equal(r.host, want->host);
	assert_int_equal(r.to_port, want->to_port);
	/* What is shown can be typed again. */
	forward_rule_format(&r, out);
	assert_int_equal(out[0], '-');
	assert_int_equal(out[1], side == FORWARD_LOCAL ? 'L' : 'R');
	assert_true(forward_rule_parse(side, out + 3, &again, why));
	assert_memory_equal(&again, &r, sizeof(r));
}

static void
rule_is_read_in_all_its_forms(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		struct forward_rule want;
	} t[] = {
		{"8080:db:80", {.port = 8080, .host = "db", .to_port = 80}},
		{"tcp:8080:db:80", {.port = 8080, .host = "db", .to_port = 80}},
		{"udp:53:10.0.0.2:5353",
			{.is_udp = true, .port = 53, .host = "10.0.0.2", .to_port = 5353}},
		{"0:db-1.example_x:65535", {.port = 0, .host = "db-1.example_x", .to_port = 65535}},
		{"127.0.0.1:1:db:2", {.has_bind = true,
					     .bind = "127.0.0.1",
					     .port = 1,
					     .host = "db",
					     .to_port = 2}},
		{":1:db:2", {.has_bind = true, .port = 1, .host = "db", .to_port = 2}},
		{"*:1:db:2", {.has_bind = true, .port = 1, .host = "db", .to_port = 2}},
		{"udp:[::1]:1:[fd00::2]:2", {.is_udp = true,
						    .has_bind = true,
						    .bind = "::1",
						    .port = 1,
						    .host = "fd00::2",
						    .to_port = 2}},
	};
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		check_good(FORWARD_LOCAL, t[i].text, &t[i].want);
		check_good(FORWARD_REMOTE, t[i].text, &t[i].want);
	}
	check_good(FORWARD_LOCAL, "localhost:1:db:2",
		&(struct forward_rule){.has_bind = true,
			.bind = "localhost",
			.port = 1,
			.host = "db",
			.to_port = 2});
}

static void
wrong_rule_tells_the_part_and_shows_an_example(void **state)
{
	(void)state;
	static const struct {
		const char *text, *why;
	} t[] = {
		{"", "a part is missing"},
		{"80", "a part is missing"},
		{"80:db", "a part is missing"},
		{"80:db:", "\"\" is no port to connect to"},
		{"80:db:0", "\"0\" is no port to connect to"},
		{"80:db:65536", "\"65536\" is no port to connect to"},
		{"80:db:http", "\"http\" is no port to connect to"},
		{"x:db:80", "\"x\" is no port to listen on"},
		{"-1:db:80", "\"-1\" is no port to listen on"},
		{"[::1]:db:80", "\"::1\" is no port to listen on"},
		{"80::80", "the host to connect to is missing"},
		{"80:d/b:80", "host to connect to \"d/b\""},
		{"80:fd00::2:80", "too many colons"},
		{"80:[fd00::2:80", "\"]\" and then a colon"},
		{"80:[fd00::2]80:80", "\"]\" and then a colon"},
		{"80:[10.0.0.2]:80", "no IPv6 address"},
		{"wg0:80:db:80", "\"wg0\": the address to listen on is an IP address"},
		{"1:2:3:4:5", "too many colons"},
	};
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct forward_rule r;
		char why[FORWARD_WHY_MAX] = "";
		for (int side = FORWARD_LOCAL; side <= FORWARD_REMOTE; side++) {
			assert_false(
				forward_rule_parse((enum forward_side)side, t[i].text, &r, why));
			if (!strstr(why, t[i].why) ||
				!strstr(why, side == FORWARD_LOCAL ? "as in -L " : "as in -R ")) {
				fail_msg("%s: %s", t[i].text, why);
			}
		}
	}
}

static void
rule_that_is_too_long_is_refused(void **state)
{
	(void)state;
	char text[2000], why[FORWARD_WHY_MAX];
	struct forward_rule r;
	memset(text, 'a', sizeof(text));
	memcpy(text, "80:", 3);
	memcpy(text + 3 + FORWARD_HOST_MAX, ":80", 4);
	assert_false(forward_rule_parse(FORWARD_LOCAL, text, &r, why));
	assert_non_null(strstr(why, "too long"));
	memcpy(text + 3 + FORWARD_HOST_MAX - 1, ":80", 4);
	assert_true(forward_rule_parse(FORWARD_LOCAL, text, &r, why));
}

static void
random_text_is_read_or_refused_and_what_is_read_is_shown_alike(void **state)
{
	(void)state;
	static const char alphabet[] = "0123456789::::[]ab.*-u d";
	for (uint64_t seed = 1; seed <= 20000; seed++) {
		struct rng rng;
		struct forward_rule r, again;
		char text[24], why[FORWARD_WHY_MAX], out[FORWARD_RULE_TEXT_MAX];
		rng_init(&rng, seed);
		size_t len = (size_t)rng_below(&rng, sizeof(text));
		for (size_t i = 0; i < len; i++) {
			text[i] = alphabet[rng_below(&rng, sizeof(alphabet) - 1)];
		}
		text[len] = 0;
		if (!forward_rule_parse(FORWARD_REMOTE, text, &r, why)) {
			continue;
		}
		forward_rule_format(&r, out);
		if (!forward_rule_parse(FORWARD_REMOTE, out + 3, &again, why) ||
			memcmp(&again, &r, sizeof(r)) != 0) {
			fail_msg("seed %d: %s, %s", (int)seed, text, out);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_is_read_in_all_its_forms),
		cmocka_unit_test(wrong_rule_tells_the_part_and_shows_an_example),
		cmocka_unit_test(rule_that_is_too_long_is_refused),
		cmocka_unit_test(random_text_is_read_or_refused_and_what_is_read_is_shown_alike),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
