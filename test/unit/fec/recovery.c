/* SPDX-License-Identifier: Apache-2.0 */
/* Two recoveries over an emulated link (test/sim/fec_link.h), and one alone. What share comes
 * back at what cost is the simulator's to say (sim-fec); here stands what must always hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../sim/fec_link.h"
#include "base/compiler.h"

#define MS WEFT_NS_PER_MS
#define S WEFT_NS_PER_S

static const struct fec_policy automatic = {.mode = FEC_MODE_AUTO};

/* 4000 packets/s of 200 bytes one way, 5 ms each way. */
static struct fec_link_config
usual(uint64_t seed, double loss)
{
	struct fec_link_config c = {.seed = seed,
		.numbers_max = 400000,
		.policy = {automatic, automatic},
		.flow = {{.pps = 4000, .len = 200}}};
	for (int i = 0; i < 2; i++) {
		c.settings[i] = emu_settings_default;
		c.settings[i].delay_ns = 5 * MS;
		c.settings[i].loss = fec_link_loss(loss, 1);
	}
	return c;
}

static struct fec_link *
link_new(const struct fec_link_config *c)
{
	struct fec_link *l = malloc(sizeof(*l));
	assert_non_null(l);
	assert_true(fec_link_init(l, c));
	return l;
}

static void
link_free(struct fec_link *l)
{
	if (l->is_wrong) {
		fail_msg("%s", l->text);
	}
	fec_link_fini(l);
	free(l);
}

static void
set_loss(struct fec_link *l, unsigned end, double loss, double burst)
{
	struct emu_settings s = emu_settings_default;
	s.delay_ns = l->delay_ns;
	s.loss = fec_link_loss(loss, burst);
	fec_link_set(l, end, &s);
}

static struct fec_recovery_stats
stats_of(const struct fec_link *l, unsigned end)
{
	struct fec_recovery_stats s;
	fec_recovery_stats(l->ends[end].recovery, &s);
	return s;
}

static uint64_t
repairs_of(const struct fec_link *l, unsigned end)
{
	struct fec_recovery_stats s = stats_of(l, end);
	return s.repairs_ahead + s.repairs_answer + s.repairs_tail;
}

static void
a_clean_link_sends_nothing_and_waits_for_nothing(void **state)
{
	(void)state;
	struct fec_link_config c = usual(1, 0);
	struct fec_link *l = link_new(&c);
	fec_link_run(l, 20 * S);
	fec_link_drain(l, S);
	assert_int_equal(l->ends[0].counts.frames, 0);
	assert_int_equal(l->ends[1].counts.frames, 0);
	assert_int_equal(l->ends[0].counts.delivered, l->ends[0].counts.sent);
	assert_int_equal(l->ends[0].counts.hold_ns.max_ns, 0);
	assert_false(fec_recovery_is_armed(l->ends[0].recovery));
	assert_int_equal(stats_of(l, 0).why, FEC_WHY_CLEAN);
	link_free(l);
}

static void
a_slow_flow_is_remembered_before_its_first_loss(void **state)
{
	(void)state;
	static const double rates[] = {50, 200, 1000, 4000};
	for (size_t i = 0; i < 4; i++) {
		struct fec_link_config c = usual(40 + i, 0.05);
		c.flow[0].pps = rates[i];
		struct fec_link *l = link_new(&c);
		fec_link_run(l, 10 * S);
		fec_link_drain(l, S);
		/* From the first packet on, not from the first report on. */
		assert_int_equal(l->ends[0].counts.delivered, l->ends[0].counts.sent);
		link_free(l);
	}
}

static void
reordering_and_duplication_cause_no_repair_and_no_wait(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct fec_link_config c = usual(seed, 0);
		/* By up to two packets, that is 0.5 ms, or a little more where two meet. */
		c.settings[0].reorder =
			(struct emu_reorder){.share = 0.03, .distance_min = 1, .distance_max = 2};
		c.settings[0].duplicate = 0.05;
		c.flow[0].kind = seed % 2 ? FEC_LINK_TCP : FEC_LINK_UDP;
		struct fec_link *l = link_new(&c);
		fec_link_run(l, 10 * S);
		fec_link_drain(l, S);
		assert_int_equal(repairs_of(l, 0), 0);
		assert_int_equal(l->ends[1].counts.frames, 0);
		assert_int_equal(l->ends[0].counts.delivered, l->ends[0].counts.sent);
		/* Itself late, or behind one that was; never longer than that took. */
		assert_true(l->ends[0].counts.hold_ns.max_ns <= MS);
		link_free(l);
	}
}

/* Loses exactly the next packet. */
static void
lose_one(struct fec_link *l)
{
	set_loss(l, 0, 1, 1);
	fec_link_send(l, 0, 200, FEC_LINK_UDP);
	set_loss(l, 0, 0, 1);
}

static void
the_first_loss_is_answered_to_within_a_round_trip_and_3_ms(void **state)
{
	(void)state;
	static const int64_t rtts_ms[] = {1, 10, 40, 150};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(rtts_ms); i++) {
		struct fec_link_config c = usual(1 + i, 0);
		c.settings[0].delay_ns = c.settings[1].delay_ns = rtts_ms[i] * MS / 2;
		struct fec_link *l = link_new(&c);
		fec_link_run(l, S);
		struct mono lost_at = l->now;
		lose_one(l);
		while (repairs_of(l, 0) == 0 && mono_diff_ns(l->now, lost_at) < S) {
			fec_link_run(l, MS / 10);
		}
		int64_t took = mono_diff_ns(l->now, lost_at);
		int64_t grace = rtts_ms[i] * MS / 16 > MS ? rtts_ms[i] * MS / 16 : MS;
		/* The gap shows with the next packet, 0.25 ms later; the repair leaves behind
		 * the next that is sent. A long path has a longer grace. */
		assert_true(took <= rtts_ms[i] * MS + grace + 2 * MS);
		link_free(l);
	}
}

