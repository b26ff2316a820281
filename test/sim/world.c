/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <string.h>

#include "wire/wg.h"

/* More events than this at one instant are a loop. */
#define STUCK_STEPS_MAX 200000
#define CONVERGE_S 30
#define PING_FLOW (SIM_FLOWS_MAX - 1)
#define PING_LEN 64

/* --- setting up --- */

static void
make_pair(struct sim_world *w, const struct sim_plan *plan, unsigned i, unsigned j)
{
	struct sim_peer *a = &w->hosts[i].peers[j], *b = &w->hosts[j].peers[i];
	a->is_wanted = b->is_wanted = true;
	a->has_endpoint = b->has_endpoint = true;
	if (rng_is_hit(&w->chance, plan->blind_share)) {
		/* The mobile one, j, is who calls. */
		bool is_b_caller = w->is_mobile[j] || rng_is_hit(&w->chance, 0.5);
		(is_b_caller ? a : b)->has_endpoint = false;
	}
	if (rng_is_hit(&w->chance, plan->psk_share)) {
		rng_fill(&w->chance, a->psk, sizeof(a->psk));
		memcpy(b->psk, a->psk, sizeof(a->psk));
	}
}

static void
make_host(struct sim_world *w, const struct sim_plan *plan, unsigned i)
{
	struct sim_host *h = &w->hosts[i];
	*h = (struct sim_host){.report = w->report,
		.net = &w->net,
		.ledger = &w->ledger,
		.all = w->hosts,
		.index = i,
		.workers = plan->workers > 1 && (i == 0 || rng_is_hit(&w->chance, 0.5))
				   ? plan->workers
				   : 1,
		.home = w->net.places[i].at};
	h->caps = (struct gro_caps){rng_is_hit(&w->chance, 0.7), rng_is_hit(&w->chance, 0.7),
		rng_is_hit(&w->chance, 0.7), rng_is_hit(&w->chance, 0.7)};
	h->aead = rng_is_hit(&w->chance, 0.5) ? AEAD_BACKEND_LIBCRYPTO : AEAD_BACKEND_AUTO;
	/* Some have just booted, some long ago. */
	h->mono_off_ns = rng_is_hit(&w->chance, 0.3)
				 ? 0
				 : (int64_t)rng_below(&w->chance, 1000000) * WEFT_NS_PER_S;
	h->policy = ALLY_POLICY_DEFAULT;
	sim_host_init(h, rng_u64(&w->chance));
	w->is_mobile[i] = i + plan->mobile >= w->n;
}

struct ally_policy
sim_draw_policy(struct rng *r)
{
	static const uint32_t budgets_us[] = {0, 5000, 20000, 60000};
	struct ally_policy p = ALLY_POLICY_DEFAULT;
	p.has_extensions = !rng_is_hit(r, 0.1);
	p.cipher = (enum ally_cipher)rng_below(r, 3);
	p.fec.mode = rng_is_hit(r, 0.1)   ? FEC_MODE_OFF
		     : rng_is_hit(r, 0.3) ? FEC_MODE_FIXED
					  : FEC_MODE_AUTO;
	p.fec.percent = (uint16_t)(1 + rng_below(r, 100));
	p.fec.budget_us = budgets_us[rng_below(r, 4)];
	return p;
}

/* Chance of its own: the rest of a story does not depend on it. */
static void
make_allies(struct sim_world *w, double share, uint64_t seed)
{
	struct rng r;
	rng_init(&r, seed);
	if (share == 0) {
		/* Seeds of a kind may be chosen by the lowest bits. */
		static const double shares[] = {1, 0.6, 0};
		share = shares[w->report->seed / 4 % 3];
	}
	for (unsigned i = 0; i < w->n; i++) {
		w->hosts[i].has_allies = rng_is_hit(&r, share);
		w->hosts[i].policy = sim_draw_policy(&r);
	}
	w->sniffer.is_on = share > 0;
}

