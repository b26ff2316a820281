/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include <string.h>

#include "fec/decoder_state.h"
#include "fec/recovery_internal.h"
#include "node/gap.h"
#include "wg/engine.h"

/* More than a decoder holds and lets go of at once, which is 2 MiB. */
#define PORT_BYTES (4u << 20)
/* A turn takes what four batches hold; more turns in a row than this is a spin. */
#define TURNS_MAX 4096
#define REKEY_TIMEOUT_NS (5 * WEFT_NS_PER_S)
#define EPOCH_NS (INT64_C(1700000000) * WEFT_NS_PER_S)

static void
fill(void *ctx, void *out, size_t len)
{
	rng_fill(ctx, out, len);
}

static void
wake(void *ctx, unsigned i)
{
	(void)ctx;
	(void)i; /* the world looks at deadline_ns */
}

static void
on_event(void *ctx, const struct wg_event *e, struct wg_time now)
{
	static const char *const names[] = {[WG_EVENT_SESSION] = "session",
		[WG_EVENT_ENDPOINT] = "endpoint",
		[WG_EVENT_GAVE_UP] = "gave up",
		[WG_EVENT_STAMP] = "stamp",
		[WG_EVENT_STALE] = "stale",
		[WG_EVENT_HANDSHAKE] = "handshake",
		[WG_EVENT_EXPIRED] = "expired"};
	struct sim_host *h = ctx;
	struct sim_peer *p = e->peer ? wg_peer_user(e->peer) : NULL;
	(void)now;
	h->tally.events[e->kind]++;
	if (p) {
		p->events[e->kind]++;
	}
	if (e->kind == WG_EVENT_HANDSHAKE && p) {
		sim_check(h->report,
			!p->last_try_ns || h->report->now.ns - p->last_try_ns >= REKEY_TIMEOUT_NS,
			"host %u initiates twice within 5 s to host %u", h->index, p->other);
		p->last_try_ns = h->report->now.ns;
	}
	if (e->kind == WG_EVENT_STAMP) {
		h->stamp_s = e->value;
	}
	sim_hash(h->report, (uint64_t)e->kind << 8 | h->index);
	sim_trace(h->report, "host %u: %s, peer %d, value %llu", h->index, names[e->kind],
		p ? (int)p->other : -1, (unsigned long long)e->value);
}

void
sim_host_init(struct sim_host *h, uint64_t seed)
{
	rng_init(&h->entropy, seed);
	rng_fill(&h->entropy, h->private_key, sizeof(h->private_key));
	h->wall_off_ns = EPOCH_NS;
	struct wg_device *d;
	struct wg_device_config c = {.entropy = {fill, &h->entropy}};
	sim_check(h->report, !wg_device_new(&c, &d), "no device");
	wg_device_set_private_key(d, h->private_key);
	sim_check(h->report, wg_device_public_key(d, h->public_key), "no key");
	wg_device_free(d);
	for (unsigned i = 0; i < SIM_HOSTS_MAX; i++) {
		h->peers[i].host = h;
		h->peers[i].other = i;
	}
}

struct wg_time
sim_host_time(const struct sim_host *h)
{
	return (struct wg_time){
		{h->report->now.ns + h->mono_off_ns}, h->report->now.ns + h->wall_off_ns};
}

bool
sim_host_is_live(const struct sim_host *h)
{
	return h->device && !h->asleep_until_ns;
}

/* --- life --- */

static void
start_worker(struct sim_host *h, unsigned i)
{
	struct port *port;
	sim_check(h->report, !port_mem_new(PORT_BYTES, SIM_MTU, &h->caps, &port), "no port");
	struct worker_config c = {.env = {.device = h->device,
					  .lock = &h->lock,
					  .mail = &h->mail,
					  .event = on_event,
					  .ctx = h,
					  .listen_port = &h->listen_port,
					  .deadline_ns = &h->deadline_ns,
					  .wake = wake,
					  .crew = h->crew,
					  .allies = h->has_allies ? &h->allies : NULL},
		.link = sim_net_link(h->net, h->index, i),
		.port = port,
		.aead = h->aead,
		.index = i};
	sim_check(h->report, !worker_new(&c, &h->w[i]), "no worker");
}

