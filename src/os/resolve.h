/* SPDX-License-Identifier: Apache-2.0 */
/* Host names to addresses. */
#ifndef WEFT_OS_RESOLVE_H
#define WEFT_OS_RESOLVE_H

#include "base/addr.h"
#include "base/err.h"

/* Looks host up and gives its first address, with port. Blocks for as long as the system's
 * resolver takes: never on a worker's thread. WEFT_EAGAIN: no answer now; WEFT_ENOENT: no such
 * name. */
WEFT_MUST_CHECK enum weft_err os_resolve(const char *host, uint16_t port, struct endpoint *out);
/* Index of an interface by name or decimal number; 0 = none. */
uint32_t os_resolve_scope(const char *scope);

#endif
