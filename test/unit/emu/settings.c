/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "emu/settings.h"
#include "emu/text.h"

static struct emu_assign
good(enum emu_key key, const char *text)
{
	struct emu_assign a = {0};
	struct emu_error e;
	if (emu_assign_parse(key, text, strlen(text), &a, &e) != WEFT_OK) {
		fail_msg("%s %s refused: %u:%u: %s", emu_key_name(key), text, e.line, e.column,
			e.text);
	}
	assert_int_equal(a.key, key);
	assert_int_equal(a.dirs, EMU_BOTH);
	return a;
}

static void
bad(enum emu_key key, const char *text, unsigned column)
{
	struct emu_assign a = {.key = EMU_KEY_COUNT};
	struct emu_error e;
	if (emu_assign_parse(key, text, strlen(text), &a, &e) != WEFT_EPARSE) {
		fail_msg("%s accepted: %s", emu_key_name(key), text);
	}
	assert_int_equal(a.key, EMU_KEY_COUNT);
	assert_true(e.text[0] != 0);
	if (e.line != 1 || e.column != column) {
		fail_msg("%s %s: error at %u:%u, not at 1:%u (%s)", emu_key_name(key), text, e.line,
			e.column, column, e.text);
	}
}

static void
shares_need_a_percent_sign_and_end_at_100(void **state)
{
	(void)state;
	assert_true(good(EMU_KEY_LOSS, "5%").u.loss.in_good == 0.05);
	assert_true(good(EMU_KEY_LOSS, "0.25%").u.loss.in_good == 0.0025);
	assert_true(good(EMU_KEY_LOSS, "100%").u.loss.in_good == 1);
	assert_true(good(EMU_KEY_LOSS, "0").u.loss.in_good == 0);
	assert_true(good(EMU_KEY_DUPLICATE, "none").u.duplicate == 0);
	static const char *const texts[] = {"", "5", "%", "-5%", "101%", "100.1%", ".5%", "5.%",
		"five", "5x", "1e2%", "99999999999999999999%", "0.1234567890%"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(texts); i++) {
		bad(EMU_KEY_LOSS, texts[i], 1);
	}
	bad(EMU_KEY_LOSS, "5%%", 3);
	bad(EMU_KEY_LOSS, "5% ", 3);
	bad(EMU_KEY_LOSS, "none,", 5);
}

static void
durations_are_exact_to_the_nanosecond(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t ns;
	} cases[] = {{"0", 0}, {"0ms", 0}, {"1ns", 1}, {"1.1ms", 1100000}, {"0.3us", 300},
		{"5ms", 5000000}, {"2s", 2000000000}, {"0.000000001s", 1}, {"1.5m", 90000000000},
		{"60m", 3600000000000}, {"0.999999999m", 59999999940}, {"7MS", 7000000}};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		assert_int_equal(good(EMU_KEY_DELAY, cases[i].text).u.delay_ns, cases[i].ns);
	}
	static const char *const texts[] = {
		"", "5", "ms", "-1ms", "61m", "1h", "1 ms", "5msx", "999999999999999999s"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(texts); i++) {
		bad(EMU_KEY_DELAY, texts[i], 1);
	}
}

