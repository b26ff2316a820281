/* SPDX-License-Identifier: Apache-2.0 */
#include "loss.h"

#include <stdlib.h>
#include <string.h>

#define LOSS_FLOW 1

struct emu_loss
sim_loss_of(double share, double burst)
{
	if (burst <= 1) {
		return (struct emu_loss){.to_good = 1, .in_good = share};
	}
	return (struct emu_loss){
		.to_good = 1 / burst, .to_bad = share / (1 - share) / burst, .in_bad = 1};
}

static void
see_session(struct sim_loss_way *way, const struct sim_inner *in, int64_t now)
{
	if (in->kind == SIM_KIND_OTHER) {
		return;
	}
	if (in->receiver != way->receiver) {
		way->receiver = in->receiver;
		way->session_ns = now;
		way->requests = 0;
		way->has_heard = false;
		way->sessions++;
	}
	way->requests += in->kind == SIM_KIND_HELLO && !in->is_answer;
	way->requests_max = way->requests > way->requests_max ? way->requests : way->requests_max;
	bool is_settled = now - way->session_ns > SIM_LOSS_AGREE_NS;
	/* Later ones may be of the next session, which the other side sends in already. */
	way->has_heard |= way->heard_ns >= way->session_ns - WEFT_NS_PER_S &&
			  way->heard_ns < way->session_ns + SIM_LOSS_AGREE_NS;
	way->has_unagreed |= is_settled && !way->has_heard;
	way->unmarked_late +=
		is_settled && way->has_heard && in->kind == SIM_KIND_PACKET && !in->is_aes;
}

static void
see(void *ctx, unsigned from, unsigned to, const struct sim_inner *in, bool is_lost)
{
	struct sim_loss_story *s = ctx;
	struct sim_loss_way *way = &s->ways[from];
	int64_t now = s->world->report->now.ns;
	see_session(way, in, now);
	if (in->kind == SIM_KIND_HELLO && !is_lost) {
		s->ways[to].heard_ns = now;
	}
	if (in->kind == SIM_KIND_PACKET) {
		s->last_packet_ns = now;
		for (unsigned i = 0; i < SIM_HOSTS_MAX; i++) {
			memset(s->ways[i].frames_after, 0, sizeof(s->ways[i].frames_after));
		}
		way->packets++;
		way->packets_lost += is_lost;
		way->first_loss_ns = is_lost && !way->first_loss_ns ? now : way->first_loss_ns;
		if (!is_lost && way->first_loss_ns && !way->shown_ns) {
			way->shown_ns = now;
		}
	}
	if (sim_kind_is_frame(in->kind)) {
		way->frames[in->kind]++;
		way->frames_after[in->kind]++;
		way->last_frame_ns = in->kind == SIM_KIND_HELLO ? way->last_frame_ns : now;
	}
	if (in->kind == SIM_KIND_REPAIR && !way->first_repair_ns) {
		way->first_repair_ns = now;
	}
	way->feedbacks_lost_before +=
		in->kind == SIM_KIND_FEEDBACK && is_lost && !s->ways[to].first_repair_ns;
}

void
sim_loss_watch(struct sim_loss_story *s, struct sim_world *w)
{
	*s = (struct sim_loss_story){.world = w};
	w->net.watch = see;
	w->net.watch_ctx = s;
}

void
sim_loss_set(struct sim_world *w, unsigned from, unsigned to, const struct emu_loss *loss,
	int64_t delay_ns)
{
	struct emu_settings s = emu_settings_default;
	s.loss = *loss;
	s.delay_ns = delay_ns;
	emu_channel_set(&w->net.channels[from][to], w->report->now, &s);
}

void
sim_loss_meet(struct sim_world *w, int64_t delay_ns)
{
	struct emu_settings s = emu_settings_default;
	s.delay_ns = delay_ns;
	sim_net_set(&w->net, &s);
	for (unsigned i = 0; i < 2; i++) {
		uint32_t id = sim_world_ping(w, i, 1 - i);
		sim_world_run_s(w, 1);
		sim_check(w->report, sim_world_has_arrived(w, id), "no session");
	}
}

static void
send_batch(struct sim_world *w, const struct sim_loss_flow *f)
{
	struct sim_packet p = {.src = (uint8_t)f->from,
		.dst = (uint8_t)f->to,
		.claimed = (uint8_t)f->from,
		.flow = LOSS_FLOW,
		.proto = f->proto,
		.tcp_flags = 0x10,
		.len = f->len};
	for (unsigned i = 0; i < f->batch; i++) {
		sim_world_send(w, &p, 1, p.len);
	}
}