void
sim_world_init(struct sim_world *w, struct sim_report *report, const struct sim_plan *plan)
{
	struct rng root;
	memset(w, 0, offsetof(struct sim_world, frame));
	w->report = report;
	rng_init(&root, report->seed);
	rng_init(&w->script, rng_u64(&root));
	rng_init(&w->chance, rng_u64(&root));
	w->n = plan->hosts_min +
	       (unsigned)rng_below(&w->chance, plan->hosts_max - plan->hosts_min + 1);
	sim_net_init(&w->net, report, w->n, plan->channel_packets, rng_u64(&root));
	sim_sniffer_init(&w->sniffer, report, w->hosts);
	w->net.sniffer = &w->sniffer;
	w->net.ledger = &w->ledger;
	sim_ledger_init(&w->ledger, report);
	sim_attacker_init(&w->attacker, report, w->hosts, w->n, rng_u64(&root));
	w->traffic = (struct sim_traffic){.segments_max = 8,
		.len_max = SIM_MTU,
		.flows = 3,
		.late_ns_max = 2 * WEFT_NS_PER_MS};
	for (unsigned i = 0; i < w->n; i++) {
		make_host(w, plan, i);
	}
	make_allies(w, plan->ally_share, rng_u64(&root));
	for (unsigned i = 0; i < w->n; i++) {
		for (unsigned j = i + 1; j < w->n; j++) {
			if (!w->is_mobile[i] || !w->is_mobile[j]) {
				make_pair(w, plan, i, j);
			}
		}
	}
	for (unsigned i = 0; i < w->n; i++) {
		sim_host_start(&w->hosts[i]);
	}
}

bool
sim_world_are_pair(const struct sim_world *w, unsigned i, unsigned j)
{
	return i != j && w->hosts[i].peers[j].is_wanted && w->hosts[j].peers[i].is_wanted;
}

static void
check(const struct sim_world *w)
{
	sim_net_check(&w->net);
	for (unsigned i = 0; i < w->n; i++) {
		sim_host_check(&w->hosts[i]);
	}
}

void
sim_world_fini(struct sim_world *w)
{
	check(w);
	for (unsigned i = 0; i < w->n; i++) {
		if (w->hosts[i].device) {
			sim_host_stop(&w->hosts[i]);
		}
	}
	check(w);
	sim_net_fini(&w->net);
	sim_ledger_fini(&w->ledger);
	sim_attacker_fini(&w->attacker);
	sim_sniffer_fini(&w->sniffer);
}

/* --- time --- */

/* Bursts and pauses. */
static int64_t
draw_gap_ns(struct sim_world *w, int64_t mean_ns)
{
	double share = (rng_is_hit(&w->chance, 0.5) ? 0.2 : 3.8) * rng_unit(&w->chance);
	return 1 + (int64_t)(share * (double)mean_ns);
}

static struct mono
next_event(const struct sim_world *w)
{
	struct mono next = sim_net_next(&w->net);
	for (unsigned i = 0; i < w->n; i++) {
		next = mono_min(next, sim_host_next(&w->hosts[i]));
	}
	if (w->traffic.is_on) {
		next = mono_min(next, (struct mono){w->traffic.next_ns});
	}
	if (w->attack_gap_ns) {
		next = mono_min(next, (struct mono){w->attack_next_ns});
	}
	return next;
}

static void
turn_hosts(struct sim_world *w, unsigned touched)
{
	for (unsigned i = 0; i < w->n; i++) {
		struct sim_host *h = &w->hosts[i];
		if (!h->device) {
			continue;
		}
		bool is_due = !mono_is_before(w->report->now, sim_host_next(h));
		if (h->asleep_until_ns && is_due) {
			sim_host_wake(h);
		}
		if (sim_host_is_live(h) && (is_due || touched & 1u << i)) {
			sim_host_turn(h);
		}
	}
}