void
sim_host_start(struct sim_host *h)
{
	struct wg_device_config c = {.entropy = {fill, &h->entropy}, .stamp_s = h->stamp_s};
	os_rwlock_init(&h->lock);
	atomic_init(&h->deadline_ns, INT64_MAX);
	atomic_init(&h->listen_port, h->home.port);
	h->mail = (struct wg_out){.msgs = h->mail_msgs,
		.msgs_cap = WEFT_ARRAY_LEN(h->mail_msgs),
		.events = h->mail_events,
		.events_cap = WEFT_ARRAY_LEN(h->mail_events),
		.drops = &h->tally.drops};
	sim_check(h->report, !wg_device_new(&c, &h->device), "no device");
	wg_device_set_private_key(h->device, h->private_key);
	allies_init(&h->allies, "sim", SIM_MTU);
	h->crew = NULL;
	if (h->workers > 1) {
		sim_check(h->report, !crew_new(h->workers, wake, NULL, &h->crew), "no crew");
	}
	h->net->places[h->index].workers = h->workers;
	for (unsigned i = 0; i < h->workers; i++) {
		start_worker(h, i);
	}
	wg_device_set_up(h->device, true, sim_host_time(h), &h->mail);
	for (unsigned i = 0; i < SIM_HOSTS_MAX; i++) {
		if (h->peers[i].is_wanted) {
			sim_host_add_peer(h, i);
		}
	}
	sim_trace(h->report, "host %u starts", h->index);
}

/* Everything that the engine holds must be empty once its peers are gone. */
static void
check_empty(const struct sim_host *h)
{
	const struct wg_device *d = h->device;
	sim_check(h->report, d->index.used == 0, "host %u: %u indices are left", h->index,
		d->index.used);
	sim_check(h->report, d->roster.n == 0, "host %u: peers are left", h->index);
	sim_check(h->report, d->stage_pool.bytes == 0 && list_is_empty(&d->stage_pool.packets),
		"host %u: %zu staged bytes are left", h->index, d->stage_pool.bytes);
	sim_check(h->report, list_is_empty(&d->todo), "host %u: an agenda is left", h->index);
	sim_check(
		h->report, allowed_count(d->allowed) == 0, "host %u: prefixes are left", h->index);
	for (unsigned i = 0; i < TIMERWHEEL_LEVELS; i++) {
		for (unsigned k = 0; k < TIMERWHEEL_SLOTS; k++) {
			sim_check(h->report,
				list_is_empty(&d->wheel.slots[i * TIMERWHEEL_SLOTS + k].timers),
				"host %u: a timer is left", h->index);
		}
	}
}

static void
add_drops(struct sim_tally *t, const struct drop_counts *d)
{
	for (unsigned i = 0; i < DROP_COUNT; i++) {
		t->drops.n[i] += d->n[i];
	}
}

/* Packets that were received, and wait in a decoder for those before them. */
static uint64_t
held_by_decoder(const struct fec_decoder *d)
{
	uint64_t n = 0;
	for (uint64_t i = d->hold.first; d->has_memory && i != d->hold.last; i++) {
		const struct fec_held *p = &d->hold.held[i & d->hold.mask];
		n += !p->is_done && !p->is_recovered;
	}
	return n;
}

static uint64_t
held_by_ally(const struct ally *a)
{
	uint64_t n = 0;
	for (unsigned i = 0; a->recovery && i < FEC_SESSIONS; i++) {
		const struct fec_decoder *d = a->recovery->sessions[i].decoder;
		n += d ? held_by_decoder(d) : 0;
	}
	return n;
}

/* Of all allies, or of those whose peer was removed. */
static uint64_t
held(const struct sim_host *h, bool is_of_removed)
{
	uint64_t n = 0;
	if (!h->device) {
		return 0;
	}
	LIST_FOR_EACH(it, &h->allies.all)
	{
		const struct ally *a = WEFT_CONTAINER_OF(it, struct ally, of_table);
		n += !is_of_removed || wg_peer_is_removed(a->peer) ? held_by_ally(a) : 0;
	}
	return n;
}

