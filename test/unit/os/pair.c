/* SPDX-License-Identifier: Apache-2.0 */
#include "os/pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/fd.h"

static void
records_keep_their_bounds_and_their_descriptors(void **state)
{
	(void)state;
	int ends[2], file, passed;
	char got[16], *text;
	size_t n;
	assert_int_equal(os_pair_open(ends), WEFT_OK);
	assert_int_equal(os_pair_receive(ends[1], got, sizeof(got), &n, &passed), WEFT_EAGAIN);
	assert_int_equal(os_pair_file_make("hello", 5, &file), WEFT_OK);
	assert_int_equal(os_pair_send(ends[0], "one", 3, file), WEFT_OK);
	assert_int_equal(os_pair_send(ends[0], "second", 6, -1), WEFT_OK);
	os_fd_close(&file);
	assert_int_equal(os_pair_receive(ends[1], got, sizeof(got), &n, &passed), WEFT_OK);
	assert_int_equal(n, 3);
	assert_memory_equal(got, "one", 3);
	assert_true(passed >= 0);
	assert_int_equal(fcntl(passed, F_GETFD), FD_CLOEXEC);
	assert_int_equal(os_pair_file_read(passed, 5, &text, &n), WEFT_OK);
	assert_string_equal(text, "hello");
	assert_int_equal(n, 5);
	free(text);
	assert_int_equal(os_pair_file_read(passed, 4, &text, &n), WEFT_EMSGSIZE);
	assert_int_equal(write(passed, "x", 1), -1);
	os_fd_close(&passed);
	assert_int_equal(os_pair_receive(ends[1], got, sizeof(got), &n, &passed), WEFT_OK);
	assert_int_equal(n, 6);
	assert_int_equal(passed, -1);
	os_fd_close(&ends[0]);
	assert_int_equal(os_pair_receive(ends[1], got, sizeof(got), &n, &passed), WEFT_ECLOSED);
	os_fd_close(&ends[1]);
}

static int
lowest_free(void)
{
	int fd = dup(0);
	assert_true(fd >= 0);
	int at = fd;
	os_fd_close(&fd);
	return at;
}

/* The room for one has room for two by its alignment. */
static void
of_several_descriptors_none_is_taken_and_none_stays_open(void **state)
{
	(void)state;
	int ends[2], passed;
	char got[16];
	size_t n;
	assert_int_equal(os_pair_open(ends), WEFT_OK);
	for (size_t k = 2; k <= 5; k++) {
		union {
			struct cmsghdr head;
			char room[CMSG_SPACE(5 * sizeof(int))];
		} c = {.room = {0}};
		int fds[5] = {ends[0], ends[0], ends[0], ends[0], ends[0]};
		struct iovec iov = {.iov_base = "x", .iov_len = 1};
		struct msghdr m = {.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = c.room,
			.msg_controllen = CMSG_SPACE(k * sizeof(int))};
		c.head = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(k * sizeof(int))};
		memcpy(CMSG_DATA(&c.head), fds, k * sizeof(int));
		assert_int_equal(sendmsg(ends[0], &m, 0), 1);
		int before = lowest_free();
		assert_int_equal(os_pair_receive(ends[1], got, sizeof(got), &n, &passed), WEFT_OK);
		assert_int_equal(passed, -1);
		assert_int_equal(lowest_free(), before);
	}
	os_fd_close(&ends[0]);
	os_fd_close(&ends[1]);
}

static void
record_that_is_too_long_is_refused_and_the_next_one_is_not(void **state)
{
	(void)state;
	int ends[2], passed;
	char got[4];
	size_t n;
	assert_int_equal(os_pair_open(ends), WEFT_OK);
	assert_int_equal(os_pair_send(ends[0], "toolong", 7, -1), WEFT_OK);
	assert_int_equal(os_pair_send(ends[0], "good", 4, -1), WEFT_OK);
	assert_int_equal(os_pair_receive(ends[1], got, sizeof(got), &n, &passed), WEFT_EMSGSIZE);
	assert_int_equal(os_pair_receive(ends[1], got, sizeof(got), &n, &passed), WEFT_OK);
	assert_memory_equal(got, "good", 4);
	os_fd_close(&ends[1]);
	assert_int_equal(os_pair_send(ends[0], "x", 1, -1), WEFT_ECLOSED);
	os_fd_close(&ends[0]);
}

static void
only_files_in_memory_that_cannot_change_are_read(void **state)
{
	(void)state;
	int pipes[2], open_file = memfd_create("weft-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int disk = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	char *text;
	size_t n;
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(os_pair_file_read(pipes[0], 100, &text, &n), WEFT_EINVAL);
	assert_int_equal(os_pair_file_read(open_file, 100, &text, &n), WEFT_EINVAL);
	assert_int_equal(os_pair_file_read(disk, 1u << 20, &text, &n), WEFT_EINVAL);
	os_fd_close(&pipes[0]);
	os_fd_close(&pipes[1]);
	os_fd_close(&open_file);
	os_fd_close(&disk);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_keep_their_bounds_and_their_descriptors),
		cmocka_unit_test(of_several_descriptors_none_is_taken_and_none_stays_open),
		cmocka_unit_test(record_that_is_too_long_is_refused_and_the_next_one_is_not),
		cmocka_unit_test(only_files_in_memory_that_cannot_change_are_read),
	};
	/* As programs of ours have it: os_signal_block_all(). */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