static void
talk_by_chance(struct sim_world *w)
{
	unsigned from = (unsigned)rng_below(&w->chance, w->n);
	unsigned to = (unsigned)rng_below(&w->chance, w->n);
	w->traffic.next_ns = w->report->now.ns + draw_gap_ns(w, w->traffic.mean_gap_ns);
	if (from != to && w->hosts[from].device && sim_world_are_pair(w, from, to)) {
		sim_world_talk(w, from, to);
	}
}

static void
take_step(struct sim_world *w)
{
	struct sim_report *r = w->report;
	r->step++;
	w->stuck_steps = r->now.ns == w->stuck_ns ? w->stuck_steps + 1 : 0;
	w->stuck_ns = r->now.ns;
	sim_check(r, w->stuck_steps < STUCK_STEPS_MAX, "time stands still");
	turn_hosts(w, sim_net_deliver(&w->net));
	if (w->traffic.is_on && w->traffic.next_ns <= r->now.ns) {
		talk_by_chance(w);
	}
	if (w->attack_gap_ns && w->attack_next_ns <= r->now.ns) {
		w->attack_next_ns = r->now.ns + draw_gap_ns(w, w->attack_gap_ns);
		sim_attacker_replay(&w->attacker);
	}
}

void
sim_world_run_ns(struct sim_world *w, int64_t ns)
{
	struct mono end = mono_add_ns(w->report->now, ns);
	for (struct mono next; next = next_event(w), !mono_is_before(end, next);) {
		if (mono_is_before(w->report->now, next)) {
			w->report->now = next;
		}
		take_step(w);
	}
	w->report->now = end;
}

void
sim_world_run_s(struct sim_world *w, double seconds)
{
	sim_world_run_ns(w, (int64_t)(seconds * 1e9));
}

/* --- traffic --- */

static unsigned
worker_for(const struct sim_host *h, const struct sim_packet *p)
{
	return p->flow % h->workers;
}

uint32_t
sim_world_send(struct sim_world *w, struct sim_packet *first, uint32_t n, uint16_t last_len)
{
	struct sim_host *h = &w->hosts[first->src];
	uint32_t id = sim_ledger_add(&w->ledger, first, n, last_len);
	struct frame f = {.data = w->frame, .len = first->len};
	bool may_leave = first->proto != SIM_PROTO_RAW && !first->is_unchecked;
	if (n > 1) {
		sim_packet_write_frame(first, n, last_len, id, w->frame, &f);
	} else {
		sim_packet_write(first, id, w->frame);
		if (may_leave && rng_is_hit(&w->chance, 0.3)) {
			sim_packet_leave_checksum(first, w->frame, &f);
		}
	}
	bool has_route = sim_host_peer(h, first->dst);
	/* What a sleeper cannot route would be counted only when it wakes, or never. */
	if ((!has_route && !sim_host_is_live(h)) ||
		!sim_host_inject(h, worker_for(h, first), &f, n)) {
		sim_ledger_undo(&w->ledger, n);
		return id;
	}
	if (!has_route) {
		h->tally.no_route++;
		h->tally.no_route_packets += n;
	}
	if (has_route && rng_is_hit(&w->chance, w->traffic.late_share)) {
		if (!h->turn_at_ns) {
			h->turn_at_ns =
				w->report->now.ns + 1 +
				(int64_t)rng_below(&w->chance, (uint64_t)w->traffic.late_ns_max);
		}
	} else if (sim_host_is_live(h)) {
		sim_host_turn(h);
	}
	return id;
}

uint32_t
sim_world_ping(struct sim_world *w, unsigned from, unsigned to)
{
	struct sim_packet p = {.src = (uint8_t)from,
		.dst = (uint8_t)to,
		.claimed = (uint8_t)from,
		.flow = PING_FLOW,
		.proto = SIM_PROTO_UDP,
		.is_ping = true,
		.len = PING_LEN};
	return sim_world_send(w, &p, 1, p.len);
}

bool
sim_world_has_arrived(const struct sim_world *w, uint32_t id)
{
	return w->ledger.packets[id].delivered > 0;
}

