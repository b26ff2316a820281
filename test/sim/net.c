/* SPDX-License-Identifier: Apache-2.0 */
#include "net.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "wire/wg.h"

#define CHANNEL_PACKETS 2048
#define RUN_DATAGRAMS_MAX 64 /* as UDP_GRO */
#define POISON 0xdd

static struct sim_link *
self_of(struct link *l)
{
	return WEFT_CONTAINER_OF(l, struct sim_link, base);
}

static void
put(struct sim_datagram *d)
{
	if (--d->refs == 0) {
		free(d);
	}
}

static void
lose(struct sim_net *net, enum sim_loss why)
{
	net->lost[why]++;
}

static struct sim_datagram *
datagram_new(const uint8_t *data, uint32_t len)
{
	struct sim_datagram *d = malloc(sizeof(*d) + len);
	weft_assert(len <= SIM_DATAGRAM_MAX);
	*d = (struct sim_datagram){.refs = 1, .len = len};
	memcpy(d->bytes, data, len);
	return d;
}

/* One that nobody shares, so that it can be changed. */
static struct sim_datagram *
make_own(struct sim_datagram *d)
{
	if (d->refs == 1) {
		return d;
	}
	struct sim_datagram *own = datagram_new(d->bytes, d->len);
	own->sender = d->sender;
	own->from = d->from;
	own->to = d->to;
	own->ecn = d->ecn;
	own->in = d->in;
	put(d);
	return own;
}

/* --- leaving a host --- */

static unsigned
host_at(const struct sim_net *net, const struct endpoint *e)
{
	for (unsigned i = 0; i < net->n; i++) {
		if (endpoint_is_same_remote(&net->places[i].at, e)) {
			return i;
		}
	}
	return SIM_NOBODY;
}

static void
watch(const struct sim_net *net, unsigned from, unsigned to, const struct sim_inner *in,
	bool is_lost)
{
	if (net->watch) {
		net->watch(net->watch_ctx, from, to, in, is_lost);
	}
}

static void
send_one(struct sim_net *net, unsigned host, const struct link_run *run, const uint8_t *data,
	uint32_t len, const struct sim_inner *in)
{
	struct sim_place *place = &net->places[host];
	net->sent++;
	sim_check(net->report, !memmem(data, len, SIM_MARKER, SIM_MARKER_LEN),
		"plaintext in a datagram of %u bytes from host %u", len, host);
	sim_hash(net->report, load_le32(data) ^ (uint64_t)len << 32 ^ (uint64_t)host << 60);
	unsigned to = host_at(net, run->to);
	if (to == SIM_NOBODY || to == host) {
		lose(net, SIM_LOSS_UNROUTED);
		return;
	}
	place->last_out_ns[to] = net->report->now.ns;
	if (net->is_blocked[host][to]) {
		lose(net, SIM_LOSS_PARTITION);
		return;
	}
	struct sim_datagram *d = datagram_new(data, len);
	d->sender = host;
	d->from = place->at;
	d->to = *run->to;
	d->ecn = run->ecn;
	d->in = *in;
	unsigned times = emu_channel_push(
		&net->channels[host][to], net->report->now, NULL, len, (uint64_t)(uintptr_t)d);
	watch(net, host, to, in, times == 0);
	if (times == 0) {
		lose(net, SIM_LOSS_CHANNEL);
		put(d);
		return;
	}
	d->refs = times;
	net->copies += times - 1;
}

static struct sim_inner
count_out(struct sim_net *net, unsigned host, const struct endpoint *to, const uint8_t *data,
	uint32_t len)
{
	struct sim_port_tally *t = &net->tally[host];
	struct sim_inner in = sim_sniffer_look(net->sniffer, host, data, len);
	enum wire_wg_type type = wire_wg_type(data, len);
	if (type == WIRE_WG_TYPE_DATA) {
		sim_wiretap_see(&net->wiretaps[host], net->report, host_at(net, to),
			wire_wg_data_receiver(data), wire_wg_data_counter(data));
	}
	t->data_out += type == WIRE_WG_TYPE_DATA && len > WIRE_WG_DATA_LEN_MIN &&
		       !sim_kind_is_frame(in.kind);
	t->out[in.kind]++;
	t->out_bytes[in.kind] += len;
	t->initiations_out += type == WIRE_WG_TYPE_INITIATION;
	return in;
}