static void
repairs_end_within_a_second_when_the_loss_ends(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct fec_link_config c = usual(seed, 0);
		struct fec_link *l = link_new(&c);
		fec_link_run(l, 2 * S);
		set_loss(l, 0, 0.15, 1);
		fec_link_run(l, 5 * S);
		set_loss(l, 0, 0, 1);
		fec_link_run(l, S);
		uint64_t repairs = repairs_of(l, 0);
		assert_true(repairs > 4000);
		fec_link_run(l, 5 * S);
		assert_int_equal(repairs_of(l, 0), repairs);
		assert_false(fec_recovery_is_armed(l->ends[0].recovery));
		/* All but what was lost before the first alarm. */
		fec_link_drain(l, S);
		assert_int_equal(l->ends[0].counts.sent_armed, l->ends[0].counts.delivered_armed);
		link_free(l);
	}
}

static void
an_idle_peer_costs_nothing_after_its_probe(void **state)
{
	(void)state;
	struct fec_link_config c = usual(7, 0.1);
	struct fec_link *l = link_new(&c);
	fec_link_run(l, 3 * S);
	fec_link_drain(l, S);
	uint64_t frames = l->ends[0].counts.frames + l->ends[1].counts.frames;
	fec_link_drain(l, 3600 * S);
	assert_int_equal(l->ends[0].counts.frames + l->ends[1].counts.frames, frames);
	/* Nothing waits for ever, but the encoder's end was waited for, and came. */
	assert_int_equal(fec_recovery_deadline(l->ends[0].recovery).ns, MONO_NEVER.ns);
	assert_int_equal(fec_recovery_deadline(l->ends[1].recovery).ns, MONO_NEVER.ns);
	/* It is still armed, and goes on. */
	assert_true(fec_recovery_is_armed(l->ends[0].recovery));
	uint64_t sent = l->ends[0].counts.sent, delivered = l->ends[0].counts.delivered;
	l->ends[0].next = l->now;
	fec_link_run(l, 3 * S);
	fec_link_drain(l, S);
	sent = l->ends[0].counts.sent - sent;
	delivered = l->ends[0].counts.delivered - delivered;
	assert_true(sent - delivered <= 2);
	link_free(l);
}

static void
the_last_packet_of_a_burst_comes_back_without_a_next_one(void **state)
{
	(void)state;
	struct fec_link_config c = usual(8, 0.05);
	struct fec_link *l = link_new(&c);
	fec_link_run(l, 2 * S);
	unsigned lost = 0;
	for (int i = 0; i < 50; i++) {
		set_loss(l, 0, 0, 1);
		fec_link_drain(l, 500 * MS);
		uint64_t frames = l->ends[0].counts.frames;
		for (int k = 0; k < 5; k++) {
			fec_link_send(l, 0, 200, FEC_LINK_UDP);
		}
		lose_one(l);
		uint64_t last = l->ends[0].number - 1;
		assert_int_equal(l->ends[0].is_delivered[last], 0);
		fec_link_drain(l, 30 * MS);
		lost += !l->ends[0].is_delivered[last];
		/* The probe, and at most what answers a request. */
		assert_in_range(l->ends[0].counts.frames - frames, 1, 6);
	}
	assert_int_equal(lost, 0);
	link_free(l);
}

/* It takes the last packets, what was sent ahead over them and the first probes. */
static void
an_outage_at_the_end_of_a_flow_costs_nothing(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct fec_link_config c = usual(20 + seed, 0.1);
		struct fec_link *l = link_new(&c);
		fec_link_run(l, S);
		for (unsigned i = 0; i < 10; i++) {
			set_loss(l, 0, 0.1, 1);
			fec_link_run(l, 300 * MS);
			set_loss(l, 0, 1, 1);
			uint64_t last = l->ends[0].number;
			fec_link_run(l, 5 * MS);
			fec_link_drain(l, (5 + 10 * i) * MS);
			set_loss(l, 0, 0, 1);
			fec_link_drain(l, S);
			for (uint64_t k = last; k < l->ends[0].number; k++) {
				assert_true(l->ends[0].is_delivered[k]);
			}
		}
		link_free(l);
	}
}

/* Nobody earns answers any more then: enough of them must have been saved up. */
static void
the_end_of_a_flow_comes_back_though_half_is_lost(void **state)
{
	(void)state;
	uint64_t missing = 0, all = 0;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct fec_link_config c = usual(30 + seed, 0.5);
		c.flow[0].pps = 20000;
		c.settings[0].delay_ns = c.settings[1].delay_ns = 20 * MS;
		struct fec_link *l = link_new(&c);
		fec_link_run(l, S);
		fec_link_drain(l, 2 * S);
		for (uint64_t k = 6000; k < l->ends[0].number; k++) {
			missing += !l->ends[0].is_delivered[k];
			all++;
		}
		print_message("# seeds up to %llu: %llu missing\n", (unsigned long long)seed,
			(unsigned long long)missing);
		link_free(l);
	}
	assert_in_range(missing * 1000, 0, 3 * all);
}