void
sim_host_stop(struct sim_host *h)
{
	struct wg_peer *held_peers[SIM_HOSTS_MAX] = {NULL};
	h->tally.lost_held += held(h, false);
	h->tally.lost_in_crash += sim_host_staged(h) + h->unread;
	h->tally.rejected_moves = sim_host_rejected_moves(h);
	h->unread = 0;
	h->turn_at_ns = 0;
	h->asleep_until_ns = 0;
	for (unsigned i = 0; i < SIM_HOSTS_MAX; i++) {
		held_peers[i] = sim_host_peer(h, i);
		h->peers[i].is_in = false;
		if (held_peers[i]) {
			wg_peer_get(held_peers[i]);
			wg_peer_remove(h->device, held_peers[i]);
		}
	}
	/* What was staged counts as lost in the crash already. */
	h->device->lost_packets = 0;
	check_empty(h);
	for (unsigned i = 0; i < h->workers; i++) {
		const struct worker_stats *s = &h->w[i]->stats;
		add_drops(&h->tally, &s->drops);
		add_drops(&h->tally, &h->w[i]->port->stats.drops);
		h->tally.handshakes_rx += s->handshakes_rx;
		h->tally.keepalives_rx += s->keepalives_rx;
		h->tally.frames_rx += s->frames_rx;
		h->tally.recovered_rx += s->recovered_rx;
		worker_free(h->w[i]);
		h->w[i] = NULL;
	}
	if (h->crew) {
		crew_free(h->crew);
	}
	allies_fini(&h->allies);
	wg_device_free(h->device);
	h->device = NULL;
	os_rwlock_fini(&h->lock);
	for (unsigned i = 0; i < SIM_HOSTS_MAX; i++) {
		if (held_peers[i]) {
			sim_check(h->report, atomic_load(&held_peers[i]->refs) == 1,
				"host %u: somebody holds peer %u", h->index, i);
			wg_peer_put(held_peers[i]);
		}
	}
	sim_trace(h->report, "host %u is gone", h->index);
}

/* --- running --- */

struct mono
sim_host_next(const struct sim_host *h)
{
	if (!h->device) {
		return MONO_NEVER;
	}
	if (h->asleep_until_ns) {
		return (struct mono){h->asleep_until_ns};
	}
	struct mono turn = h->turn_at_ns ? (struct mono){h->turn_at_ns} : MONO_NEVER;
	int64_t deadline = worker_deadline(h->w[0]).ns;
	return deadline == INT64_MAX ? turn
				     : mono_min(turn, (struct mono){deadline - h->mono_off_ns});
}

static void
drain(struct sim_host *h)
{
	for (unsigned i = 0; i < h->workers; i++) {
		struct port_mem_frame f;
		while (port_mem_take(h->w[i]->port, &f)) {
			sim_ledger_take(h->ledger, h->index, &f);
			h->tally.delivered += f.packets;
		}
	}
}

void
sim_host_wake(struct sim_host *h)
{
	int64_t slept_ns = h->report->now.ns - h->asleep_since_ns;
	h->asleep_until_ns = 0;
	sim_trace(h->report, "host %u wakes up", h->index);
	/* As the runner has it. */
	if (slept_ns > GAP_MIN_NS) {
		struct wg_time now = sim_host_time(h);
		worker_wake(h->w[0], mono_add_ns(now.mono, -slept_ns), now);
	}
}

void
sim_host_turn(struct sim_host *h)
{
	struct wg_time now = sim_host_time(h);
	unsigned more, turns = 0;
	if (!mono_is_before(now.mono, worker_deadline(h->w[0]))) {
		uint64_t of_removed = held(h, true);
		struct mono swept_at = h->allies.swept_at;
		worker_tick(h->w[0], now);
		h->tally.lost_held += h->allies.swept_at.ns != swept_at.ns ? of_removed : 0;
	}
	do {
		more = 0;
		for (unsigned i = 0; i < h->workers; i++) {
			more |= worker_turn(h->w[i], now, WORKER_READY_LINK | WORKER_READY_PORT);
			drain(h);
		}
		sim_check(h->report, turns++ < TURNS_MAX, "host %u spins", h->index);
	} while (more);
	h->unread = 0;
	h->turn_at_ns = 0;
}

bool
sim_host_inject(struct sim_host *h, unsigned worker, const struct frame *f, uint32_t n)
{
	if (!port_mem_inject(h->w[worker]->port, f)) {
		return false;
	}
	h->tally.injected += n;
	h->unread += n;
	return true;
}

/* --- control --- */

/* As node_unlock(): news at once, messages with the next tick. */
static void
settle_mail(struct sim_host *h)
{
	for (size_t i = 0; i < h->mail.events_n; i++) {
		on_event(h, &h->mail.events[i], sim_host_time(h));
	}
	h->mail.events_n = 0;
	atomic_store(&h->deadline_ns, h->mail.msgs_n > 0 ? 0 : wg_device_deadline(h->device).ns);
}