static void
rates_and_sizes_have_the_usual_units(void **state)
{
	(void)state;
	assert_int_equal(good(EMU_KEY_RATE, "1gbit").u.rate_bps, 1000000000);
	assert_int_equal(good(EMU_KEY_RATE, "2.5Mbit/s").u.rate_bps, 2500000);
	assert_int_equal(good(EMU_KEY_RATE, "9600bit").u.rate_bps, 9600);
	assert_int_equal(good(EMU_KEY_RATE, "none").u.rate_bps, 0);
	bad(EMU_KEY_RATE, "0mbit", 1);
	bad(EMU_KEY_RATE, "20", 1);
	bad(EMU_KEY_RATE, "20m", 1);
	bad(EMU_KEY_RATE, "20mbit/", 7);
	bad(EMU_KEY_RATE, "20mbit/m", 7);
	bad(EMU_KEY_RATE, "1001gbit", 1);
	bad(EMU_KEY_RATE, "0.1bit", 1);
	assert_int_equal(good(EMU_KEY_QUEUE, "64KiB").u.queue.bytes, 65536);
	assert_int_equal(good(EMU_KEY_QUEUE, "1500").u.queue.bytes, 1500);
	assert_int_equal(good(EMU_KEY_QUEUE, "1.5kB").u.queue.bytes, 1500);
	assert_int_equal(good(EMU_KEY_QUEUE, "50ms").u.queue.ns, 50000000);
	bad(EMU_KEY_QUEUE, "none", 1);
	bad(EMU_KEY_QUEUE, "0", 1);
	bad(EMU_KEY_QUEUE, "0ms", 1);
	bad(EMU_KEY_QUEUE, "2GiB", 1);
	bad(EMU_KEY_QUEUE, "5 %", 1);
	assert_int_equal(good(EMU_KEY_MTU, "1400").u.mtu, 1400);
	assert_int_equal(good(EMU_KEY_MTU, "none").u.mtu, 0);
	bad(EMU_KEY_MTU, "27", 1);
	bad(EMU_KEY_MTU, "65536", 1);
	bad(EMU_KEY_MTU, "1400.5", 1);
}

static void
gilbert_loss_has_the_share_and_burst_asked_for(void **state)
{
	(void)state;
	struct emu_loss l = good(EMU_KEY_LOSS_GILBERT, "5%,4").u.loss;
	double share = l.to_bad / (l.to_bad + l.to_good);
	assert_true(l.to_good == 0.25 && share > 0.0499999 && share < 0.0500001);
	assert_true(l.in_bad == 1 && l.in_good == 0);
	l = good(EMU_KEY_LOSS_GILBERT, "0%,4").u.loss;
	assert_true(l.to_bad == 0 && l.in_good == 0);
	bad(EMU_KEY_LOSS_GILBERT, "5%", 3);
	bad(EMU_KEY_LOSS_GILBERT, "5%,", 4);
	bad(EMU_KEY_LOSS_GILBERT, "5%,0.5", 4);
	bad(EMU_KEY_LOSS_GILBERT, "90%,2", 1);
	bad(EMU_KEY_LOSS_GILBERT, "100%,2", 1);
	bad(EMU_KEY_LOSS_GILBERT, "5%,4,1", 5);
	l = good(EMU_KEY_LOSS_ELLIOTT, "1%,25%,80%,0.5%").u.loss;
	assert_true(l.to_bad == 0.01 && l.to_good == 0.25 && l.in_bad == 0.8);
	assert_true(l.in_good == 0.005);
	bad(EMU_KEY_LOSS_ELLIOTT, "1%,25%,80%", 11);
}

static void
jitter_reorder_and_corrupt_take_options(void **state)
{
	(void)state;
	struct emu_jitter j = good(EMU_KEY_JITTER, "1ms").u.jitter;
	assert_true(j.ns == 1000000 && j.shape == EMU_JITTER_UNIFORM && !j.may_reorder);
	j = good(EMU_KEY_JITTER, "2ms,normal,unordered").u.jitter;
	assert_true(j.ns == 2000000 && j.shape == EMU_JITTER_NORMAL && j.may_reorder);
	bad(EMU_KEY_JITTER, "1ms,", 5);
	bad(EMU_KEY_JITTER, "1ms,normally", 5);
	bad(EMU_KEY_JITTER, "1ms,pareto", 5);

	struct emu_reorder r = good(EMU_KEY_REORDER, "1%,3ms").u.reorder;
	assert_true(r.share == 0.01 && r.extra_ns == 3000000);
	r = good(EMU_KEY_REORDER, "10%,3-3000").u.reorder;
	assert_true(r.extra_ns == 0 && r.distance_min == 3 && r.distance_max == 3000);
	r = good(EMU_KEY_REORDER, "10%,7").u.reorder;
	assert_true(r.distance_min == 7 && r.distance_max == 7);
	assert_true(good(EMU_KEY_REORDER, "0%").u.reorder.share == 0);
	bad(EMU_KEY_REORDER, "1%", 3);
	bad(EMU_KEY_REORDER, "1%,0ms", 4);
	bad(EMU_KEY_REORDER, "1%,0", 4);
	bad(EMU_KEY_REORDER, "1%,30-3", 7);
	bad(EMU_KEY_REORDER, "1%,3-10001", 6);

	struct emu_corrupt c = good(EMU_KEY_CORRUPT, "1%,8").u.corrupt;
	assert_true(c.share == 0.01 && c.bits == 8);
	assert_int_equal(good(EMU_KEY_CORRUPT, "1%").u.corrupt.bits, 1);
	bad(EMU_KEY_CORRUPT, "1%,0", 4);
}