static void
send_junk(struct sim_world *w, unsigned from)
{
	struct sim_host *h = &w->hosts[from];
	struct frame f = {.data = w->frame, .len = 20 + (uint32_t)rng_below(&w->chance, 80)};
	memset(w->frame, 0, f.len);
	bool is_routable = rng_is_hit(&w->chance, 0.5);
	w->frame[0] = is_routable ? 0x45 : 0x15;
	w->frame[3] = (uint8_t)f.len;
	w->frame[16] = 172; /* in nobody's AllowedIPs */
	if (!sim_host_is_live(h) || !sim_host_inject(h, 0, &f, 0)) {
		return;
	}
	h->tally.no_route += is_routable;
	h->tally.malformed += !is_routable;
	sim_host_turn(h);
}

static uint16_t
draw_len(struct sim_world *w, uint32_t min)
{
	uint32_t max = w->traffic.len_max;
	uint64_t how = rng_below(&w->chance, 10);
	return (uint16_t)(how == 0   ? min
			  : how == 1 ? max
				     : min + rng_below(&w->chance, max - min + 1));
}

static struct sim_packet
draw_packet(struct sim_world *w, unsigned from, unsigned to)
{
	static const uint8_t toses[] = {0, 1, 2, 0xb8, 0x03};
	struct sim_packet p = {.src = (uint8_t)from,
		.dst = (uint8_t)to,
		.claimed = (uint8_t)from,
		.flow = (uint8_t)rng_below(&w->chance, w->traffic.flows),
		.proto = (enum sim_proto)rng_below(&w->chance, 3),
		.is_v6 = rng_is_hit(&w->chance, 0.4),
		.tos = toses[rng_below(&w->chance, sizeof(toses))],
		.tcp_flags = 0x10 | (rng_is_hit(&w->chance, 0.5) ? 0x08 : 0)};
	p.is_v6 &= p.proto != SIM_PROTO_RAW;
	p.is_unchecked = p.proto == SIM_PROTO_UDP && !p.is_v6 && rng_is_hit(&w->chance, 0.2);
	uint32_t min = sim_packet_header_len(&p) + SIM_BODY_MIN;
	p.len = draw_len(w, min);
	return p;
}

void
sim_world_talk(struct sim_world *w, unsigned from, unsigned to)
{
	const struct sim_traffic *t = &w->traffic;
	if (rng_is_hit(&w->chance, t->junk_share)) {
		send_junk(w, from);
		return;
	}
	struct sim_packet p = draw_packet(w, from, to);
	if (p.proto != SIM_PROTO_RAW && rng_is_hit(&w->chance, t->frame_share)) {
		uint32_t hdr = sim_packet_header_len(&p), min = hdr + SIM_BODY_MIN;
		uint32_t most = (SIM_FRAME_MAX - hdr) / (p.len - hdr);
		uint32_t n = 2 + (uint32_t)rng_below(&w->chance, t->segments_max - 1);
		p.is_unchecked = false;
		sim_world_send(w, &p, n < most ? n : most,
			(uint16_t)(min + rng_below(&w->chance, p.len - min + 1u)));
		return;
	}
	if (w->n > 2 && rng_is_hit(&w->chance, t->forged_share)) {
		p.claimed = (uint8_t)((from + 1 + rng_below(&w->chance, w->n - 1)) % w->n);
	}
	uint32_t id = sim_world_send(w, &p, 1, p.len);
	struct sim_host *h = &w->hosts[from];
	if (rng_is_hit(&w->chance, t->twice_share) && sim_host_is_live(h) && sim_host_peer(h, to) &&
		w->ledger.packets[id].injected) {
		struct frame f = {.data = w->frame, .len = p.len};
		sim_packet_write(&w->ledger.packets[id], id, w->frame);
		w->ledger.packets[id].injected++;
		w->ledger.injected++;
		sim_check(w->report, sim_host_inject(h, worker_for(h, &p), &f, 1), "no room");
		sim_host_turn(h);
	}
}