static void
probes_end_with_the_first_word_of_them(void **state)
{
	(void)state;
	struct fec_link_config c = usual(9, 0.1);
	struct fec_link *l = link_new(&c);
	fec_link_run(l, 2 * S);
	set_loss(l, 0, 0, 1);
	set_loss(l, 1, 0, 1);
	fec_link_drain(l, S);
	for (int i = 0; i < 20; i++) {
		uint64_t probes = stats_of(l, 0).repairs_tail, words = l->ends[1].counts.frames;
		for (int k = 0; k < 5; k++) {
			fec_link_send(l, 0, 200, FEC_LINK_UDP);
		}
		fec_link_drain(l, S);
		/* What was sent ahead may stand for the first; the second is answered. */
		assert_in_range(stats_of(l, 0).repairs_tail - probes, 1, 2);
		assert_int_equal(l->ends[1].counts.frames - words, 1);
	}
	link_free(l);
}

static void
a_new_session_in_mid_loss_loses_nothing(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct fec_link_config c = usual(seed, 0.1);
		struct fec_link *l = link_new(&c);
		fec_link_run(l, S);
		uint64_t missing = l->ends[0].counts.sent_armed - l->ends[0].counts.delivered_armed;
		for (int i = 0; i < 20; i++) {
			fec_link_rekey(l);
			fec_link_run(l, 300 * MS);
		}
		fec_link_drain(l, S);
		missing = l->ends[0].counts.sent_armed - l->ends[0].counts.delivered_armed;
		/* A session's last packets, when its probe is lost too, have nothing that
		 * tells of them. */
		assert_in_range(missing, 0, 8);
		link_free(l);
	}
}

static void
either_side_may_restart_in_mid_loss(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct fec_link_config c = usual(seed, 0.1);
		struct fec_link *l = link_new(&c);
		fec_link_run(l, 2 * S);
		for (int i = 0; i < 4; i++) {
			assert_true(fec_link_restart(l, (unsigned)(seed % 2), &automatic));
			fec_link_run(l, 100 * MS);
			uint64_t sent = l->ends[0].counts.sent;
			uint64_t delivered = l->ends[0].counts.delivered;
			fec_link_run(l, 2 * S);
			sent = l->ends[0].counts.sent - sent;
			delivered = l->ends[0].counts.delivered - delivered;
			/* Some are on their way, or being asked for. */
			assert_true(sent < delivered + 30);
		}
		link_free(l);
	}
}

static void
lost_feedback_costs_time_but_few_packets(void **state)
{
	(void)state;
	static const struct {
		double back, residual_max;
	} cases[] = {{0.2, 1e-5}, {0.5, 1e-3}, {1, 1}};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		struct fec_link_config c = usual(20 + i, 0.1);
		c.settings[1].loss = fec_link_loss(cases[i].back, 1);
		struct fec_link *l = link_new(&c);
		fec_link_run(l, 10 * S);
		fec_link_drain(l, S);
		double lost =
			(double)(l->ends[0].counts.sent_armed - l->ends[0].counts.delivered_armed);
		assert_true(lost <= cases[i].residual_max * 40000 + 3);
		if (cases[i].back >= 1) {
			/* Nothing is known of the loss, so nothing is done. */
			assert_int_equal(l->ends[0].counts.frames, 0);
		}
		link_free(l);
	}
}

static void
both_directions_recover_at_once(void **state)
{
	(void)state;
	struct fec_link_config c = usual(30, 0.05);
	c.flow[1] = (struct fec_link_flow){.pps = 2500, .len = 1300};
	c.settings[1].loss = fec_link_loss(0.1, 2);
	struct fec_link *l = link_new(&c);
	fec_link_run(l, 10 * S);
	fec_link_drain(l, S);
	for (unsigned end = 0; end < 2; end++) {
		const struct fec_link_counts *k = &l->ends[end].counts;
		assert_true(k->sent_armed > 20000);
		assert_in_range(k->sent_armed - k->delivered_armed, 0, 3);
	}
	/* Each side's share is its own. */
	assert_true(stats_of(l, 0).loss < 0.08);
	assert_true(stats_of(l, 1).loss > 0.07);
	link_free(l);
}

static void
tcp_keeps_its_order_under_loss(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct fec_link_config c = usual(seed, 0.05);
		c.flow[0] = (struct fec_link_flow){
			.pps = 20000, .len = 1400, .batch = 32, .kind = FEC_LINK_TCP};
		struct fec_link *l = link_new(&c);
		fec_link_run(l, 5 * S);
		fec_link_drain(l, S);
		const struct fec_link_counts *k = &l->ends[0].counts;
		assert_int_equal(k->sent_armed, k->delivered_armed);
		print_message("# seed %llu: %llu of %llu recovered, %llu out of order\n",
			(unsigned long long)seed, (unsigned long long)k->recovered,
			(unsigned long long)k->sent, (unsigned long long)k->out_of_order);
		/* Where an answer was lost as well, or the request for it. */
		assert_true(k->out_of_order * 2000 <= k->sent);
		assert_true(k->hold_ns.max_ns <= 30 * MS);
		link_free(l);
	}
}

static void
small_packets_get_small_repairs(void **state)
{
	(void)state;
	struct fec_link_config c = usual(40, 0.1);
	c.flow[0] = (struct fec_link_flow){.pps = 4000, .len = 1400};
	struct fec_link *l = link_new(&c);
	fec_link_run(l, S);
	uint64_t before = stats_of(l, 0).repair_bytes, repairs = repairs_of(l, 0);
	l->ends[0].flow.len = 60;
	fec_link_run(l, S);
	uint64_t bytes = stats_of(l, 0).repair_bytes - before;
	repairs = repairs_of(l, 0) - repairs;
	/* But for answers to large ones lost just before. */
	assert_true(repairs > 500);
	assert_true(bytes < repairs * (60 + 2 + 24) + 30 * 1430);
	link_free(l);
}

