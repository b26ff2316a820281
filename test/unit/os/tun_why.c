/* SPDX-License-Identifier: Apache-2.0 */
#include "os/tun_why.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"

static void
every_refusal_has_words_that_name_what_is_missing(void **state)
{
	(void)state;
	static const struct {
		struct os_tun_refusal r;
		const char *missing, *fix;
	} cases[] = {
		{{true, ENOENT, true, true}, "device file is missing", "--device /dev/net/tun"},
		{{true, ENODEV, true, true}, "TUN driver is missing", "modprobe tun"},
		{{true, ENXIO, true, true}, "TUN driver is missing", "modprobe tun"},
		{{true, EPERM, true, true}, "control group", "DeviceAllow=/dev/net/tun"},
		{{true, EACCES, false, true}, "mode", "chmod 666"},
		{{false, EPERM, true, false}, "CAP_NET_ADMIN is missing", "--cap-add NET_ADMIN"},
		{{false, EPERM, false, false}, "CAP_NET_ADMIN is missing", "AmbientCapabilities="},
		{{false, EPERM, true, true}, "CAP_NET_ADMIN is there", "security module"},
		{{false, EBUSY, true, true}, "of that name", "in use"},
	};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		char text[512];
		os_tun_explain(&cases[i].r, text, sizeof(text));
		assert_non_null(strstr(text, cases[i].missing));
		assert_non_null(strstr(text, cases[i].fix));
		assert_true(strlen(text) < sizeof(text) - 1);
	}
}

static void
what_is_not_understood_gets_no_words(void **state)
{
	(void)state;
	char text[512] = "x";
	assert_string_equal(
		os_tun_explain(&(struct os_tun_refusal){true, EIO, true, true}, text, sizeof(text)),
		"");
	assert_string_equal(os_tun_explain(&(struct os_tun_refusal){false, EIO, true, true}, text,
				    sizeof(text)),
		"");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_refusal_has_words_that_name_what_is_missing),
		cmocka_unit_test(what_is_not_understood_gets_no_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
