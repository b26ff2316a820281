/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls that the network process of a device needs, and no others: a seccomp filter for
 * the whole process, its threads included, together with no_new_privs. In a library of its own, so
 * that libweft does without libseccomp. */
#ifndef WEFT_OS_FILTER_H
#define WEFT_OS_FILTER_H

#include <stdbool.h>

#include "base/err.h"

/* False in a build with a sanitizer, whose runtime needs more. */
bool os_filter_is_possible(void);
/* From now on anything else ends the process (is_fatal) or fails with EPERM, and the kernel logs
 * its number (audit, else dmesg). Cannot be taken back. WEFT_ENOTSUP: the kernel has no filters, or
 * os_filter_is_possible() is false. */
WEFT_MUST_CHECK enum weft_err os_filter_enter(bool is_fatal);

#endif
