/* SPDX-License-Identifier: Apache-2.0 */
/* Each cause from the facts that show it, and none from facts that are old. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ctl/judge.h"

#define NOW_S 10000

static struct judge_facts f;
static struct judge_verdict v;

static struct mono
ago(double s)
{
	return (struct mono){NOW_S * WEFT_NS_PER_S - (int64_t)(s * (double)WEFT_NS_PER_S)};
}

static struct ip_addr
addr(const char *text)
{
	struct ip_addr a;
	assert_int_equal(ip_addr_parse(text, strlen(text), &a), WEFT_OK);
	return a;
}

static struct ip_prefix
prefix(const char *text)
{
	struct ip_prefix p;
	assert_int_equal(ip_prefix_parse(text, strlen(text), &p), WEFT_OK);
	return p;
}

static struct endpoint
place(const char *text)
{
	struct endpoint e;
	assert_int_equal(endpoint_parse(text, strlen(text), &e), WEFT_OK);
	return e;
}

/* A peer with which all is well. */
static int
setup(void **state)
{
	(void)state;
	f = (struct judge_facts){.now = ago(0),
		.device = "home",
		.has_key = true,
		.is_up = true,
		.has_address = true,
		.mtu = 1420,
		.has_peer = true,
		.who = "berlin (AAAA)",
		.can_send = true,
		.allowed_n = 1,
		.has_outer = true,
		.inner_n = 1};
	f.info.public_key[0] = 7;
	f.info.endpoint = place("192.0.2.1:51820");
	f.info.session_born = ago(60);
	f.info.has_session = true;
	f.trail.received = ago(1);
	f.trail.sent = ago(1);
	f.ally.policy = ALLY_POLICY_DEFAULT;
	f.inner[0] = (struct judge_route){.to = addr("10.9.0.7"),
		.prefix = prefix("10.9.0.7/32"),
		.is_there = true,
		.is_ours = true,
		.dev = "home"};
	f.outer = (struct judge_route){
		.to = addr("192.0.2.1"), .is_there = true, .dev = "eth0", .mtu = 1500};
	return 0;
}

/* It has no session, and four initiations stayed without an answer. */
static void
call_in_vain(void)
{
	f.can_send = f.info.has_session = false;
	f.info.unanswered = 4;
	f.trail.trying_since = ago(17);
	f.trail.tried = ago(2);
}

static struct wg_trouble *
add_trouble(unsigned table, enum wg_trouble_kind kind, const char *at, double s)
{
	struct wg_trouble *t = &f.troubles[table].v[f.troubles[table].n++];
	*t = (struct wg_trouble){
		.kind = kind, .at = place(at), .first = ago(s + 5), .latest = ago(s), .n = 3};
	memcpy(t->key, f.info.public_key, sizeof(t->key));
	return t;
}

static const struct judge_finding *
find(const char *code)
{
	judge(&f, &v);
	for (size_t i = 0; i < v.n; i++) {
		if (strcmp(v.findings[i].code, code) == 0) {
			return &v.findings[i];
		}
	}
	return NULL;
}

static void
print_findings(void)
{
	for (size_t i = 0; i < v.n; i++) {
		print_message("%s %s: %s\n", judge_severity_name(v.findings[i].severity),
			v.findings[i].code, v.findings[i].text);
	}
}

static bool
speaks_of(const struct judge_finding *x, const char *word)
{
	bool has = strstr(x->text, word) || strstr(x->advice, word);
	for (size_t i = 0; i < x->evidence_n; i++) {
		has = has || strstr(x->evidence[i], word);
	}
	return has;
}

/* The first cause, of that severity, and it names what it must. */
static void
expect(const char *code, enum judge_severity severity, const char *word)
{
	const struct judge_finding *x = find(code);
	if (!x || x != &v.findings[0] || x->severity != severity || !speaks_of(x, word) ||
		!x->advice[0] || v.flows != (severity == JUDGE_SEVERITY_NOTE && f.can_send)) {
		print_findings();
		fail_msg("%s with \"%s\" is wanted first", code, word);
	}
}

