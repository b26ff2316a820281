/* SPDX-License-Identifier: Apache-2.0 */
#include "os/privilege.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static bool
lacks_it_after_giving_it_up(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
	return syscall(SYS_capget, &head, data) == 0 &&
	       (data[0].effective &= ~(1u << CAP_NET_ADMIN), true) &&
	       syscall(SYS_capset, &head, data) == 0 && !os_privilege_has_net_admin();
}

static void
net_admin_is_seen_and_missed(void **state)
{
	(void)state;
	assert_true(os_privilege_has_net_admin()); /* tests of devices need root */
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		_exit(lacks_it_after_giving_it_up() ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

struct sets {
	uint64_t effective, permitted, inheritable;
};

static bool
read_sets(struct sets *s)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3] = {0};
	if (syscall(SYS_capget, &head, d)) {
		return false;
	}
	*s = (struct sets){d[0].effective | (uint64_t)d[1].effective << 32,
		d[0].permitted | (uint64_t)d[1].permitted << 32,
		d[0].inheritable | (uint64_t)d[1].inheritable << 32};
	return true;
}

/* The number of what is otherwise than it should be. */
static int
look_after_the_drop(uint64_t keeps)
{
	uid_t r, e, s;
	gid_t gr, ge, gs;
	struct sets sets;
	if (getresuid(&r, &e, &s) || r != 65534 || e != r || s != r) {
		return 1;
	}
	if (getresgid(&gr, &ge, &gs) || gr != 65534 || ge != gr || gs != gr || getgroups(0, NULL)) {
		return 2;
	}
	if (!read_sets(&sets) || sets.effective != keeps || sets.permitted != keeps ||
		sets.inheritable) {
		return 3;
	}
	for (int cap = 0; cap <= 63; cap++) {
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) > 0 ||
			prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) > 0) {
			return 4;
		}
	}
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || prctl(PR_GET_KEEPCAPS, 0, 0, 0, 0)) {
		return 5;
	}
	return setuid(0) == 0 || seteuid(0) == 0 ? 6 : 0;
}

static int
drop(unsigned what, uint64_t keeps)
{
	const struct os_privilege_user user = {"nobody", 65534, 65534};
	if (os_privilege_prepare() || os_privilege_become(&user) || os_privilege_keep(what)) {
		return 100;
	}
	/* A second time there is nothing to give up, and nothing to be had. */
	if (os_privilege_become(&user) != WEFT_EPERM || os_privilege_keep(what)) {
		return 101;
	}
	return look_after_the_drop(keeps);
}

static void
rights_that_go_leave_no_core_dump_though_the_user_stays(void **state)
{
	(void)state;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		bool was = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1;
		_exit(!was || os_privilege_prepare() || os_privilege_keep(OS_PRIVILEGE_NET_ADMIN) ||
			prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int
drop_in_child(unsigned what, uint64_t keeps)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		_exit(drop(what, keeps));
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void
after_the_drop_there_is_what_was_asked_for_and_no_way_back(void **state)
{
	(void)state;
	const uint64_t admin = UINT64_C(1) << CAP_NET_ADMIN;
	const uint64_t bind = UINT64_C(1) << CAP_NET_BIND_SERVICE;
	assert_int_equal(drop_in_child(OS_PRIVILEGE_NET_ADMIN, admin), 0);
	assert_int_equal(
		drop_in_child(OS_PRIVILEGE_NET_ADMIN | OS_PRIVILEGE_NET_BIND_SERVICE, admin | bind),
		0);
	assert_int_equal(drop_in_child(0, 0), 0);
}

static void
users_are_found_by_name_and_number(void **state)
{
	(void)state;
	struct os_privilege_user u;
	assert_int_equal(os_privilege_find_user("nobody", &u), WEFT_OK);
	assert_int_equal(u.uid, 65534);
	assert_int_equal(os_privilege_find_user("root", &u), WEFT_OK);
	assert_int_equal(u.uid + u.gid, 0);
	assert_int_equal(os_privilege_find_user("123", &u), WEFT_OK);
	assert_int_equal(u.uid, 123);
	assert_int_equal(u.gid, 123);
	assert_int_equal(os_privilege_find_user("12x", &u), WEFT_ENOENT);
	assert_int_equal(os_privilege_find_user("4294967295", &u), WEFT_ENOENT); /* means nobody */
	assert_int_equal(os_privilege_find_user("no-such-user", &u), WEFT_ENOENT);
	assert_int_equal(os_privilege_find_user("", &u), WEFT_ENOENT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(net_admin_is_seen_and_missed),
		cmocka_unit_test(rights_that_go_leave_no_core_dump_though_the_user_stays),
		cmocka_unit_test(after_the_drop_there_is_what_was_asked_for_and_no_way_back),
		cmocka_unit_test(users_are_found_by_name_and_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
