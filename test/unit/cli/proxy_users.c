/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cli/proxy_users.h"

static bool
has(const struct proxy_users *u, const char *name, const char *password)
{
	return proxy_users_has(u, (const uint8_t *)name, strlen(name), (const uint8_t *)password,
		strlen(password));
}

static void
users_of_a_file_may_with_their_own_password_alone(void **state)
{
	(void)state;
	static const char text[] = "# who may\n\nalice:secret\r\nbob:a:b\n\ncarol:";
	struct proxy_users u;
	unsigned line;
	assert_int_equal(proxy_users_parse(&u, text, sizeof(text) - 1, &line), WEFT_OK);
	assert_int_equal(u.n, 3);
	assert_true(has(&u, "alice", "secret"));
	assert_true(has(&u, "bob", "a:b"));
	assert_true(has(&u, "carol", ""));
	assert_false(has(&u, "alice", "a:b"));
	assert_false(has(&u, "alice", "secre"));
	assert_false(has(&u, "alice", "secrets"));
	assert_false(has(&u, "alic", "secret"));
	assert_false(has(&u, "", ""));
	assert_false(
		proxy_users_has(&u, (const uint8_t *)"alice\0", 6, (const uint8_t *)"secret", 6));
	proxy_users_fini(&u);
	assert_false(has(&u, "alice", "secret"));
}

static void
malformed_files_tell_the_line(void **state)
{
	(void)state;
	struct proxy_users u;
	unsigned line;
	assert_int_equal(proxy_users_parse(&u, "a:b\nnobody\nc:d\n", 15, &line), WEFT_EPARSE);
	assert_int_equal(line, 2);
	assert_int_equal(proxy_users_parse(&u, "\n:x\n", 4, &line), WEFT_EPARSE);
	assert_int_equal(line, 2);
	assert_int_equal(proxy_users_parse(&u, "", 0, &line), WEFT_ENOENT);
	assert_int_equal(proxy_users_parse(&u, "# none\n", 7, &line), WEFT_ENOENT);
}

static void
words_and_users_have_bounds(void **state)
{
	(void)state;
	struct proxy_users u;
	unsigned line;
	char text[600];
	memset(text, 'a', sizeof(text));
	text[255] = ':';
	assert_int_equal(proxy_users_parse(&u, text, 511, &line), WEFT_OK);
	assert_true(proxy_users_has(&u, (uint8_t *)text, 255, (const uint8_t *)(text + 256), 255));
	assert_false(proxy_users_has(&u, (uint8_t *)text, 255, (const uint8_t *)(text + 256), 256));
	proxy_users_fini(&u);
	assert_int_equal(proxy_users_parse(&u, text, 512, &line), WEFT_EPARSE);
	text[255] = 'a';
	text[256] = ':';
	assert_int_equal(proxy_users_parse(&u, text, 300, &line), WEFT_EPARSE);

	char *many = malloc(4 * (PROXY_USERS_MAX + 2));
	assert_non_null(many);
	for (size_t i = 0; i < PROXY_USERS_MAX + 2; i++) {
		memcpy(many + 4 * i, "a:b\n", 4);
	}
	assert_int_equal(proxy_users_parse(&u, many, (size_t)4 * PROXY_USERS_MAX, &line), WEFT_OK);
	proxy_users_fini(&u);
	assert_int_equal(
		proxy_users_parse(&u, many, (size_t)4 * (PROXY_USERS_MAX + 2), &line), WEFT_ENOMEM);
	free(many);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(users_of_a_file_may_with_their_own_password_alone),
		cmocka_unit_test(malformed_files_tell_the_line),
		cmocka_unit_test(words_and_users_have_bounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
