/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "ctl/field.h"
#include "ctl/metrics.h"
#include "ctl/peers.h"

static struct {
	char text[32768];
	size_t len;
} out;

static void
put(void *ctx, const char *text, size_t len)
{
	(void)ctx;
	assert_true(len < sizeof(out.text) - out.len);
	memcpy(out.text + out.len, text, len);
	out.len += len;
	out.text[out.len] = 0;
}

static const char *
write_of(const char *statuses)
{
	json_error_t error;
	json_t *o = json_loads(statuses, 0, &error);
	if (!o) {
		fail_msg("%s: %s", error.text, statuses);
	}
	out.len = 0;
	out.text[0] = 0;
	assert_int_equal(ctl_metrics_write(o, put, NULL), WEFT_OK);
	json_decref(o);
	return out.text;
}

static void
metrics_of_nothing_are_nothing(void **state)
{
	(void)state;
	assert_string_equal(write_of("[]"), "");
}

static void
samples_of_a_metric_stand_together_under_one_head(void **state)
{
	(void)state;
	const char *text =
		write_of("[{\"device\":{\"name\":\"a\"},\"gaps\":1,\"peers\":["
			 "{\"public_key\":\"k1\",\"fec\":{\"repairs_ahead\":2,\"repairs_tail\":3}},"
			 "{\"public_key\":\"k2\",\"fec\":{\"repairs_ahead\":4}}]},"
			 "{\"device\":{\"name\":\"b\"},\"gaps\":5,\"peers\":[]}]");
	assert_non_null(
		strstr(text, "# HELP weft_gaps_total Times that the daemon did not run though it "
			     "was to.\n# TYPE weft_gaps_total counter\n"
			     "weft_gaps_total{device=\"a\"} 1\n"
			     "weft_gaps_total{device=\"b\"} 5\n#"));
	assert_non_null(strstr(text,
		"# HELP weft_peer_fec_repairs_total Repairs sent.\n"
		"# TYPE weft_peer_fec_repairs_total counter\n"
		"weft_peer_fec_repairs_total{device=\"a\",public_key=\"k1\",kind=\"ahead\"} 2\n"
		"weft_peer_fec_repairs_total{device=\"a\",public_key=\"k2\",kind=\"ahead\"} 4\n"
		"weft_peer_fec_repairs_total{device=\"a\",public_key=\"k1\",kind=\"tail\"} 3\n"));
	assert_null(strstr(text, "weft_peer_fec_loss_ratio"));
}

static void
values_are_in_the_unit_of_their_name(void **state)
{
	(void)state;
	const char *text = write_of(
		"[{\"device\":{\"name\":\"a\",\"is_up\":true,\"uptime_s\":1.25},\"link\":{"
		"\"rx_bytes\":1234567890123456},\"peers\":[{\"public_key\":\"k\","
		"\"latest_handshake_s\":null,\"fec\":{\"rtt_ms\":10.5,\"loss\":0.049}}]}]");
	assert_non_null(strstr(text, "weft_device_up{device=\"a\"} 1\n"));
	assert_non_null(strstr(text, "weft_uptime_seconds{device=\"a\"} 1.25\n"));
	assert_non_null(
		strstr(text, "weft_link_receive_bytes_total{device=\"a\"} 1234567890123456\n"));
	assert_non_null(strstr(text, "fec_rtt_seconds{device=\"a\",public_key=\"k\"} 0.0105\n"));
	assert_non_null(strstr(text, "fec_loss_ratio{device=\"a\",public_key=\"k\"} 0.049\n"));
	assert_null(strstr(text, "latest_handshake"));
}

/* Numbers of all sizes, and strange ones. */
static uint64_t
any_number(struct rng *rng)
{
	uint64_t n = rng_u64(rng);
	return n % 8 == 0 ? 0 : n >> (2 + rng_below(rng, 62));
}

static double
any_share(struct rng *rng)
{
	static const double strange[] = {0, 1, 1e-9, 123456789.25, INFINITY, NAN};
	uint64_t pick = rng_below(rng, 12);
	return pick < WEFT_ARRAY_LEN(strange) ? strange[pick] : (double)rng_below(rng, 10000) / 7e4;
}

