/* SPDX-License-Identifier: Apache-2.0 */
#include "os/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mono.h"
#include "os/error.h"
#include "os/fd.h"
#include "os/file.h"

/* Reads a byte of result and the text behind it; false at an end without a result. */
static bool
read_report(int fd, struct os_daemon *d)
{
	uint8_t buf[1 + OS_DAEMON_TEXT_MAX];
	size_t used = 0, n;
	while (used < sizeof(buf) &&
		os_fd_read(fd, buf + used, sizeof(buf) - used, &n) == WEFT_OK) {
		used += n;
	}
	if (used == 0) {
		return false;
	}
	d->result = buf[0];
	size_t len = used - 1 < sizeof(d->text) ? used - 1 : sizeof(d->text) - 1;
	memcpy(d->text, buf + 1, len);
	d->text[len] = 0;
	return true;
}

static void
describe_death(pid_t pid, struct os_daemon *d)
{
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	d->result = 1;
	if (WIFSIGNALED(status)) {
		snprintf(d->text, sizeof(d->text), "ended before it was ready, by signal %d (%s)",
			WTERMSIG(status), sigabbrev_np(WTERMSIG(status)));
	} else {
		snprintf(d->text, sizeof(d->text), "ended before it was ready, with status %d",
			WEXITSTATUS(status));
	}
}

enum weft_err
os_daemon_fork(struct os_daemon *d)
{
	int ends[2];
	*d = (struct os_daemon){.report_fd = -1};
	d->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (d->null_fd < 0) {
		return os_error(errno);
	}
	if (pipe2(ends, O_CLOEXEC)) {
		enum weft_err err = os_error(errno);
		os_fd_close(&d->null_fd);
		return err;
	}
	pid_t pid = fork();
	if (pid < 0) {
		enum weft_err err = os_error(errno);
		os_fd_close(&d->null_fd);
		os_fd_close(&ends[0]);
		os_fd_close(&ends[1]);
		return err;
	}
	if (pid == 0) {
		os_fd_close(&ends[0]);
		(void)setsid(); /* fails for a group leader only, which a new child is not */
		d->is_child = true;
		d->report_fd = ends[1];
		return WEFT_OK;
	}
	os_fd_close(&d->null_fd);
	os_fd_close(&ends[1]);
	if (!read_report(ends[0], d)) {
		describe_death(pid, d);
	}
	os_fd_close(&ends[0]);
	return WEFT_OK;
}

enum weft_err
os_process_split(const char *name, int *pid)
{
	pid_t child = fork();
	if (child < 0) {
		return os_error(errno);
	}
	if (child == 0) {
		(void)prctl(PR_SET_NAME, name, 0, 0, 0);
	}
	*pid = (int)child;
	return WEFT_OK;
}

void
os_process_wait(int pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
	}
}

static void
drop_null(struct os_daemon *d)
{
	/* A caller without standard files may have given it one of their places. */
	if (d->null_fd > 2) {
		os_fd_close(&d->null_fd);
	}
}

void
os_daemon_detach(struct os_daemon *d)
{
	for (int fd = 0; fd <= 2; fd++) {
		(void)dup2(d->null_fd, fd); /* the copies are not close-on-exec */
	}
	(void)!chdir("/");
	drop_null(d);
}

void
os_daemon_report(struct os_daemon *d, int result, const char *text)
{
	if (d->report_fd < 0) {
		return;
	}
	uint8_t buf[1 + OS_DAEMON_TEXT_MAX];
	size_t len = strnlen(text, OS_DAEMON_TEXT_MAX - 1);
	buf[0] = (uint8_t)result;
	memcpy(buf + 1, text, len);
	if (result == 0) {
		os_daemon_detach(d);
	} else {
		drop_null(d);
	}
	/* A parent that is gone does not matter: SIGPIPE is ignored by os_signal_block_all(). */
	enum weft_err ignored = os_fd_write_all(d->report_fd, buf, 1 + len, MONO_NEVER);
	(void)ignored;
	os_fd_close(&d->report_fd);
}

bool
os_daemon_is_abandoned(const struct os_daemon *d)
{
	struct pollfd p = {.fd = d->report_fd};
	return d->report_fd >= 0 && poll(&p, 1, 0) == 1 && (p.revents & POLLERR) != 0;
}

static int64_t
timeval_ns(struct timeval tv)
{
	return (int64_t)tv.tv_sec * WEFT_NS_PER_S + (int64_t)tv.tv_usec * WEFT_NS_PER_US;
}

/* "VmRSS:\t  1234 kB" */
static uint64_t
status_bytes(const char *status, const char *key)
{
	const char *line = strstr(status, key);
	return line ? strtoull(line + strlen(key), NULL, 10) * 1024u : 0;
}

/* Fields 14 and 15 of /proc/PID/stat, counted behind the name's last parenthesis, since a name
 * may hold anything. */
static enum weft_err
read_times(const char *path, struct os_process_stats *s)
{
	char *text;
	size_t len;
	enum weft_err err = os_file_read(path, 65536, &text, &len);
	if (err) {
		return err;
	}
	const char *p = strrchr(text, ')');
	uint64_t user, system;
	long ticks = sysconf(_SC_CLK_TCK);
	if (!p || ticks <= 0 ||
		sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64,
			&user, &system) != 2) {
		err = WEFT_EPARSE;
	} else {
		s->user_ns = (int64_t)user * (WEFT_NS_PER_S / ticks);
		s->system_ns = (int64_t)system * (WEFT_NS_PER_S / ticks);
	}
	free(text);
	return err;
}

enum weft_err
os_process_stats(int pid, struct os_process_stats *out)
{
	struct os_process_stats s = {0};
	char path[64];
	enum weft_err err = WEFT_OK;
	if (pid == 0) {
		struct rusage u;
		if (getrusage(RUSAGE_SELF, &u)) {
			return os_error(errno);
		}
		s.user_ns = timeval_ns(u.ru_utime);
		s.system_ns = timeval_ns(u.ru_stime);
		pid = os_process_id();
	} else {
		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		err = read_times(path, &s);
	}
	if (err) {
		return err;
	}
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	char *status;
	size_t len;
	err = os_file_read(path, 65536, &status, &len);
	if (err) {
		return err;
	}
	s.rss_bytes = status_bytes(status, "VmRSS:");
	s.rss_peak_bytes = status_bytes(status, "VmHWM:");
	free(status);
	*out = s;
	return WEFT_OK;
}

int
os_process_id(void)
{
	return (int)getpid();
}

void
os_process_host_name(char *out, size_t len)
{
	if (gethostname(out, len)) {
		out[0] = '\0';
	}
	out[len - 1] = '\0'; /* gethostname need not end a name that it cuts */
}

unsigned
os_process_cpus(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof(set), &set)) {
		return 1; /* more processors than the set holds */
	}
	int n = CPU_COUNT(&set);
	return n > 0 ? (unsigned)n : 1;
}

bool
os_process_is_root(void)
{
	return geteuid() == 0;
}

size_t
os_process_raise_files(void)
{
	struct rlimit limit = {0};
	if (getrlimit(RLIMIT_NOFILE, &limit)) {
		return 0;
	}
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit)) {
		(void)getrlimit(RLIMIT_NOFILE, &limit);
	}
	return (size_t)limit.rlim_cur;
}
