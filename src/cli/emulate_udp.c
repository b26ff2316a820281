/* SPDX-License-Identifier: Apache-2.0 */
/* `weft emulate --udp LISTEN --to ADDR:PORT`: a relay for datagrams, like a NAT.
 *
 * Each sender (client) that is heard at LISTEN gets a socket of its own towards the
 * destination, so that answers find their way back. a is the side of the clients. A new port
 * for each client's socket is what a roaming node looks like from the destination. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "cli/emulate.h"
#include "cli/emulate_record.h"
#include "link/link.h"
#include "link/udp.h"
#include "os/clock.h"
#include "os/loop.h"
#include "os/udp.h"
#include "pkt/ip.h"

#define RECEIVE_ROUNDS 4
#define RECEIVE_RUNS 16
#define UDP_HEADER_BYTES 8
/* A client that was silent for so long gives way to a new one. */
#define IDLE_NS (10 * WEFT_NS_PER_S)

#define STAGE_BYTES (256u << 10)
#define STAGE_RUNS 64u
#define DATAGRAM_BYTES_MAX 65535u

/* A tag names the client of a packet on its way, and carries the ECN bits of its header. The
 * generation tells a client from one that had its place before. */
#define TAG_ECN_SHIFT 16
#define TAG_GENERATION_SHIFT 32
#define CLIENTS_MAX EMULATE_CLIENTS_MAX

struct client {
	struct relay *relay;
	struct link *link; /* towards the destination; NULL: this place is free */
	struct endpoint addr;
	uint32_t generation;
	struct mono heard;
};

struct relay {
	struct emulator *e;
	struct link *listen;
	struct client *clients;
	size_t clients_cap, clients_n; /* places used up to now, some maybe free again */
	size_t client_last;            /* of the last datagram: mostly the next one's too */
	struct emulate_io past[2];     /* of links that are closed */
	struct emulate_record *record;

	/* What is due, on its way to `out`. */
	struct link *out;
	struct link_run runs[STAGE_RUNS];
	size_t runs_n;
	uint64_t run_tag;
	bool is_run_closed; /* a shorter datagram ended it */
	size_t stage_used;
	uint8_t stage[STAGE_BYTES];
};

static uint64_t
tag_of(const struct relay *r, const struct client *c, uint8_t ecn)
{
	return (uint64_t)(c - r->clients) | (uint64_t)ecn << TAG_ECN_SHIFT |
	       (uint64_t)c->generation << TAG_GENERATION_SHIFT;
}

/* NULL when it has gone in the meantime. */
static struct client *
client_of(const struct relay *r, uint64_t tag)
{
	struct client *c = &r->clients[tag & UINT16_MAX];
	return c->link && c->generation == (uint32_t)(tag >> TAG_GENERATION_SHIFT) ? c : NULL;
}

/* What a link has counted: it receives in one direction and sends in the other. */
static void
add_stats(struct link *l, struct emulate_io *in, struct emulate_io *out)
{
	link_udp_sync(l);
	const uint64_t *drops = l->stats.drops.n;
	in->kernel_dropped += drops[DROP_LINK_RX_OVERFLOW];
	in->refused += drops[DROP_RX_SHORT] + drops[DROP_RX_TRUNCATED];
	in->rx_calls += l->stats.rx_calls;
	out->tx_calls += l->stats.tx_calls;
	for (int reason = DROP_LINK_PERM; reason <= DROP_LINK_ERROR; reason++) {
		out->send_failed += drops[reason];
	}
}

static void client_ready(void *ctx, uint32_t events);

static void
watch(struct relay *r, struct link *l, os_ready *ready, void *ctx)
{
	int fds[2];
	size_t n = link_udp_fds(l, fds);
	for (size_t i = 0; i < n; i++) {
		if (os_loop_add(r->e->loop, fds[i], OS_READABLE, ready, ctx)) {
			r->e->failure = "cannot wait for a socket";
			r->e->is_stopping = true;
		}
	}
}

static void
drop_link(struct relay *r, struct link *l, unsigned dir)
{
	int fds[2];
	size_t n = link_udp_fds(l, fds);
	add_stats(l, &r->past[dir], &r->past[1 - dir]);
	for (size_t i = 0; i < n; i++) {
		os_loop_del(r->e->loop, fds[i]);
	}
	l->ops->close(l);
}

static enum weft_err
open_link(struct relay *r, const struct ip_addr *local, uint16_t port, struct link **out)
{
	struct os_udp sockets;
	struct os_udp_config config = {.port = port, .local = *local, .has_offload = true};
	enum weft_err err = os_udp_open(&config, &r->e->log, &sockets);
	if (err) {
		return err;
	}
	err = link_udp_new(&sockets, NULL, &r->e->log, out);
	if (err) {
		os_udp_close(&sockets);
	}
	return err;
}

