/* SPDX-License-Identifier: Apache-2.0 */
/* Copies bytes both ways between two ends until both ways have ended.
 *
 * The end of one way is handed on (half-close) while the other goes on. A reset, or any other
 * failure of an end, resets the other end, once what had arrived before is delivered. Where an
 * end takes nothing, no more is read for it: a way holds at most PUMP_HELD_MAX bytes. Long
 * transfers between sockets go through a pipe without being copied.
 *
 * All pumps of a loop share one struct pumps. After each os_loop_wait() its owner calls
 * pumps_run(), and waits until what that returns at most. Owned by the loop's thread. */
#ifndef WEFT_CLI_PUMP_H
#define WEFT_CLI_PUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mono.h"

struct os_loop;
struct pump;
struct pumps;

#define PUMP_HELD_MAX (256u << 10) /* bytes; 64 KiB unless it is a long transfer */
#define PUMP_WATCHES 4             /* that a pump takes of its loop at most */

/* The two ends, and the way out of each. */
enum pump_end {
	PUMP_A,
	PUMP_B,
	PUMP_ENDS,
};

struct pump_result {
	enum weft_err err;         /* 0: both ways ended by themselves */
	int os_errno;              /* of the failure; 0 = none */
	enum pump_end end;         /* that failed */
	uint64_t bytes[PUMP_ENDS]; /* that came from the end and were taken by the other */
};

/* The last call of a pump, which is gone after it, its descriptors closed. */
typedef void pump_done(void *ctx, const struct pump_result *r);

/* Descriptors must not block; regular files may. in is read, out is written: of a socket both are
 * the same. */
struct pump_config {
	struct {
		int in, out;
	} end[PUMP_ENDS];
	pump_done *done;
	void *ctx;
};

WEFT_MUST_CHECK enum weft_err pumps_new(struct os_loop *loop, struct pumps **out);
/* Every pump must be gone. NULL is allowed. */
void pumps_free(struct pumps *all);
/* Goes on with what is ready. Returns when it wants to be called again at the latest. */
struct mono pumps_run(struct pumps *all, struct mono now);
/* For measuring: transfers are copied, however long. */
void pumps_set_copying(struct pumps *all);

/* Takes the descriptors over on success. Nothing is moved, nor done called, before the next
 * pumps_run(). WEFT_ENOMEM: memory, or the watches of the loop. */
WEFT_MUST_CHECK enum weft_err pump_new(
	struct pumps *all, const struct pump_config *c, struct pump **out);
/* Ends it without a call of done: sockets are reset. */
void pump_free(struct pump *p);
/* The same with an ordinary close of both ends. */
void pump_close(struct pump *p);
/* Has everything that will ever come from that end been taken by the other? */
bool pump_has_ended(const struct pump *p, enum pump_end from);
/* Bytes that came from that end and were taken by the other so far. */
uint64_t pump_bytes(const struct pump *p, enum pump_end from);

#endif
