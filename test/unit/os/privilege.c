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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(net_admin_is_seen_and_missed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