static void
fixed_sends_its_share_from_the_first_packet(void **state)
{
	(void)state;
	struct fec_link_config c = usual(50, 0);
	c.policy[0] = (struct fec_policy){.mode = FEC_MODE_FIXED, .percent = 25};
	struct fec_link *l = link_new(&c);
	fec_link_run(l, 10 * S);
	struct fec_recovery_stats s = stats_of(l, 0);
	assert_int_equal(s.why, FEC_WHY_FIXED);
	assert_in_range(s.repairs_ahead, 9990, 10010);
	assert_true(s.overhead > 0.25 && s.overhead < 0.29);
	set_loss(l, 0, 0.05, 1);
	fec_link_run(l, 5 * S);
	fec_link_drain(l, S);
	assert_int_equal(l->ends[0].counts.sent, l->ends[0].counts.delivered);
	link_free(l);
}

/* --- one alone --- */

struct alone {
	struct fec_recovery *r;
	struct mono now;
	uint64_t counter;
	uint8_t frame[1500];
};

static void
alone_init(struct alone *a, const struct fec_policy *policy)
{
	struct fec_recovery_config c = {
		.policy = *policy, .packet_max = FEC_LINK_MTU, .frame_max = FEC_LINK_FRAME_MAX};
	*a = (struct alone){.now = {S}, .counter = 5};
	assert_int_equal(fec_recovery_new(&c, &a->r), 0);
	fec_recovery_set_path(a->r, a->now, 10 * MS, 0);
}

static void
alone_send(struct alone *a, unsigned n)
{
	uint8_t packet[200] = {0x45, 0, 0, 200, [9] = 17};
	for (unsigned i = 0; i < n; i++) {
		fec_recovery_source(a->r, a->now, 1, a->counter++, packet, sizeof(packet));
	}
}

static size_t
alone_take(struct alone *a)
{
	size_t n = fec_recovery_frames_due(a->r, a->now, 1);
	for (size_t i = 0; i < n; i++) {
		assert_true(fec_recovery_frame(
				    a->r, a->now, 1, a->counter++, a->frame, sizeof(a->frame)) > 0);
	}
	return n;
}

/* A FEEDBACK as a peer would send it. False: it was refused. */
static bool
alone_feedback(struct alone *a, const struct wire_ext_feedback *f)
{
	struct fec_packet packets[4];
	uint8_t arena[4096], data[WIRE_EXT_FEEDBACK_MAX];
	static uint64_t counter;
	struct fec_out out = {
		.packets = packets, .cap = 4, .arena = arena, .arena_cap = sizeof(arena)};
	size_t len = wire_ext_feedback_encode(f, data, sizeof(data));
	assert_true(len > 0);
	return fec_recovery_received(
		a->r, a->now, 1, &(struct fec_arrival){counter++, data, len, 0, false}, &out);
}

static void
a_repair_does_not_leave_with_all_that_it_covers(void **state)
{
	(void)state;
	static const struct fec_policy fixed = {.mode = FEC_MODE_FIXED, .percent = 50};
	struct alone a;
	alone_init(&a, &fixed);
	/* The first batch: all that a repair could cover leaves in this instant. */
	alone_send(&a, 40);
	assert_int_equal(alone_take(&a), 0);
	struct mono at = fec_recovery_deadline(a.r);
	assert_in_range(mono_diff_ns(at, a.now), MS / 2, 2 * MS);
	a.now = at;
	assert_true(alone_take(&a) >= 20);
	/* The second: they reach back over the first. */
	a.now = mono_add_ns(a.now, MS);
	alone_send(&a, 20);
	assert_true(alone_take(&a) >= 9);
	/* More than a repair reaches over, at once. */
	a.now = mono_add_ns(a.now, MS);
	alone_send(&a, 128);
	assert_int_equal(alone_take(&a), 0);
	/* The next source will do. */
	a.now = mono_add_ns(a.now, MS / 10);
	alone_send(&a, 1);
	assert_true(alone_take(&a) >= 60);
	fec_recovery_free(a.r);
}

/* Frames from the schedule to the wire: their counters tell what they are over. */
static void
repairs_of_a_wide_batch_name_all_of_its_packets(void **state)
{
	(void)state;
	static const struct fec_policy fixed = {.mode = FEC_MODE_FIXED, .percent = 10};
	struct alone a;
	alone_init(&a, &fixed);
	alone_send(&a, 192);
	a.now.ns += 2 * MS; /* the first source may have been that of a sparse flow */
	assert_in_range(alone_take(&a), 19, 21);
	for (int batch = 0; batch < 20; batch++) {
		unsigned covered[192] = {0};
		uint64_t first = a.counter;
		alone_send(&a, 192);
		a.now.ns += MS;
		size_t n = fec_recovery_frames_due(a.r, a.now, 1);
		assert_in_range(n, 18, 21);
		for (; n > 0; n--) {
			struct wire_ext_repair r;
			uint64_t own = a.counter++;
			size_t len =
				fec_recovery_frame(a.r, a.now, 1, own, a.frame, sizeof(a.frame));
			assert_true(wire_ext_repair_decode(a.frame, len, &r));
			for (unsigned i = 0; i < r.span; i++) {
				uint64_t counter = own - r.back + i;
				if (counter >= first && r.sources[i / 8] >> (i % 8) & 1) {
					covered[counter - first]++;
				}
			}
		}
		for (unsigned i = 0; i < 192; i++) {
			assert_in_range(covered[i], 3, 21);
		}
	}
	fec_recovery_free(a.r);
}

