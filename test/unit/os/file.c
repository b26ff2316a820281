/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/clock.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/unixsock.h"

static char folder[64];
static char path_buf[PATH_MAX];

static const char *
in_folder(const char *name)
{
	snprintf(path_buf, sizeof(path_buf), "%s/%s", folder, name);
	return path_buf;
}

static int
make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/weft-test-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int
remove_folder(void **state)
{
	(void)state;
	char cmd[100];
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", folder);
	return system(cmd);
}

static unsigned
mode_of(const char *path)
{
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static void
file_is_written_whole_with_its_mode(void **state)
{
	(void)state;
	static char big[100000];
	char *back;
	size_t len;
	memset(big, 'x', sizeof(big));
	const char *path = in_folder("a");
	assert_int_equal(os_file_write(path, "old", 3, 0644), WEFT_OK);
	assert_int_equal(mode_of(path), 0644);
	assert_int_equal(os_file_write(path, big, sizeof(big), 0600), WEFT_OK);
	assert_int_equal(mode_of(path), 0600);
	assert_int_equal(os_file_read(path, sizeof(big), &back, &len), WEFT_OK);
	assert_int_equal(len, sizeof(big));
	assert_memory_equal(back, big, len);
	assert_int_equal(back[len], 0);
	free(back);
	assert_int_equal(os_file_read(path, sizeof(big) - 1, &back, &len), WEFT_EMSGSIZE);
	assert_int_equal(os_file_write(path, "", 0, 0600), WEFT_OK);
	assert_int_equal(os_file_read(path, 0, &back, &len), WEFT_OK);
	assert_int_equal(len, 0);
	free(back);
	assert_int_equal(os_file_read(in_folder("none"), 10, &back, &len), WEFT_ENOENT);
	assert_int_equal(os_file_read(folder, 10, &back, &len), WEFT_EISDIR);
	assert_int_equal(os_file_write(in_folder("open"), "x", 1, 0644), WEFT_OK);
	assert_true(os_file_is_world_readable(in_folder("open")));
	assert_int_equal(os_file_write(in_folder("shut"), "x", 1, 0640), WEFT_OK);
	assert_false(os_file_is_world_readable(in_folder("shut")));
	assert_false(os_file_is_world_readable(in_folder("none")));
	assert_false(os_file_is_world_readable(folder));
	assert_int_equal(os_file_write(in_folder("no/where"), "x", 1, 0600), WEFT_ENOENT);
	assert_int_equal(os_file_read("/proc/self/status", 65536, &back, &len), WEFT_OK);
	assert_true(len > 100);
	free(back);
}

static void
count_entry(void *ctx, const char *name)
{
	(void)name;
	++*(unsigned *)ctx;
}

static void
sweep_removes_what_killed_writes_have_left_and_nothing_else(void **state)
{
	(void)state;
	static const char *const names[] = {"s.conf", "s.conf.weft-save", "s.conf.backup",
		"s.conf.weft-abcdefg", "other.conf.weft-abcdef", "s.conf.weft-a1b2c3",
		"s.conf.weft-XyZ789"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
		assert_int_equal(os_file_write(in_folder(names[i]), "x", 1, 0600), WEFT_OK);
	}
	assert_true(os_file_sweep(in_folder("s.conf")));
	assert_false(os_file_sweep(in_folder("s.conf")));
	for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
		assert_int_equal(os_file_exists(in_folder(names[i])), i < 5);
	}
	assert_false(os_file_sweep(in_folder("no/where")));
}

static void
failed_write_leaves_the_old_file_and_no_other(void **state)
{
	(void)state;
	char path[PATH_MAX];
	unsigned before = 0, after = 0;
	/* A folder in the place of the file: the rename fails at the last moment. */
	snprintf(path, sizeof(path), "%s/taken", folder);
	assert_int_equal(os_file_mkdir(path, 0700), WEFT_OK);
	assert_int_equal(os_file_list(folder, count_entry, &before), WEFT_OK);
	assert_int_not_equal(os_file_write(path, "x", 1, 0600), WEFT_OK);
	assert_int_equal(os_file_list(folder, count_entry, &after), WEFT_OK);
	assert_int_equal(before, after);
	assert_int_equal(os_file_list(in_folder("none"), count_entry, &after), WEFT_ENOENT);
}

