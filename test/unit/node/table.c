/* SPDX-License-Identifier: Apache-2.0 */
#include "node/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/file.h"

static char root[64];

static int
make_root(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/weft-table-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int
remove_root(void **state)
{
	char cmd[128];
	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -r %s", root);
	return system(cmd);
}

static void
put(const char *file, const char *text)
{
	char path[256], folder[256];
	snprintf(path, sizeof(path), "%s/%s", root, file);
	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	assert_int_equal(os_file_mkdir(folder, 0755), WEFT_OK);
	assert_int_equal(os_file_write_unsynced(path, text, strlen(text), 0644), WEFT_OK);
}

static void
expect(const char *name, int64_t wanted)
{
	uint32_t number = 0;
	enum weft_err e = table_by_name(root, name, &number);
	assert_int_equal(e, wanted < 0 ? WEFT_ENOENT : WEFT_OK);
	assert_int_equal(number, wanted < 0 ? 0 : wanted);
}

static void
tables_of_the_kernel_need_no_file(void **state)
{
	(void)state;
	expect("main", 254);
	expect("default", 253);
	expect("local", 255);
	expect("office", -1);
}

static void
names_are_found_as_ip_writes_them(void **state)
{
	(void)state;
	put("etc/iproute2/rt_tables",
		"#\n# reserved\n255\tlocal\n254 main\n\n  100 office # the second "
		"floor\n0x65\thex\n"
		"200 lab#tight\n4294967295 last\n4294967296 toomuch\n-3 negative\nwords alone\n"
		"7seven\n300 two words\r\n#301 comment\n100 again\n302 end");
	expect("office", 100);
	expect("hex", 0x65);
	expect("lab", 200);
	expect("last", UINT32_MAX);
	expect("toomuch", -1);
	expect("negative", -1);
	expect("alone", -1);
	expect("seven", -1);
	expect("two", 300);
	expect("comment", -1);
	expect("again", 100);
	expect("end", 302);
	expect("offic", -1);
	expect("office1", -1);
}

static void
further_files_count_in_their_order(void **state)
{
	(void)state;
	put("etc/iproute2/rt_tables", "100 office\n");
	put("etc/iproute2/rt_tables.d/20.conf", "21 site\n22 office\n");
	put("etc/iproute2/rt_tables.d/10.conf", "11 site\n");
	put("etc/iproute2/rt_tables.d/05.txt", "5 site\n");
	put("etc/iproute2/rt_tables.d/.hidden.conf", "6 secret\n");
	expect("site", 11);
	expect("office", 100);
	expect("secret", -1);
}

static void
the_distribution_is_asked_where_the_administrator_has_no_file(void **state)
{
	(void)state;
	put("usr/share/iproute2/rt_tables", "50 shared\n");
	put("usr/share/iproute2/rt_tables.d/a.conf", "51 piece\n");
	expect("shared", 50);
	put("etc/iproute2/rt_tables", "60 own\n");
	expect("own", 60);
	expect("shared", -1);
	expect("piece", 51);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			tables_of_the_kernel_need_no_file, make_root, remove_root),
		cmocka_unit_test_setup_teardown(
			names_are_found_as_ip_writes_them, make_root, remove_root),
		cmocka_unit_test_setup_teardown(
			further_files_count_in_their_order, make_root, remove_root),
		cmocka_unit_test_setup_teardown(
			the_distribution_is_asked_where_the_administrator_has_no_file, make_root,
			remove_root),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
