/* SPDX-License-Identifier: Apache-2.0 */
/* One host name: when it is looked up, and when what was found is put to use. Knows neither
 * resolver nor clock.
 *
 *             TIMER: ask                     an address, the other family awaited
 *   WAITING ---------------> ASKING ------------------------------> LINGERING
 *     ^ ^                    |    |                                     |
 *     | +--------------------+    | an address, no other awaited: use   | 50 ms, or the other
 *     |    nothing was found      v                                     | family's answer: use
 *     +------------------------ KNOWN <---------------------------------+
 *        handshakes stay          |   ^
 *        without an answer        +---+ the other family's address after all: use
 *
 * Each wait is longer than the one before, up to a minute, until a handshake succeeds. */
#ifndef WEFT_NODE_NAME_H
#define WEFT_NODE_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/mono.h"

#define NAME_WAIT_FIRST_NS (5 * WEFT_NS_PER_S)
#define NAME_WAIT_MAX_NS (60 * WEFT_NS_PER_S)
/* RFC 8305, section 3: for the other family's answer when one is there. */
#define NAME_LINGER_NS (50 * WEFT_NS_PER_MS)

enum name_state {
	NAME_STATE_WAITING,
	NAME_STATE_ASKING,
	NAME_STATE_LINGERING,
	NAME_STATE_KNOWN,
	NAME_STATE_COUNT
};

enum name_event {
	NAME_EVENT_TIMER,      /* name.due has come */
	NAME_EVENT_FOUND,      /* a family has an address: answer */
	NAME_EVENT_ABSENT,     /* the name has no address of answer's family */
	NAME_EVENT_FAILED,     /* no answer now for answer's family */
	NAME_EVENT_UNANSWERED, /* handshakes with what is in use have no answer */
	NAME_EVENT_UP,         /* a handshake succeeded */
	NAME_EVENT_COUNT
};

/* What to do: bits of name_step()'s result. */
#define NAME_DO_ASK 1u /* for both families */
#define NAME_DO_USE 2u /* what is in found */

struct name {
	enum name_state state;
	struct mono due;         /* MONO_NEVER: no NAME_EVENT_TIMER is awaited */
	struct mono asked_at;    /* last */
	int64_t wait_ns;         /* the next wait, before its jitter */
	bool is_awaited[2];      /* an answer; IPv4, IPv6 */
	struct ip_addr found[2]; /* IP_FAMILY_NONE: none */
};

/* Due at once. */
void name_init(struct name *n, struct mono now);
/* answer: of FOUND, ABSENT and FAILED, else NULL. random: any number, spreads the waits by a
 * quarter. */
unsigned name_step(struct name *n, enum name_event e, const struct ip_addr *answer, struct mono now,
	uint32_t random);

#endif