static void
send_runs(struct link *base, struct link_run *runs, size_t n)
{
	struct sim_link *l = self_of(base);
	struct sim_net *net = l->net;
	const struct sim_place *place = &net->places[l->host];
	base->stats.tx_calls++;
	for (size_t i = 0; i < n; i++) {
		struct link_run *r = &runs[i];
		bool is_pinned = r->to->src.family != IP_FAMILY_NONE;
		r->src_cleared = is_pinned && !ip_addr_is_equal(&r->to->src, &place->local);
		bool is_refused = net->send_error_share > 0 &&
				  rng_is_hit(&net->chance, net->send_error_share);
		sim_check(net->report, r->len > 0 && r->seg > 0, "an empty run");
		for (uint32_t at = 0; at < r->len; at += r->seg) {
			uint32_t len = r->len - at < r->seg ? r->len - at : r->seg;
			struct sim_inner in = count_out(net, l->host, r->to, r->data + at, len);
			if (is_refused) {
				net->sent++;
				lose(net, SIM_LOSS_SENDER);
				base->stats.drops.n[DROP_LINK_NOBUFS]++;
			} else {
				send_one(net, l->host, r, r->data + at, len, &in);
			}
		}
	}
}

/* --- reaching a host --- */

static void
count_in(struct sim_net *net, unsigned host, const struct sim_datagram *d)
{
	static const uint32_t lens[] = {
		0, WIRE_WG_INITIATION_LEN, WIRE_WG_RESPONSE_LEN, WIRE_WG_COOKIE_REPLY_LEN};
	uint32_t type = d->len >= 4 ? load_le32(d->bytes) : 0;
	net->arrived++;
	if (type >= 1 && type <= 3) {
		net->tally[host].in_handshake++;
		net->tally[host].in_handshake_bad += d->len != lens[type];
	} else {
		net->tally[host].in_other++;
		net->tally[host].in_frames += sim_kind_is_frame(d->in.kind);
		if (d->in.kind == SIM_KIND_PACKET) {
			sim_ledger_arrived(net->ledger, d->in.id);
		}
	}
}

static bool
can_join(const struct link_rx *rx, const struct sim_datagram *d)
{
	return d->len <= rx->seg && rx->len % rx->seg == 0 && d->ecn == rx->ecn &&
	       endpoint_is_same_remote(&rx->from, &d->from) &&
	       rx->len / rx->seg < RUN_DATAGRAMS_MAX;
}

static enum weft_err
receive(struct link *base, struct link_rx *rx, size_t cap, size_t *n)
{
	struct sim_link *l = self_of(base);
	size_t got = 0, used = 0;
	memset(l->arena, POISON, l->arena_used); /* what was given out before is no longer valid */
	base->stats.rx_calls++;
	for (struct sim_datagram *d; (d = l->head) && used + d->len <= sizeof(l->arena);) {
		bool joins = got > 0 && can_join(&rx[got - 1], d);
		if (!joins && got == cap) {
			break;
		}
		l->head = d->next;
		l->tail = l->head ? l->tail : &l->head;
		l->queued--;
		memcpy(l->arena + used, d->bytes, d->len);
		if (joins) {
			rx[got - 1].len += d->len;
		} else {
			rx[got++] = (struct link_rx){.data = l->arena + used,
				.len = d->len,
				.seg = (uint16_t)d->len,
				.ecn = d->ecn,
				.from = d->from};
			rx[got - 1].from.src = l->net->places[l->host].local;
		}
		used += d->len;
		count_in(l->net, l->host, d);
		put(d);
	}
	l->arena_used = used;
	*n = got;
	return got == 0 ? WEFT_EAGAIN : WEFT_OK;
}

static void
close_link(struct link *base)
{
	struct sim_link *l = self_of(base);
	while (l->head) {
		struct sim_datagram *d = l->head;
		l->head = d->next;
		lose(l->net, SIM_LOSS_DOWN);
		put(d);
	}
	l->net->places[l->host].links[l->worker] = NULL;
	free(l);
}

static const struct link_ops ops = {.receive = receive, .send = send_runs, .close = close_link};

