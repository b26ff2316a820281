/* SPDX-License-Identifier: Apache-2.0 */
#include "os/trust.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define STRANGER 12345

static char folder[64], file[96], link_to_it[96], at[256];

static int
make(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/weft-trust-XXXXXX"); /* /tmp is sticky */
	if (!mkdtemp(folder)) {
		return -1;
	}
	snprintf(file, sizeof(file), "%s/file", folder);
	snprintf(link_to_it, sizeof(link_to_it), "%s/link", folder);
	int fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	return fd < 0 || close(fd) || symlink("file", link_to_it);
}

static int
clear(void **state)
{
	char cmd[128];
	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -r %s", folder);
	return system(cmd);
}

static void
ours_is_trusted_through_links_too(void **state)
{
	(void)state;
	assert_true(os_trust_path(file, at, sizeof(at)));
	assert_true(os_trust_path(link_to_it, at, sizeof(at)));
	assert_false(os_trust_path("relative", at, sizeof(at)));
	assert_false(os_trust_path(folder, at, sizeof(at))); /* no file */
	assert_false(os_trust_path("/nowhere/file", at, sizeof(at)));
	assert_string_equal(at, "/nowhere");
}

static void
what_others_may_write_is_not_and_is_named(void **state)
{
	(void)state;
	assert_int_equal(chmod(file, 0620), 0);
	assert_false(os_trust_path(file, at, sizeof(at)));
	assert_string_equal(at, file);
	assert_false(os_trust_path(link_to_it, at, sizeof(at)));
	assert_int_equal(chmod(file, 0644), 0);
	assert_true(os_trust_path(file, at, sizeof(at)));
	assert_int_equal(chmod(folder, 0777), 0);
	assert_false(os_trust_path(file, at, sizeof(at)));
	assert_string_equal(at, folder);
	assert_int_equal(chmod(folder, 01777), 0);
	assert_true(os_trust_path(file, at, sizeof(at)));
}

static void
what_a_stranger_owns_is_not(void **state)
{
	(void)state;
	assert_int_equal(
		lchown(link_to_it, STRANGER, STRANGER), 0); /* needs root, as others here */
	assert_false(os_trust_path(link_to_it, at, sizeof(at)));
	assert_string_equal(at, link_to_it);
	assert_int_equal(chown(file, STRANGER, 0), 0);
	assert_false(os_trust_path(file, at, sizeof(at)));
	assert_int_equal(chown(file, 0, 0), 0);
	assert_int_equal(chown(folder, STRANGER, 0), 0);
	assert_false(os_trust_path(file, at, sizeof(at)));
}

static void
every_link_of_a_chain_is_looked_at(void **state)
{
	(void)state;
	char sub[128], between[160], first[160];
	snprintf(sub, sizeof(sub), "%s/sub", folder);
	snprintf(between, sizeof(between), "%s/between", sub);
	snprintf(first, sizeof(first), "%s/first", folder);
	assert_int_equal(mkdir(sub, 0700), 0);
	assert_int_equal(symlink("../link", between), 0);
	assert_int_equal(symlink(between, first), 0);
	assert_true(os_trust_path(first, at, sizeof(at)));
	assert_string_equal(at, file);
	assert_int_equal(chmod(sub, 0777), 0);
	assert_false(os_trust_path(first, at, sizeof(at)));
	assert_string_equal(at, sub);
	assert_int_equal(chmod(sub, 0700), 0);
	assert_int_equal(lchown(between, STRANGER, STRANGER), 0);
	assert_false(os_trust_path(first, at, sizeof(at)));
	assert_string_equal(at, between);
	assert_int_equal(unlink(between), 0);
	assert_int_equal(symlink("../first", between), 0); /* in a circle */
	assert_false(os_trust_path(first, at, sizeof(at)));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ours_is_trusted_through_links_too, make, clear),
		cmocka_unit_test_setup_teardown(
			what_others_may_write_is_not_and_is_named, make, clear),
		cmocka_unit_test_setup_teardown(what_a_stranger_owns_is_not, make, clear),
		cmocka_unit_test_setup_teardown(every_link_of_a_chain_is_looked_at, make, clear),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
