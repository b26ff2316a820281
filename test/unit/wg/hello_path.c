/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "hello_case.h"

#define WIRE_MAX 64

struct side {
	struct wg_hello h;
	unsigned requests, answers; /* of the present session */
};

struct wire {
	struct {
		int64_t arrives;
		int to;
		uint64_t session;
		struct wire_ext_hello hello;
	} frames[WIRE_MAX];
	size_t n;
};

static void
send_all(struct rng *r, struct side *sides, int from, int64_t now, struct wire *w, double loss)
{
	uint64_t session;
	struct wire_ext_hello out;
	while (wg_hello_take(&sides[from].h, at(now), &session, &out)) {
		*(out.is_answer ? &sides[from].answers : &sides[from].requests) += 1;
		/* Sometimes twice, and in any order. */
		for (unsigned copies = 1 + !rng_below(r, 10); copies > 0; copies--) {
			if (!rng_is_hit(r, loss) && w->n < WIRE_MAX) {
				w->frames[w->n].arrives = now + (int64_t)rng_below(r, 400) * MS;
				w->frames[w->n].to = !from;
				w->frames[w->n].session = session;
				w->frames[w->n++].hello = out;
			}
		}
	}
}

static void
deliver(struct side *sides, int64_t now, struct wire *w)
{
	for (size_t i = 0; i < w->n;) {
		if (w->frames[i].arrives <= now) {
			(void)wg_hello_frame_in(&sides[w->frames[i].to].h, at(now),
				w->frames[i].session, &w->frames[i].hello);
			w->frames[i] = w->frames[--w->n];
		} else {
			i++;
		}
	}
}

static void
two_sides_agree_on_the_same_whatever_is_lost(void **state)
{
	(void)state;
	unsigned agreed = 0, sessions = 0, both = 0;
	for (uint64_t seed = 0; seed < 400; seed++) {
		struct rng r;
		struct side sides[2];
		struct wire w = {.n = 0};
		rng_init(&r, seed);
		double loss = (double)rng_below(&r, 7) / 10;
		for (int i = 0; i < 2; i++) {
			wg_hello_init(&sides[i].h, &case_here);
		}
		int64_t now = T0;
		for (uint64_t session = 1; session <= 8; session++) {
			int initiator = (int)rng_below(&r, 2);
			int64_t end = now + 6 * S;
			for (int i = 0; i < 2; i++) {
				struct wg_hello_config c = {.ciphers = (uint8_t)rng_below(&r, 4),
					.features = (uint32_t)rng_below(&r, 4)};
				wg_hello_configure(&sides[i].h, at(now), &c);
				sides[i].requests = sides[i].answers = 0;
				wg_hello_session(&sides[i].h, at(now), session, i == initiator);
			}
			for (; now < end; now += 10 * MS) {
				for (int i = 0; i < 2; i++) {
					wg_hello_tick(&sides[i].h, at(now));
					send_all(&r, sides, i, now, &w, loss);
				}
				deliver(sides, now, &w);
			}
			struct wg_hello_terms a, b;
			bool has_a = wg_hello_agreed(&sides[initiator].h, session, &a);
			bool has_b = wg_hello_agreed(&sides[!initiator].h, session, &b);
			bool is_same = a.cipher == b.cipher && a.features == b.features &&
				       a.version == b.version;
			/* Nothing passes but HELLOs: known peers are asked three times, too. */
			if (sides[initiator].requests > 3 || sides[!initiator].requests > 3 ||
				(session == 1 && sides[!initiator].requests > 0) ||
				(has_a && has_b && !is_same) ||
				(has_a && a.rtt_ns > 800 * MS + 20 * MS)) {
				fail_msg("seed %llu session %llu", (unsigned long long)seed,
					(unsigned long long)session);
			}
			sessions++;
			agreed += has_a || has_b;
			both += has_a && has_b;
		}
	}
	/* At losses of 0 to 60 % most do; the tries would not matter else. */
	assert_true(both > sessions / 2 && agreed > both);
}

/* When both have agreed in a session that begins at `now`, with packets each way all the time. */
static int64_t
agree_over(struct rng *r, struct side *sides, uint64_t session, int64_t now, double loss)
{
	struct wire w = {.n = 0};
	int64_t end = now + 10 * S;
	uint64_t counter = 0;
	for (int i = 0; i < 2; i++) {
		wg_hello_session(&sides[i].h, at(now), session, i == (int)(session % 2));
	}
	for (; now < end; now += 50 * MS) {
		counter++;
		for (int i = 0; i < 2; i++) {
			(void)wg_hello_sent(&sides[i].h, at(now), session);
			if (!rng_is_hit(r, loss)) {
				case_arrive(&sides[i].h, now, session, counter);
			}
			wg_hello_tick(&sides[i].h, at(now));
			send_all(r, sides, i, now, &w, loss);
		}
		deliver(sides, now, &w);
		if (wg_hello_agreed(&sides[0].h, session, NULL) &&
			wg_hello_agreed(&sides[1].h, session, NULL)) {
			break;
		}
	}
	return now;
}

static void
known_peers_agree_within_10_s_in_all_but_one_of_1000_sessions(void **state)
{
	(void)state;
	static const double losses[] = {0.2, 0.5};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(losses); i++) {
		struct rng r;
		struct side sides[2];
		unsigned sessions = 20000, late = 0, in_1_s = 0;
		int64_t now = T0;
		rng_init(&r, i);
		for (int k = 0; k < 2; k++) {
			wg_hello_init(&sides[k].h, &case_here);
			case_become_known(&sides[k].h, T0 - S);
		}
		for (uint64_t session = 100; session < 100 + sessions; session++) {
			int64_t took = agree_over(&r, sides, session, now, losses[i]) - now;
			late += took >= 10 * S;
			in_1_s += took < S;
			now += 120 * S;
		}
		print_message("loss %.0f %%: of %u sessions %u agreed within 1 s, %u not in 10 s\n",
			losses[i] * 100, sessions, in_1_s, late);
		assert_true(late < sessions / 1000);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_sides_agree_on_the_same_whatever_is_lost),
		cmocka_unit_test(known_peers_agree_within_10_s_in_all_but_one_of_1000_sessions),
	};
	return cmocka_run_group_tests_name("hello_path", tests, NULL, NULL);
}
