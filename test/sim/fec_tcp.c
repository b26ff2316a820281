/* SPDX-License-Identifier: Apache-2.0 */
#include "fec_tcp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fec_link.h"

#define SEGMENT 1400u
#define ACK 60u
#define PING 100u
#define SEQ_MAX (1u << 20)
#define NUMBERS_MAX (1u << 21)
#define CUBIC_C 0.4
#define CUBIC_BETA 0.7
#define RTO_MIN_NS (200 * WEFT_NS_PER_MS)
#define STEP_NS (WEFT_NS_PER_MS / 4)

enum kind {
	KIND_DATA,
	KIND_PING,
	KIND_ACK,
};

struct segment {
	struct mono sent_at;
	bool is_acked, is_lost, is_here;
	uint8_t times;
};

struct tcp {
	struct fec_link link;
	struct segment *segments;
	uint32_t next; /* sequence number never sent */
	uint32_t una;  /* the first not acknowledged */
	uint32_t in_flight, lost_n, recovery_end;
	double cwnd, ssthresh, w_max;
	struct mono epoch;
	int64_t rtt_least_ns, srtt_ns;
	struct mono acked_sent_at; /* departure of the latest that was acknowledged */
	struct mono last_ack;
	uint32_t *log; /* sequence numbers in the order of arrival, and how many are known */
	uint32_t log_n, log_known, unacked_n;
	bool has_mark; /* arrived, and not told yet */
	/* By number of a packet of an end: what it was. */
	struct {
		uint8_t kind;
		uint32_t value; /* sequence number; for an ACK, the length of the log */
		bool has_echo;  /* an ACK: a mark has arrived since the last one */
	} * what[2];
	struct emu_histogram ping_ns;
	uint64_t pings_sent, pings_here;
	uint64_t here_n; /* distinct segments */
	struct fec_tcp_result *result;
};

static void
note(struct tcp *t, unsigned end, uint64_t number, enum kind kind, uint32_t value)
{
	t->what[end][number].kind = (uint8_t)kind;
	t->what[end][number].value = value;
}

static void
transmit(struct tcp *t, uint32_t seq)
{
	struct segment *s = &t->segments[seq];
	note(t, 0, t->link.ends[0].number, KIND_DATA, seq);
	fec_link_send(&t->link, 0, SEGMENT, FEC_LINK_TCP);
	s->sent_at = t->link.now;
	s->times++;
	t->in_flight++;
}

static void
fill(struct tcp *t)
{
	for (uint32_t seq = t->una; t->lost_n > 0 && seq < t->next && t->in_flight < t->cwnd;
		seq++) {
		struct segment *s = &t->segments[seq];
		if (s->is_lost) {
			s->is_lost = false;
			t->lost_n--;
			t->result->retransmissions++;
			transmit(t, seq);
		}
	}
	while (t->in_flight < t->cwnd && t->next < SEQ_MAX) {
		transmit(t, t->next++);
	}
}

static void
reduce(struct tcp *t)
{
	t->w_max = t->cwnd;
	t->cwnd = t->cwnd * CUBIC_BETA < 2 ? 2 : t->cwnd * CUBIC_BETA;
	t->ssthresh = t->cwnd;
	t->epoch = t->link.now;
	t->recovery_end = t->next;
	t->result->reductions++;
}

static void
grow(struct tcp *t, uint32_t acked)
{
	if (t->una < t->recovery_end) {
		return;
	}
	if (t->cwnd < t->ssthresh) {
		t->cwnd += acked;
		return;
	}
	double x = (double)mono_diff_ns(t->link.now, t->epoch) / 1e9;
	double k = cbrt(t->w_max * (1 - CUBIC_BETA) / CUBIC_C);
	double target = CUBIC_C * (x - k) * (x - k) * (x - k) + t->w_max;
	/* As Reno would, at the least. */
	double reno = t->w_max * CUBIC_BETA +
		      3 * (1 - CUBIC_BETA) / (1 + CUBIC_BETA) * x * 1e9 / (double)t->srtt_ns;
	target = target > reno ? target : reno;
	target = target < 1.5 * t->cwnd ? target : 1.5 * t->cwnd;
	if (target > t->cwnd) {
		t->cwnd += (target - t->cwnd) / t->cwnd * acked;
	}
}