static void
expect_none(void)
{
	judge(&f, &v);
	if (v.n > 0) {
		print_findings();
		fail_msg("nothing should be found");
	}
}

static void
judge_finds_nothing_when_all_is_well_and_says_why(void **state)
{
	(void)state;
	expect_none();
	assert_true(v.flows);
	assert_int_equal(v.evidence_n, 3);
	assert_non_null(strstr(v.evidence[0], "60 s ago"));
	assert_non_null(strstr(v.evidence[0], "192.0.2.1:51820"));
	assert_non_null(strstr(v.summary, "Traffic flows to berlin"));
	f.info.unanswered = 1; /* a rekey under way */
	f.trail.trying_since = ago(0.1);
	expect_none();
	f.trail.unanswered_since = ago(9); /* its passive keepalive is not due yet */
	expect_none();
}

static void
judge_knows_each_cause_of_device(void **state)
{
	(void)state;
	f.has_key = false;
	expect("no_key", JUDGE_SEVERITY_FAULT, "PrivateKey");
	setup(NULL);
	f.is_up = false;
	f.inner[0].is_ours = false;
	expect("interface_down", JUDGE_SEVERITY_FAULT, "ip link set home up");
	assert_null(find("route_elsewhere")); /* that its routes are gone follows from it */
	setup(NULL);
	f.missing_address = prefix("10.9.0.1/24");
	expect("address_missing", JUDGE_SEVERITY_FAULT, "10.9.0.1/24");
	setup(NULL);
	f.has_address = false;
	expect("address_missing", JUDGE_SEVERITY_FAULT, "no address");
}

static void
judge_knows_each_cause_of_address(void **state)
{
	(void)state;
	f.address = addr("10.9.0.77");
	f.has_peer = false;
	f.inner_n = 0;
	strcpy(f.near, "berlin (AAAA)");
	f.near_prefix = prefix("10.9.0.64/29");
	expect("no_peer", JUDGE_SEVERITY_FAULT, "10.9.0.64/29 of berlin");
	f.is_own = true;
	expect("own_address", JUDGE_SEVERITY_FAULT, "this machine");
	setup(NULL);
	f.address = addr("10.9.0.7");
	f.match = prefix("10.9.0.0/28");
	strcpy(f.other, "paris (BBBB)");
	f.other_prefix = prefix("10.9.0.0/16");
	expect("other_peer", JUDGE_SEVERITY_NOTE, "10.9.0.0/16");
	f.is_other_expected = true;
	expect("other_peer", JUDGE_SEVERITY_FAULT, "not to paris");
	setup(NULL);
	f.allowed_n = 0;
	expect("no_allowed_ips", JUDGE_SEVERITY_FAULT, "AllowedIPs");
	f.taken = prefix("10.9.0.7/32");
	strcpy(f.taken_by, "paris (BBBB)");
	expect("allowed_ip_taken", JUDGE_SEVERITY_FAULT, "paris");
	f.allowed_n = 1;
	expect("allowed_ip_taken", JUDGE_SEVERITY_LOSS, "10.9.0.7/32");
}

static void
judge_knows_routes_that_lead_elsewhere(void **state)
{
	(void)state;
	f.inner[0].is_ours = false;
	strcpy(f.inner[0].dev, "eth1");
	expect("route_elsewhere", JUDGE_SEVERITY_FAULT, "by eth1 instead of home");
	f.inner[0].is_there = false;
	expect("route_missing", JUDGE_SEVERITY_FAULT, "ip route add 10.9.0.7/32 dev home");
	f.is_table_off = true;
	expect("route_missing", JUDGE_SEVERITY_NOTE, "Table = off");
	f.is_table_off = false;
	f.inner[0].prefix = prefix("0.0.0.0/0");
	expect("route_missing", JUDGE_SEVERITY_NOTE, "0.0.0.0/0");
}

