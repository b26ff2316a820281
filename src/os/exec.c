/* SPDX-License-Identifier: Apache-2.0 */
/* The child is a copy of a program with threads, so what it does up to execve(2) is system calls
 * alone. It tells through a pipe what failed; the pipe's end without a word is success.
 *
 * Files are covered by bind mounts in a mount namespace of its own. What is mounted there lies in
 * a tmpfs that is visible for that moment only, so nothing is left anywhere. */
#include "os/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/error.h"
#include "os/fd.h"

#define SHELL "/bin/sh"
#define PING_RANGE "/proc/sys/net/ipv4/ping_group_range"
#define PORT_START "/proc/sys/net/ipv4/ip_unprivileged_port_start"
#define STATUS_SIGNALED 128

enum stage {
	STAGE_USER,
	STAGE_NET,
	STAGE_MOUNTS,
	STAGE_TMPFS,
	STAGE_FILE,
	STAGE_FOLDER,
	STAGE_PROGRAM,
};

/* From the child through the pipe. */
struct report {
	enum stage stage;
	int errnum;
	uint32_t index; /* of the file or folder */
};

/* What the child needs, made before it. */
struct plan {
	const struct os_exec *x;
	const struct os_exec_signals *signals;
	int report_fd;
	char ping_range[32];
	const char **script; /* argv for a script without "#!"; [1] is its path */
};

static bool
is_fault(int number)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		if (faults[i] == number) {
			return true;
		}
	}
	return false;
}

static void
fill(sigset_t *set)
{
	sigfillset(set);
	for (int i = 1; i < NSIG; i++) {
		if (is_fault(i)) {
			sigdelset(set, i);
		}
	}
}

void
os_exec_signals_hold(struct os_exec_signals *s)
{
	sigset_t set;
	fill(&set);
	weft_assert(pthread_sigmask(SIG_SETMASK, &set, &s->mask) == 0);
	/* Where it is ignored, children vanish with their status. */
	struct sigaction plain = {.sa_handler = SIG_DFL};
	weft_assert(sigaction(SIGCHLD, &plain, &s->child) == 0);
}

int
os_exec_signals_end(void)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t set;
	weft_assert(sigpending(&set) == 0);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (sigismember(&set, ends[i])) {
			return ends[i];
		}
	}
	return 0;
}

static void
fail(const struct plan *p, enum stage stage, int errnum, size_t index)
{
	struct report r = {.stage = stage, .errnum = errnum, .index = (uint32_t)index};
	ssize_t n = write(p->report_fd, &r, sizeof(r));
	(void)n;
	_exit(127);
}

static bool
write_file(const char *path, int flags, const char *text, size_t len)
{
	int fd = open(path, flags | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0) {
		return false;
	}
	bool is_done = true;
	while (is_done && len > 0) {
		ssize_t n = write(fd, text, len);
		is_done = n > 0;
		text += is_done ? n : 0;
		len -= is_done ? (size_t)n : 0;
	}
	if (flags & O_CREAT) {
		is_done = fchmod(fd, 0644) == 0 && is_done; /* whatever the umask is */
	}
	int errnum = errno;
	close(fd);
	errno = errnum;
	return is_done;
}

/* "/tmp/A": the place of a file in the tmpfs. */
static void
place(char out[16], const char *folder, size_t i)
{
	size_t n = strlen(folder);
	memcpy(out, folder, n);
	out[n] = '/';
	out[n + 1] = (char)('A' + i);
	out[n + 2] = 0;
}

static void
cover(const struct plan *p)
{
	static const char *const stages[] = {"/tmp", "/run", "/mnt", "/var"};
	const struct os_exec *x = p->x;
	const char *stage = NULL;
	char at[16];
	/* What the machine mounts later is seen here, what is mounted here is not seen there. */
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL)) {
		fail(p, STAGE_MOUNTS, errno, 0);
	}
	for (size_t i = 0; !stage && i < sizeof(stages) / sizeof(stages[0]); i++) {
		if (mount("weft", stages[i], "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
			    "mode=0755") == 0) {
			stage = stages[i];
		}
	}
	if (!stage) {
		fail(p, STAGE_TMPFS, errno, 0);
	}
	for (size_t i = 0; i < x->files_n; i++) {
		place(at, stage, i);
		if (!write_file(at, O_CREAT | O_EXCL, x->files[i].text, x->files[i].len)) {
			fail(p, STAGE_FILE, errno, i);
		}
	}
	/* None of these lies below stage, where it would be hidden now. */
	for (size_t i = 0; i < x->files_n; i++) {
		place(at, stage, i);
		if (mount(at, x->files[i].path, NULL, MS_BIND, NULL)) {
			fail(p, STAGE_FILE, errno, i);
		}
	}
	if (umount2(stage, MNT_DETACH)) {
		fail(p, STAGE_TMPFS, errno, 0);
	}
	for (size_t i = 0; i < x->folders_n; i++) {
		if (mount("weft", x->folders[i], "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
			    "mode=0755") &&
			errno != ENOENT && errno != ENOTDIR) {
			fail(p, STAGE_FOLDER, errno, i);
		}
	}
}

static void
run(const struct plan *p)
{
	const struct os_exec *x = p->x;
	int why = ENOENT;
	for (size_t i = 0; x->programs[i]; i++) {
		execve(x->programs[i], x->argv, x->envp);
		if (errno == ENOEXEC) {
			p->script[1] = x->programs[i];
			execve(SHELL, (char *const *)p->script, x->envp);
		}
		if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) {
			why = errno;
			break;
		}
		/* A folder of PATH that is closed to us does not count. */
		if (errno == EACCES && access(x->programs[i], F_OK) == 0) {
			why = EACCES;
		}
	}
	fail(p, STAGE_PROGRAM, why, 0);
}

