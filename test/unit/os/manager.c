/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/manager.h"

/* name: a path, or empty for an abstract name that the kernel chooses, which comes back with '@'.
 */
static int
listen_at(char *name, size_t cap)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(sa_family_t);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (name[0]) {
		strcpy(at.sun_path, name);
		len = sizeof(at);
	}
	assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
	if (!name[0]) {
		len = sizeof(at);
		assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
		snprintf(name, cap, "@%.*s",
			(int)(len - offsetof(struct sockaddr_un, sun_path) - 1), at.sun_path + 1);
	}
	return fd;
}

static enum weft_err
tell(const char *address, const char *text)
{
	int fd;
	enum weft_err e = os_manager_open(address, &fd);
	if (!e) {
		e = os_manager_tell(fd, text);
		close(fd);
	}
	return e;
}

static void
take(int fd, char *text, size_t cap)
{
	ssize_t n = recv(fd, text, cap - 1, 0);
	assert_true(n > 0);
	text[n] = 0;
}

static void
manager_hears_at_a_path_and_at_an_abstract_name(void **state)
{
	(void)state;
	char text[128], path[108] = "", abstract[108] = "";
	snprintf(path, sizeof(path), "/tmp/weft-manager-%d", (int)getpid());
	int at_path = listen_at(path, sizeof(path)),
	    at_name = listen_at(abstract, sizeof(abstract));
	assert_int_equal(tell(path, "READY=1\nSTATUS=x"), WEFT_OK);
	assert_int_equal(tell(abstract, "STOPPING=1"), WEFT_OK);
	take(at_path, text, sizeof(text));
	assert_string_equal(text, "READY=1\nSTATUS=x");
	take(at_name, text, sizeof(text));
	assert_string_equal(text, "STOPPING=1");
	close(at_path);
	close(at_name);
	unlink(path);
}

static void
manager_that_is_gone_or_nonsense_is_an_error(void **state)
{
	(void)state;
	char longest[256];
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[sizeof(longest) - 1] = 0;
	assert_int_equal(tell("", "READY=1"), WEFT_EINVAL);
	assert_int_equal(tell("@", "READY=1"), WEFT_EINVAL);
	assert_int_equal(tell("vsock:2:1234", "READY=1"), WEFT_EINVAL);
	assert_int_equal(tell(longest, "READY=1"), WEFT_EINVAL);
	assert_int_not_equal(tell("/nowhere/notify", "READY=1"), WEFT_OK);
}

static void
manager_that_does_not_read_holds_nobody_up(void **state)
{
	(void)state;
	char name[108] = "";
	int fd = listen_at(name, sizeof(name));
	enum weft_err e = WEFT_OK;
	for (int i = 0; i < 100000 && !e; i++) {
		e = tell(name, "READY=1");
	}
	assert_int_equal(e, WEFT_EAGAIN);
	close(fd);
}

static void
reload_is_told_with_the_time(void **state)
{
	(void)state;
	char text[128], name[108] = "";
	int fd = listen_at(name, sizeof(name));
	struct timespec before, after;
	int64_t us;
	clock_gettime(CLOCK_MONOTONIC, &before);
	int manager;
	assert_int_equal(os_manager_open(name, &manager), WEFT_OK);
	assert_int_equal(os_manager_tell_reloading(manager), WEFT_OK);
	close(manager);
	clock_gettime(CLOCK_MONOTONIC, &after);
	take(fd, text, sizeof(text));
	assert_int_equal(sscanf(text, "RELOADING=1\nMONOTONIC_USEC=%" SCNd64, &us), 1);
	assert_in_range(us, (int64_t)before.tv_sec * 1000000 + before.tv_nsec / 1000,
		(int64_t)after.tv_sec * 1000000 + after.tv_nsec / 1000);
	close(fd);
}

static void
journal_is_known_by_device_and_inode(void **state)
{
	(void)state;
	int fds[2];
	struct stat st;
	char right[64], wrong[64];
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(fstat(fds[1], &st), 0);
	snprintf(right, sizeof(right), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	snprintf(wrong, sizeof(wrong), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino + 1);
	assert_true(os_manager_is_journal(fds[1], right));
	assert_false(os_manager_is_journal(fds[1], wrong));
	assert_false(os_manager_is_journal(fds[1], ""));
	assert_false(os_manager_is_journal(fds[1], "a:b"));
	close(fds[0]);
	close(fds[1]);
	assert_false(os_manager_is_journal(fds[1], right));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(manager_hears_at_a_path_and_at_an_abstract_name),
		cmocka_unit_test(manager_that_is_gone_or_nonsense_is_an_error),
		cmocka_unit_test(manager_that_does_not_read_holds_nobody_up),
		cmocka_unit_test(reload_is_told_with_the_time),
		cmocka_unit_test(journal_is_known_by_device_and_inode),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