static void
mkdir_makes_parents_and_accepts_what_exists(void **state)
{
	(void)state;
	mode_t mask = umask(022);
	assert_int_equal(os_file_mkdir(in_folder("x/y/z"), 0750), WEFT_OK);
	assert_int_equal(mode_of(path_buf), 0750);
	assert_int_equal(os_file_mkdir(in_folder("x/y/"), 0700), WEFT_OK);
	assert_int_equal(mode_of(path_buf), 0750);
	assert_int_equal(os_file_write(in_folder("x/f"), "", 0, 0600), WEFT_OK);
	assert_int_equal(os_file_mkdir(in_folder("x/f"), 0700), WEFT_EEXIST);
	assert_int_equal(os_file_mkdir("", 0700), WEFT_EINVAL);
	assert_int_equal(os_file_mkdir("/", 0700), WEFT_OK);
	umask(mask);
	assert_true(os_file_exists(in_folder("x/f")));
	assert_int_equal(os_file_remove(in_folder("x/f")), WEFT_OK);
	assert_int_equal(os_file_remove(in_folder("x/f")), WEFT_ENOENT);
	assert_false(os_file_exists(in_folder("x/f")));
}

static void
lock_is_held_until_the_process_ends(void **state)
{
	(void)state;
	char path[PATH_MAX];
	int go[2], fd, status;
	char c;
	snprintf(path, sizeof(path), "%s/lock", folder);
	assert_int_equal(pipe(go), 0);
	pid_t pid = fork();
	if (pid == 0) {
		int mine;
		_exit(os_file_lock(path, 0600, &mine) || write(go[1], "x", 1) != 1 || pause());
	}
	assert_int_equal(read(go[0], &c, 1), 1);
	assert_int_equal(os_file_lock(path, 0600, &fd), WEFT_EEXIST);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	assert_int_equal(os_file_lock(path, 0600, &fd), WEFT_OK);
	char *text, want[16];
	size_t len;
	assert_int_equal(os_file_read(path, 100, &text, &len), WEFT_OK);
	snprintf(want, sizeof(want), "%d\n", (int)getpid());
	assert_string_equal(text, want);
	free(text);
	os_fd_close(&fd);
	close(go[0]);
	close(go[1]);
}

/* --- unix sockets --- */

static struct mono
in_ms(int64_t ms)
{
	return mono_add_ns(os_clock_mono(), ms * WEFT_NS_PER_MS);
}

