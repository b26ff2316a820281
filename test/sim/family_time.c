/* SPDX-License-Identifier: Apache-2.0 */
/* Handshakes over time: how many, at once, after restarts, with wrong clocks, after sleep. */
#include "family.h"

static void
set_delay(struct sim_world *w, int64_t delay_ns)
{
	struct emu_settings s = emu_settings_default;
	s.delay_ns = delay_ns;
	sim_net_set(&w->net, &s);
}

/* Initiations that either side of a pair has sent. */
static uint64_t
tries(const struct sim_world *w, unsigned i, unsigned j)
{
	return w->hosts[i].peers[j].events[WG_EVENT_HANDSHAKE] +
	       w->hosts[j].peers[i].events[WG_EVENT_HANDSHAKE];
}

/* 14: the initiator renews with what it sends first after 120 s, and sends at least a keepalive
 * in 10 s when it receives: 1800 / 130 and the first. 17: 1800 / 120, the first, and one for a
 * first one that crossed. */
#define STEADY_MIN 14
#define STEADY_MAX 17

void
sim_run_steady(struct sim_world *w, uint64_t *sums)
{
	struct sim_plan plan = {.hosts_min = 2, .hosts_max = 3, .psk_share = 0.5};
	static const int64_t delays_ms[] = {0, 5, 50, 200};
	sim_world_init(w, w->report, &plan);
	set_delay(w, delays_ms[rng_below(&w->script, 4)] * WEFT_NS_PER_MS);
	w->traffic.frame_share = 0.1;
	/* A packet in about two seconds each way. */
	sim_world_start_traffic(w, 2 * WEFT_NS_PER_S / (w->n * w->n));
	sim_world_run_s(w, 1800);
	for (unsigned i = 0; i < w->n; i++) {
		for (unsigned j = i + 1; j < w->n; j++) {
			uint64_t n = tries(w, i, j);
			sim_check(w->report, n >= STEADY_MIN && n <= STEADY_MAX,
				"%llu handshakes in 30 minutes between %u and %u",
				(unsigned long long)n, i, j);
		}
	}
	w->traffic.is_on = false;
	sim_world_run_s(w, 2);
	sim_world_must_have_all(w);
	sim_sum_up(w, sums);
	sim_world_fini(w);
}

static void
collide(struct sim_world *w, uint64_t *sums)
{
	uint64_t before[2] = {w->hosts[0].peers[1].events[WG_EVENT_HANDSHAKE],
		w->hosts[1].peers[0].events[WG_EVENT_HANDSHAKE]};
	unsigned first = (unsigned)rng_below(&w->script, 2);
	sim_world_ping(w, first, 1 - first);
	if (rng_is_hit(&w->script, 0.7)) {
		sim_world_run_ns(w, (int64_t)rng_below(&w->script, WEFT_NS_PER_MS));
	}
	sim_world_ping(w, 1 - first, first);
	sim_world_run_s(w, 4);
	sim_world_must_have_all(w);
	uint64_t a = w->hosts[0].peers[1].events[WG_EVENT_HANDSHAKE] - before[0];
	uint64_t b = w->hosts[1].peers[0].events[WG_EVENT_HANDSHAKE] - before[1];
	sim_check(w->report, a <= 1 && b <= 1 && a + b >= 1, "%llu and %llu initiations",
		(unsigned long long)a, (unsigned long long)b);
	sums[SIM_SUM_CROSSED] += a == 1 && b == 1;
}