struct link *
sim_net_link(struct sim_net *net, unsigned host, unsigned worker)
{
	struct sim_link *l = malloc(sizeof(*l));
	memset(l, 0, offsetof(struct sim_link, arena));
	l->base.ops = &ops;
	l->net = net;
	l->host = host;
	l->worker = worker;
	l->tail = &l->head;
	net->places[host].links[worker] = l;
	return &l->base;
}

/* As SO_REUSEPORT does it: by the sender's address alone, so always the same one. */
static struct sim_link *
link_for(const struct sim_place *p, const struct endpoint *from)
{
	unsigned hash = from->port * 7u + from->addr.b[3] * 31u + from->addr.b[15];
	return p->workers ? p->links[hash % p->workers] : NULL;
}

/* Takes over d. */
static bool
enqueue(struct sim_net *net, unsigned host, struct sim_datagram *d)
{
	struct sim_link *l = link_for(&net->places[host], &d->from);
	if (!l) {
		lose(net, SIM_LOSS_DOWN);
		put(d);
		return false;
	}
	if (l->queued >= net->queue_max) {
		lose(net, SIM_LOSS_OVERFLOW);
		put(d);
		return false;
	}
	d->next = NULL;
	*l->tail = d;
	l->tail = &d->next;
	l->queued++;
	if (net->tap) {
		net->tap(net->tap_ctx, host, d);
	}
	return true;
}

static void
damage(struct sim_net *net, struct sim_datagram *d)
{
	uint8_t before[SIM_DATAGRAM_MAX];
	uint32_t len = d->len;
	memcpy(before, d->bytes, len < sizeof(before) ? len : sizeof(before));
	net->corrupted++;
	if (rng_is_hit(&net->chance, 0.2)) {
		d->len = 1 + (uint32_t)rng_below(&net->chance, d->len); /* cut off, or not */
	}
	for (uint64_t flips = 1 + rng_below(&net->chance, 3); flips > 0; flips--) {
		/* Half of them in the header, where they steer. */
		uint64_t range = rng_is_hit(&net->chance, 0.5) && d->len > 16 ? 16 : d->len;
		d->bytes[rng_below(&net->chance, range)] ^=
			(uint8_t)(1u << rng_below(&net->chance, 8));
	}
	/* A bit that was flipped twice is whole. */
	if (d->len != len || memcmp(before, d->bytes, len) != 0) {
		d->in = (struct sim_inner){.kind = SIM_KIND_OTHER};
	}
}

static bool
is_filtered(const struct sim_net *net, unsigned from, unsigned to)
{
	const struct sim_place *p = &net->places[to];
	return p->nat_timeout_ns && net->report->now.ns - p->last_out_ns[from] > p->nat_timeout_ns;
}

static bool
arrive(struct sim_net *net, unsigned from, unsigned to, const struct emu_packet *packet)
{
	struct sim_datagram *d = (struct sim_datagram *)(uintptr_t)packet->tag;
	if (!endpoint_is_same_remote(&net->places[to].at, &d->to)) {
		lose(net, SIM_LOSS_MOVED);
		put(d);
		return false;
	}
	if (is_filtered(net, from, to)) {
		lose(net, SIM_LOSS_FILTERED);
		put(d);
		return false;
	}
	d = make_own(d);
	if (packet->is_corrupt) {
		damage(net, d);
	}
	if (d->ecn != 0 && net->ce_share > 0 && rng_is_hit(&net->chance, net->ce_share)) {
		d->ecn = 3;
	}
	sim_hash(net->report, (uint64_t)net->report->now.ns);
	return enqueue(net, to, d);
}

unsigned
sim_net_deliver(struct sim_net *net)
{
	unsigned touched = 0;
	for (unsigned i = 0; i < net->n; i++) {
		for (unsigned j = 0; j < net->n; j++) {
			struct emu_packet packet;
			while (i != j &&
				emu_channel_pop(&net->channels[i][j], net->report->now, &packet)) {
				touched |= arrive(net, i, j, &packet) ? 1u << j : 0;
			}
		}
	}
	return touched;
}

bool
sim_net_inject(struct sim_net *net, unsigned host, const struct endpoint *from, const uint8_t *data,
	uint32_t len)
{
	struct sim_datagram *d = datagram_new(data, len);
	net->injected++;
	d->sender = SIM_NOBODY;
	d->from = *from;
	d->to = net->places[host].at;
	return enqueue(net, host, d);
}

