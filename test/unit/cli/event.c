/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "cli/event.h"

#define KEY "xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg="

static void
events_read_as_sentences(void **state)
{
	(void)state;
	static const struct {
		const char *json, *text;
		bool is_bad;
	} cases[] = {
		{"{\"event\":\"peer_up\",\"public_key\":\"" KEY
		 "\",\"name\":\"gw\",\"endpoint\":\"192.0.2.1:7\"}",
			"peer gw (xTIBA5rb): session is up, at 192.0.2.1:7", false},
		{"{\"event\":\"peer_down\",\"public_key\":\"" KEY "\"}",
			"peer xTIBA5rb: session is down", true},
		{"{\"event\":\"endpoint_moved\",\"public_key\":\"" KEY
		 "\",\"endpoint\":\"[::1]:7\",\"from\":\"[::2]:7\"}",
			"peer xTIBA5rb: endpoint is now [::1]:7, was [::2]:7", false},
		{"{\"event\":\"name_resolved\",\"public_key\":\"" KEY
		 "\",\"host\":\"gw.example\",\"endpoint\":\"192.0.2.1:7\"}",
			"peer xTIBA5rb: gw.example is 192.0.2.1:7", false},
		{"{\"event\":\"name_failed\",\"public_key\":\"" KEY "\",\"host\":\"gw.example\"}",
			"peer xTIBA5rb: cannot resolve gw.example; it is tried again", true},
		{"{\"event\":\"listen_port\",\"port\":7}", "the port to listen on is now 7", false},
		{"{\"event\":\"reload\",\"file\":\"/a/b.conf\"}", "/a/b.conf is in force", false},
		{"{\"event\":\"reload_refused\",\"file\":\"/a\",\"text\":\"one\\ntwo\"}",
			"a reload changed nothing: one;two", true},
		{"{\"event\":\"peer_added\",\"public_key\":\"" KEY "\"}", "peer xTIBA5rb was added",
			false},
		{"{\"event\":\"peers_removed\",\"count\":12345}", "12,345 more peers were removed",
			false},
		{"{\"event\":\"recovery\",\"public_key\":\"" KEY
		 "\",\"why\":\"ahead\",\"was\":\"clean\",\"why_text\":\"it is so\"}",
			"peer xTIBA5rb: loss recovery is ahead, was clean: it is so", false},
		{"{\"event\":\"drop\",\"reason\":\"rx_auth\",\"text\":\"tag\",\"count\":3}",
			"dropped 3: tag (rx_auth)", true},
		{"{\"event\":\"stopping\"}", "the device is stopping", true},
		{"{\"event\":\"lost\",\"count\":3}",
			"3 events are missing here: they came faster than they were read", true},
		/* Of a newer device; and nonsense. */
		{"{\"event\":\"eclipse\"}", "eclipse", false},
		{"{\"event\":7}", "?", false},
		{"{\"event\":\"peer_up\",\"name\":[]}", "peer ?: session is up, at ?", false},
		{"{\"event\":\"error\",\"text\":\"a\\u001b[2Jb\"}", "a?[2Jb", true},
	};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		char out[EVENT_TEXT_MAX];
		json_t *o = json_loads(cases[i].json, 0, NULL);
		assert_non_null(o);
		assert_string_equal(event_text(o, out), cases[i].text);
		assert_int_equal(event_is_bad(o), cases[i].is_bad);
		json_decref(o);
	}
}

static void
longest_texts_are_cut(void **state)
{
	(void)state;
	char *text = malloc(100001), out[EVENT_TEXT_MAX];
	memset(text, 'x', 100000);
	text[100000] = 0;
	static const char *const kinds[] = {"peer_up", "endpoint_moved", "name_resolved",
		"reload_refused", "recovery", "drop", "error", "other"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(kinds); i++) {
		json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "event",
			kinds[i], "name", text, "public_key", text, "endpoint", text, "from", text,
			"host", text, "text", text, "why", text, "reason", text);
		assert_true(strlen(event_text(o, out)) < EVENT_TEXT_MAX);
		json_decref(o);
	}
	free(text);
}

static void
time_is_that_of_here(void **state)
{
	(void)state;
	char out[EVENT_CLOCK_MAX];
	assert_int_equal(setenv("TZ", "XYZ-2", 1), 0);
	tzset();
	json_t *o = json_pack("{s:f}", "time_s", 3600.999);
	assert_string_equal(event_time(o, out), "1970-01-01 03:00:00");
	assert_string_equal(event_clock(o, out), "03:00:00");
	json_decref(o);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_read_as_sentences),
		cmocka_unit_test(longest_texts_are_cut),
		cmocka_unit_test(time_is_that_of_here),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