static void
find_lost(struct tcp *t)
{
	int64_t window = t->rtt_least_ns / 4;
	bool is_new = false;
	for (uint32_t seq = t->una; seq < t->next; seq++) {
		struct segment *s = &t->segments[seq];
		if (!s->is_acked && !s->is_lost && mono_diff_ns(t->acked_sent_at, s->sent_at) > 0 &&
			mono_diff_ns(t->link.now, s->sent_at) > t->srtt_ns + window) {
			s->is_lost = true;
			t->lost_n++;
			t->in_flight--;
			is_new = is_new || seq >= t->recovery_end;
		}
	}
	if (is_new) {
		reduce(t);
	}
}

static void
acknowledged(struct tcp *t, uint32_t known)
{
	uint32_t acked = 0;
	for (; t->log_known < known; t->log_known++) {
		struct segment *s = &t->segments[t->log[t->log_known]];
		if (s->is_acked) {
			continue;
		}
		s->is_acked = true;
		acked++;
		if (s->is_lost) {
			s->is_lost = false;
			t->lost_n--;
		} else {
			t->in_flight--;
		}
		if (s->times == 1) {
			int64_t rtt = mono_diff_ns(t->link.now, s->sent_at);
			t->rtt_least_ns = rtt < t->rtt_least_ns ? rtt : t->rtt_least_ns;
			t->srtt_ns = t->srtt_ns ? t->srtt_ns + (rtt - t->srtt_ns) / 8 : rtt;
			if (mono_is_before(t->acked_sent_at, s->sent_at)) {
				t->acked_sent_at = s->sent_at;
			}
		}
	}
	while (t->una < t->next && t->segments[t->una].is_acked) {
		t->una++;
	}
	t->last_ack = t->link.now;
	find_lost(t);
	grow(t, acked);
}

static void
arrived(struct tcp *t, uint32_t seq)
{
	struct segment *s = &t->segments[seq];
	t->here_n += !s->is_here;
	s->is_here = true;
	bool is_in_order = t->log_n == 0 || seq == t->log[t->log_n - 1] + 1;
	t->log[t->log_n++] = seq;
	if (++t->unacked_n >= 2 || !is_in_order) {
		t->unacked_n = 0;
		note(t, 1, t->link.ends[1].number, KIND_ACK, t->log_n);
		t->what[1][t->link.ends[1].number].has_echo = t->has_mark;
		t->has_mark = false;
		fec_link_send(&t->link, 1, ACK, FEC_LINK_TCP);
	}
}

static void
on_delivery(void *user, unsigned from, uint64_t number)
{
	struct tcp *t = user;
	uint32_t value = t->what[from][number].value;
	switch ((enum kind)t->what[from][number].kind) {
	case KIND_DATA:
		t->has_mark = t->has_mark || t->link.ends[from].is_marked[number];
		if (t->log_n < NUMBERS_MAX) {
			arrived(t, value);
		}
		break;
	case KIND_PING:
		t->pings_here++;
		emu_histogram_add(
			&t->ping_ns, mono_diff_ns(t->link.now, t->link.ends[0].sent_at[number]) -
					     t->link.delay_ns);
		break;
	case KIND_ACK:
		acknowledged(t, value);
		if (t->what[from][number].has_echo && t->una >= t->recovery_end) {
			reduce(t);
		}
		fill(t);
		break;
	}
}

static void
tick(struct tcp *t, uint64_t n)
{
	int64_t rto = 2 * t->srtt_ns > RTO_MIN_NS ? 2 * t->srtt_ns : RTO_MIN_NS;
	if (t->una < t->next && mono_diff_ns(t->link.now, t->last_ack) > rto) {
		for (uint32_t seq = t->una; seq < t->next; seq++) {
			struct segment *s = &t->segments[seq];
			if (!s->is_acked && !s->is_lost) {
				s->is_lost = true;
				t->lost_n++;
			}
		}
		t->in_flight = 0;
		reduce(t);
		t->cwnd = 2;
		t->last_ack = t->link.now;
	}
	if (n % 4 == 0 && t->una < t->next) {
		find_lost(t);
	}
	fill(t);
	if (n % 200 == 0) {
		note(t, 0, t->link.ends[0].number, KIND_PING, 0);
		fec_link_send(&t->link, 0, PING, FEC_LINK_UDP);
		t->pings_sent++;
	}
}

