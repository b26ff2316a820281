/* SPDX-License-Identifier: Apache-2.0 */
/* Signals as readable events. */
#ifndef WEFT_OS_SIGNAL_H
#define WEFT_OS_SIGNAL_H

#include "base/err.h"

enum os_signal {
	OS_SIGNAL_STOP,   /* TERM or INT */
	OS_SIGNAL_RELOAD, /* HUP */
	OS_SIGNAL_USER,   /* USR1 */
	OS_SIGNAL_RESIZE, /* WINCH: the terminal has another size */
};

/* Blocks every signal but those of a fault in the calling thread and, by inheritance, in the
 * threads that it starts. SIGPIPE is ignored in the whole process. */
void os_signal_block_all(void);
/* Blocks those of enum os_signal alone, for a program at a terminal, which can be stopped. SIGPIPE
 * is ignored in the whole process. */
void os_signal_block_own(void);
/* For a child before exec. */
void os_signal_unblock_all(void);
/* A descriptor that is readable when a signal waits. Call os_signal_block_all() first. */
WEFT_MUST_CHECK enum weft_err os_signal_open(int *fd);
/* WEFT_EAGAIN: none waits. */
WEFT_MUST_CHECK enum weft_err os_signal_take(int fd, enum os_signal *out);

#endif
