/* SPDX-License-Identifier: Apache-2.0 */
/* A terminal taken for a live view: keys come one by one and unseen. */
#ifndef WEFT_OS_TERMINAL_H
#define WEFT_OS_TERMINAL_H

#include <stdbool.h>

#include "base/err.h"

struct os_terminal;

/* Rows and columns of the terminal at fd. False: none is there, or it does not know. */
bool os_terminal_size(int fd, unsigned *rows, unsigned *columns);
/* fd stays the caller's. Keys that make signals (Ctrl-C) still do. WEFT_EINVAL: no terminal. */
WEFT_MUST_CHECK enum weft_err os_terminal_take(int fd, struct os_terminal **out);
/* As it was before. NULL is allowed. */
void os_terminal_give_back(struct os_terminal *t);

#endif
