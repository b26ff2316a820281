/* SPDX-License-Identifier: Apache-2.0 */
#include "hello_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/compiler.h"

const struct wg_hello_config case_here = {
	.ciphers = CHACHA | AES, .features = FEC, .datagram_max = 1472, .name = "here"};

struct wire_ext_hello
case_hello(bool is_answer, uint32_t echo_us)
{
	return (struct wire_ext_hello){.is_answer = is_answer,
		.version_min = 1,
		.version_max = 3,
		.ciphers = CHACHA | AES,
		.features = FEC | 0x100,
		.datagram_max = 1400,
		.clock_us = 77,
		.echo_us = echo_us,
		.name_len = 5,
		.name = "there"};
}

void
case_takes_request(struct wg_hello *h, int64_t now, uint64_t session)
{
	uint64_t s = 0;
	struct wire_ext_hello out;
	assert_true(wg_hello_take(h, at(now), &s, &out));
	assert_true(s == session);
	assert_false(out.is_answer);
	assert_int_equal(out.clock_us, (uint32_t)(now / US));
}

void
case_takes_nothing(struct wg_hello *h, int64_t now)
{
	uint64_t s;
	struct wire_ext_hello out;
	assert_false(wg_hello_take(h, at(now), &s, &out));
}

bool
case_answered(struct wg_hello *h, int64_t now, uint64_t session, int64_t sent)
{
	struct wire_ext_hello a = case_hello(true, (uint32_t)(sent / US));
	return wg_hello_frame_in(h, at(now), session, &a);
}

void
case_begin(struct wg_hello *h, int64_t now)
{
	wg_hello_init(h, &case_here);
	wg_hello_session(h, at(now), 1, true);
	case_takes_request(h, now, 1);
}

void
case_arrive(struct wg_hello *h, int64_t now, uint64_t session, uint64_t end)
{
	(void)wg_hello_received(h, at(now), session,
		&(struct wg_hello_arrival){.n = 1, .end = end, .has_data = true});
}

struct asked
case_run_until_given_up(struct wg_hello *h, uint64_t session)
{
	struct asked a = {.requests = 0};
	for (uint64_t end = 1; wg_hello_state(h, session) == WG_HELLO_STATE_ASKING; end++) {
		uint64_t s;
		struct wire_ext_hello out;
		a.end = wg_hello_deadline(h).ns;
		case_arrive(h, a.end, session, end);
		wg_hello_tick(h, at(a.end));
		if (wg_hello_take(h, at(a.end), &s, &out)) {
			a.last = a.end;
			a.requests++;
		}
	}
	return a;
}

void
case_become_known(struct wg_hello *h, int64_t now)
{
	uint64_t s;
	struct wire_ext_hello in = case_hello(false, 0), out;
	wg_hello_session(h, at(now), 99, false);
	assert_true(wg_hello_frame_in(h, at(now), 99, &in));
	assert_true(wg_hello_take(h, at(now), &s, &out) && s == 99);
}

void
case_begin_known(struct wg_hello *h, int64_t now)
{
	wg_hello_init(h, &case_here);
	case_become_known(h, now - S);
	wg_hello_session(h, at(now), 1, true);
	case_takes_request(h, now, 1);
}

enum sends
case_take(struct wg_hello *h, int64_t now)
{
	uint64_t session;
	struct wire_ext_hello out;
	if (!wg_hello_take(h, at(now), &session, &out)) {
		return NOTHING;
	}
	assert_true(session == 1);
	case_takes_nothing(h, now);
	return out.is_answer ? AN_ANSWER : A_REQUEST;
}