static void
judge_knows_each_cause_at_the_endpoint(void **state)
{
	(void)state;
	f.info.endpoint = (struct endpoint){0};
	f.can_send = f.has_outer = false;
	expect("no_endpoint", JUDGE_SEVERITY_FAULT, "PersistentKeepalive");
	f.has_name = true;
	f.name = (struct keeper_name){
		.host = "vpn.example.com", .answer = WEFT_ENOENT, .asked_at = ago(3)};
	expect("name_unresolved", JUDGE_SEVERITY_FAULT, "there is no such name");
	f.name.answer = WEFT_EAGAIN;
	expect("name_unresolved", JUDGE_SEVERITY_FAULT, "no name server answers");
	f.name.answer = WEFT_OK;
	expect("name_unresolved", JUDGE_SEVERITY_FAULT, "awaited");

	setup(NULL);
	call_in_vain();
	f.outer.is_ours = true;
	expect("endpoint_loop", JUDGE_SEVERITY_FAULT, "ip route add 192.0.2.1");
	assert_true(speaks_of(&v.findings[0], "4 tries"));
	f.outer.is_ours = false;
	add_trouble(0, WG_TROUBLE_LOOP, "192.0.2.1:51820", 2);
	expect("endpoint_loop", JUDGE_SEVERITY_FAULT, "came back 2 s ago");

	setup(NULL);
	call_in_vain();
	f.outer.is_there = false;
	expect("endpoint_unreachable", JUDGE_SEVERITY_FAULT, "no route to the endpoint");
}

static void
judge_knows_sends_that_fail(void **state)
{
	static const struct {
		int errnum;
		const char *code, *word;
		enum judge_severity severity;
	} cases[] = {
		{EPERM, "firewall", "EPERM", JUDGE_SEVERITY_FAULT},
		{EACCES, "firewall", "EACCES", JUDGE_SEVERITY_FAULT},
		{EHOSTUNREACH, "endpoint_unreachable", "EHOSTUNREACH", JUDGE_SEVERITY_FAULT},
		{EMSGSIZE, "mtu", "EMSGSIZE", JUDGE_SEVERITY_LOSS},
		{ENOBUFS, "send_error", "ENOBUFS", JUDGE_SEVERITY_LOSS},
		{EAFNOSUPPORT, "send_error", "IPv6", JUDGE_SEVERITY_LOSS},
	};
	(void)state;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		setup(NULL);
		add_trouble(0, WG_TROUBLE_SEND, "192.0.2.1:51820", 4)->errnum = cases[i].errnum;
		expect(cases[i].code, cases[i].severity, cases[i].word);
		setup(NULL);
		add_trouble(0, WG_TROUBLE_SEND, "192.0.2.9:51820", 4)->errnum = cases[i].errnum;
		expect_none(); /* to somebody else */
		setup(NULL);
		add_trouble(0, WG_TROUBLE_SEND, "192.0.2.1:51820", 100)->errnum = cases[i].errnum;
		expect_none(); /* and since then all is well */
	}
	setup(NULL);
	f.outer.mtu = 1400;
	expect("mtu", JUDGE_SEVERITY_LOSS, "MTU = 1340");
	f.outer.to = addr("2001:db8::1");
	expect("mtu", JUDGE_SEVERITY_LOSS, "MTU = 1320");
}

static void
judge_tells_keys_apart(void **state)
{
	(void)state;
	call_in_vain();
	add_trouble(1, WG_TROUBLE_RESPONSE, "192.0.2.1:51820", 2);
	expect("psk_mismatch", JUDGE_SEVERITY_FAULT, "None is set here");
	f.info.has_psk = true;
	expect("psk_mismatch", JUDGE_SEVERITY_FAULT, "One is set here");
	assert_null(find("no_answer"));
	f.can_send = true;
	f.info.unanswered = 0;
	f.info.session_born = ago(1);
	expect_none();

	setup(NULL);
	call_in_vain();
	struct wg_trouble *t = add_trouble(1, WG_TROUBLE_STRANGER, "192.0.2.1:51820", 2);
	memset(t->key, 0, sizeof(t->key));
	expect("other_key_there", JUDGE_SEVERITY_FAULT,
		"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");

	setup(NULL);
	call_in_vain();
	add_trouble(1, WG_TROUBLE_MAC1, "192.0.2.1:51820", 2);
	expect("other_key_here", JUDGE_SEVERITY_FAULT, "wg show home public-key");
}