void
sim_host_set_policy(struct sim_host *h, const struct ally_policy *policy)
{
	h->policy = *policy;
	sim_trace(h->report, "host %u: extensions %d, cipher %d, fec %d", h->index,
		policy->has_extensions, (int)policy->cipher, (int)policy->fec.mode);
	for (unsigned i = 0; h->device && h->has_allies && i < SIM_HOSTS_MAX; i++) {
		struct wg_peer *p = sim_host_peer(h, i);
		struct ally *a = p ? ally_of(&h->allies, p) : NULL;
		bool wants_session = false;
		if (a) {
			(void)ally_set_policy(
				&h->allies, a, policy, sim_host_time(h).mono, &wants_session);
		}
		if (wants_session) {
			wg_peer_renew(h->device, p, sim_host_time(h), &h->mail);
		}
	}
	if (h->device) {
		settle_mail(h);
	}
}

struct wg_peer *
sim_host_peer(const struct sim_host *h, unsigned other)
{
	return h->device && h->peers[other].is_in
		       ? wg_peer_find(h->device, h->all[other].public_key)
		       : NULL;
}

static void
allow(struct sim_host *h, struct wg_peer *p, unsigned other, bool is_v6)
{
	struct ip_prefix net = {{is_v6 ? IP_FAMILY_V6 : IP_FAMILY_V4, {0}}, is_v6 ? 64 : 24};
	sim_address_of_host(other, is_v6, net.addr.b);
	sim_check(h->report, !wg_peer_allow(h->device, p, &net), "no prefix");
}

void
sim_host_add_peer(struct sim_host *h, unsigned other)
{
	struct sim_peer *c = &h->peers[other];
	struct wg_peer *p;
	sim_check(h->report, !wg_peer_add(h->device, h->all[other].public_key, &p), "no peer");
	c->is_in = true;
	c->last_try_ns = 0;
	wg_peer_set_user(p, c);
	wg_peer_set_psk(p, c->psk);
	if (h->has_allies) {
		struct ally *a = ally_of(&h->allies, p);
		sim_check(h->report, a != NULL, "no ally");
		bool wants_session;
		(void)ally_set_policy(
			&h->allies, a, &h->policy, sim_host_time(h).mono, &wants_session);
	}
	allow(h, p, other, false);
	allow(h, p, other, true);
	if (c->has_endpoint) {
		wg_peer_set_endpoint(p, &h->all[other].home);
	}
	sim_host_set_keepalive(h, other, c->keepalive_s);
}

void
sim_host_set_keepalive(struct sim_host *h, unsigned other, uint16_t seconds)
{
	h->peers[other].keepalive_s = seconds;
	wg_peer_set_keepalive(
		h->device, sim_host_peer(h, other), seconds, sim_host_time(h), &h->mail);
	settle_mail(h);
}

void
sim_host_remove_peer(struct sim_host *h, unsigned other)
{
	sim_host_turn(h); /* what was injected had a route */
	struct wg_peer *p = sim_host_peer(h, other);
	h->tally.rejected_moves += atomic_load(&p->rejected_moves);
	wg_peer_remove(h->device, p);
	h->peers[other].is_in = false;
	settle_mail(h);
	sim_trace(h->report, "host %u removes peer %u", h->index, other);
}

void
sim_host_renew_key(struct sim_host *h)
{
	wg_device_set_private_key(h->device, h->private_key);
	for (unsigned i = 0; i < SIM_HOSTS_MAX; i++) {
		h->peers[i].last_try_ns = 0;
	}
	settle_mail(h);
	sim_trace(h->report, "host %u gets its key again", h->index);
}

void
sim_host_bounce(struct sim_host *h)
{
	wg_device_set_up(h->device, false, sim_host_time(h), &h->mail);
	settle_mail(h);
	wg_device_set_up(h->device, true, sim_host_time(h), &h->mail);
	settle_mail(h);
}

/* --- accounts --- */

uint64_t
sim_host_drops(const struct sim_host *h, enum drop_reason r)
{
	uint64_t n = h->tally.drops.n[r];
	for (unsigned i = 0; h->device && i < h->workers; i++) {
		n += h->w[i]->stats.drops.n[r] + h->w[i]->port->stats.drops.n[r];
	}
	return n;
}

uint64_t
sim_host_staged(const struct sim_host *h)
{
	uint64_t n = h->device ? h->device->lost_packets : 0;
	for (unsigned i = 0; i < SIM_HOSTS_MAX; i++) {
		const struct wg_peer *p = sim_host_peer(h, i);
		n += p ? p->stage.n : 0;
	}
	return n;
}

uint64_t
sim_host_rejected_moves(const struct sim_host *h)
{
	uint64_t n = h->tally.rejected_moves;
	for (unsigned i = 0; i < SIM_HOSTS_MAX; i++) {
		const struct wg_peer *p = sim_host_peer(h, i);
		n += p ? atomic_load(&p->rejected_moves) : 0;
	}
	return n;
}