/* A socket of the destination's family, on a port that the kernel chooses. */
static enum weft_err
open_client_link(struct relay *r, struct client *c)
{
	struct ip_addr any = {.family = r->e->options->to.addr.family};
	struct link *link;
	enum weft_err err = open_link(r, &any, 0, &link);
	if (err) {
		return err;
	}
	if (c->link) {
		drop_link(r, c->link, EMULATE_BA);
	}
	c->link = link;
	watch(r, link, client_ready, c);
	return WEFT_OK;
}

/* A place for a new client: a free one, or that of the client that was silent longest. */
static struct client *
find_place(struct relay *r, struct mono now)
{
	struct client *oldest = NULL;
	if (r->clients_n < r->clients_cap) {
		return &r->clients[r->clients_n++];
	}
	for (size_t i = 0; i < r->clients_n; i++) {
		struct client *c = &r->clients[i];
		if (!c->link) {
			return c;
		}
		if (!oldest || mono_is_before(c->heard, oldest->heard)) {
			oldest = c;
		}
	}
	if (mono_diff_ns(now, oldest->heard) < IDLE_NS) {
		return NULL;
	}
	drop_link(r, oldest->link, EMULATE_BA);
	oldest->link = NULL;
	r->e->clients--;
	return oldest;
}

static struct client *
find_client(struct relay *r, const struct endpoint *addr)
{
	for (size_t i = 0; i < r->clients_n; i++) {
		struct client *c = &r->clients[(r->client_last + i) % r->clients_n];
		if (c->link && endpoint_is_same_remote(&c->addr, addr)) {
			r->client_last = (size_t)(c - r->clients);
			return c;
		}
	}
	return NULL;
}

static struct client *
meet_client(struct relay *r, const struct endpoint *addr, struct mono now)
{
	struct client *c = find_client(r, addr);
	if (!c) {
		c = find_place(r, now);
		if (!c) {
			return NULL;
		}
		c->relay = r;
		c->generation++;
		if (open_client_link(r, c)) {
			return NULL;
		}
		r->e->clients++;
	}
	/* Answers leave from the address that the client used last. */
	c->addr = *addr;
	c->heard = now;
	return c;
}

static void
push_run(struct relay *r, unsigned dir, struct client *c, const struct link_rx *rx)
{
	struct mono now = os_clock_mono();
	uint64_t tag = tag_of(r, c, rx->ecn);
	for (uint32_t off = 0; off < rx->len; off += rx->seg) {
		uint32_t len = rx->len - off < rx->seg ? rx->len - off : rx->seg;
		emu_channel_push(&r->e->channel[dir], now, rx->data + off, len, tag);
		if (r->record) {
			struct endpoint here = {
				.addr = rx->from.src, .port = link_udp_port(r->listen)};
			emulate_record_add(r->record, os_clock_wall_ns(), &rx->from,
				dir == EMULATE_AB ? &here : &c->addr, rx->data + off,
				(uint16_t)len);
		}
	}
}

static void
listen_ready(void *ctx, uint32_t events)
{
	struct relay *r = ctx;
	struct link_rx rx[RECEIVE_RUNS];
	size_t n;
	(void)events;
	for (int round = 0; round < RECEIVE_ROUNDS; round++) {
		if (r->listen->ops->receive(r->listen, rx, RECEIVE_RUNS, &n)) {
			return;
		}
		for (size_t i = 0; i < n; i++) {
			struct client *c = meet_client(r, &rx[i].from, os_clock_mono());
			if (c) {
				push_run(r, EMULATE_AB, c, &rx[i]);
			} else {
				r->past[EMULATE_AB].refused +=
					(rx[i].len + rx[i].seg - 1) / rx[i].seg;
			}
		}
	}
}

static void
client_ready(void *ctx, uint32_t events)
{
	struct client *c = ctx;
	struct relay *r = c->relay;
	struct link_rx rx[RECEIVE_RUNS];
	size_t n;
	(void)events;
	for (int round = 0; round < RECEIVE_ROUNDS; round++) {
		if (c->link->ops->receive(c->link, rx, RECEIVE_RUNS, &n)) {
			return;
		}
		for (size_t i = 0; i < n; i++) {
			if (endpoint_is_same_remote(&rx[i].from, &r->e->options->to)) {
				push_run(r, EMULATE_BA, c, &rx[i]);
			} else { /* as a NAT that lets only the destination answer */
				r->past[EMULATE_BA].refused +=
					(rx[i].len + rx[i].seg - 1) / rx[i].seg;
			}
		}
	}
}

static void
send_stage(struct relay *r)
{
	if (r->runs_n > 0) {
		r->out->ops->send(r->out, r->runs, r->runs_n);
	}
	r->runs_n = 0;
	r->stage_used = 0;
	r->is_run_closed = true;
}

