/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hello_case.h"

enum happened {
	TOLD_AGAIN_OURS,
	TOLD_AGAIN_THEIRS,
	TIMER,
	REQUEST,
	ANSWER,
	ANSWER_TO_NOTHING,
	FOREIGN_REQUEST,
	FOREIGN_ANSWER,
	FRAME,
	DATA,
	OFF,
	ON,
	HAPPENED_COUNT
};

struct want {
	enum wg_hello_state state;
	enum sends sends;
	bool asks_next; /* a session of ours that begins right behind the event */
};

static const struct want table[WG_HELLO_STATE_COUNT][HAPPENED_COUNT] = {
	[UNKN] = {[TOLD_AGAIN_OURS] = {UNKN, NOTHING, true},
		[TOLD_AGAIN_THEIRS] = {UNKN, NOTHING, true},
		[TIMER] = {STCK, NOTHING, true},
		[REQUEST] = {AGRD, AN_ANSWER, true},
		[ANSWER] = {UNKN, NOTHING, true},
		[ANSWER_TO_NOTHING] = {UNKN, NOTHING, true},
		[FOREIGN_REQUEST] = {STCK, NOTHING, false},
		[FOREIGN_ANSWER] = {UNKN, NOTHING, true},
		[FRAME] = {UNKN, NOTHING, true},
		[DATA] = {UNKN, NOTHING, true},
		[OFF] = {NONE, NOTHING, false},
		[ON] = {UNKN, NOTHING, true}},
	[ASKS] = {[TOLD_AGAIN_OURS] = {ASKS, NOTHING, true},
		[TOLD_AGAIN_THEIRS] = {ASKS, NOTHING, true},
		[TIMER] = {ASKS, A_REQUEST, true},
		[REQUEST] = {AGRD, AN_ANSWER, true},
		[ANSWER] = {AGRD, NOTHING, true},
		[ANSWER_TO_NOTHING] = {ASKS, NOTHING, true},
		[FOREIGN_REQUEST] = {STCK, NOTHING, false},
		[FOREIGN_ANSWER] = {STCK, NOTHING, false},
		[FRAME] = {ASKS, NOTHING, true},
		[DATA] = {ASKS, NOTHING, true},
		[OFF] = {NONE, NOTHING, false},
		[ON] = {ASKS, NOTHING, true}},
	[AGRD] = {[TOLD_AGAIN_OURS] = {AGRD, NOTHING, true},
		[TOLD_AGAIN_THEIRS] = {AGRD, NOTHING, true},
		[TIMER] = {AGRD, NOTHING, true},
		[REQUEST] = {AGRD, AN_ANSWER, true},
		[ANSWER] = {AGRD, NOTHING, true},
		[ANSWER_TO_NOTHING] = {AGRD, NOTHING, true},
		[FOREIGN_REQUEST] = {AGRD, NOTHING, true},
		[FOREIGN_ANSWER] = {AGRD, NOTHING, true},
		[FRAME] = {AGRD, NOTHING, true},
		[DATA] = {AGRD, NOTHING, true},
		[OFF] = {NONE, NOTHING, false},
		[ON] = {AGRD, NOTHING, true}},
	[STCK] = {[TOLD_AGAIN_OURS] = {STCK, NOTHING, false},
		[TOLD_AGAIN_THEIRS] = {STCK, NOTHING, false},
		[TIMER] = {STCK, NOTHING, false},
		[REQUEST] = {AGRD, AN_ANSWER, true},
		[ANSWER] = {AGRD, NOTHING, true},
		[ANSWER_TO_NOTHING] = {STCK, NOTHING, false},
		[FOREIGN_REQUEST] = {STCK, NOTHING, false},
		[FOREIGN_ANSWER] = {STCK, NOTHING, false},
		[FRAME] = {ASKS, A_REQUEST, true},
		[DATA] = {STCK, NOTHING, false},
		[OFF] = {NONE, NOTHING, false},
		[ON] = {STCK, NOTHING, false}},
	[NONE] = {[TOLD_AGAIN_OURS] = {NONE, NOTHING, false},
		[TOLD_AGAIN_THEIRS] = {NONE, NOTHING, false},
		[TIMER] = {NONE, NOTHING, false},
		[REQUEST] = {NONE, NOTHING, false},
		[ANSWER] = {NONE, NOTHING, false},
		[ANSWER_TO_NOTHING] = {NONE, NOTHING, false},
		[FOREIGN_REQUEST] = {NONE, NOTHING, false},
		[FOREIGN_ANSWER] = {NONE, NOTHING, false},
		[FRAME] = {NONE, NOTHING, false},
		[DATA] = {NONE, NOTHING, false},
		[OFF] = {NONE, NOTHING, false},
		[ON] = {ASKS, A_REQUEST, true}},
};

