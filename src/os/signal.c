/* SPDX-License-Identifier: Apache-2.0 */
#include "os/signal.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/error.h"

void
os_signal_block_all(void)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
	sigset_t set;
	sigfillset(&set);
	for (size_t i = 0; i < WEFT_ARRAY_LEN(faults); i++) {
		sigdelset(&set, faults[i]);
	}
	weft_assert(pthread_sigmask(SIG_SETMASK, &set, NULL) == 0);
	weft_assert(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
}

void
os_signal_unblock_all(void)
{
	sigset_t set;
	sigemptyset(&set);
	weft_assert(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
	weft_assert(pthread_sigmask(SIG_SETMASK, &set, NULL) == 0);
}

static void
fill_own(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGUSR1);
	sigaddset(set, SIGWINCH);
}

void
os_signal_block_own(void)
{
	sigset_t set;
	fill_own(&set);
	weft_assert(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	weft_assert(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
}

enum weft_err
os_signal_open(int *fd)
{
	sigset_t set;
	fill_own(&set);
	int f = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (f < 0) {
		return os_error(errno);
	}
	*fd = f;
	return WEFT_OK;
}

enum weft_err
os_signal_take(int fd, enum os_signal *out)
{
	struct signalfd_siginfo info;
	ssize_t n;
	do {
		n = read(fd, &info, sizeof(info));
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		return os_error(errno);
	}
	*out = info.ssi_signo == SIGHUP     ? OS_SIGNAL_RELOAD
	       : info.ssi_signo == SIGUSR1  ? OS_SIGNAL_USER
	       : info.ssi_signo == SIGWINCH ? OS_SIGNAL_RESIZE
					    : OS_SIGNAL_STOP;
	return WEFT_OK;
}