static bool
tcp_init(struct tcp *t, const struct fec_tcp_case *c, uint64_t seed)
{
	struct fec_link_config config = {.seed = seed, .numbers_max = NUMBERS_MAX};
	for (int i = 0; i < 2; i++) {
		config.policy[i].mode = FEC_MODE_AUTO;
		config.settings[i] = emu_settings_default;
		config.settings[i].delay_ns = (int64_t)(c->rtt_ms * 5e5);
		config.settings[i].loss = fec_link_loss(c->loss, 1);
	}
	config.settings[0].rate_bps = (uint64_t)(c->rate_mbit * 1e6);
	config.settings[0].queue.ns = (int64_t)(c->queue_ms * 1e6);
	config.is_off = c->is_off;
	config.is_ecn = c->is_ecn;
	config.police = (struct fec_link_police){c->police_mbit * 1e6, c->police_kbyte * 1000};
	t->segments = calloc(SEQ_MAX, sizeof(*t->segments));
	t->log = calloc(NUMBERS_MAX, sizeof(*t->log));
	t->what[0] = calloc(NUMBERS_MAX, sizeof(*t->what[0]));
	t->what[1] = calloc(NUMBERS_MAX, sizeof(*t->what[1]));
	t->cwnd = 10;
	t->ssthresh = 1e9;
	t->rtt_least_ns = WEFT_NS_PER_S;
	bool is_good = fec_link_init(&t->link, &config) && t->segments && t->log && t->what[0] &&
		       t->what[1];
	t->link.on_delivery = on_delivery;
	t->link.user = t;
	t->last_ack = t->link.now;
	return is_good;
}

static void
run(struct tcp *t, const struct fec_tcp_case *c)
{
	uint64_t steps = (uint64_t)(c->seconds * 1e9 / (double)STEP_NS), congested = 0;
	uint64_t here_from = 0;
	double ahead = 0;
	for (uint64_t n = 0; n < steps && !t->link.is_wrong; n++) {
		tick(t, n);
		fec_link_run(&t->link, STEP_NS);
		struct fec_recovery_stats s;
		if (n % 40 == 0) {
			fec_recovery_stats(t->link.ends[0].recovery, &s);
			congested += s.why == FEC_WHY_CONGESTED;
			ahead += s.ahead_share;
		}
		here_from = n == steps / 5 ? t->here_n : here_from;
	}
	struct fec_tcp_result *r = t->result;
	r->goodput_mbit =
		(double)(t->here_n - here_from) * (SEGMENT - 40) * 8 / (c->seconds * 0.8) / 1e6;
	r->congested = (double)congested * 40 / (double)steps;
	r->ahead = ahead * 40 / (double)steps;
	fec_link_drain(&t->link, WEFT_NS_PER_S);
	r->ping_p50_ms = (double)emu_histogram_quantile(&t->ping_ns, 0.5) / 1e6;
	r->ping_p99_ms = (double)emu_histogram_quantile(&t->ping_ns, 0.99) / 1e6;
	r->ping_loss = 1 - (double)t->pings_here / (double)t->pings_sent;
	struct fec_recovery_stats s;
	fec_recovery_stats(t->link.ends[0].recovery, &s);
	r->marks = s.ce_marked;
	r->wire_share = s.source_bytes ? (double)s.repair_bytes / (double)s.source_bytes : 0;
}

bool
fec_tcp_run(const struct fec_tcp_case *c, uint64_t seed, struct fec_tcp_result *out, char text[200])
{
	struct tcp *t = calloc(1, sizeof(*t));
	*out = (struct fec_tcp_result){0};
	snprintf(text, 200, "no memory");
	if (!t) {
		return false;
	}
	t->result = out;
	bool is_good = tcp_init(t, c, seed);
	if (is_good) {
		run(t, c);
		is_good = !t->link.is_wrong;
		snprintf(text, 200, "%s", t->link.text);
	}
	fec_link_fini(&t->link);
	free(t->segments);
	free(t->log);
	free(t->what[0]);
	free(t->what[1]);
	free(t);
	return is_good;
}
