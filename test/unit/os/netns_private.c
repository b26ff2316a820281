/* SPDX-License-Identifier: Apache-2.0 */
/* os/netns.h as root and as nobody. What runs as nobody does so in a child, which tells by its
 * exit status; CHECK() prints the line that failed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "nobody.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/netlink.h"
#include "os/netmon.h"
#include "os/netns.h"
#include "os/netns_msg.h"
#include "os/thread.h"
#include "os/tun.h"

#define WAIT_S 20

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                    \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static void
ignore_line(void *ctx, enum log_level level, const char *text)
{
	(void)ctx, (void)level, (void)text;
}

static const struct log silent = {.sink = ignore_line, .level = LOG_LEVEL_ERROR};

/* A TUN device of that mode, seen by the calling process alone: many systems have it for all. */
static int
open_tun(mode_t mode)
{
	return unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	       mount("weft-test", "/dev/net", "tmpfs", 0, "mode=755") ||
	       mknod("/dev/net/tun", S_IFCHR, makedev(10, 200)) || chmod("/dev/net/tun", mode);
}

static int
drop_capabilities(void)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3] = {0};
	return syscall(SYS_capset, &h, d) != 0;
}

/* A child with one thread, as user namespaces want it: sanitizers start theirs in fork(). */
static pid_t
fork_bare(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static void
in_child(int (*f)(void))
{
	pid_t pid = fork_bare();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(WAIT_S);
		_exit(f());
	}
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A datagram to ourselves over the namespace's loopback. */
static int
talk_over_loopback(int fd)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	char c = 0;
	CHECK(bind(fd, (struct sockaddr *)&a, len) == 0);
	CHECK(getsockname(fd, (struct sockaddr *)&a, &len) == 0);
	CHECK(sendto(fd, "x", 1, 0, (struct sockaddr *)&a, len) == 1);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	CHECK(poll(&p, 1, 5000) == 1);
	CHECK(recv(fd, &c, 1, MSG_DONTWAIT) == 1 && c == 'x');
	return 0;
}

static int
expect_holding(struct os_netns *n)
{
	int fd;
	CHECK(os_netns_socket(n, AF_INET, SOCK_DGRAM, 0, &fd) == WEFT_OK);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK(talk_over_loopback(fd) == 0);
	os_fd_close(&fd);
	CHECK(os_netns_socket(n, AF_INET, 77, 0, &fd) == WEFT_EINVAL);
	return 0;
}

/* --- what is there --- */

static void
root_gets_a_plain_namespace_with_loopback_up(void **state)
{
	(void)state;
	struct os_netns *n;
	struct os_netns_fault why;
	int user, net;
	if (os_netns_open(&n, &why)) {
		fail_msg("%s", why.text);
	}
	assert_int_equal(expect_holding(n), 0);
	assert_int_equal(os_netns_namespaces(n, &user, &net), WEFT_OK);
	assert_int_equal(user, -1);
	assert_true(fcntl(net, F_GETFD) & FD_CLOEXEC);
	os_fd_close(&net);
	struct os_netlink *nl;
	struct os_link_info i;
	assert_int_equal(os_netlink_open_in(n, &nl), WEFT_OK);
	assert_int_equal(os_netlink_link_by_name(nl, "lo", &i), WEFT_OK);
	assert_true(i.is_up);
	assert_int_equal(i.index, 1);
	os_netlink_close(nl);
	os_netns_close(n);
}