uint64_t
sim_host_recovered(const struct sim_host *h)
{
	uint64_t n = h->tally.recovered_rx;
	for (unsigned i = 0; h->device && i < h->workers; i++) {
		n += h->w[i]->stats.recovered_rx;
	}
	return n;
}

static uint64_t
sum_drops(const struct sim_host *h, const enum drop_reason *r, size_t n)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++) {
		sum += sim_host_drops(h, r[i]);
	}
	return sum;
}

/* Port to network. */
static void
check_out(const struct sim_host *h)
{
	static const enum drop_reason lost[] = {
		DROP_TX_STAGED, DROP_TX_ENDPOINT, DROP_TX_NO_SESSION};
	const struct sim_tally *t = &h->tally;
	uint64_t out = h->net->tally[h->index].data_out + t->no_route_packets + t->lost_in_crash +
		       sum_drops(h, lost, WEFT_ARRAY_LEN(lost)) + sim_host_staged(h) + h->unread;
	sim_check(h->report, t->injected == out,
		"host %u took %llu packets and accounts for %llu: %llu sent, %llu staged", h->index,
		(unsigned long long)t->injected, (unsigned long long)out,
		(unsigned long long)h->net->tally[h->index].data_out,
		(unsigned long long)sim_host_staged(h));
	sim_check(h->report, sim_host_drops(h, DROP_TX_ROUTE) == t->no_route,
		"host %u: wrong count of tx_route", h->index);
	sim_check(h->report, sim_host_drops(h, DROP_TX_INNER) == t->malformed,
		"host %u: wrong count of tx_inner", h->index);
}

/* Network to port. */
static void
check_in(const struct sim_host *h)
{
	static const enum drop_reason lost[] = {DROP_RX_SHORT, DROP_RX_TYPE, DROP_RX_REBIND,
		DROP_RX_INDEX, DROP_RX_AUTH, DROP_RX_REPLAY, DROP_RX_EXPIRED, DROP_RX_INNER,
		DROP_RX_ECN, DROP_RX_SOURCE, DROP_RX_EXT, DROP_PORT_FULL};
	static const enum drop_reason handshakes[] = {DROP_HS_MAC1, DROP_HS_MAC2, DROP_HS_RATE,
		DROP_HS_AUTH, DROP_HS_PEER, DROP_HS_STALE, DROP_HS_FLOOD, DROP_HS_INDEX};
	const struct sim_port_tally *in = &h->net->tally[h->index];
	uint64_t keepalives = h->tally.keepalives_rx, hs_rx = h->tally.handshakes_rx;
	uint64_t frames = h->tally.frames_rx, recovered = sim_host_recovered(h);
	for (unsigned i = 0; h->device && i < h->workers; i++) {
		keepalives += h->w[i]->stats.keepalives_rx;
		hs_rx += h->w[i]->stats.handshakes_rx;
		frames += h->w[i]->stats.frames_rx;
	}
	uint64_t out = h->tally.delivered + keepalives + frames +
		       sum_drops(h, lost, WEFT_ARRAY_LEN(lost)) - in->in_handshake_bad +
		       h->tally.lost_held + held(h, false);
	sim_check(h->report, in->in_other + recovered == out,
		"host %u got %llu datagrams, recovered %llu, and accounts for %llu: %llu delivered",
		h->index, (unsigned long long)in->in_other, (unsigned long long)recovered,
		(unsigned long long)out, (unsigned long long)h->tally.delivered);
	sim_check(h->report, frames <= in->in_frames && (frames == 0 || h->net->sniffer->is_on),
		"host %u took %llu frames, and %llu came", h->index, (unsigned long long)frames,
		(unsigned long long)in->in_frames);
	uint64_t unarrived = sim_ledger_recovered(h->ledger, h->index);
	sim_check(h->report, !h->net->sniffer->is_on || unarrived <= recovered,
		"host %u delivered %llu packets that never arrived, and recovered %llu", h->index,
		(unsigned long long)unarrived, (unsigned long long)recovered);
	sim_check(h->report, in->in_handshake == hs_rx,
		"host %u: wrong count of handshake messages", h->index);
	sim_check(h->report,
		sum_drops(h, handshakes, WEFT_ARRAY_LEN(handshakes)) <=
			in->in_handshake - in->in_handshake_bad,
		"host %u dropped more handshake messages than came", h->index);
}

void
sim_host_check(const struct sim_host *h)
{
	check_out(h);
	check_in(h);
}