/* Half of what there is for peers without loss, a calm encoder takes; then it is spent. */
static void
a_spent_budget_leaves_a_peer_unprotected_and_says_so(void **state)
{
	(void)state;
	struct fec_budget budget = {.bytes_max = 100000};
	struct fec_recovery_config c = {.policy = {.mode = FEC_MODE_FIXED, .percent = 50},
		.packet_max = FEC_LINK_MTU,
		.frame_max = FEC_LINK_FRAME_MAX,
		.budget = &budget};
	struct alone a = {.now = {S}, .counter = 5};
	struct fec_recovery_stats s;
	assert_int_equal(fec_recovery_new(&c, &a.r), 0);
	for (int i = 0; i < 10; i++) {
		alone_send(&a, 10);
		a.now.ns += 10 * MS;
		assert_int_equal(alone_take(&a), 0);
	}
	fec_recovery_stats(a.r, &s);
	assert_int_equal(s.why, FEC_WHY_MEMORY);
	assert_int_equal(s.memory_refusals, 1); /* not asked for with every packet */
	assert_int_equal(s.memory, 0);
	assert_int_equal(s.sources, 100);
	assert_int_equal(budget.bytes, 0);
	/* Others have given back. */
	budget.bytes_max = 10u << 20;
	a.now.ns += S;
	alone_send(&a, 10);
	a.now.ns += 10 * MS;
	assert_true(alone_take(&a) > 0);
	fec_recovery_stats(a.r, &s);
	assert_int_equal(s.why, FEC_WHY_FIXED);
	assert_int_equal(s.memory, budget.bytes);
	assert_in_range(s.memory, 1u << 20, 2u << 20);
	fec_recovery_free(a.r);
	assert_int_equal(budget.bytes, 0);
}

/* What is refused to a calm peer is not refused to one in need. */
static void
a_calm_peer_without_memory_gets_some_when_it_is_armed(void **state)
{
	(void)state;
	struct fec_budget budget = {.bytes_max = 500000};
	struct fec_recovery_config c = {.policy = automatic,
		.packet_max = FEC_LINK_MTU,
		.frame_max = FEC_LINK_FRAME_MAX,
		.budget = &budget};
	struct alone a = {.now = {S}, .counter = 5};
	struct fec_recovery_stats s;
	assert_int_equal(fec_recovery_new(&c, &a.r), 0);
	alone_send(&a, 100);
	fec_recovery_stats(a.r, &s);
	assert_int_equal(s.memory, 0);
	assert_int_equal(s.memory_refusals, 1);
	struct wire_ext_feedback f = {.highest = 104, .received = 90, .lost = 10, .runs = 10};
	assert_true(alone_feedback(&a, &f));
	alone_send(&a, 1);
	fec_recovery_stats(a.r, &s);
	assert_in_range(s.memory, 256u << 10, budget.bytes_max);
	assert_int_not_equal(s.why, FEC_WHY_MEMORY);
	fec_recovery_free(a.r);
}

/* Packets of full size, in jobs of 192 that are 0.1 ms apart. */
static void
alone_send_fast(struct alone *a, uint64_t session, unsigned jobs)
{
	uint8_t packet[1400] = {0x45, 0, 1400 >> 8, 1400 & 0xff, [9] = 17};
	for (unsigned i = 0; i < jobs * 192; i++) {
		a->now.ns += i % 192 == 0 ? MS / 10 : 0;
		fec_recovery_source(a->r, a->now, session, a->counter++, packet, sizeof(packet));
		if (i % 192 == 191) {
			(void)fec_recovery_due_session(a->r, a->now, 0);
		}
	}
}

static struct fec_recovery_stats
alone_stats(const struct alone *a)
{
	struct fec_recovery_stats s;
	fec_recovery_stats(a->r, &s);
	return s;
}

static void
alone_init_bounded(struct alone *a, struct fec_budget *budget)
{
	struct fec_recovery_config c = {.policy = automatic,
		.packet_max = FEC_LINK_MTU,
		.frame_max = FEC_LINK_FRAME_MAX,
		.budget = budget};
	*a = (struct alone){.now = {S}, .counter = 5};
	assert_int_equal(fec_recovery_new(&c, &a->r), 0);
	fec_recovery_set_path(a->r, a->now, 10 * MS, 0);
}

/* The packet that begins a flow is the dearest one to lose. */
static void
the_first_packet_of_all_and_the_first_after_a_fast_flow_are_remembered(void **state)
{
	(void)state;
	struct alone a;
	alone_init(&a, &automatic);
	assert_true(fec_recovery_wants_sources(a.r, a.now));
	for (int i = 0; i < 1000; i++) {
		a.now.ns += MS;
		fec_recovery_sent_run(a.r, a.now, 1, a.counter, 100, 100 * 1000);
		a.counter += 100;
	}
	a.now.ns += MS;
	assert_false(fec_recovery_wants_sources(a.r, a.now));
	a.now.ns += 500 * MS;
	assert_true(fec_recovery_wants_sources(a.r, a.now));
	/* A pause saves up no more than a burst. */
	a.now.ns += 3600 * S;
	assert_true(fec_recovery_wants_sources(a.r, a.now));
	fec_recovery_sent_run(a.r, a.now, 1, a.counter, 2047, 2047 * 1000);
	assert_true(fec_recovery_wants_sources(a.r, a.now));
	fec_recovery_sent_run(a.r, a.now, 1, a.counter + 2047, 1, 1000);
	assert_false(fec_recovery_wants_sources(a.r, a.now));
	fec_recovery_free(a.r);
}

