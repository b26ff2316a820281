/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for file descriptors and one deadline: a small layer over epoll.
 *
 * Owned by one thread; os_loop_stop() alone may come from any. */
#ifndef WEFT_OS_LOOP_H
#define WEFT_OS_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mono.h"

#define OS_READABLE 1u
#define OS_WRITABLE 2u
#define OS_HANGUP 4u /* always reported, with OS_READABLE: reading tells why */
#define OS_EDGE 8u   /* asked for: told once, until reading or writing gave WEFT_EAGAIN */

/* events: bits of OS_. Level-triggered unless OS_EDGE was asked for: what is not read comes
 * again. */
typedef void os_ready(void *ctx, uint32_t events);

struct os_loop;

/* watches_max: how many descriptors at once; above it os_loop_add() gives WEFT_ENOMEM. */
WEFT_MUST_CHECK enum weft_err os_loop_new(size_t watches_max, struct os_loop **out);
void os_loop_free(struct os_loop *l);

/* The descriptor stays the caller's; os_loop_del() it before closing it. A callback may add,
 * change and delete any descriptor, its own included. WEFT_EPERM: a regular file, which is always
 * ready. */
WEFT_MUST_CHECK enum weft_err os_loop_add(
	struct os_loop *l, int fd, uint32_t events, os_ready *ready, void *ctx);
WEFT_MUST_CHECK enum weft_err os_loop_mod(struct os_loop *l, int fd, uint32_t events);
/* Does nothing for a descriptor that was not added. No callback for fd follows. */
void os_loop_del(struct os_loop *l, int fd);

/* Waits until something is ready, the deadline passes or the loop is stopped, and runs the
 * callbacks of one round. A deadline in the past polls. Deadlines are kept through suspend
 * and to well under a millisecond. */
void os_loop_wait(struct os_loop *l, struct mono deadline);
void os_loop_stop(struct os_loop *l);
bool os_loop_is_stopped(const struct os_loop *l);

#endif
