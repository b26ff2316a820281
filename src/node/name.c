/* SPDX-License-Identifier: Apache-2.0 */
#include "node/name.h"

#include <stddef.h>

static unsigned
slot_of(enum ip_family f)
{
	return f == IP_FAMILY_V4 ? 0 : 1;
}

void
name_init(struct name *n, struct mono now)
{
	*n = (struct name){.state = NAME_STATE_WAITING, .due = now, .wait_ns = NAME_WAIT_FIRST_NS};
}

/* Waits since a time, three to five quarters of what is planned; the next wait is longer. */
static void
wait_since(struct name *n, struct mono since, uint32_t random)
{
	int64_t half_ns = n->wait_ns / 2;
	int64_t half_us = half_ns / WEFT_NS_PER_US;
	int64_t jitter_ns = (int64_t)((uint64_t)half_us * random >> 32) * WEFT_NS_PER_US;
	n->state = NAME_STATE_WAITING;
	n->due = mono_add_ns(since, n->wait_ns - half_ns / 2 + jitter_ns);
	n->wait_ns = n->wait_ns * 2 < NAME_WAIT_MAX_NS ? n->wait_ns * 2 : NAME_WAIT_MAX_NS;
}

static unsigned
know(struct name *n)
{
	n->state = NAME_STATE_KNOWN;
	n->due = MONO_NEVER;
	return NAME_DO_USE;
}

static unsigned
ask(struct name *n, struct mono now)
{
	n->state = NAME_STATE_ASKING;
	n->due = MONO_NEVER;
	n->asked_at = now;
	n->is_awaited[0] = n->is_awaited[1] = true;
	return NAME_DO_ASK;
}

static unsigned
found(struct name *n, const struct ip_addr *answer, struct mono now)
{
	unsigned slot = slot_of(answer->family);
	n->is_awaited[slot] = false;
	n->found[slot] = *answer;
	switch (n->state) {
	case NAME_STATE_ASKING:
		if (!n->is_awaited[!slot]) {
			return know(n);
		}
		n->state = NAME_STATE_LINGERING;
		n->due = mono_add_ns(now, NAME_LINGER_NS);
		return 0;
	case NAME_STATE_LINGERING:
	case NAME_STATE_KNOWN:
		return know(n);
	case NAME_STATE_WAITING: /* late: the next question is planned already */
	case NAME_STATE_COUNT:
		break;
	}
	return 0;
}

/* An address found before stays when there is no answer now: that says nothing about it. */
static unsigned
none(struct name *n, const struct ip_addr *answer, struct mono now, uint32_t random)
{
	unsigned slot = slot_of(answer->family);
	n->is_awaited[slot] = false;
	switch (n->state) {
	case NAME_STATE_ASKING:
		if (!n->is_awaited[!slot]) {
			wait_since(n, now, random);
		}
		return 0;
	case NAME_STATE_LINGERING:
		return know(n);
	case NAME_STATE_KNOWN:
	case NAME_STATE_WAITING:
	case NAME_STATE_COUNT:
		break;
	}
	return 0;
}

static unsigned
timer(struct name *n, struct mono now)
{
	if (mono_is_before(now, n->due)) {
		return 0;
	}
	switch (n->state) {
	case NAME_STATE_WAITING:
		return ask(n, now);
	case NAME_STATE_LINGERING:
		return know(n);
	case NAME_STATE_ASKING: /* no timer is armed in these */
	case NAME_STATE_KNOWN:
	case NAME_STATE_COUNT:
		break;
	}
	return 0;
}

unsigned
name_step(struct name *n, enum name_event e, const struct ip_addr *answer, struct mono now,
	uint32_t random)
{
	switch (e) {
	case NAME_EVENT_TIMER:
		return timer(n, now);
	case NAME_EVENT_FOUND:
		return found(n, answer, now);
	case NAME_EVENT_ABSENT:
		n->found[slot_of(answer->family)] = (struct ip_addr){0};
		return none(n, answer, now, random);
	case NAME_EVENT_FAILED:
		return none(n, answer, now, random);
	case NAME_EVENT_UNANSWERED:
		if (n->state == NAME_STATE_KNOWN) {
			/* Long ago, when all went well: then it is due at once. */
			wait_since(n, n->asked_at, random);
		}
		return 0;
	case NAME_EVENT_UP:
		n->wait_ns = NAME_WAIT_FIRST_NS;
		return 0;
	case NAME_EVENT_COUNT:
		break;
	}
	return 0;
}