/* A known peer is asked when it is overdue, and in the next session whatever this one gave. */
static struct want
want_of(enum wg_hello_state state, enum happened e, bool is_known)
{
	struct want w = table[state][e];
	if (is_known && state == UNKN && e == TIMER) {
		w = (struct want){ASKS, A_REQUEST, true};
	} else if (is_known && state == STCK) {
		w.asks_next = e != OFF && e != FOREIGN_REQUEST && e != FOREIGN_ANSWER;
	}
	return w;
}

/* Brings session 1 into a state; returns when the event shall be. */
static int64_t
bring(struct wg_hello *h, enum wg_hello_state state, bool is_known)
{
	static const struct wg_hello_config off = {.is_off = true};
	wg_hello_init(h, &case_here);
	if (is_known && state != STCK) {
		case_become_known(h, T0 - S);
	}
	wg_hello_session(h, at(T0), 1, state != UNKN);
	if (state == UNKN) {
		return T0 + 100 * MS;
	}
	case_takes_request(h, T0, 1);
	if (state == AGRD) {
		assert_true(case_answered(h, T0 + MS, 1, T0));
	} else if (state == NONE) {
		wg_hello_configure(h, at(T0 + MS), &off);
	} else if (state == STCK) {
		int64_t end = case_run_until_given_up(h, 1).end;
		if (is_known) {
			case_become_known(h, end);
		}
		return end;
	}
	return T0 + 100 * MS; /* nothing is due */
}

static void
happen(struct wg_hello *h, enum happened e, int64_t now)
{
	bool is_answer = e == ANSWER || e == ANSWER_TO_NOTHING || e == FOREIGN_ANSWER;
	struct wire_ext_hello in = case_hello(is_answer, is_answer ? (uint32_t)(T0 / US) : 0);
	struct wg_hello_config c = case_here;
	bool is_news;
	switch (e) {
	case TOLD_AGAIN_OURS:
	case TOLD_AGAIN_THEIRS:
		wg_hello_session(h, at(now), 1, e == TOLD_AGAIN_OURS);
		return;
	case TIMER:
		wg_hello_tick(h, at(now));
		return;
	case FRAME:
		/* Whoever sends one has our request. */
		is_news = wg_hello_frame_in(h, at(now), 1, NULL);
		assert_int_equal(is_news, wg_hello_state(h, 1) == ASKS);
		return;
	case DATA:
		assert_false(wg_hello_sent(h, at(now), 1)); /* it does not wait for that */
		case_arrive(h, now, 1, 1);
		return;
	case OFF:
	case ON:
		c.is_off = e == OFF;
		wg_hello_configure(h, at(now), &c);
		return;
	case FOREIGN_REQUEST:
	case FOREIGN_ANSWER:
		in.version_min = 2;
		break;
	case ANSWER_TO_NOTHING:
		in.echo_us++;
		break;
	case REQUEST:
	case ANSWER:
	case HAPPENED_COUNT:
		break;
	}
	bool was = wg_hello_agreed(h, 1, NULL);
	is_news = wg_hello_frame_in(h, at(now), 1, &in);
	assert_int_equal(is_news, !was && wg_hello_agreed(h, 1, NULL));
}

static void
meet(enum wg_hello_state state, enum happened e, bool is_known)
{
	struct wg_hello h;
	struct want w = want_of(state, e, is_known);
	int64_t now = bring(&h, state, is_known);
	if (e == TIMER && wg_hello_deadline(&h).ns != MONO_NEVER.ns) {
		now = wg_hello_deadline(&h).ns;
	}
	assert_int_equal(wg_hello_state(&h, 1), state);
	happen(&h, e, now);
	bool is_due = wg_hello_deadline(&h).ns <= now;
	enum sends sends = case_take(&h, now);
	if (wg_hello_state(&h, 1) != w.state || sends != w.sends || is_due != (sends != NOTHING)) {
		fail_msg("%s, event %u, known %d: now %s, sends %d", wg_hello_state_name(state), e,
			is_known, wg_hello_state_name(wg_hello_state(&h, 1)), (int)sends);
	}
	wg_hello_session(&h, at(now), 2, true);
	if ((wg_hello_state(&h, 2) == ASKS) != w.asks_next) {
		fail_msg("%s, event %u, known %d: next session", wg_hello_state_name(state), e,
			is_known);
	}
}

static void
every_event_meets_every_state(void **state)
{
	(void)state;
	for (unsigned i = 0; i < WG_HELLO_STATE_COUNT; i++) {
		for (unsigned e = 0; e < HAPPENED_COUNT; e++) {
			meet((enum wg_hello_state)i, (enum happened)e, false);
			meet((enum wg_hello_state)i, (enum happened)e, true);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_event_meets_every_state),
	};
	return cmocka_run_group_tests_name("hello_step", tests, NULL, NULL);
}