/* A peer of chance: all counters, some things that are not known. */
static void
make_peer(struct rng *rng, struct ctl_peer *p)
{
	struct fec_recovery_stats *f = &p->ally.fec;
	uint64_t *const counters[] = {&p->info.rx_bytes, &p->info.tx_bytes, &p->info.rx_packets,
		&p->info.tx_packets, &p->info.handshakes, &p->info.handshake_tries,
		&p->info.stale_initiations, &p->info.rejected_moves, &f->sources, &f->source_bytes,
		&f->repairs_ahead, &f->repairs_answer, &f->repairs_tail, &f->repair_bytes,
		&f->feedback_tx, &f->feedback_rx, &f->ce_marked, &f->peer_lost,
		&f->peer_recovered_ahead, &f->peer_recovered_answer, &f->peer_given_up, &f->memory,
		&f->memory_refusals, &f->rx.received, &f->rx.lost, &f->rx.runs,
		&f->rx.recovered_ahead, &f->rx.recovered_answer, &f->rx.given_up, &f->rx.late,
		&f->rx.overflowed, &f->rx.repairs, &f->rx.repairs_useless, &f->rx.repairs_refused,
		&f->rx.held, &f->rx.hold_ns_max, &f->rx.hold_ns_sum, &f->rx.unawake, &f->rx.jumps};
	double *const shares[] = {&f->loss, &f->burst, &f->residual, &f->overhead, &f->ahead_share};
	*p = (struct ctl_peer){.ally.policy = ALLY_POLICY_DEFAULT};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(counters); i++) {
		*counters[i] = any_number(rng);
	}
	for (size_t i = 0; i < WEFT_ARRAY_LEN(shares); i++) {
		*shares[i] = any_share(rng);
	}
	for (size_t i = 0; i < WG_KEY_LEN; i++) {
		p->info.public_key[i] = (uint8_t)rng_u64(rng);
	}
	p->info.endpoint = (struct endpoint){.addr = {rng_below(rng, 2) ? IP_FAMILY_V4 : 0, {9}},
		.port = (uint16_t)rng_u64(rng)};
	p->info.keepalive_s = (uint16_t)rng_u64(rng);
	p->info.last_handshake_wall_ns = (int64_t)(any_number(rng) / 4);
	p->info.staged_packets = (uint32_t)rng_below(rng, 100);
	p->info.has_session = rng_below(rng, 2) == 1;
	p->ally.has_fec = rng_below(rng, 3) > 0;
	p->ally.state = (enum ally_state)rng_below(rng, ALLY_STATE_OFF + 1);
	p->ally.policy.fec.mode = (enum fec_mode)rng_below(rng, FEC_MODE_FIXED + 1);
	f->why = (enum fec_why)rng_below(rng, FEC_WHY_COUNT);
	f->rtt_ns = rng_below(rng, 2) ? (int64_t)any_number(rng) : 0;
	f->queue_ns = (int64_t)any_number(rng);
	snprintf(p->ally.name, sizeof(p->ally.name), "%s", rng_below(rng, 2) ? "a\"b\\c" : "");
}

static json_t *
peer_json(const struct ctl_peer *p, struct wg_time now)
{
	static char text[CTL_PEER_TEXT_MAX + 2];
	struct writer w;
	json_error_t error;
	writer_init(&w, text, CTL_PEER_TEXT_MAX);
	ctl_field_write_peer(&w, p, now);
	assert_false(w.failed);
	memcpy(w.p, "}", 2);
	json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (!o) {
		fail_msg("%s: %s", error.text, text);
	}
	return o;
}

/* The device makes metrics of its peers, `weft status --prometheus` of its status. */
static void
metrics_of_a_peer_are_those_of_its_status(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		static char direct[32768];
		const struct wg_time now = {.mono = {50 * WEFT_NS_PER_S}, .wall_ns = 1LL << 60};
		struct rng rng;
		struct ctl_peer p;
		const char *piece;
		size_t len, direct_len = 0;
		rng_init(&rng, seed);
		make_peer(&rng, &p);
		json_t *status = json_pack("{s:{s:s}}", "device", "name", "a");
		struct ctl_metrics *m = ctl_metrics_new();
		assert_true(status && m);
		ctl_metrics_add_device(m, status);
		ctl_metrics_add_peer(m, &p, now);
		assert_int_equal(ctl_metrics_end(m), WEFT_OK);
		for (size_t i = 0; ctl_metrics_piece(m, i, &piece, &len); i++) {
			assert_true(len < sizeof(direct) - direct_len);
			memcpy(direct + direct_len, piece, len);
			direct_len += len;
		}
		direct[direct_len] = 0;
		ctl_metrics_free(m);
		json_object_set_new(status, "peers", json_pack("[o]", peer_json(&p, now)));
		json_t *all = json_pack("[o]", status);
		out.len = 0;
		assert_int_equal(ctl_metrics_write(all, put, NULL), WEFT_OK);
		json_decref(all);
		if (strcmp(direct, out.text) != 0) {
			fail_msg("seed %llu:\n%s\n---\n%s", (unsigned long long)seed, direct,
				out.text);
		}
	}
}

static void
labels_are_escaped(void **state)
{
	(void)state;
	const char *text = write_of("[{\"device\":{\"name\":\"a\\\"b\\\\c\\nd}\"},\"drops\":{"
				    "\"rx_auth\":0,\"rx_replay\":7}}]");
	assert_non_null(strstr(text,
		"weft_dropped_total{device=\"a\\\"b\\\\c\\nd}\",reason=\"rx_auth\"} 0\n"
		"weft_dropped_total{device=\"a\\\"b\\\\c\\nd}\",reason=\"rx_replay\"} 7\n"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(metrics_of_nothing_are_nothing),
		cmocka_unit_test(samples_of_a_metric_stand_together_under_one_head),
		cmocka_unit_test(values_are_in_the_unit_of_their_name),
		cmocka_unit_test(metrics_of_a_peer_are_those_of_its_status),
		cmocka_unit_test(labels_are_escaped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
