/* SPDX-License-Identifier: Apache-2.0 */
/* The child is a copy of a program with threads, so what it does up to execve(2) is system calls
 * alone. */
#include "os/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/error.h"
#include "os/fd.h"

#define STATUS_SIGNALED 128
#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

extern char **environ;

/* Ends of what the child gets, in the parent. */
struct ends {
	int input;  /* -1: as ours */
	int output; /* -1: as our standard error */
	pid_t parent;
	int report[2]; /* errno of a failure; closed by success */
};

static void
be_child(const struct os_child_config *c, const struct ends *e)
{
	sigset_t none;
	if (c->is_bound && (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != e->parent)) {
		_exit(127); /* it was too late for that */
	}
	if (c->is_alone) {
		(void)setpgid(0, 0);
	}
	for (int i = 1; i < NSIG; i++) {
		(void)signal(i, SIG_DFL); /* two of them, and those of libc, cannot be changed */
	}
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	int output = e->output >= 0 ? e->output : STDERR_FILENO;
	/* dup2(2) clears close-on-exec, but not onto itself: that would be a descriptor of ours. */
	if ((e->input >= 0 && dup2(e->input, STDIN_FILENO) < 0) ||
		dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0) {
		goto failed;
	}
	/* Ours are so already; those that our caller left open must not go on. */
	(void)close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
	execve(c->path, (char *const *)c->argv, c->envp ? c->envp : environ);
failed:;
	int errnum = errno;
	(void)!write(e->report[1], &errnum, sizeof(errnum));
	_exit(127);
}

static enum weft_err
open_input(const struct os_child_config *c, int *out)
{
	*out = -1;
	if (!c->input) {
		if (!c->is_attached) {
			*out = open("/dev/null", O_RDONLY | O_CLOEXEC);
		}
		return c->is_attached || *out >= 0 ? WEFT_OK : os_error(errno);
	}
	*out = memfd_create("weft", MFD_CLOEXEC);
	if (*out < 0) {
		return os_error(errno);
	}
	enum weft_err e = os_fd_write_all(*out, c->input, c->input_len, MONO_NEVER);
	if (!e && lseek(*out, 0, SEEK_SET) < 0) {
		e = os_error(errno);
	}
	if (e) {
		os_fd_close(out);
	}
	return e;
}

static enum weft_err
run(const struct os_child_config *c, struct ends *e, struct os_child *out)
{
	/* Where it is ignored, as whoever started us may have left it, children vanish with their
	 * status. */
	struct sigaction plain = {.sa_handler = SIG_DFL};
	if (sigaction(SIGCHLD, &plain, NULL) || pipe2(e->report, O_CLOEXEC)) {
		return os_error(errno);
	}
	e->parent = getpid();
	pid_t pid = fork();
	if (pid == 0) {
		be_child(c, e);
	}
	int errnum = pid < 0 ? errno : 0;
	os_fd_close(&e->report[1]);
	if (pid > 0) {
		ssize_t n;
		do {
			n = read(e->report[0], &errnum, sizeof(errnum));
		} while (n < 0 && errno == EINTR);
		if (n == (ssize_t)sizeof(errnum)) {
			waitpid(pid, NULL, 0);
		} else {
			errnum = 0;
		}
	}
	os_fd_close(&e->report[0]);
	if (errnum) {
		return os_error(errnum);
	}
	out->pid = pid;
	out->pid_fd = pidfd_open(pid, 0);
	if (out->pid_fd >= 0) {
		(void)fcntl(out->pid_fd, F_SETFD, FD_CLOEXEC);
	}
	return WEFT_OK;
}

enum weft_err
os_child_start(const struct os_child_config *c, struct os_child *out)
{
	struct ends e = {.input = -1, .output = -1};
	int output[2] = {-1, -1};
	*out = (struct os_child){.pid_fd = -1, .output_fd = -1, .is_alone = c->is_alone};
	enum weft_err err = open_input(c, &e.input);
	if (err) {
		return err;
	}
	if (!c->is_attached) {
		if (pipe2(output, O_CLOEXEC)) {
			err = os_error(errno);
			goto undo_input;
		}
		(void)fcntl(output[0], F_SETFL, O_NONBLOCK);
		e.output = output[1];
	}
	err = run(c, &e, out);
	os_fd_close(&output[1]);
	if (err) {
		os_fd_close(&output[0]);
	}
	out->output_fd = output[0];
undo_input:
	os_fd_close(&e.input);
	return err;
}

enum weft_err
os_child_reap(struct os_child *c, int *status)
{
	int s;
	pid_t pid = waitpid(c->pid, &s, WNOHANG);
	if (pid == 0 || (pid < 0 && errno == EINTR)) {
		return WEFT_EAGAIN;
	}
	if (pid < 0) {
		return os_error(errno);
	}
	c->pid = 0;
	*status = WIFSIGNALED(s) ? STATUS_SIGNALED + WTERMSIG(s) : WEXITSTATUS(s);
	return WEFT_OK;
}

void
os_child_fini(struct os_child *c)
{
	if (c->pid > 0) {
		(void)kill(c->is_alone ? -c->pid : c->pid, SIGKILL);
		(void)kill(c->pid, SIGKILL); /* it may not have its group yet */
		while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR) {
		}
		c->pid = 0;
	}
	os_fd_close(&c->pid_fd);
	os_fd_close(&c->output_fd);
}

char *const *
os_child_environment(void)
{
	return environ;
}

const char *
os_child_variable(const char *name)
{
	return getenv(name);
}

bool
os_child_find(const char *name, char *out, size_t cap)
{
	const char *path = getenv("PATH");
	for (const char *p = path && path[0] ? path : PATH_DEFAULT; *p;) {
		size_t n = strcspn(p, ":");
		int len = snprintf(out, cap, "%.*s/%s", (int)n, p, name);
		if (n > 0 && len > 0 && (size_t)len < cap && access(out, X_OK) == 0) {
			return true;
		}
		p += n + (p[n] == ':');
	}
	return false;
}