void
sim_loss_run(struct sim_world *w, const struct sim_loss_flow *flows, size_t n, double seconds)
{
	int64_t end = w->report->now.ns + (int64_t)(seconds * 1e9);
	int64_t next[SIM_HOSTS_MAX * SIM_HOSTS_MAX];
	for (size_t i = 0; i < n; i++) {
		next[i] = w->report->now.ns + 1000 * (int64_t)i;
	}
	while (w->report->now.ns < end) {
		int64_t soonest = end;
		for (size_t i = 0; i < n; i++) {
			if (next[i] <= w->report->now.ns) {
				send_batch(w, &flows[i]);
				next[i] += (int64_t)(1e9 * flows[i].batch / flows[i].pps);
			}
			soonest = next[i] < soonest ? next[i] : soonest;
		}
		sim_world_run_ns(w, soonest - w->report->now.ns);
	}
}

void
sim_loss_check(struct sim_world *w, uint32_t first, int64_t hold_ns)
{
	for (uint32_t id = first; id < w->ledger.n; id++) {
		const struct sim_packet *p = &w->ledger.packets[id];
		if (!p->arrived) {
			continue;
		}
		sim_check(w->report, p->delivered,
			"packet %u from %u arrived and was not delivered", id, p->src);
		int64_t held_ns = p->came_ns - p->arrived_ns;
		int64_t most_ns = p->proto == SIM_PROTO_TCP ? hold_ns : 0;
		sim_check(w->report, held_ns <= most_ns,
			"packet %u from %u arrived and was held for %.3f ms", id, p->src,
			(double)held_ns / 1e6);
	}
}

/* Frames tell of packets, and not of frames: what a side asks for is older than the last packet,
 * and it asks for three round trips, or 0.2 s. REPAIRs that may still be due (64), probes, and what
 * answers may have been saved up (512, and three for each packet of a round trip); a FEEDBACK each
 * 2 ms three times, and about each probe. */
void
sim_loss_check_quiet(
	struct sim_world *w, const struct sim_loss_story *s, int64_t rtt_ns, double pps)
{
	int64_t most_ns = 10 * rtt_ns > WEFT_NS_PER_S ? 10 * rtt_ns : WEFT_NS_PER_S;
	int64_t asking_ns = 5 * rtt_ns + WEFT_NS_PER_S / 2;
	for (unsigned i = 0; i < 2; i++) {
		const struct sim_loss_way *way = &s->ways[i];
		unsigned long long repairs = way->frames_after[SIM_KIND_REPAIR];
		unsigned long long feedbacks = way->frames_after[SIM_KIND_FEEDBACK];
		int64_t after_ns = way->last_frame_ns - s->last_packet_ns;
		sim_trace(w->report,
			"host %u after the last packet: %llu REPAIRs, %llu FEEDBACKs, the last "
			"after %.0f ms, RTT %.0f ms",
			i, repairs, feedbacks, (double)after_ns / 1e6, (double)rtt_ns / 1e6);
		sim_check(w->report, after_ns <= most_ns,
			"host %u sends frames and no packets for %.0f ms, RTT %.0f ms", i,
			(double)after_ns / 1e6, (double)rtt_ns / 1e6);
		sim_check(w->report, (double)repairs <= 600 + 3.3 * (double)rtt_ns * pps / 1e9,
			"host %u sent %llu REPAIRs after the last packet", i, repairs);
		sim_check(w->report, (int64_t)feedbacks <= asking_ns * 3 / (2 * WEFT_NS_PER_MS),
			"host %u sent %llu FEEDBACKs after the last packet, RTT %.0f ms", i,
			feedbacks, (double)rtt_ns / 1e6);
	}
}

static int
by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

void
sim_loss_judge(struct sim_world *w, unsigned from, uint32_t first, int64_t from_ns,
	int64_t delay_ns, struct sim_loss_result *out)
{
	int64_t *ns = malloc((w->ledger.n - first + 1) * sizeof(*ns));
	*out = (struct sim_loss_result){0};
	for (uint32_t id = first; id < w->ledger.n; id++) {
		const struct sim_packet *p = &w->ledger.packets[id];
		if (p->src != from || !p->injected) {
			continue;
		}
		out->sent++;
		out->arrived += p->arrived > 0;
		out->delivered += p->delivered > 0;
		out->missing += !p->delivered && p->sent_ns >= from_ns;
		if (p->delivered && !p->arrived) {
			ns[out->recovered++] = p->came_ns - p->sent_ns - delay_ns;
		}
	}
	if (out->recovered > 0) {
		qsort(ns, out->recovered, sizeof(*ns), by_value);
		out->p50_ms = (double)ns[out->recovered / 2] / 1e6;
		out->p99_ms = (double)ns[out->recovered * 99 / 100] / 1e6;
		out->max_ms = (double)ns[out->recovered - 1] / 1e6;
	}
	free(ns);
}
