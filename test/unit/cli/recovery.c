/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cli/recovery.h"

static json_t *
load(const char *text)
{
	json_error_t error;
	json_t *o = json_loads(text, 0, &error);
	if (!o) {
		fail_msg("%s: %s", error.text, text);
	}
	return o;
}

static void
expect(char *(*say)(const json_t *, char[RECOVERY_TEXT_MAX]), const char *peer, const char *words)
{
	char text[RECOVERY_TEXT_MAX];
	json_t *o = load(peer);
	assert_string_equal(say(o, text), words);
	json_decref(o);
}

#define RUNNING                                                                                    \
	"\"policy\":{\"fec\":\"auto\",\"fec_delay_ms\":20},\"fec\":{\"why_text\":\"because\","     \
	"\"loss\":0.049,\"burst\":1.1,\"residual\":0,\"overhead\":0.123,"                          \
	"\"peer_recovered_ahead\":1234,\"peer_recovered_answer\":56,\"rx\":{\"received\":9900,"    \
	"\"lost\":100,\"runs\":50,\"given_up\":1,\"recovered_ahead\":90,\"recovered_answer\":9,"   \
	"\"hold_avg_ms\":1.23}}"

static void
recovery_is_told_in_both_directions(void **state)
{
	(void)state;
	expect(recovery_out, "{" RUNNING "}",
		"loss 4.9 % in runs of 1.1, residual 0, overhead 12.3 %, recovered 1,234 ahead + "
		"56 on "
		"request");
	expect(recovery_in, "{" RUNNING "}",
		"loss 1.0 % in runs of 2.0, residual 0.01 %, recovered 90 ahead + 9 on request, "
		"held "
		"1.2 ms");
	expect(recovery_why, "{" RUNNING "}", "auto within 20 ms: because");
	expect(recovery_why, "{\"fec\":{\"why\":\"off\",\"why_text\":\"it is off\"}}", "it is off");
}

static void
recovery_of_a_clean_path_has_no_runs_and_divides_by_nothing(void **state)
{
	(void)state;
	static const char peer[] = "{\"fec\":{\"loss\":0,\"burst\":1,\"rx\":{\"received\":0}}}";
	expect(recovery_out, peer,
		"loss 0, residual 0, overhead 0, recovered 0 ahead + 0 on request");
	expect(recovery_in, peer, "loss 0, residual 0, recovered 0 ahead + 0 on request, held 0");
}

static void
extensions_are_told_in_every_state(void **state)
{
	(void)state;
#define PEER(s, n)                                                                                 \
	"{\"cipher\":\"chacha20poly1305\",\"extensions\":{\"state\":\"" s "\",\"name\":\"" n "\"}" \
	"}"
	expect(recovery_extensions, PEER("unknown", ""), "no session yet; cipher chacha20poly1305");
	expect(recovery_extensions, PEER("asking", "x"),
		"the other side is being asked; cipher chacha20poly1305");
	expect(recovery_extensions, PEER("agreed", ""), "agreed; cipher chacha20poly1305");
	expect(recovery_extensions, PEER("agreed", "gw1"),
		"agreed with gw1; cipher chacha20poly1305");
	expect(recovery_extensions, PEER("stock", ""),
		"none: the other side is plain WireGuard; cipher chacha20poly1305");
	expect(recovery_extensions, PEER("off", ""), "off; cipher chacha20poly1305");
	/* Of a later version. */
	expect(recovery_extensions, PEER("dreaming", ""), "?; cipher chacha20poly1305");
	expect(recovery_extensions, "{}", "?; cipher ?");
}

static void
recovery_runs_when_there_is_something_to_tell(void **state)
{
	(void)state;
	static const char *const not_running[] = {
		"{}", "{\"fec\":null}", "{\"fec\":{}}", "{\"fec\":{\"why\":\"off\",\"rx\":null}}"};
	for (size_t i = 0; i < 4; i++) {
		json_t *o = load(not_running[i]);
		assert_false(recovery_is_running(o));
		json_decref(o);
	}
	json_t *o = load("{" RUNNING "}");
	assert_true(recovery_is_running(o));
	assert_true(recovery_has_why(o));
	json_decref(o);
	/* Agreed, without loss recovery. */
	o = load(PEER("agreed", "gw1"));
	assert_false(recovery_is_running(o));
	assert_true(recovery_has_why(o));
	json_decref(o);
	o = load(PEER("stock", ""));
	assert_false(recovery_has_why(o));
	json_decref(o);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recovery_is_told_in_both_directions),
		cmocka_unit_test(recovery_of_a_clean_path_has_no_runs_and_divides_by_nothing),
		cmocka_unit_test(extensions_are_told_in_every_state),
		cmocka_unit_test(recovery_runs_when_there_is_something_to_tell),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