/* Adds a datagram to the last run, or begins one. There is room for it. */
static void
stage(struct relay *r, const struct endpoint *to, const struct emu_packet *p)
{
	struct link_run *run = r->runs_n > 0 ? &r->runs[r->runs_n - 1] : NULL;
	if (!run || r->is_run_closed || r->run_tag != p->tag || p->len > run->seg) {
		run = &r->runs[r->runs_n++];
		*run = (struct link_run){.to = to,
			.data = r->stage + r->stage_used,
			.seg = (uint16_t)p->len,
			.ecn = (uint8_t)(p->tag >> TAG_ECN_SHIFT & 3)};
		r->run_tag = p->tag;
		r->is_run_closed = false;
	}
	memcpy(r->stage + r->stage_used, p->data, p->len);
	r->stage_used += p->len;
	run->len += p->len;
	r->is_run_closed |= p->len < run->seg;
}

static void
flush(void *ctx, unsigned dir, struct mono now)
{
	struct relay *r = ctx;
	struct emulator *e = r->e;
	struct emu_packet p;
	while (emu_channel_pop(&e->channel[dir], now, &p)) {
		emu_histogram_add(&e->late[dir], mono_diff_ns(now, p.due));
		struct client *c = client_of(r, p.tag);
		if (!c) {
			r->past[dir].send_failed++;
			continue;
		}
		struct link *out = dir == EMULATE_AB ? c->link : r->listen;
		if (out != r->out || r->runs_n == STAGE_RUNS ||
			STAGE_BYTES - r->stage_used < DATAGRAM_BYTES_MAX) {
			send_stage(r);
			r->out = out;
		}
		stage(r, dir == EMULATE_AB ? &e->options->to : &c->addr, &p);
	}
	send_stage(r);
}

static void
rebind(void *ctx)
{
	struct relay *r = ctx;
	for (size_t i = 0; i < r->clients_n; i++) {
		struct client *c = &r->clients[i];
		if (c->link && open_client_link(r, c)) {
			log_warn(&r->e->log, "a client keeps its port");
		}
	}
}

static void
sync_counters(void *ctx)
{
	struct relay *r = ctx;
	struct emulate_io *io = r->e->io;
	io[0] = r->past[0];
	io[1] = r->past[1];
	add_stats(r->listen, &io[EMULATE_AB], &io[EMULATE_BA]);
	for (size_t i = 0; i < r->clients_n; i++) {
		if (r->clients[i].link) {
			add_stats(r->clients[i].link, &io[EMULATE_BA], &io[EMULATE_AB]);
		}
	}
}

static void
close_relay(void *ctx)
{
	struct relay *r = ctx;
	for (size_t i = 0; i < r->clients_n; i++) {
		if (r->clients[i].link) {
			drop_link(r, r->clients[i].link, EMULATE_BA);
		}
	}
	if (r->listen) {
		drop_link(r, r->listen, EMULATE_AB);
	}
	if (emulate_record_close(r->record)) {
		log_error(&r->e->log, "the record %s is not complete", r->e->options->record_path);
	}
	free(r->clients);
	free(r);
}

static const struct emulate_mode mode = {
	.name = "udp",
	.flush = flush,
	.rebind = rebind,
	.sync = sync_counters,
	.close = close_relay,
};

enum weft_err
emulate_udp_open(struct emulator *e)
{
	const struct emulate_options *o = e->options;
	weft_assert(o->clients_max <= CLIENTS_MAX);
	struct relay *r = calloc(1, sizeof(*r));
	if (!r) {
		return WEFT_ENOMEM;
	}
	r->e = e;
	r->clients_cap = o->clients_max;
	r->clients = calloc(r->clients_cap, sizeof(*r->clients));
	/* Each link has up to two sockets; beside them the signals. */
	enum weft_err err =
		r->clients ? os_loop_new(2 * r->clients_cap + 4, &e->loop) : WEFT_ENOMEM;
	if (!err && o->record_path) {
		err = emulate_record_open(o->record_path, &r->record);
		if (err) {
			log_error(&e->log, "cannot write %s", o->record_path);
		}
	}
	if (!err) {
		err = open_link(r, &o->listen.addr, o->listen.port, &r->listen);
	}
	if (err) {
		close_relay(r);
		return err;
	}
	watch(r, r->listen, listen_ready, r);
	e->port = link_udp_port(r->listen);
	for (unsigned dir = 0; dir < 2; dir++) {
		e->channel[dir].params.overhead_bytes =
			UDP_HEADER_BYTES +
			(o->to.addr.family == IP_FAMILY_V6 ? IP6_HEADER_LEN : IP4_HEADER_LEN);
	}
	e->mode = &mode;
	e->ctx = r;
	return WEFT_OK;
}