static void
a_calm_encoder_grows_to_its_bound_while_many_leave_and_shrinks_again(void **state)
{
	(void)state;
	struct fec_budget budget = {.bytes_max = 64u << 20};
	struct alone a;
	alone_init_bounded(&a, &budget);
	alone_send_fast(&a, 1, 1);
	assert_in_range(alone_stats(&a).memory, 256u << 10, 512u << 10);
	alone_send_fast(&a, 1, 40);
	uint64_t most = alone_stats(&a).memory;
	assert_in_range(most, 1u << 20, 5u << 18);
	/* No more is asked for, so none is refused when others have it all. */
	assert_true(fec_budget_take(&budget, 62u << 20, FEC_BUDGET_NEED));
	alone_send_fast(&a, 1, 40);
	assert_int_equal(alone_stats(&a).memory, most);
	assert_int_equal(alone_stats(&a).memory_refusals, 0);
	/* The last 700 are remembered. */
	struct wire_ext_feedback f = {.highest = (uint32_t)a.counter - 1,
		.received = 7000,
		.lost = 1,
		.runs = 1,
		.blocks_n = 1,
		.blocks = {{.back = 700, .span = 1, .want = 2, .missing = {1}}}};
	assert_true(alone_feedback(&a, &f));
	struct wire_ext_repair r;
	size_t n = alone_take(&a);
	assert_true(n > 0);
	assert_true(wire_ext_repair_decode(a.frame, sizeof(a.frame), &r));
	assert_int_equal(r.why, WIRE_EXT_WHY_ANSWER);
	assert_int_equal(r.sources[0], 1);
	fec_recovery_free(a.r);
	/* A flow that is slow from then on. */
	fec_budget_give(&budget, 62u << 20);
	assert_int_equal(budget.bytes, 0);
	alone_init_bounded(&a, &budget);
	alone_send_fast(&a, 1, 40);
	assert_int_equal(alone_stats(&a).memory, most);
	for (int i = 0; i < 4000; i++) {
		alone_send(&a, 1);
		a.now.ns += MS;
		(void)fec_recovery_due_session(a.r, a.now, 0);
	}
	assert_int_equal(most - alone_stats(&a).memory, 768u << 10);
	fec_recovery_free(a.r);
	assert_int_equal(budget.bytes, 0);
}

/* Who has enough does not take it from those that have nothing, his own next session included. */
static void
growth_that_is_refused_leaves_a_new_session_what_it_needs(void **state)
{
	(void)state;
	static const uint32_t budgets[] = {2u << 20, 4u << 20};
	for (int is_armed = 0; is_armed <= 1; is_armed++) {
		struct fec_budget budget = {.bytes_max = budgets[is_armed]};
		struct alone a;
		alone_init_bounded(&a, &budget);
		alone_send_fast(&a, 1, 1);
		if (is_armed) {
			struct wire_ext_feedback f = {.highest = (uint32_t)a.counter - 1,
				.received = 180,
				.lost = 10,
				.runs = 10};
			assert_true(alone_feedback(&a, &f));
		}
		alone_send_fast(&a, 1, 40);
		struct fec_recovery_stats before = alone_stats(&a);
		assert_int_equal(before.memory_refusals, 1); /* not asked for with every job */
		assert_in_range(before.memory, 256u << 10,
			is_armed ? budget.bytes_max / 4 * 3 : budget.bytes_max / 4);
		alone_send_fast(&a, 2, 1);
		assert_in_range(alone_stats(&a).memory - before.memory, 64u << 10, 2u << 20);
		fec_recovery_free(a.r);
		assert_int_equal(budget.bytes, 0);
	}
}

static void
what_a_peer_asks_for_is_bounded(void **state)
{
	(void)state;
	struct alone a;
	alone_init(&a, &automatic);
	alone_send(&a, 100);
	struct wire_ext_feedback f = {.highest = 104, .received = 90, .lost = 10, .runs = 10};
	assert_true(alone_feedback(&a, &f));
	assert_true(fec_recovery_is_armed(a.r));
	alone_send(&a, 100);
	alone_take(&a);
	f.blocks_n = WIRE_EXT_BLOCKS_MAX;
	for (int i = 0; i < WIRE_EXT_BLOCKS_MAX; i++) {
		f.blocks[i] = (struct wire_ext_block){.back = 99, .span = 100, .want = 64};
		memset(f.blocks[i].missing, 0xff, 12);
	}
	struct fec_recovery_stats before, after;
	uint64_t frames = 0;
	for (uint32_t round = 0; round < 1000; round++) {
		f.highest = 204;
		f.clock_us = round;
		assert_true(alone_feedback(&a, &f));
		fec_recovery_stats(a.r, &before);
		frames += alone_take(&a);
		fec_recovery_stats(a.r, &after);
		assert_in_range(after.repairs_answer - before.repairs_answer, 0, 64);
		a.now.ns += MS / 2;
	}
	/* What may be saved up, and no more without sources. */
	assert_in_range(frames, 64, 1000);
	alone_send(&a, 1);
	f.clock_us = 5000;
	assert_true(alone_feedback(&a, &f));
	assert_in_range(alone_take(&a), 0, 4);
	fec_recovery_free(a.r);
}

/* The peer says of the last n that they were lost, so that we are armed and have answers. */
static void
alone_arm(struct alone *a, struct wire_ext_feedback *f)
{
	*f = (struct wire_ext_feedback){
		.highest = (uint32_t)a->counter - 1, .received = 90, .lost = 10, .runs = 10};
	assert_true(alone_feedback(a, f));
	assert_true(fec_recovery_is_armed(a->r));
}