/* A TUN with an address, and a datagram that a socket in there sends into it. */
static int
use_tun(struct os_netns *n)
{
	struct os_tun t;
	struct os_netlink *nl;
	struct os_netmon *mon;
	struct os_netmon_event e;
	struct os_link_info i;
	struct ip_prefix p = {.addr = {.family = IP_FAMILY_V4, .b = {10, 9, 0, 1}}, .bits = 24};
	struct os_tun_config c = {.ns = n,
		.name = "weft0",
		.queues = 2,
		.offload = OS_TUN_OFFLOAD_USO,
		.log = &silent};
	int fd;
	CHECK(os_netlink_open_in(n, &nl) == WEFT_OK);
	CHECK(os_netmon_open_in(n, &mon) == WEFT_OK);
	CHECK(os_tun_open_in(&t, &c) == WEFT_OK);
	CHECK(t.offload >= OS_TUN_OFFLOAD_TSO);
	CHECK(if_nametoindex("weft0") == 0);
	CHECK(os_netlink_link_by_name(nl, "weft0", &i) == WEFT_OK);
	struct os_link_change change = {.mtu = 1420, .txqueuelen = 8192, .gso_max_size = 61000};
	CHECK(os_netlink_link_change(nl, i.index, &change) == WEFT_OK);
	CHECK(os_netlink_addr_add(nl, i.index, &p) == WEFT_OK);
	p = (struct ip_prefix){
		.addr = {.family = IP_FAMILY_V6, .b = {0xfd, 9, [15] = 1}}, .bits = 64};
	CHECK(os_netlink_addr_add(nl, i.index, &p) == WEFT_OK);
	CHECK(os_netlink_link_set_up(nl, i.index, true) == WEFT_OK);
	CHECK(os_netmon_next(mon, &e) == WEFT_OK && e.kind == OS_NETMON_LINK);
	CHECK(os_netns_socket(n, AF_INET, SOCK_DGRAM, 0, &fd) == WEFT_OK);
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(0x0a090002)};
	CHECK(sendto(fd, "hello", 5, 0, (struct sockaddr *)&to, sizeof(to)) == 5);
	uint8_t buf[2048] = {0};
	bool is_seen = false;
	for (int k = 0; k < 2; k++) {
		ssize_t len;
		while ((len = read(t.fds[k], buf, sizeof(buf))) > 0) {
			is_seen |= len == 10 + 20 + 8 + 5 && memcmp(buf + 38, "hello", 5) == 0;
		}
	}
	CHECK(is_seen);
	os_fd_close(&fd);
	os_tun_close(&t);
	os_netmon_close(mon);
	os_netlink_close(nl);
	return 0;
}