static void
judge_tells_a_clock_from_a_second_place(void **state)
{
	(void)state;
	call_in_vain();
	add_trouble(1, WG_TROUBLE_STALE, "192.0.2.1:51820", 2);
	expect("stale_timestamp", JUDGE_SEVERITY_FAULT, "clock");

	setup(NULL);
	add_trouble(1, WG_TROUBLE_STALE, "198.51.100.9:51820", 2);
	expect("key_in_two_places", JUDGE_SEVERITY_LOSS, "198.51.100.9:51820");

	setup(NULL);
	add_trouble(1, WG_TROUBLE_MOVE, "192.0.2.1:51820", 2);
	expect_none(); /* it roams */
	add_trouble(1, WG_TROUBLE_MOVE, "198.51.100.9:51820", 3);
	expect("key_in_two_places", JUDGE_SEVERITY_LOSS, "192.0.2.1:51820");
	f.troubles[1].v[1].latest = ago(300);
	expect_none();
}

static void
judge_knows_handshakes_without_an_answer(void **state)
{
	(void)state;
	call_in_vain();
	assert_true(judge_wants_probe(&f));
	expect("no_answer", JUDGE_SEVERITY_FAULT, "4 tries within 17 s, the last 2 s ago");
	assert_true(speaks_of(&v.findings[0], "firewall"));
	f.is_probed = true;
	assert_false(judge_wants_probe(&f));
	expect("no_answer", JUDGE_SEVERITY_FAULT, "all is swallowed");
	f.probe_errnum = ECONNREFUSED;
	expect("port_closed", JUDGE_SEVERITY_FAULT, "192.0.2.1:51820");
	f.probe_errnum = EHOSTUNREACH;
	expect("host_unreachable", JUDGE_SEVERITY_FAULT, "EHOSTUNREACH");
	f.info.unanswered = 0;
	f.is_probed = false;
	f.trail.gave_up = ago(30);
	f.trail.gave_up_tries = 18;
	expect("no_answer", JUDGE_SEVERITY_FAULT, "given up 30 s ago, after 18 tries");
	f.trail.gave_up = ago(3600);
	expect("idle", JUDGE_SEVERITY_NOTE, "ping");
	assert_false(v.flows);
	f.info.unanswered = 1;
	f.trail.trying_since = f.trail.tried = f.now; /* too early to say */
	expect("calling", JUDGE_SEVERITY_NOTE, "just sent");
	assert_false(v.flows);
	setup(NULL);
	call_in_vain();
	add_trouble(1, WG_TROUBLE_COOKIE, "192.0.2.1:51820", 2);
	expect("peer_under_load", JUDGE_SEVERITY_FAULT, "cookie");
}

static void
judge_knows_a_peer_that_calls_and_does_not_go_on(void **state)
{
	(void)state;
	f.can_send = false;
	f.trail.calls_unused = 3;
	f.trail.called = ago(4);
	expect("handshake_incomplete", JUDGE_SEVERITY_FAULT, "3 handshakes");
	f.can_send = true;
	expect_none();
}

static void
judge_knows_what_ails_a_session(void **state)
{
	(void)state;
	f.trail.unanswered_since = ago(13);
	expect("silent", JUDGE_SEVERITY_FAULT, "13 s");

	setup(NULL);
	f.sources[0] = (struct judge_source){
		.addr = addr("10.8.0.3"), .owner = "paris (BBBB)", .latest = ago(3)};
	f.sources_n = 1;
	expect("source_refused", JUDGE_SEVERITY_LOSS, "10.8.0.3");
	assert_true(speaks_of(&v.findings[0], "AllowedIPs of paris"));
	f.sources[0].latest = ago(3600);
	expect_none();

	setup(NULL);
	f.trail.expected = 1000;
	f.trail.arrived = 950;
	expect("loss", JUDGE_SEVERITY_LOSS, "5 %");
	f.ally.policy.fec.mode = FEC_MODE_OFF;
	expect("loss", JUDGE_SEVERITY_LOSS, "fec auto");
	f.ally.has_fec = true;
	expect_none(); /* it is recovered */
	f.ally.has_fec = false;
	f.trail.arrived = 995;
	expect_none();
}