void
sim_run_collision(struct sim_world *w, uint64_t *sums)
{
	struct sim_plan plan = {.hosts_min = 2, .hosts_max = 2, .psk_share = 0.5};
	static const int64_t delays_ms[] = {0, 50, 200};
	sim_world_init(w, w->report, &plan);
	set_delay(w, delays_ms[w->report->seed % 3] * WEFT_NS_PER_MS);
	for (unsigned round = 0; round < 4; round++) {
		collide(w, sums);
		/* So long that the sessions are past their time. */
		sim_world_run_s(w, 200 + (double)rng_below(&w->script, 400));
	}
	/* After the last one they must agree on who renews. */
	collide(w, sums);
	uint64_t before = tries(w, 0, 1);
	sim_world_start_traffic(w, 300 * WEFT_NS_PER_MS);
	sim_world_run_s(w, 600);
	w->traffic.is_on = false;
	sim_world_run_s(w, 2);
	sim_world_must_have_all(w);
	uint64_t n = tries(w, 0, 1) - before;
	sim_check(w->report, n >= 4 && n <= 5, "%llu renewals in 600 s", (unsigned long long)n);
	sim_sum_up(w, sums);
	sim_world_fini(w);
}

static int64_t
draw_wall_jump_ns(struct sim_world *w)
{
	static const int64_t jumps_s[] = {1, 59, 3600, 86400, INT64_C(1600000000)};
	int64_t ns = jumps_s[rng_below(&w->script, 5)] * WEFT_NS_PER_S;
	/* Mostly back: forward harms nobody. */
	return rng_is_hit(&w->script, 0.7) ? -ns : ns;
}

void
sim_run_restart(struct sim_world *w, uint64_t *sums)
{
	struct sim_plan plan = {
		.hosts_min = 2, .hosts_max = 4, .psk_share = 0.5, .blind_share = 0.3};
	sim_world_init(w, w->report, &plan);
	set_delay(w, (int64_t)rng_below(&w->script, 150) * WEFT_NS_PER_MS);
	sim_world_start_traffic(w, 100 * WEFT_NS_PER_MS);
	w->traffic.frame_share = 0.2;
	for (unsigned round = 0; round < 6; round++) {
		struct sim_host *h = &w->hosts[rng_below(&w->script, w->n)];
		sim_world_run_s(w, 60 * rng_unit(&w->script));
		sim_host_stop(h);
		if (rng_is_hit(&w->script, 0.5)) {
			sim_world_run_s(w, 40 * rng_unit(&w->script));
		}
		/* The stamp was persisted, so a clock that is wrong does no harm. */
		if (rng_is_hit(&w->script, 0.5)) {
			h->wall_off_ns += draw_wall_jump_ns(w);
		}
		sim_world_restart(w, h->index);
		sums[SIM_SUM_RESTARTS]++;
	}
	sim_world_run_s(w, 10 * rng_unit(&w->script));
	sim_world_must_converge(w);
	sim_check(w->report, sim_world_drops(w, DROP_HS_STALE) == 0, "a stamp was undercut");
	sim_sum_up(w, sums);
	sim_world_fini(w);
}

/* The worst: the stamp is lost and the clock is back in 1970. */
static void
lose_stamp(struct sim_world *w, unsigned host)
{
	struct sim_host *h = &w->hosts[host];
	uint64_t tries_before[SIM_HOSTS_MAX];
	for (unsigned j = 0; j < w->n; j++) {
		tries_before[j] = h->peers[j].events[WG_EVENT_HANDSHAKE];
	}
	h->stamp_s = 0;
	h->wall_off_ns = -w->report->now.ns;
	w->is_stale[host] = true;
	sim_world_restart(w, host);
	for (unsigned j = 0; j < w->n; j++) {
		if (j != host) {
			sim_world_ping(w, host, j);
		}
	}
	sim_world_run_s(w, 12 * rng_unit(&w->script));
	sim_world_must_converge(w);
	for (unsigned j = 0; j < w->n; j++) {
		uint64_t n = h->peers[j].events[WG_EVENT_HANDSHAKE] - tries_before[j];
		sim_check(w->report,
			n == 0 || tries_before[j] == 0 ||
				w->hosts[j].peers[host].events[WG_EVENT_STALE] > 0,
			"host %u did not report the stale timestamps of host %u", j, host);
	}
}