/* A new program in the namespaces is the same user, as `weft exec` wants it. */
static int
expect_same_user_inside(struct os_netns *n)
{
	int user, net, status;
	CHECK(os_netns_namespaces(n, &user, &net) == WEFT_OK);
	CHECK(user >= 0 && net >= 0);
	pid_t pid = fork_bare();
	if (pid == 0) {
		CHECK(setns(user, CLONE_NEWUSER) == 0 && setns(net, CLONE_NEWNET) == 0);
		CHECK(getuid() == NOBODY && geteuid() == NOBODY && getgid() == NOBODY);
		_exit(if_nametoindex("lo") != 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	os_fd_close(&user);
	os_fd_close(&net);
	return 0;
}

static int
use_namespace(bool has_tun)
{
	struct os_netns *n;
	struct os_netns_fault why = {0};
	if (os_netns_open(&n, &why)) {
		fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	CHECK(expect_holding(n) == 0);
	CHECK(expect_same_user_inside(n) == 0);
	int fd, errnum;
	CHECK(os_netns_socket(n, AF_PACKET, SOCK_RAW, 0, &fd) == WEFT_OK);
	os_fd_close(&fd);
	if (has_tun) {
		CHECK(use_tun(n) == 0);
	} else {
		CHECK(os_netns_open_tun(n, &fd, &errnum) == WEFT_EPERM && errnum == EACCES);
	}
	os_netns_close(n);
	return 0;
}

static int
use_as_nobody(void)
{
	CHECK(open_tun(0600) == 0);
	/* After this change of user the process cannot be traced, and /proc is not its own. */
	CHECK(nobody_become() == 0);
	CHECK(use_namespace(false) == 0);
	CHECK(prctl(PR_SET_DUMPABLE, 1) == 0);
	return use_namespace(false);
}

static int
use_tun_as_nobody(void)
{
	CHECK(open_tun(0666) == 0);
	CHECK(nobody_become() == 0);
	return use_namespace(true);
}

static void
nobody_gets_a_namespace_and_stays_nobody_in_it(void **state)
{
	(void)state;
	in_child(use_as_nobody);
}

static void
tun_in_a_namespace_is_driven_from_outside_by_nobody(void **state)
{
	(void)state;
	in_child(use_tun_as_nobody);
}

/* --- the holder --- */

static void
killed_holder_is_told_and_descriptors_live_on(void **state)
{
	(void)state;
	struct os_netns *n;
	struct os_netns_fault why;
	int fd, other, user, net, errnum;
	assert_int_equal(os_netns_open(&n, &why), WEFT_OK);
	assert_int_equal(os_netns_socket(n, AF_INET, SOCK_DGRAM, 0, &fd), WEFT_OK);
	assert_int_equal(kill(os_netns_holder(n), SIGKILL), 0);
	assert_int_equal(os_netns_socket(n, AF_INET, SOCK_DGRAM, 0, &other), WEFT_ECLOSED);
	assert_int_equal(os_netns_open_tun(n, &other, &errnum), WEFT_ECLOSED);
	assert_int_equal(os_netns_namespaces(n, &user, &net), WEFT_OK);
	os_fd_close(&net);
	os_netns_close(n);
	assert_int_equal(talk_over_loopback(fd), 0);
	os_fd_close(&fd);
}

static volatile sig_atomic_t children;

static void
count_child(int sig)
{
	(void)sig;
	children++;
}

/* The holder stays root's, and a child of the program has the other end of its socket, too. */
static int
close_as_who_may_not_kill(void)
{
	struct os_netns *n;
	struct os_netns_fault why;
	int ends[2];
	char c;
	CHECK(os_netns_open(&n, &why) == WEFT_OK && pipe(ends) == 0);
	if (fork_bare() == 0) {
		close(ends[1]);
		_exit(read(ends[0], &c, 1) != 0); /* until we end */
	}
	CHECK(nobody_become() == 0);
	CHECK(kill(os_netns_holder(n), 0) < 0 && errno == EPERM);
	os_netns_close(n);
	return 0;
}

static void
holder_ends_without_being_killed(void **state)
{
	(void)state;
	in_child(close_as_who_may_not_kill);
}

static void
program_neither_waits_for_the_holder_nor_hears_of_its_end(void **state)
{
	(void)state;
	struct os_netns *n;
	struct os_netns_fault why;
	struct sigaction before, count = {.sa_handler = count_child};
	sigaction(SIGCHLD, &count, &before);
	assert_int_equal(os_netns_open(&n, &why), WEFT_OK);
	pid_t holder = os_netns_holder(n);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	os_netns_close(n);
	assert_int_equal(kill(holder, 0), -1); /* gone, and no zombie */
	assert_int_equal(errno, ESRCH);
	assert_int_equal(children, 0);
	sigaction(SIGCHLD, &before, NULL);
}

static void
signals_to_the_whole_group_leave_the_holder_alone(void **state)
{
	(void)state;
	struct os_netns *n;
	struct os_netns_fault why;
	assert_int_equal(os_netns_open(&n, &why), WEFT_OK);
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGTSTP, SIGPIPE};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(signals); i++) {
		assert_int_equal(kill(os_netns_holder(n), signals[i]), 0);
	}
	assert_int_equal(expect_holding(n), 0);
	os_netns_close(n);
}

struct opener {
	struct os_netns *n;
	struct os_netns_fault why;
	enum weft_err result;
};

static void
open_in_thread(void *arg)
{
	struct opener *o = arg;
	o->result = os_netns_open(&o->n, &o->why);
}

#define HEAVY_BYTES ((size_t)64 << 20)

static size_t
resident_bytes(pid_t pid)
{
	char path[64];
	size_t pages = 0;
	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*u %zu", &pages), 1);
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* A thread's stack, the heap, and a region of its own. */
static void
holder_has_nothing_of_a_large_program(void **state)
{
	(void)state;
	struct os_netns_fault why;
	struct opener o = {0};
	struct os_thread t;
	struct os_netns *n;
	/* With a sanitizer it gives nothing back. */
	const size_t most = WEFT_HAS_SHADOW_MEMORY ? SIZE_MAX : HEAVY_BYTES / 16;
	char *region =
		mmap(NULL, HEAVY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(region, MAP_FAILED);
	memset(region, 'x', HEAVY_BYTES);
	char *small[4096];
	for (size_t i = 0; i < WEFT_ARRAY_LEN(small); i++) {
		small[i] = malloc(4096);
		assert_non_null(small[i]);
		memset(small[i], 'x', 4096);
	}
	assert_int_equal(os_netns_open(&n, &why), WEFT_OK);
	assert_true(resident_bytes(getpid()) > HEAVY_BYTES);
	assert_in_range(resident_bytes(os_netns_holder(n)), 1, most);
	assert_int_equal(expect_holding(n), 0);
	os_netns_close(n);

	assert_int_equal(os_thread_start(&t, "opener", 0, open_in_thread, &o), WEFT_OK);
	os_thread_join(&t);
	assert_int_equal(o.result, WEFT_OK);
	assert_in_range(resident_bytes(os_netns_holder(o.n)), 1, most);
	assert_int_equal(expect_holding(o.n), 0);
	os_netns_close(o.n);
	for (size_t i = 0; i < HEAVY_BYTES; i += 4096) {
		assert_int_equal(region[i], 'x');
	}
	for (size_t i = 0; i < WEFT_ARRAY_LEN(small); i++) {
		assert_int_equal(small[i][4095], 'x');
		free(small[i]);
	}
	munmap(region, HEAVY_BYTES);
}

/* Opens a namespace, says who holds it, and waits to be killed. */
static void
hold_until_killed(int report, bool has_heir)
{
	struct os_netns *n;
	struct os_netns_fault why;
	if (os_netns_open(&n, &why)) {
		_exit(1);
	}
	if (has_heir) {
		pid_t heir = fork(); /* has our end of the holder's socket, and lives longer */
		if (heir == 0) {
			alarm(WAIT_S);
			pause();
			_exit(0);
		}
		(void)!write(report, &heir, sizeof(heir));
	}
	pid_t holder = os_netns_holder(n);
	(void)!write(report, &holder, sizeof(holder));
	pause();
	_exit(0);
}

static bool
ends_within(pid_t pid, int ms)
{
	for (int i = 0; i < ms / 10; i++) {
		if (waitpid(pid, NULL, __WALL | WNOHANG) == pid) {
			return true;
		}
		usleep(10000);
	}
	return false;
}

static void
killed_program_leaves_no_holder(void **state)
{
	(void)state;
	/* Orphans become ours: that they end can be waited for. */
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	for (int has_heir = 0; has_heir < 2; has_heir++) {
		int ends[2];
		pid_t holder = 0, heir = 0;
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		pid_t pid = fork();
		if (pid == 0) {
			hold_until_killed(ends[1], has_heir);
		}
		if (has_heir) {
			assert_int_equal(read(ends[0], &heir, sizeof(heir)), sizeof(heir));
		}
		assert_int_equal(read(ends[0], &holder, sizeof(holder)), sizeof(holder));
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_true(ends_within(holder, 5000));
		if (has_heir) {
			assert_int_equal(kill(heir, SIGKILL), 0);
			assert_true(ends_within(heir, 5000));
		}
		os_fd_close(&ends[0]);
		os_fd_close(&ends[1]);
	}
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

/* --- threads --- */

static void
holder_outlives_the_thread_that_made_it(void **state)
{
	(void)state;
	struct opener o = {0};
	struct os_thread t;
	assert_int_equal(os_thread_start(&t, "opener", 0, open_in_thread, &o), WEFT_OK);
	os_thread_join(&t);
	assert_int_equal(o.result, WEFT_OK);
	usleep(20000);
	assert_int_equal(expect_holding(o.n), 0);
	os_netns_close(o.n);
}

#define ASKERS 4
#define ASKS 100

struct asker {
	struct os_netns *n;
	struct os_thread thread;
	unsigned got;
};

static void
ask_often(void *arg)
{
	struct asker *a = arg;
	static const int types[] = {SOCK_DGRAM, SOCK_STREAM};
	for (int i = 0; i < ASKS; i++) {
		int fd, type = 0, wanted = types[i % 2];
		socklen_t len = sizeof(type);
		if (os_netns_socket(a->n, AF_INET, wanted, 0, &fd) == WEFT_OK) {
			/* Nobody gets another's answer. */
			(void)getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len);
			a->got += type == wanted;
			os_fd_close(&fd);
		}
	}
}

static void
threads_share_one_namespace(void **state)
{
	(void)state;
	struct os_netns *n;
	struct os_netns_fault why;
	struct asker a[ASKERS];
	assert_int_equal(os_netns_open(&n, &why), WEFT_OK);
	for (int i = 0; i < ASKERS; i++) {
		a[i] = (struct asker){.n = n};
		assert_int_equal(
			os_thread_start(&a[i].thread, "asker", 0, ask_often, &a[i]), WEFT_OK);
	}
	for (int i = 0; i < ASKERS; i++) {
		os_thread_join(&a[i].thread);
		assert_int_equal(a[i].got, ASKS);
	}
	os_netns_close(n);
}

#define MANY 20

static int
open_many(void)
{
	struct os_netns *n[MANY];
	struct os_netns_fault why;
	CHECK(nobody_become() == 0);
	struct mono before = os_clock_mono();
	for (int i = 0; i < MANY; i++) {
		CHECK(os_netns_open(&n[i], &why) == WEFT_OK);
	}
	double ms = (double)mono_diff_ns(os_clock_mono(), before) / 1e6;
	for (int i = 0; i < MANY; i++) {
		CHECK(expect_holding(n[i]) == 0);
	}
	int fd;
	before = os_clock_mono();
	for (int i = 0; i < 200; i++) {
		CHECK(os_netns_socket(n[0], AF_INET, SOCK_STREAM, 0, &fd) == WEFT_OK);
		os_fd_close(&fd);
	}
	printf("# a namespace %.2f ms, a socket in it %.1f us\n", ms / MANY,
		(double)mono_diff_ns(os_clock_mono(), before) / 200e3);
	fflush(stdout);
	before = os_clock_mono();
	for (int i = 0; i < MANY; i++) {
		os_netns_close(n[i]);
	}
	printf("# closing one %.2f ms\n",
		(double)mono_diff_ns(os_clock_mono(), before) / 1e6 / MANY);
	fflush(stdout);
	return 0;
}

static void
one_process_has_twenty_namespaces(void **state)
{
	(void)state;
	in_child(open_many);
}

/* --- refusals --- */

static int
expect_refusal(enum weft_err wanted, const char *text, const char *advice)
{
	struct os_netns *n;
	struct os_netns_fault why = {0};
	enum weft_err err = os_netns_open(&n, &why);
	if (err != wanted || !strstr(why.text, text) || !strstr(why.text, advice)) {
		fprintf(stderr, "result %d, errno %d: %s\n", err, why.errnum, why.text);
		return 1;
	}
	CHECK(why.errnum != 0);
	return waitpid(-1, NULL, __WALL | WNOHANG) != -1; /* no child is left */
}

static int
write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	os_fd_close(&fd);
	return 0;
}

/* A user namespace around us, whose limits are ours to set. */
static int
enter_user_namespace(const char *key)
{
	CHECK(unshare(CLONE_NEWUSER) == 0);
	CHECK(write_text("/proc/self/uid_map", "0 0 1") == 0);
	CHECK(write_text("/proc/self/setgroups", "deny") == 0);
	CHECK(write_text("/proc/self/gid_map", "0 0 1") == 0);
	CHECK(os_sysctl_write(key, "0") == WEFT_OK);
	return drop_capabilities();
}

static int
meet_user_limit(void)
{
	CHECK(enter_user_namespace("user/max_user_namespaces") == 0);
	return expect_refusal(
		WEFT_EPERM, "user.max_user_namespaces = 0", "sysctl -w user.max_user_namespaces");
}

static int
meet_net_limit(void)
{
	CHECK(enter_user_namespace("user/max_net_namespaces") == 0);
	return expect_refusal(
		WEFT_EPERM, "user.max_net_namespaces = 0", "sysctl -w user.max_net_namespaces");
}

static int
meet_net_limit_as_root(void)
{
	CHECK(unshare(CLONE_NEWUSER) == 0);
	CHECK(os_sysctl_write("user/max_net_namespaces", "0") == WEFT_OK);
	return expect_refusal(
		WEFT_EPERM, "user.max_net_namespaces = 0", "sysctl -w user.max_net_namespaces");
}

static void
limits_that_forbid_are_named(void **state)
{
	(void)state;
	in_child(meet_user_limit);
	in_child(meet_net_limit);
	in_child(meet_net_limit_as_root);
}

static int
be_unmapped(void)
{
	CHECK(nobody_become() == 0);
	CHECK(prctl(PR_SET_DUMPABLE, 1) == 0);
	CHECK(unshare(CLONE_NEWUSER) == 0);
	CHECK(drop_capabilities() == 0);
	return expect_refusal(WEFT_EPERM, "has no mapping", "/proc/self/uid_map");
}

static int
be_in_an_unmapped_group(void)
{
	CHECK(unshare(CLONE_NEWUSER) == 0);
	CHECK(write_text("/proc/self/uid_map", "0 0 1") == 0);
	CHECK(drop_capabilities() == 0);
	return expect_refusal(WEFT_EPERM, "group id", "/proc/self/gid_map");
}

static int
be_chrooted(void)
{
	char folder[] = "/tmp/weft-chroot-XXXXXX", proc[64];
	CHECK(mkdtemp(folder) != NULL && chmod(folder, 0755) == 0);
	snprintf(proc, sizeof(proc), "%s/proc", folder);
	CHECK(unshare(CLONE_NEWNS) == 0);
	CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	CHECK(mkdir(proc, 0755) == 0);
	CHECK(mount("/proc", proc, NULL, MS_BIND | MS_REC, NULL) == 0);
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(chroot(folder) == 0 && chdir("/") == 0);
	pid_t pid = fork_bare();
	if (pid == 0) {
		CHECK(nobody_become() == 0);
		_exit(expect_refusal(WEFT_EPERM, "chroot", "pivot_root"));
	}
	int status;
	CHECK(waitpid(pid, &status, 0) == pid);
	/* Back, to leave nothing behind. */
	CHECK(fchdir(root) == 0 && chroot(".") == 0);
	CHECK(umount2(proc, MNT_DETACH) == 0 && rmdir(proc) == 0 && rmdir(folder) == 0);
	return status != 0;
}

/* clone() with any new namespace gives errnum. */
static int
filter_clone(uint32_t errnum)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWUSER | CLONE_NEWNET, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | errnum),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = {.len = WEFT_ARRAY_LEN(code), .filter = code};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}