static void
unix_socket_carries_bytes_and_credentials(void **state)
{
	(void)state;
	int l, a, b;
	struct os_peer_cred cred;
	const char *path = in_folder("s");
	assert_int_equal(os_unixsock_connect(path, in_ms(100), &a), WEFT_ENOENT);
	assert_int_equal(os_unixsock_listen(path, 0660, &l), WEFT_OK);
	assert_int_equal(mode_of(path), 0660);
	assert_int_equal(os_unixsock_accept(l, &b), WEFT_EAGAIN);
	assert_int_equal(os_unixsock_connect(path, in_ms(100), &a), WEFT_OK);
	assert_int_equal(os_unixsock_accept(l, &b), WEFT_OK);
	assert_int_equal(os_unixsock_cred(b, &cred), WEFT_OK);
	assert_int_equal(cred.pid, getpid());
	assert_int_equal(cred.uid, getuid());

	char buf[10];
	size_t n;
	assert_int_equal(os_fd_read(b, buf, sizeof(buf), &n), WEFT_EAGAIN);
	assert_int_equal(os_fd_wait(b, false, in_ms(5)), WEFT_ETIMEDOUT);
	assert_int_equal(os_fd_write(a, "hello", 5, &n), WEFT_OK);
	assert_int_equal(os_fd_wait(b, false, MONO_NEVER), WEFT_OK);
	assert_int_equal(os_fd_read(b, buf, sizeof(buf), &n), WEFT_OK);
	assert_int_equal(n, 5);
	os_fd_close(&a);
	assert_int_equal(a, -1);
	assert_int_equal(os_fd_read(b, buf, sizeof(buf), &n), WEFT_ECLOSED);
	assert_int_equal(fcntl(l, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fcntl(b, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	os_fd_close(&b);
	os_fd_close(&l);
}

/* A client that never reads, and one that never writes, hold up only themselves. */
static void
writing_to_a_client_that_never_reads_ends_at_the_deadline(void **state)
{
	(void)state;
	static char big[1 << 20];
	int l, a, b;
	assert_int_equal(os_unixsock_listen(in_folder("slow"), 0600, &l), WEFT_OK);
	assert_int_equal(os_unixsock_connect(path_buf, in_ms(100), &a), WEFT_OK);
	assert_int_equal(os_unixsock_accept(l, &b), WEFT_OK);
	struct mono deadline = in_ms(30);
	assert_int_equal(os_fd_write_all(b, big, sizeof(big), deadline), WEFT_ETIMEDOUT);
	size_t n;
	assert_int_equal(os_fd_write(b, big, sizeof(big), &n), WEFT_EAGAIN);
	os_fd_close(&a);
	os_fd_close(&b);
	os_fd_close(&l);
}

static void
stale_socket_is_replaced_and_a_live_one_is_not(void **state)
{
	(void)state;
	int first, second, c;
	const char *path = in_folder("stale");
	assert_int_equal(os_unixsock_listen(path, 0600, &first), WEFT_OK);
	assert_int_equal(os_unixsock_listen(path, 0600, &second), WEFT_EADDRINUSE);
	assert_int_equal(os_unixsock_connect(path, in_ms(100), &c), WEFT_OK);
	os_fd_close(&c);
	os_fd_close(&first); /* the file stays, as after a kill */
	assert_int_equal(os_unixsock_connect(path, in_ms(100), &c), WEFT_ENOENT);
	assert_int_equal(os_unixsock_listen(path, 0600, &second), WEFT_OK);
	assert_int_equal(os_unixsock_connect(path, in_ms(100), &c), WEFT_OK);
	os_fd_close(&c);
	os_fd_close(&second);
	/* What is no socket is never removed. */
	assert_int_equal(os_file_write(in_folder("plain"), "x", 1, 0600), WEFT_OK);
	assert_int_equal(os_unixsock_listen(path_buf, 0600, &second), WEFT_EADDRINUSE);
	assert_true(os_file_exists(path_buf));
	char longer[200];
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	assert_int_equal(os_unixsock_listen(longer, 0600, &second), WEFT_EINVAL);
}

static void
connect_to_a_full_backlog_ends_at_the_deadline(void **state)
{
	(void)state;
	int l, fds[200], n = 0;
	enum weft_err err = WEFT_OK;
	assert_int_equal(os_unixsock_listen(in_folder("full"), 0600, &l), WEFT_OK);
	while (n < 200 && !err) {
		err = os_unixsock_connect(path_buf, in_ms(20), &fds[n]);
		n += !err;
	}
	assert_int_equal(err, WEFT_ETIMEDOUT);
	/* A full backlog is somebody alive. */
	int second;
	assert_int_equal(os_unixsock_listen(path_buf, 0600, &second), WEFT_EADDRINUSE);
	while (n > 0) {
		os_fd_close(&fds[--n]);
	}
	os_fd_close(&l);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_is_written_whole_with_its_mode),
		cmocka_unit_test(sweep_removes_what_killed_writes_have_left_and_nothing_else),
		cmocka_unit_test(failed_write_leaves_the_old_file_and_no_other),
		cmocka_unit_test(mkdir_makes_parents_and_accepts_what_exists),
		cmocka_unit_test(lock_is_held_until_the_process_ends),
		cmocka_unit_test(unix_socket_carries_bytes_and_credentials),
		cmocka_unit_test(writing_to_a_client_that_never_reads_ends_at_the_deadline),
		cmocka_unit_test(stale_socket_is_replaced_and_a_live_one_is_not),
		cmocka_unit_test(connect_to_a_full_backlog_ends_at_the_deadline),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