struct mono
sim_net_next(const struct sim_net *net)
{
	struct mono next = MONO_NEVER;
	for (unsigned i = 0; i < net->n; i++) {
		for (unsigned j = 0; j < net->n; j++) {
			if (i != j) {
				next = mono_min(next, emu_channel_next(&net->channels[i][j]));
			}
		}
	}
	return next;
}

/* --- life --- */

void
sim_net_init(struct sim_net *net, struct sim_report *report, unsigned hosts,
	uint32_t channel_packets, uint64_t seed)
{
	*net = (struct sim_net){.report = report, .n = hosts, .queue_max = 4096};
	rng_init(&net->chance, seed);
	for (unsigned i = 0; i < hosts; i++) {
		struct sim_place *p = &net->places[i];
		bool is_v6 = rng_is_hit(&net->chance, 0.3);
		struct ip_addr v4 = {IP_FAMILY_V4, {192, 0, 2, (uint8_t)(10 + i)}};
		struct ip_addr v6 = {IP_FAMILY_V6, {0x20, 1, 0x0d, 0xb8, [15] = (uint8_t)(10 + i)}};
		p->local = is_v6 ? v6 : v4;
		p->at = (struct endpoint){.addr = p->local, .port = (uint16_t)(51820 + i)};
		for (unsigned j = 0; j < hosts; j++) {
			struct emu_channel_params params = {.seed = rng_u64(&net->chance),
				.packets_max = channel_packets ? channel_packets : CHANNEL_PACKETS};
			if (i != j && emu_channel_init(&net->channels[i][j], &params,
					      &emu_settings_default)) {
				sim_fail(report, "no memory for a channel");
			}
		}
	}
}

void
sim_net_fini(struct sim_net *net)
{
	for (unsigned i = 0; i < net->n; i++) {
		for (unsigned j = 0; j < net->n; j++) {
			struct emu_packet packet;
			while (i != j &&
				emu_channel_pop(&net->channels[i][j], MONO_NEVER, &packet)) {
				put((struct sim_datagram *)(uintptr_t)packet.tag);
			}
			if (i != j) {
				emu_channel_fini(&net->channels[i][j]);
			}
		}
	}
}

void
sim_net_set(struct sim_net *net, const struct emu_settings *s)
{
	for (unsigned i = 0; i < net->n; i++) {
		for (unsigned j = 0; j < net->n; j++) {
			if (i != j) {
				emu_channel_set(&net->channels[i][j], net->report->now, s);
			}
		}
	}
}

void
sim_net_move(struct sim_net *net, unsigned host, bool is_local)
{
	struct sim_place *p = &net->places[host];
	uint8_t *last = &p->at.addr.b[p->at.addr.family == IP_FAMILY_V6 ? 15 : 3];
	if (!is_local && rng_is_hit(&net->chance, 0.5)) {
		p->at.port = (uint16_t)(1024 + rng_below(&net->chance, 60000));
	} else {
		/* Nobody else's: hosts differ in the tens. */
		*last = (uint8_t)(20 + host * 40 + rng_below(&net->chance, 40));
	}
	if (is_local) {
		p->local = p->at.addr;
	}
	char text[ENDPOINT_TEXT_MAX];
	sim_trace(net->report, "host %u is now at %s", host, endpoint_format(&p->at, text));
}

uint64_t
sim_net_lost(const struct sim_net *net)
{
	uint64_t lost = 0;
	for (unsigned i = 0; i < SIM_LOSS_COUNT; i++) {
		lost += net->lost[i];
	}
	return lost;
}

void
sim_net_check(const struct sim_net *net)
{
	uint64_t under_way = 0;
	for (unsigned i = 0; i < net->n; i++) {
		for (unsigned j = 0; j < net->n; j++) {
			under_way += i != j ? emu_channel_pending(&net->channels[i][j]) : 0;
		}
		for (unsigned k = 0; k < net->places[i].workers; k++) {
			under_way += net->places[i].links[k] ? net->places[i].links[k]->queued : 0;
		}
	}
	uint64_t in = net->sent + net->injected + net->copies;
	sim_check(net->report, in == net->arrived + sim_net_lost(net) + under_way,
		"the network's own account is wrong: %llu in, %llu arrived, %llu lost, %llu on "
		"their way",
		(unsigned long long)in, (unsigned long long)net->arrived,
		(unsigned long long)sim_net_lost(net), (unsigned long long)under_way);
}