static void
what_a_peer_asks_for_before_it_was_sent_is_no_answer(void **state)
{
	(void)state;
	struct alone a;
	struct wire_ext_feedback f;
	alone_init(&a, &automatic);
	alone_send(&a, 100);
	alone_arm(&a, &f);
	alone_send(&a, 100);
	alone_take(&a);
	for (uint32_t ahead = 1; ahead < 4000; ahead += 7) {
		f.highest = (uint32_t)a.counter - 1 + ahead;
		f.clock_us++;
		f.blocks_n = 1;
		f.blocks[0] = (struct wire_ext_block){
			.back = ahead % 128, .span = (uint8_t)(1 + ahead % 128), .want = 64};
		memset(f.blocks[0].missing, 0xff, f.blocks[0].span / 8);
		assert_true(alone_feedback(&a, &f));
		struct wire_ext_repair r;
		uint64_t from = a.counter, n = alone_take(&a);
		/* Of several that are due the last was looked at here. */
		if (n > 0 && wire_ext_type(a.frame, 1) == WIRE_EXT_TYPE_REPAIR) {
			assert_true(wire_ext_repair_decode(a.frame, sizeof(a.frame), &r));
			assert_true(from + n - 1 - r.back + r.span <= from + n - 1);
		}
	}
	fec_recovery_free(a.r);
}

static void
words_about_what_is_no_source_are_bounded_as_answers_are(void **state)
{
	(void)state;
	struct alone a;
	struct wire_ext_feedback f;
	alone_init(&a, &automatic);
	alone_send(&a, 100);
	alone_arm(&a, &f);
	uint64_t hole = a.counter;
	a.counter += 8; /* HELLOs */
	alone_send(&a, 100);
	alone_take(&a);
	uint64_t frames = 0;
	for (uint32_t round = 0; round < 1000; round++) {
		f.highest = (uint32_t)(hole + 100);
		f.clock_us = round;
		f.blocks_n = WIRE_EXT_BLOCKS_MAX;
		for (unsigned i = 0; i < f.blocks_n; i++) {
			f.blocks[i] = (struct wire_ext_block){
				.back = (uint16_t)(100 - i), .span = 1, .want = 1, .missing = {1}};
		}
		assert_true(alone_feedback(&a, &f));
		frames += alone_take(&a);
	}
	assert_in_range(frames, 8, 1000);
	fec_recovery_free(a.r);
}

static void
small_sources_earn_no_answers_over_large_ones(void **state)
{
	(void)state;
	struct alone a;
	struct wire_ext_feedback f;
	alone_init(&a, &automatic);
	alone_send(&a, 100);
	alone_arm(&a, &f);
	static uint8_t large[1400] = {0x45, 0, 5, 120, [9] = 17};
	uint8_t small[40] = {0x45, 0, 0, 40, [9] = 17};
	uint64_t at = a.counter++, bytes = 0, sources = 10000;
	fec_recovery_source(a.r, a.now, 1, at, large, sizeof(large));
	for (uint32_t i = 0; i < sources; i++) {
		a.now = mono_add_ns(a.now, MS / 10);
		fec_recovery_source(a.r, a.now, 1, a.counter++, small, sizeof(small));
		f.highest = (uint32_t)at;
		f.clock_us++;
		f.blocks_n = 1;
		f.blocks[0] = (struct wire_ext_block){.span = 1, .want = 64, .missing = {1}};
		assert_true(alone_feedback(&a, &f));
		for (size_t n = fec_recovery_frames_due(a.r, a.now, 1); n > 0; n--) {
			bytes += fec_recovery_frame(
				a.r, a.now, 1, a.counter++, a.frame, sizeof(a.frame));
		}
	}
	/* What may be saved up, and about four bytes for each; ahead of time as much again. */
	assert_in_range(bytes, 100000, 512 * 1500 + sources * sizeof(small) * 5);
	fec_recovery_free(a.r);
}

static void
feedback_that_cannot_be_true_is_refused_or_ignored(void **state)
{
	(void)state;
	struct alone a;
	alone_init(&a, &automatic);
	alone_send(&a, 100);
	struct wire_ext_feedback f = {.highest = 104, .received = 50, .lost = 5, .runs = 5};
	/* Counters that were never sent. */
	f.highest = 104 + 100000;
	assert_false(alone_feedback(&a, &f));
	f.highest = (uint32_t)-50;
	assert_false(alone_feedback(&a, &f));
	assert_false(fec_recovery_is_armed(a.r));
	/* An older one, and totals that contradict each other: no evidence. */
	f = (struct wire_ext_feedback){.highest = 104, .received = 50};
	assert_true(alone_feedback(&a, &f));
	f = (struct wire_ext_feedback){.highest = 103, .received = 40, .lost = 3, .runs = 3};
	assert_true(alone_feedback(&a, &f));
	assert_false(fec_recovery_is_armed(a.r));
	f = (struct wire_ext_feedback){.highest = 104, .received = 60, .lost = 3, .runs = 9};
	assert_true(alone_feedback(&a, &f));
	assert_false(fec_recovery_is_armed(a.r));
	/* A block from before the session began. */
	f = (struct wire_ext_feedback){.highest = 104,
		.received = 61,
		.lost = 1,
		.runs = 1,
		.blocks_n = 1,
		.blocks = {{.back = 60000, .span = 1, .want = 2, .missing = {1}}}};
	assert_true(alone_feedback(&a, &f));
	assert_int_equal(alone_take(&a), 0);
	fec_recovery_free(a.r);
}

