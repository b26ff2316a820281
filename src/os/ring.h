/* SPDX-License-Identifier: Apache-2.0 */
/* Records of bytes from one thread to one other, without locks: a ring of stated size.
 *
 * A record is contiguous and may be changed in place by its reader until it is released. The
 * reader's side has a descriptor that becomes readable when a record arrives while it sleeps;
 * a reader that is awake costs the writer no system call. */
#ifndef WEFT_OS_RING_H
#define WEFT_OS_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct os_ring;

/* bytes: rounded up to a power of two. A record of up to half of it, less 16
 * bytes, always fits in an empty ring. */
WEFT_MUST_CHECK enum weft_err os_ring_new(size_t bytes, struct os_ring **out);
void os_ring_free(struct os_ring *r);

/* Writer: room for a record of len bytes, aligned to 16, or NULL when the ring is full. Push
 * publishes it, with len or less. */
void *os_ring_reserve(struct os_ring *r, size_t len);
void os_ring_push(struct os_ring *r, size_t len);

/* Reader: the next record that was not yet taken, or NULL. When NULL the descriptor is quiet
 * and will tell of the next record. */
void *os_ring_take(struct os_ring *r, size_t *len);
/* Reader: all records taken so far may be overwritten. */
void os_ring_release(struct os_ring *r);
int os_ring_fd(const struct os_ring *r);
/* The reader never sleeps: its descriptor stays quiet, and costs no system call. Before either
 * side begins. */
void os_ring_set_polled(struct os_ring *r);

#endif