static enum weft_err
parse(const char *text, unsigned dirs, struct emu_settings both[2], struct emu_error *e)
{
	both[0] = both[1] = emu_settings_default;
	return emu_settings_parse(text, strlen(text), dirs, both, e);
}

static void
list_of_settings_reaches_the_direction_it_names(void **state)
{
	(void)state;
	struct emu_settings both[2];
	struct emu_error e;
	assert_int_equal(parse("loss=5% delay 3ms\trate =\t1gbit", EMU_AB, both, &e), WEFT_OK);
	assert_true(both[0].loss.in_good == 0.05 && both[0].delay_ns == 3000000);
	assert_int_equal(both[0].rate_bps, 1000000000);
	assert_memory_equal(&both[1], &emu_settings_default, sizeof(both[1]));
	assert_int_equal(
		parse("delay 1ms; ab.delay 2ms # ba.delay 9ms\n ba.mtu 1400", EMU_BOTH, both, &e),
		WEFT_OK);
	assert_true(both[0].delay_ns == 2000000 && both[1].delay_ns == 1000000);
	assert_true(both[0].mtu == 0 && both[1].mtu == 1400);
}

static void
bad_list_changes_nothing_and_names_the_place(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		unsigned line, column;
		const char *words;
	} cases[] = {
		{"loss 5% dely 3ms", 1, 9, "found \"dely\""},
		{"loss 5%\n\tdelay 3", 2, 8, "such as 5ms, found \"3\""},
		{"loss", 1, 5, "found nothing"},
		{"loss = ; delay 3ms", 1, 8, "found nothing"},
		{"ac.loss 5%", 1, 1, "found \"ac.loss\""},
		{"ab. 5%", 1, 1, "found \"ab.\""},
		{"loss 5%,4", 1, 8, "the end of the value"},
		{"= 5%", 1, 1, "found \"=\""},
		{"loss 5% \x01\x02", 1, 9, "found \"??\""},
	};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		struct emu_settings both[2];
		struct emu_error e;
		assert_int_equal(parse(cases[i].text, EMU_BOTH, both, &e), WEFT_EPARSE);
		assert_memory_equal(&both[0], &emu_settings_default, sizeof(both[0]));
		if (e.line != cases[i].line || e.column != cases[i].column ||
			!strstr(e.text, cases[i].words)) {
			fail_msg("%s: %u:%u: %s", cases[i].text, e.line, e.column, e.text);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_need_a_percent_sign_and_end_at_100),
		cmocka_unit_test(durations_are_exact_to_the_nanosecond),
		cmocka_unit_test(rates_and_sizes_have_the_usual_units),
		cmocka_unit_test(gilbert_loss_has_the_share_and_burst_asked_for),
		cmocka_unit_test(jitter_reorder_and_corrupt_take_options),
		cmocka_unit_test(list_of_settings_reaches_the_direction_it_names),
		cmocka_unit_test(bad_list_changes_nothing_and_names_the_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
