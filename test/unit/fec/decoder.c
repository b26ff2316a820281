/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "fec/coef.h"
#include "fec/gf256.h"
#include "fec/symbol.h"
#include "line.h"
#include "naive.h"

#define US WEFT_NS_PER_US
#define MS WEFT_NS_PER_MS
#define LARGE WIRE_EXT_CLASS_LARGE
#define SMALL WIRE_EXT_CLASS_SMALL

/* The decoder wakes by a loss before what a test is about, so that it stores what follows. */
#define WAKERS 3

static void
send_wakers(struct line *l)
{
	for (int i = 0; i < WAKERS; i++) {
		line_source(l, 1, PACKET_UDP, 300);
	}
	fec_encoder_pause(l->e); /* repairs reach back to here alone */
}

static void
wake(struct line *l, int64_t now_ns)
{
	line_arrive(l, now_ns, l->first);
	line_arrive(l, now_ns, l->first + 2);
}

/* Equations of the REPAIRs that arrived, over sources that are not in `is_here`. */
static void
naive_add_repair(struct naive *n, const struct line *l, uint64_t own, const bool *is_here)
{
	const struct line_sent *s = line_at(l, own);
	struct wire_ext_repair r;
	uint8_t row[FEC_COEFS_MAX], *columns = calloc(1, n->columns);
	assert_non_null(columns);
	assert_true(wire_ext_repair_decode(s->bytes, s->len, &r));
	fec_coefs(fec_key(own), row, r.span);
	for (size_t i = 0; i < r.span; i++) {
		size_t at = (size_t)(own - r.back + i - l->first);
		if (r.sources[i / 8] >> (i % 8) & 1 && !is_here[at]) {
			columns[at] = row[i];
		}
	}
	naive_add(n, columns);
	free(columns);
}

/* Of what has been sent, `lost` does not arrive: recovered is what elimination finds from the
 * repairs that do. */
static void
play_pattern(struct line *l, uint32_t lost)
{
	struct naive naive;
	bool is_here[40] = {[0] = true, [2] = true}, is_solved[40];
	for (size_t i = WAKERS; i < l->n; i++) {
		is_here[i] = !(lost >> (i - WAKERS) & 1);
	}
	line_restart(l);
	wake(l, 2);
	naive_init(&naive, 40, 8);
	for (size_t i = WAKERS; i < l->n; i++) {
		if (is_here[i]) {
			line_arrive(l, 3, l->first + i);
			if (!l->sent[i].is_source) {
				naive_add_repair(&naive, l, l->first + i, is_here);
			}
		}
	}
	line_take(l, 3);
	naive_solve(&naive, is_solved);
	for (size_t i = 0; i < l->n; i++) {
		const struct line_sent *s = &l->sent[i];
		if (s->is_source && (s->delivered_ns != 0) != (is_here[i] || is_solved[i])) {
			fail_msg("%zu sent, lost %#x: number %zu", l->n, lost, i);
		}
	}
	assert_int_equal(l->refused, 0);
	naive_fini(&naive);
}

/* n sources and a repair after each number of `after`: all patterns of loss, the repairs'
 * included. */
static void
play_patterns(unsigned n, const unsigned *after, unsigned repairs)
{
	struct line l;
	line_open(&l, &(struct line_config){
			      .seed = n, .first = 500, .cap = 40, .records = 256, .bytes = 65536});
	send_wakers(&l);
	for (unsigned i = 0, r = 0; i < n; i++) {
		line_source(&l, 3, PACKET_UDP, PACKET_LEN_MIN + 7 * i);
		for (; r < repairs && after[r] == i; r++) {
			line_ahead(&l, SMALL, n < 8 ? 16 : 6 + r);
		}
	}
	assert_int_equal(l.n, WAKERS + n + repairs);
	for (uint32_t lost = 0; lost < UINT32_C(1) << (n + repairs); lost++) {
		play_pattern(&l, lost);
	}
	line_close(&l);
}

static void
every_small_pattern_is_recovered_when_it_can_be(void **state)
{
	(void)state;
	static const unsigned wheres[2][4] = {{11, 11, 11, 11}, {2, 5, 8, 11}};
	for (unsigned n = 1; n <= 12; n++) {
		for (unsigned repairs = 0; repairs <= 4; repairs++) {
			for (int w = 0; w < (repairs > 1 ? 2 : 1); w++) {
				unsigned after[4];
				for (unsigned r = 0; r < repairs; r++) {
					unsigned i = wheres[w][4 - repairs + r];
					after[r] = i < n ? i : n - 1;
				}
				play_patterns(n, after, repairs);
			}
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_small_pattern_is_recovered_when_it_can_be),
	};
	return cmocka_run_group_tests_name("fec/decoder", tests, NULL, NULL);
}