static void
be_child(const struct plan *p)
{
	const struct os_exec *x = p->x;
	if (x->user_ns >= 0 && setns(x->user_ns, CLONE_NEWUSER)) {
		fail(p, STAGE_USER, errno, 0);
	}
	if (setns(x->net_ns, CLONE_NEWNET)) {
		fail(p, STAGE_NET, errno, 0);
	}
	if (x->files_n > 0 || x->folders_n > 0) {
		cover(p);
	}
	/* So that ping works without a privilege, and servers have their usual ports: the network
	 * is the user's own. A convenience: nothing depends on it. */
	(void)write_file(PING_RANGE, 0, p->ping_range, strlen(p->ping_range));
	(void)write_file(PORT_START, 0, "0", 1);
	/* Its network ends with us. After setns(2), which would clear it. */
	prctl(PR_SET_PDEATHSIG, SIGHUP);
	sigaction(SIGCHLD, &p->signals->child, NULL);
	sigprocmask(SIG_SETMASK, &p->signals->mask, NULL);
	run(p);
}

static void
explain(const struct os_exec *x, const struct report *r, struct os_exec_fault *out)
{
	static const char *const texts[] = {
		[STAGE_USER] = "cannot enter the user namespace of the overlay",
		[STAGE_NET] = "cannot enter the network namespace of the overlay",
		[STAGE_MOUNTS] = "cannot make a mount namespace",
		[STAGE_TMPFS] = "cannot mount a tmpfs in the mount namespace",
		[STAGE_FILE] = "cannot put a file over",
		[STAGE_FOLDER] = "cannot put a folder over",
		[STAGE_PROGRAM] = "cannot run",
	};
	*out = (struct os_exec_fault){.errnum = r->errnum,
		.what = texts[r->stage],
		.path = r->stage == STAGE_FILE     ? x->files[r->index].path
			: r->stage == STAGE_FOLDER ? x->folders[r->index]
						   : NULL,
		.is_of_the_program = r->stage == STAGE_PROGRAM};
}

static enum weft_err
start(struct plan *p, int *pid, struct os_exec_fault *fault)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC)) {
		*fault = (struct os_exec_fault){.errnum = errno, .what = "cannot make a pipe"};
		return os_error(errno);
	}
	p->report_fd = fds[1];
	pid_t child = fork();
	if (child == 0) {
		be_child(p);
	}
	int errnum = errno;
	os_fd_close(&fds[1]);
	if (child < 0) {
		os_fd_close(&fds[0]);
		*fault = (struct os_exec_fault){.errnum = errnum, .what = "cannot fork"};
		return os_error(errnum);
	}
	struct report r;
	ssize_t n;
	do {
		n = read(fds[0], &r, sizeof(r));
	} while (n < 0 && errno == EINTR);
	os_fd_close(&fds[0]);
	if (n == (ssize_t)sizeof(r)) {
		waitpid(child, NULL, 0);
		explain(p->x, &r, fault);
		return os_error(r.errnum);
	}
	*pid = child;
	return WEFT_OK;
}

enum weft_err
os_exec_start(const struct os_exec *x, const struct os_exec_signals *s, int *pid,
	struct os_exec_fault *fault)
{
	struct plan p = {.x = x, .signals = s};
	size_t n = 0;
	weft_assert(x->files_n <= 26);
	while (x->argv[n]) {
		n++;
	}
	*fault = (struct os_exec_fault){.errnum = ENOMEM, .what = "no memory"};
	p.script = calloc(n + 2, sizeof(*p.script));
	if (!p.script) {
		return WEFT_ENOMEM;
	}
	p.script[0] = SHELL;
	for (size_t i = 1; i < n; i++) {
		p.script[i + 1] = x->argv[i];
	}
	/* In a user namespace of ours no other group exists. */
	unsigned group = (unsigned)getegid();
	if (x->user_ns < 0) {
		snprintf(p.ping_range, sizeof(p.ping_range), "0 %d", INT_MAX);
	} else {
		snprintf(p.ping_range, sizeof(p.ping_range), "%u %u", group, group);
	}
	enum weft_err e = start(&p, pid, fault);
	free(p.script);
	return e;
}

/* True: it has ended. */
static bool
look_after(pid_t pid, int *status)
{
	int s;
	while (waitpid(pid, &s, WNOHANG | WUNTRACED) == pid) {
		if (!WIFSTOPPED(s)) {
			*status = WIFSIGNALED(s) ? STATUS_SIGNALED + WTERMSIG(s) : WEXITSTATUS(s);
			return true;
		}
		/* Whoever started us sees a stopped job, and continues us, maybe us alone. */
		kill(getpid(), SIGSTOP);
		kill(pid, SIGCONT);
	}
	return false;
}

int
os_exec_wait(int pid)
{
	sigset_t set;
	siginfo_t info;
	int status = 0;
	fill(&set);
	while (!look_after(pid, &status)) {
		int number = sigwaitinfo(&set, &info);
		/* The terminal signals the whole group; a hang-up may concern us alone. */
		if (number > 0 && number != SIGCHLD &&
			(info.si_code != SI_KERNEL || number == SIGHUP)) {
			kill(pid, number);
		}
	}
	return status;
}