void
sim_world_start_traffic(struct sim_world *w, int64_t mean_gap_ns)
{
	w->traffic.is_on = true;
	w->traffic.mean_gap_ns = mean_gap_ns;
	w->traffic.next_ns = w->report->now.ns + draw_gap_ns(w, mean_gap_ns);
}

/* --- faults --- */

void
sim_world_sleep(struct sim_world *w, unsigned host, int64_t ns)
{
	if (sim_host_is_live(&w->hosts[host])) {
		w->hosts[host].asleep_since_ns = w->report->now.ns;
		w->hosts[host].asleep_until_ns = w->report->now.ns + ns;
		sim_trace(w->report, "host %u sleeps for %.3f s", host, (double)ns / 1e9);
	}
}

void
sim_world_restart(struct sim_world *w, unsigned host)
{
	struct sim_host *h = &w->hosts[host];
	if (h->device) {
		sim_host_stop(h);
	}
	if (rng_is_hit(&w->script, 0.5)) {
		h->mono_off_ns = -w->report->now.ns; /* the whole machine has booted */
	}
	sim_host_start(h);
}

void
sim_world_move(struct sim_world *w, unsigned host)
{
	sim_net_move(&w->net, host, w->net.places[host].nat_timeout_ns == 0);
}

struct emu_settings
sim_world_bad_network(struct sim_world *w)
{
	struct rng *r = &w->script;
	struct emu_settings s = emu_settings_default;
	s.delay_ns = (int64_t)rng_below(r, 200) * WEFT_NS_PER_MS;
	if (rng_is_hit(r, 0.5)) {
		s.loss = (struct emu_loss){.in_good = 0.3 * rng_unit(r)};
	} else if (rng_is_hit(r, 0.6)) {
		s.loss = (struct emu_loss){
			.to_bad = 0.02, .to_good = 0.2, .in_bad = 0.9, .in_good = 0.01};
	}
	if (rng_is_hit(r, 0.5)) {
		s.jitter = (struct emu_jitter){.ns = (int64_t)rng_below(r, 50) * WEFT_NS_PER_MS,
			.shape = rng_is_hit(r, 0.5) ? EMU_JITTER_UNIFORM : EMU_JITTER_NORMAL,
			.may_reorder = true};
	}
	if (rng_is_hit(r, 0.5)) {
		s.reorder = (struct emu_reorder){
			.share = 0.2 * rng_unit(r), .distance_min = 1, .distance_max = 40};
	}
	s.duplicate = rng_is_hit(r, 0.5) ? 0.1 * rng_unit(r) : 0;
	s.corrupt = (struct emu_corrupt){
		.share = rng_is_hit(r, 0.5) ? 0.1 * rng_unit(r) : 0, .bits = 1};
	return s;
}

static void
make_quiet(struct sim_world *w)
{
	struct emu_settings s = emu_settings_default;
	s.delay_ns = (int64_t)(1 + rng_below(&w->script, 50)) * WEFT_NS_PER_MS;
	sim_net_set(&w->net, &s);
	w->net.send_error_share = 0;
	memset(w->net.is_blocked, 0, sizeof(w->net.is_blocked));
	w->traffic.is_on = false;
	w->attack_gap_ns = 0;
	for (unsigned i = 0; i < w->n; i++) {
		struct sim_host *h = &w->hosts[i];
		if (h->asleep_until_ns) {
			sim_host_wake(h);
		}
		if (!h->device) {
			sim_host_start(h);
		}
		sim_host_turn(h);
		for (unsigned j = 0; j < w->n; j++) {
			if (h->peers[j].is_wanted && !h->peers[j].is_in) {
				sim_host_add_peer(h, j);
			}
		}
	}
	sim_trace(w->report, "the network is quiet");
}

/* Ordered pairs that are still to be reached. */
struct missing {
	bool pair[SIM_HOSTS_MAX][SIM_HOSTS_MAX];
};

static bool
can_call(const struct sim_world *w, unsigned i, unsigned j)
{
	return w->hosts[i].peers[j].has_endpoint && !w->is_mobile[j] && !w->is_stale[i];
}

