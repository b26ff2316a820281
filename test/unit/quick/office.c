/* SPDX-License-Identifier: Apache-2.0 */
/* What an office refuses to whoever asks. That it does its work is shown by test/net. */
#include "quick/office.h"

#include <fcntl.h>
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
#include "wire/conf.h"

#define STRANGER 12345

static char folder[64], mine[96], other[96], why[256];
static unsigned loads;

static enum weft_err
load(const char *path, struct conf **out, char **text, size_t *len, char *reason, size_t cap)
{
	static const char content[] = "[Interface]\n";
	struct conf_report *report = calloc(1, sizeof(*report));
	const struct conf_options options = {.is_lenient = false};
	(void)path;
	(void)reason;
	(void)cap;
	loads++;
	*len = sizeof(content) - 1;
	*text = strdup(content);
	enum weft_err e = conf_parse(content, *len, &options, out, report);
	free(report);
	return e;
}

static const struct log silent = {0};

static struct office
make_office(enum office_stage stage)
{
	struct office o;
	const struct office_config c = {
		.name = "wg0", .path = "/etc/weft/wg0.conf", .log = &silent, .load = load};
	office_init(&o, &c);
	o.stage = stage;
	return o;
}

static enum weft_err
read_file(struct office *o, const char *file)
{
	struct conf *conf;
	char *text = NULL;
	size_t len;
	why[0] = 0;
	enum weft_err e = office_read(o, file, true, &conf, &text, &len, why, sizeof(why));
	if (!e) {
		conf_free(conf);
		free(text);
	}
	return e;
}

static int
make(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/weft-office-XXXXXX");
	if (!mkdtemp(folder)) {
		return -1;
	}
	snprintf(mine, sizeof(mine), "%s/wg0.conf", folder);
	snprintf(other, sizeof(other), "%s/wg1.conf", folder);
	loads = 0;
	return os_file_write_unsynced(mine, "x", 1, 0600) ||
	       os_file_write_unsynced(other, "x", 1, 0600);
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
nothing_is_read_unless_the_device_is_up(void **state)
{
	(void)state;
	static const enum office_stage stages[] = {OFFICE_STAGE_NEW, OFFICE_STAGE_BEGUN,
		OFFICE_STAGE_GOING, OFFICE_STAGE_DOWN, OFFICE_STAGE_ENDED};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(stages); i++) {
		struct office o = make_office(stages[i]);
		assert_int_equal(read_file(&o, NULL), WEFT_EAGAIN);
	}
	assert_int_equal(loads, 0);
}

static void
only_the_devices_own_file_is_read_and_only_where_it_is_safe(void **state)
{
	(void)state;
	struct office o = make_office(OFFICE_STAGE_UP);
	assert_int_equal(read_file(&o, NULL), WEFT_OK);
	assert_int_equal(read_file(&o, "/etc/weft/wg0.conf"), WEFT_OK); /* that of the start */
	assert_int_equal(read_file(&o, mine), WEFT_OK);
	assert_int_equal(loads, 3);
	assert_int_equal(read_file(&o, other), WEFT_EPERM);
	assert_non_null(strstr(why, "wg0.conf"));
	assert_int_equal(read_file(&o, "/etc/shadow"), WEFT_EPERM);
	assert_int_equal(read_file(&o, "/etc/wg0.conf.d"), WEFT_EPERM);
	assert_int_equal(chown(mine, STRANGER, 0), 0);
	assert_int_equal(read_file(&o, mine), WEFT_EPERM);
	assert_non_null(strstr(why, mine));
	assert_int_equal(loads, 3);
	assert_false(o.has_fresh);
}

/* A path through a descriptor leads elsewhere when that is another one: what was looked at is kept.
 */
static void
the_file_that_was_looked_at_is_the_one_that_is_kept(void **state)
{
	(void)state;
	struct office o = make_office(OFFICE_STAGE_UP);
	char path[64];
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/wg0.conf", fd);
	assert_int_equal(read_file(&o, path), WEFT_OK);
	assert_string_equal(o.fresh_path, mine);
	close(fd);
}

static void
what_was_not_read_cannot_be_put_in_force(void **state)
{
	(void)state;
	struct office o = make_office(OFFICE_STAGE_UP);
	assert_int_equal(office_adopt(&o, NULL, 0), WEFT_EINVAL);
	assert_int_equal(read_file(&o, mine), WEFT_OK);
	office_refuse(&o);
	assert_int_equal(office_adopt(&o, NULL, 0), WEFT_EINVAL);
	assert_int_equal(read_file(&o, mine), WEFT_OK);
	assert_int_equal(read_file(&o, other), WEFT_EPERM); /* takes the place of the last */
	assert_int_equal(office_adopt(&o, NULL, 0), WEFT_EINVAL);
	assert_string_equal(o.path, "/etc/weft/wg0.conf");
}

static void
steps_are_taken_once_and_in_order(void **state)
{
	(void)state;
	const struct quick_host host = {.name = "wg0", .log = &silent, .path = ""};
	for (int stage = OFFICE_STAGE_BEGUN; stage <= OFFICE_STAGE_ENDED; stage++) {
		struct office o = make_office((enum office_stage)stage);
		assert_int_equal(office_begin(&o, &host, NULL), WEFT_EINVAL);
		if (stage != OFFICE_STAGE_BEGUN) {
			assert_int_equal(office_bring_up(&o, NULL, 0), WEFT_EINVAL);
		}
		assert_int_equal(o.stage, stage);
	}
	for (int stage = OFFICE_STAGE_NEW; stage <= OFFICE_STAGE_ENDED; stage++) {
		struct office o = make_office((enum office_stage)stage);
		bool may_save = stage >= OFFICE_STAGE_UP && stage < OFFICE_STAGE_ENDED;
		snprintf(o.path, sizeof(o.path), "/nowhere/wg0.conf");
		assert_int_equal(office_save(&o, &(struct conf_state){0}, why, sizeof(why)),
			may_save ? WEFT_ENOENT : WEFT_EAGAIN);
	}
	struct office o = make_office(OFFICE_STAGE_NEW);
	assert_int_equal(office_left_begin(&o, 1, true), WEFT_EINVAL); /* without the lock */
	assert_int_equal(office_bring_up(&o, NULL, 0), WEFT_EINVAL);
	office_take_down(&o, 3);
	office_end(&o, NULL, 3);
	assert_int_equal(o.stage, OFFICE_STAGE_ENDED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			nothing_is_read_unless_the_device_is_up, make, clear),
		cmocka_unit_test_setup_teardown(
			only_the_devices_own_file_is_read_and_only_where_it_is_safe, make, clear),
		cmocka_unit_test_setup_teardown(
			the_file_that_was_looked_at_is_the_one_that_is_kept, make, clear),
		cmocka_unit_test_setup_teardown(
			what_was_not_read_cannot_be_put_in_force, make, clear),
		cmocka_unit_test(steps_are_taken_once_and_in_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