void
sim_run_clock(struct sim_world *w, uint64_t *sums)
{
	struct sim_plan plan = {.hosts_min = 2, .hosts_max = 3, .psk_share = 0.5};
	sim_world_init(w, w->report, &plan);
	set_delay(w, (int64_t)rng_below(&w->script, 150) * WEFT_NS_PER_MS);
	sim_world_start_traffic(w, 200 * WEFT_NS_PER_MS);
	for (unsigned round = 0; round < 8; round++) {
		sim_world_run_s(w, 100 * rng_unit(&w->script));
		w->hosts[rng_below(&w->script, w->n)].wall_off_ns += draw_wall_jump_ns(w);
	}
	sim_world_must_converge(w);
	sim_check(w->report, sim_world_drops(w, DROP_HS_STALE) == 0,
		"a running node undercut its own stamp");
	lose_stamp(w, (unsigned)rng_below(&w->script, w->n));
	sums[SIM_SUM_RESTARTS]++;
	sim_sum_up(w, sums);
	sim_world_fini(w);
}

/* Of which peers host has a session that can send. */
static uint32_t
peers_in_use(const struct sim_world *w, unsigned host)
{
	uint32_t set = 0;
	for (unsigned j = 0; j < w->n; j++) {
		const struct wg_peer *p = sim_host_peer(&w->hosts[host], j);
		if (p && wg_peer_can_send(p, sim_host_time(&w->hosts[host]).mono)) {
			set |= 1u << j;
		}
	}
	return set;
}

/* host has just slept for longer than a session lives, and these peers had one. */
static void
must_have_called(const struct sim_world *w, unsigned host, uint32_t peers)
{
	for (unsigned j = 0; j < w->n; j++) {
		int64_t at_ns = w->hosts[host].peers[j].last_try_ns;
		sim_check(w->report, !(peers & 1u << j) || at_ns == w->report->now.ns,
			"host %u woke up and did not call host %u at once", host, j);
	}
}

void
sim_run_sleep(struct sim_world *w, uint64_t *sums)
{
	struct sim_plan plan = {.hosts_min = 2, .hosts_max = 3, .psk_share = 0.5};
	static const int64_t sleeps_s[] = {6, 60, 130, 200, 600};
	sim_world_init(w, w->report, &plan);
	int64_t delay_ns = (int64_t)rng_below(&w->script, 150) * WEFT_NS_PER_MS;
	set_delay(w, delay_ns);
	w->net.queue_max = 200;
	for (unsigned round = 0; round < 4; round++) {
		/* Sleeps of 200 s and of 600 s come in every seed. */
		int64_t ns =
			sleeps_s[round < 2 ? 3 + round : rng_below(&w->script, 5)] * WEFT_NS_PER_S;
		sim_world_start_traffic(w, WEFT_NS_PER_S / 2);
		sim_world_run_s(w, 10 + 100 * rng_unit(&w->script));
		unsigned host = (unsigned)rng_below(&w->script, w->n);
		unsigned other = (host + 1) % w->n;
		w->traffic.is_on = rng_is_hit(&w->script, 0.7); /* to a sleeper */
		uint32_t in_use = peers_in_use(w, host);
		sim_world_sleep(w, host, ns);
		sums[SIM_SUM_SLEEPS]++;
		sim_world_run_ns(w, ns);
		if (ns >= 200 * WEFT_NS_PER_S) {
			must_have_called(w, host, in_use);
		}
		uint32_t id = sim_world_ping(w, host, other);
		sim_world_run_ns(w, 2 * delay_ns + WEFT_NS_PER_S);
		sim_check(w->report, sim_world_has_arrived(w, id),
			"host %u slept %lld s, and its first packet did not arrive", host,
			(long long)(ns / WEFT_NS_PER_S));
	}
	sim_world_must_converge(w);
	sim_sum_up(w, sums);
	sim_world_fini(w);
}