/* Both ways of each pair, or the one in which a caller is to succeed by itself. */
static void
choose(struct sim_world *w, bool is_both, struct missing *m)
{
	memset(m, 0, sizeof(*m));
	for (unsigned i = 0; i < w->n; i++) {
		for (unsigned j = i + 1; j < w->n; j++) {
			bool is_pair = sim_world_are_pair(w, i, j);
			bool is_first = rng_is_hit(&w->script, 0.5);
			bool a = can_call(w, i, j), b = can_call(w, j, i);
			m->pair[i][j] = is_pair && (is_both || (a && (is_first || !b)));
			m->pair[j][i] = is_pair && (is_both || (b && (!is_first || !a)));
		}
	}
}

/* Pings over all that are missing; returns how many are left a second later. */
static unsigned
ping_missing(struct sim_world *w, struct missing *m)
{
	uint32_t first = w->ledger.n;
	unsigned left = 0;
	for (unsigned i = 0; i < w->n; i++) {
		for (unsigned j = 0; j < w->n; j++) {
			if (m->pair[i][j]) {
				sim_world_ping(w, i, j);
			}
		}
	}
	sim_world_run_s(w, 1);
	for (uint32_t id = first; id < w->ledger.n; id++) {
		const struct sim_packet *p = &w->ledger.packets[id];
		m->pair[p->src][p->dst] &= p->delivered == 0;
		left += p->delivered == 0;
	}
	return left;
}

static void
must_reach(struct sim_world *w, bool is_both)
{
	struct missing m;
	int64_t end_ns = w->report->now.ns + CONVERGE_S * WEFT_NS_PER_S;
	choose(w, is_both, &m);
	while (ping_missing(w, &m) > 0) {
		for (unsigned i = 0; i < w->n; i++) {
			for (unsigned j = 0; j < w->n; j++) {
				sim_check(w->report, !m.pair[i][j] || w->report->now.ns < end_ns,
					"host %u does not reach host %u after %d s of quiet, %s", i,
					j, CONVERGE_S, is_both ? "both calling" : "calling alone");
			}
		}
	}
}

void
sim_world_must_converge(struct sim_world *w)
{
	struct missing m;
	make_quiet(w);
	must_reach(w, false);
	must_reach(w, true);
	/* And now everybody at once. */
	choose(w, true, &m);
	sim_check(w->report, ping_missing(w, &m) == 0, "a pair that was through is not");
	check(w);
}

void
sim_world_let_expire(struct sim_world *w, unsigned *from, unsigned *to)
{
	for (unsigned i = 0; i < w->n; i++) {
		for (unsigned j = 0; j < w->n; j++) {
			if (sim_host_peer(&w->hosts[i], j)) {
				sim_host_set_keepalive(&w->hosts[i], j, 0);
			}
		}
	}
	sim_world_run_s(w, 200);
	do {
		*from = (unsigned)rng_below(&w->script, w->n);
		*to = (unsigned)rng_below(&w->script, w->n);
	} while (!sim_world_are_pair(w, *from, *to) || !w->hosts[*from].peers[*to].has_endpoint ||
		 w->is_mobile[*to]);
}

void
sim_world_must_have_all(struct sim_world *w)
{
	sim_check(w->report, sim_ledger_missing(&w->ledger, 0) == 0,
		"%llu packets of %llu did not arrive",
		(unsigned long long)sim_ledger_missing(&w->ledger, 0),
		(unsigned long long)w->ledger.injected);
}

uint64_t
sim_world_events(const struct sim_world *w, enum wg_event_kind kind)
{
	uint64_t n = 0;
	for (unsigned i = 0; i < w->n; i++) {
		n += w->hosts[i].tally.events[kind];
	}
	return n;
}

uint64_t
sim_world_drops(const struct sim_world *w, enum drop_reason r)
{
	uint64_t n = 0;
	for (unsigned i = 0; i < w->n; i++) {
		n += sim_host_drops(&w->hosts[i], r);
	}
	return n;
}