static void
judge_tells_recent_drops_and_forgets_old_ones(void **state)
{
	(void)state;
	f.drops.of[DROP_LINK_RX_OVERFLOW] =
		(struct drop_time){.n = 500, .first = ago(9), .latest = ago(3)};
	expect("receive_overflow", JUDGE_SEVERITY_LOSS, "500");
	for (unsigned i = 0; i < DROP_COUNT; i++) {
		char code[JUDGE_CODE_MAX];
		enum drop_reason r = (enum drop_reason)i;
		setup(NULL);
		snprintf(code, sizeof(code), "drop_%s", drop_name(r));
		f.drops.of[i] = (struct drop_time){.n = 5, .first = ago(9), .latest = ago(3)};
		if (r == DROP_TX_ROUTE) {
			expect_none(); /* to groups, as kernels do */
			add_trouble(0, WG_TROUBLE_ROUTE, "224.0.0.1:1", 2);
			expect_none();
			add_trouble(0, WG_TROUBLE_ROUTE, "10.1.2.3:1", 2);
		}
		expect(code, JUDGE_SEVERITY_NOTE, "the last 3 s ago");
		assert_true(v.flows);
		f.drops.of[i].latest = ago(3600);
		expect_none();
	}
}

static void
judge_has_a_word_on_every_drop_reason(void **state)
{
	(void)state;
	for (unsigned i = 0; i < DROP_COUNT; i++) {
		const struct judge_drop *d = judge_drop_of((enum drop_reason)i);
		if (!d->meaning || !d->advice || strlen(d->meaning) < 15 ||
			strlen(d->advice) < 15) {
			fail_msg("src/ctl/judge_drop.c says nothing of %s",
				drop_name((enum drop_reason)i));
		}
		for (unsigned k = 0; k < i; k++) {
			assert_string_not_equal(
				d->meaning, judge_drop_of((enum drop_reason)k)->meaning);
		}
	}
}

static void
judge_puts_what_stops_all_before_what_takes_a_part(void **state)
{
	(void)state;
	call_in_vain();
	f.outer.mtu = 1400;
	f.is_up = false;
	f.drops.of[DROP_PORT_FULL] = (struct drop_time){.n = 50, .first = ago(9), .latest = ago(3)};
	expect("interface_down", JUDGE_SEVERITY_FAULT, "down");
	enum judge_severity last = JUDGE_SEVERITY_FAULT;
	for (size_t i = 0; i < v.n; i++) {
		assert_true(v.findings[i].severity >= last);
		last = v.findings[i].severity;
	}
	assert_int_equal(last, JUDGE_SEVERITY_LOSS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(judge_finds_nothing_when_all_is_well_and_says_why, setup),
		cmocka_unit_test_setup(judge_knows_each_cause_of_device, setup),
		cmocka_unit_test_setup(judge_knows_each_cause_of_address, setup),
		cmocka_unit_test_setup(judge_knows_routes_that_lead_elsewhere, setup),
		cmocka_unit_test_setup(judge_knows_each_cause_at_the_endpoint, setup),
		cmocka_unit_test_setup(judge_knows_sends_that_fail, setup),
		cmocka_unit_test_setup(judge_tells_keys_apart, setup),
		cmocka_unit_test_setup(judge_tells_a_clock_from_a_second_place, setup),
		cmocka_unit_test_setup(judge_knows_handshakes_without_an_answer, setup),
		cmocka_unit_test_setup(judge_knows_a_peer_that_calls_and_does_not_go_on, setup),
		cmocka_unit_test_setup(judge_knows_what_ails_a_session, setup),
		cmocka_unit_test_setup(judge_tells_recent_drops_and_forgets_old_ones, setup),
		cmocka_unit_test_setup(judge_has_a_word_on_every_drop_reason, setup),
		cmocka_unit_test_setup(judge_puts_what_stops_all_before_what_takes_a_part, setup),
	};
	return cmocka_run_group_tests_name(WEFT_TEST_NAME, tests, NULL, NULL);
}
