/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the packet path have no condition on their arguments: for those Linux 5.11 keeps a map
 * of the filter's answers and does not run it. Where it is run, they are asked first. */
#include "os/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "os/error.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif
#ifndef HAS_SANITIZER
#define HAS_SANITIZER 0
#endif

#define TYPE_MASK 0xfu        /* of socket(2), without its flags */
#define TMPFILE_BIT 0x400000u /* of O_TMPFILE, without O_DIRECTORY */
_Static_assert((O_TMPFILE & ~O_DIRECTORY) == TMPFILE_BIT, "as asm-generic has it");

/* Of every batch or wait of a worker. */
static const int hot[] = {SCMP_SYS(recvmmsg), SCMP_SYS(sendmmsg), SCMP_SYS(recvmsg),
	SCMP_SYS(sendmsg), SCMP_SYS(readv), SCMP_SYS(writev), SCMP_SYS(read), SCMP_SYS(write),
	SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_pwait2), SCMP_SYS(futex),
	SCMP_SYS(timerfd_settime), SCMP_SYS(clock_gettime)};

static const int plain[] = {
	/* waiting and time */
	SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(select), SCMP_SYS(pselect6), SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_create1), SCMP_SYS(eventfd2), SCMP_SYS(timerfd_create),
	SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep), SCMP_SYS(gettimeofday), SCMP_SYS(time),
	SCMP_SYS(clock_getres), SCMP_SYS(restart_syscall), SCMP_SYS(sched_yield),
	/* sockets that are there, new ones of control's clients, ports that change */
	SCMP_SYS(bind), SCMP_SYS(connect), SCMP_SYS(listen), SCMP_SYS(accept), SCMP_SYS(accept4),
	SCMP_SYS(getsockname), SCMP_SYS(getpeername), SCMP_SYS(getsockopt), SCMP_SYS(setsockopt),
	SCMP_SYS(sendto), SCMP_SYS(recvfrom), SCMP_SYS(shutdown),
	/* files that are read; memory files; letting go of the terminal */
	SCMP_SYS(dup2), SCMP_SYS(dup3), SCMP_SYS(chdir), SCMP_SYS(close), SCMP_SYS(fcntl),
	SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(stat), SCMP_SYS(lseek),
	SCMP_SYS(pread64), SCMP_SYS(pwrite64), SCMP_SYS(fsync), SCMP_SYS(getdents64),
	SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(readlink),
	SCMP_SYS(readlinkat), SCMP_SYS(memfd_create), SCMP_SYS(ftruncate),
	/* memory */
	SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(brk), SCMP_SYS(madvise),
	/* the process itself, and the end of the steward */
	SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid),
	SCMP_SYS(getegid), SCMP_SYS(getrusage), SCMP_SYS(getrlimit), SCMP_SYS(sched_getaffinity),
	SCMP_SYS(uname), SCMP_SYS(sysinfo), SCMP_SYS(getrandom), SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack),
	SCMP_SYS(set_robust_list), SCMP_SYS(rseq), SCMP_SYS(exit), SCMP_SYS(exit_group),
	SCMP_SYS(wait4),
	/* the same, as machines of 32 bits have them; unknown ones are passed over */
	SCMP_SYS(recvmmsg_time64), SCMP_SYS(futex_time64), SCMP_SYS(timerfd_settime64),
	SCMP_SYS(clock_gettime64), SCMP_SYS(ppoll_time64), SCMP_SYS(pselect6_time64),
	SCMP_SYS(_newselect), SCMP_SYS(clock_nanosleep_time64), SCMP_SYS(clock_getres_time64),
	SCMP_SYS(fcntl64), SCMP_SYS(fstat64), SCMP_SYS(fstatat64), SCMP_SYS(stat64),
	SCMP_SYS(_llseek), SCMP_SYS(ftruncate64), SCMP_SYS(getuid32), SCMP_SYS(geteuid32),
	SCMP_SYS(getgid32), SCMP_SYS(getegid32), SCMP_SYS(ugetrlimit), SCMP_SYS(sigreturn),
	SCMP_SYS(send), SCMP_SYS(recv),
	/* i386 makes sockets by this, whose arguments no filter sees */
	SCMP_SYS(socketcall)};

static int
allow_all(scmp_filter_ctx f)
{
	int rc = 0;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(hot) && !rc; i++) {
		rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, hot[i], 0);
		rc = rc ? rc : seccomp_syscall_priority(f, hot[i], (uint8_t)(255 - i));
	}
	for (size_t i = 0; i < WEFT_ARRAY_LEN(plain) && !rc; i++) {
		rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, plain[i], 0);
	}
	return rc;
}

/* UDP and TCP, local sockets, and the kernel's tables of addresses and routes: no raw packets. */
static int
allow_sockets(scmp_filter_ctx f)
{
	static const int families[] = {AF_INET, AF_INET6, AF_UNIX};
	static const int types[] = {SOCK_DGRAM, SOCK_STREAM};
	int rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
		SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_EQ, NETLINK_ROUTE));
	for (size_t i = 0; i < WEFT_ARRAY_LEN(families); i++) {
		for (size_t k = 0; k < WEFT_ARRAY_LEN(types) && !rc; k++) {
			rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
				SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i]),
				SCMP_A1(SCMP_CMP_MASKED_EQ, TYPE_MASK, (scmp_datum_t)types[k]));
		}
	}
	return rc;
}

static int
allow_some(scmp_filter_ctx f)
{
	static const scmp_datum_t requests[] = {TUNSETOFFLOAD, SIOCGIFNAME, SIOCGIFINDEX};
	int rc = 0;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(requests) && !rc; i++) {
		rc = seccomp_rule_add(
			f, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_EQ, requests[i]));
	}
	/* Files are read. */
	rc = rc ? rc
		: seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
			  SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC | TMPFILE_BIT,
				  O_RDONLY));
	/* No code but what is there. */
	static const int maps[] = {SCMP_SYS(mmap), SCMP_SYS(mmap2), SCMP_SYS(mprotect)};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(maps) && !rc; i++) {
		rc = seccomp_rule_add(
			f, SCMP_ACT_ALLOW, maps[i], 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	}
	/* Limits are read. */
	rc = rc ? rc
		: seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2,
			  SCMP_A0(SCMP_CMP_EQ, 0), SCMP_A2(SCMP_CMP_EQ, 0));
	/* abort(3). */
	return rc ? rc
		  : seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
			    SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
}

bool
os_filter_is_possible(void)
{
	return !HAS_SANITIZER;
}

enum weft_err
os_filter_enter(bool is_fatal)
{
	if (!os_filter_is_possible()) {
		return WEFT_ENOTSUP;
	}
	scmp_filter_ctx f = seccomp_init(is_fatal ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO(EPERM));
	if (!f) {
		return WEFT_ENOMEM;
	}
	int rc = seccomp_attr_set(f, SCMP_FLTATR_CTL_NNP, 1);
	rc = rc ? rc : seccomp_attr_set(f, SCMP_FLTATR_CTL_TSYNC, 1);
	if (!rc) {
		(void)seccomp_attr_set(f, SCMP_FLTATR_CTL_LOG, 1); /* Linux 4.14 */
	}
	rc = rc ? rc : allow_all(f);
	rc = rc ? rc : allow_sockets(f);
	rc = rc ? rc : allow_some(f);
	rc = rc ? rc : seccomp_load(f);
	seccomp_release(f);
	return rc == 0         ? WEFT_OK
	       : rc == -EINVAL ? WEFT_ENOTSUP /* a kernel without filters */
			       : os_error(-rc);
}
