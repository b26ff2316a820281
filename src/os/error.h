/* SPDX-License-Identifier: Apache-2.0 */
/* errno to enum weft_err: the one table. */
#ifndef WEFT_OS_ERROR_H
#define WEFT_OS_ERROR_H

#include <stddef.h>

#include "base/err.h"

/* errnum 0 gives WEFT_EIO: who asks has failed. */
enum weft_err os_error(int errnum);
/* "Operation not permitted", thread-safe; writes into buf and returns it. */
const char *os_error_text(int errnum, char *buf, size_t cap);

#define OS_ERROR_TEXT_MAX 80

#endif