static int
be_filtered(void)
{
	CHECK(nobody_become() == 0);
	CHECK(filter_clone(EPERM) == 0);
	return expect_refusal(WEFT_EPERM, "Seccomp: 2", "CLONE_NEWUSER");
}

static int
be_filtered_as_unknown_call(void)
{
	CHECK(nobody_become() == 0);
	CHECK(filter_clone(ENOSYS) == 0);
	return expect_refusal(WEFT_EPERM, "Seccomp: 2", "CLONE_NEWUSER");
}

static int
be_filtered_as_root(void)
{
	CHECK(filter_clone(EPERM) == 0);
	return expect_refusal(WEFT_EPERM, "Seccomp: 2", "CLONE_NEWNET");
}

static void
what_else_forbids_a_namespace_is_named(void **state)
{
	(void)state;
	in_child(be_unmapped);
	in_child(be_in_an_unmapped_group);
	in_child(be_chrooted);
	in_child(be_filtered);
	in_child(be_filtered_as_unknown_call);
	in_child(be_filtered_as_root);
}

/* What this kernel may not have: from made-up facts to words. */
static void
each_refusal_names_its_setting_and_the_way_out(void **state)
{
	(void)state;
	static const struct os_netns_facts plain = {.user_max = 1000,
		.net_max = 1000,
		.userns_clone = -1,
		.apparmor = -1,
		.is_uid_mapped = true,
		.is_gid_mapped = true,
		.label = "some_t"};
	struct os_netns_facts debian = plain, ubuntu = plain, full = plain, net_full = plain;
	struct os_netns_facts restricted_filter = plain;
	debian.userns_clone = 0;
	ubuntu.apparmor = 1;
	restricted_filter.seccomp = 2;
	full.user_max = 77;
	net_full.net_max = 78;
	net_full.can_user_alone = true;
	const struct {
		const struct os_netns_facts *f;
		enum os_netns_stage stage;
		int errnum;
		enum weft_err result;
		const char *names, *advice;
	} cases[] = {
		{&debian, OS_NETNS_STAGE_CLONE_USER, EPERM, WEFT_EPERM,
			"kernel.unprivileged_userns_clone = 0",
			"sysctl -w kernel.unprivileged_userns_clone=1"},
		{&ubuntu, OS_NETNS_STAGE_CLONE_USER, EACCES, WEFT_EPERM,
			"kernel.apparmor_restrict_unprivileged_userns = 1", "/etc/apparmor.d"},
		{&ubuntu, OS_NETNS_STAGE_MAP, EPERM, WEFT_EPERM,
			"kernel.apparmor_restrict_unprivileged_userns = 1", "userns,"},
		{&ubuntu, OS_NETNS_STAGE_LOOPBACK, EPERM, WEFT_EPERM,
			"kernel.apparmor_restrict_unprivileged_userns = 1", "userns,"},
		{&restricted_filter, OS_NETNS_STAGE_CLONE_USER, ENOSYS, WEFT_EPERM, "Seccomp: 2",
			"seccomp=PROFILE.json"},
		{&full, OS_NETNS_STAGE_CLONE_USER, ENOSPC, WEFT_ENOMEM,
			"user.max_user_namespaces = 77", "set it higher"},
		{&net_full, OS_NETNS_STAGE_CLONE_USER, ENOSPC, WEFT_ENOMEM,
			"user.max_net_namespaces = 78", "set it higher"},
		{&net_full, OS_NETNS_STAGE_CLONE_NET, ENOSPC, WEFT_ENOMEM,
			"user.max_net_namespaces = 78", "set it higher"},
		{&plain, OS_NETNS_STAGE_CLONE_USER, EACCES, WEFT_EPERM, "label \"some_t\"",
			"CAP_SYS_ADMIN"},
		{&plain, OS_NETNS_STAGE_CLONE_NET, EPERM, WEFT_EPERM, "CAP_SYS_ADMIN is there",
			"policy"},
		{&plain, OS_NETNS_STAGE_CLONE_USER, EINVAL, WEFT_ENOTSUP, "CONFIG_USER_NS", ""},
		{&net_full, OS_NETNS_STAGE_CLONE_USER, EINVAL, WEFT_ENOTSUP, "CONFIG_NET_NS", ""},
		{&plain, OS_NETNS_STAGE_CLONE_USER, EAGAIN, WEFT_ENOMEM, "RLIMIT_NPROC",
			"pids.max"},
		{&plain, OS_NETNS_STAGE_MAP, ENOENT, WEFT_ENOENT, "uid_map", "/proc"},
		{&plain, OS_NETNS_STAGE_MAP, EROFS, WEFT_EPERM, "uid_map", "/proc must be"},
		{&plain, OS_NETNS_STAGE_MAP, EPERM, WEFT_EPERM, "uid_map", "security module"},
	};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		struct os_netns_fault why = {0};
		enum weft_err err =
			os_netns_explain(cases[i].f, cases[i].stage, cases[i].errnum, &why);
		if (err != cases[i].result || !strstr(why.text, cases[i].names) ||
			!strstr(why.text, cases[i].advice) ||
			strlen(why.text) + 1 >= sizeof(why.text)) {
			fail_msg("case %zu: result %d: %s", i, err, why.text);
		}
		assert_int_equal(why.errnum, cases[i].errnum);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(root_gets_a_plain_namespace_with_loopback_up),
		cmocka_unit_test(nobody_gets_a_namespace_and_stays_nobody_in_it),
		cmocka_unit_test(tun_in_a_namespace_is_driven_from_outside_by_nobody),
		cmocka_unit_test(killed_holder_is_told_and_descriptors_live_on),
		cmocka_unit_test(holder_ends_without_being_killed),
		cmocka_unit_test(program_neither_waits_for_the_holder_nor_hears_of_its_end),
		cmocka_unit_test(signals_to_the_whole_group_leave_the_holder_alone),
		cmocka_unit_test(killed_program_leaves_no_holder),
		cmocka_unit_test(holder_has_nothing_of_a_large_program),
		cmocka_unit_test(holder_outlives_the_thread_that_made_it),
		cmocka_unit_test(threads_share_one_namespace),
		cmocka_unit_test(one_process_has_twenty_namespaces),
		cmocka_unit_test(limits_that_forbid_are_named),
		cmocka_unit_test(what_else_forbids_a_namespace_is_named),
		cmocka_unit_test(each_refusal_names_its_setting_and_the_way_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