static void
a_forgotten_session_has_nothing_due(void **state)
{
	(void)state;
	static const struct fec_policy fixed = {.mode = FEC_MODE_FIXED, .percent = 100};
	struct alone a;
	alone_init(&a, &fixed);
	alone_send(&a, 10);
	assert_int_not_equal(fec_recovery_deadline(a.r).ns, MONO_NEVER.ns);
	fec_recovery_forget(a.r, 1);
	fec_recovery_forget(a.r, 1);
	fec_recovery_forget(a.r, 0);
	assert_int_equal(fec_recovery_deadline(a.r).ns, MONO_NEVER.ns);
	assert_int_equal(fec_recovery_due_session(a.r, mono_add_ns(a.now, S), 0), 0);
	fec_recovery_free(a.r);
}

static void
totals_outlive_sessions(void **state)
{
	(void)state;
	struct fec_link_config c = usual(60, 0.1);
	struct fec_link *l = link_new(&c);
	uint64_t lost = 0, received = 0;
	for (int i = 0; i < 8; i++) {
		fec_link_run(l, 200 * MS);
		fec_link_drain(l, 100 * MS);
		struct fec_recovery_stats s = stats_of(l, 1);
		assert_true(s.rx.lost >= lost && s.rx.received > received);
		lost = s.rx.lost;
		received = s.rx.received;
		fec_link_rekey(l);
	}
	/* Nearly what the line says: the first and last packets of a session are not seen lost. */
	assert_in_range(lost, l->ends[0].out.counters.lost - 40, l->ends[0].out.counters.lost);
	link_free(l);
}

/* A flow one way, on a line that loses as much both ways: what goes back is FEEDBACK, and a ping
 * now and then, or nothing else at all. */
static void
the_loss_of_a_direction_of_feedbacks_is_not_overstated(void **state)
{
	(void)state;
	static const double rates[] = {0.5, 2, 20};
	static const double losses[] = {0.01, 0.05, 0.2};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(rates); i++) {
		for (size_t k = 0; k < WEFT_ARRAY_LEN(losses); k++) {
			struct fec_link_config c = usual(70 + i, losses[k]);
			c.flow[1] = (struct fec_link_flow){.pps = rates[i], .len = 100};
			struct fec_link *l = link_new(&c);
			double sum = 0, most = 0;
			fec_link_run(l, 5 * S);
			for (int n = 0; n < 50; n++) {
				fec_link_run(l, S / 2);
				double loss = stats_of(l, 1).loss;
				sum += loss;
				most = loss > most ? loss : most;
			}
			print_message("# %g pings/s, %.2f lost: believed %.4f, at most %.4f\n",
				rates[i], losses[k], sum / 50, most);
			assert_true(sum / 50 > 0.4 * losses[k] && sum / 50 < 1.5 * losses[k]);
			assert_true(most < 2.5 * losses[k] + 0.01);
			link_free(l);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clean_link_sends_nothing_and_waits_for_nothing),
		cmocka_unit_test(a_slow_flow_is_remembered_before_its_first_loss),
		cmocka_unit_test(reordering_and_duplication_cause_no_repair_and_no_wait),
		cmocka_unit_test(the_first_loss_is_answered_to_within_a_round_trip_and_3_ms),
		cmocka_unit_test(repairs_end_within_a_second_when_the_loss_ends),
		cmocka_unit_test(an_idle_peer_costs_nothing_after_its_probe),
		cmocka_unit_test(the_last_packet_of_a_burst_comes_back_without_a_next_one),
		cmocka_unit_test(an_outage_at_the_end_of_a_flow_costs_nothing),
		cmocka_unit_test(the_end_of_a_flow_comes_back_though_half_is_lost),
		cmocka_unit_test(probes_end_with_the_first_word_of_them),
		cmocka_unit_test(a_new_session_in_mid_loss_loses_nothing),
		cmocka_unit_test(either_side_may_restart_in_mid_loss),
		cmocka_unit_test(lost_feedback_costs_time_but_few_packets),
		cmocka_unit_test(both_directions_recover_at_once),
		cmocka_unit_test(tcp_keeps_its_order_under_loss),
		cmocka_unit_test(small_packets_get_small_repairs),
		cmocka_unit_test(fixed_sends_its_share_from_the_first_packet),
		cmocka_unit_test(a_repair_does_not_leave_with_all_that_it_covers),
		cmocka_unit_test(repairs_of_a_wide_batch_name_all_of_its_packets),
		cmocka_unit_test(a_spent_budget_leaves_a_peer_unprotected_and_says_so),
		cmocka_unit_test(a_calm_peer_without_memory_gets_some_when_it_is_armed),
		cmocka_unit_test(
			the_first_packet_of_all_and_the_first_after_a_fast_flow_are_remembered),
		cmocka_unit_test(
			a_calm_encoder_grows_to_its_bound_while_many_leave_and_shrinks_again),
		cmocka_unit_test(growth_that_is_refused_leaves_a_new_session_what_it_needs),
		cmocka_unit_test(what_a_peer_asks_for_is_bounded),
		cmocka_unit_test(what_a_peer_asks_for_before_it_was_sent_is_no_answer),
		cmocka_unit_test(words_about_what_is_no_source_are_bounded_as_answers_are),
		cmocka_unit_test(small_sources_earn_no_answers_over_large_ones),
		cmocka_unit_test(feedback_that_cannot_be_true_is_refused_or_ignored),
		cmocka_unit_test(a_forgotten_session_has_nothing_due),
		cmocka_unit_test(totals_outlive_sessions),
		cmocka_unit_test(the_loss_of_a_direction_of_feedbacks_is_not_overstated),
	};
	return cmocka_run_group_tests_name("recovery", tests, NULL, NULL);
}
