/* SPDX-License-Identifier: Apache-2.0 */
/* `weft emulate A B`: what comes in at one interface goes out at the other. */
#include <stdlib.h>

#include "cli/emulate.h"
#include "emu/ether.h"
#include "os/clock.h"
#include "os/loop.h"
#include "os/packet.h"

/* Batches read before what is due gets its turn. */
#define RECEIVE_ROUNDS 4

/* How often an interface that is down is looked for. */
#define LOOK_NS (100 * WEFT_NS_PER_MS)

#define ETHERNET_HEADER_BYTES 14

struct side {
	struct interfaces *all;
	unsigned dir; /* of what comes in here */
	struct os_packet packet;
	struct emu_ether *ether; /* of the direction */
};

struct interfaces {
	struct emulator *e;
	struct side side[2];
	/* For sending: kept here for their size. */
	struct iovec iov[EMU_ETHER_PIECES];
	struct os_packet_tx tx[EMU_ETHER_BATCH];
};

static void
side_ready(void *ctx, uint32_t events)
{
	struct side *s = ctx;
	struct emulator *e = s->all->e;
	struct os_packet_rx rx[OS_PACKET_BATCH];
	(void)events;
	for (int round = 0; round < RECEIVE_ROUNDS; round++) {
		size_t n;
		enum weft_err err = os_packet_receive(&s->packet, rx, &n);
		if (err == WEFT_EAGAIN) {
			break;
		}
		if (err) {
			e->failure = err == WEFT_ECLOSED ? "an interface is gone"
							 : "an interface cannot be read";
			e->is_stopping = true;
			return;
		}
		for (size_t i = 0; i < n; i++) {
			if (emu_ether_push(s->ether, &e->channel[s->dir], rx[i].arrival, rx[i].vnet,
				    rx[i].data, rx[i].len)) {
				e->io[s->dir].refused++;
			}
		}
		if (n < OS_PACKET_BATCH) {
			break;
		}
	}
	if (s->packet.is_down) {
		e->look_at = mono_add_ns(os_clock_mono(), LOOK_NS);
	}
}

static void
send_frames(struct interfaces *all, unsigned dir, const struct emu_ether_frame *frames, size_t n)
{
	struct side *out = &all->side[1 - dir];
	size_t iov_n = 0;
	for (size_t i = 0; i < n; i++) {
		struct iovec *first = &all->iov[iov_n];
		for (uint32_t k = 0; k < frames[i].pieces_n; k++) {
			const struct gro_piece *p = &frames[i].pieces[k];
			all->iov[iov_n++] = (struct iovec){.iov_base = p->data, .iov_len = p->len};
		}
		all->tx[i] = (struct os_packet_tx){.iov = first, .iov_n = frames[i].pieces_n};
	}
	os_packet_send(&out->packet, all->tx, n);
	for (size_t i = 0; i < n; i++) {
		if (all->tx[i].result) {
			all->e->io[dir].send_failed += frames[i].packets;
		}
	}
}

static void
flush(void *ctx, unsigned dir, struct mono now)
{
	struct interfaces *all = ctx;
	struct emulator *e = all->e;
	const struct emu_ether_frame *frames;
	size_t n;
	if (!mono_is_before(now, e->look_at)) {
		e->look_at = MONO_NEVER;
		side_ready(&all->side[0], 0);
		side_ready(&all->side[1], 0);
	}
	while ((n = emu_ether_pop(
			all->side[dir].ether, &e->channel[dir], now, &e->late[dir], &frames)) > 0) {
		send_frames(all, dir, frames, n);
	}
}

static void
sync_counters(void *ctx)
{
	struct interfaces *all = ctx;
	for (unsigned dir = 0; dir < 2; dir++) {
		struct emulate_io *io = &all->e->io[dir];
		struct os_packet *in = &all->side[dir].packet;
		os_packet_sync(in);
		io->kernel_dropped = in->dropped;
		io->refused += in->refused;
		in->refused = 0;
		io->rx_calls = in->rx_calls;
		io->tx_calls = all->side[1 - dir].packet.tx_calls;
	}
}

static void
close_side(struct interfaces *all, struct side *s)
{
	if (s->packet.batch) {
		os_loop_del(all->e->loop, s->packet.fd);
		os_packet_close(&s->packet);
	}
	emu_ether_free(s->ether);
}

static void
close_interfaces(void *ctx)
{
	struct interfaces *all = ctx;
	close_side(all, &all->side[0]);
	close_side(all, &all->side[1]);
	free(all);
}

static const struct emulate_mode mode = {
	.name = "interfaces",
	.flush = flush,
	.sync = sync_counters,
	.close = close_interfaces,
};

/* The direction's way out must be open already: what can be joined depends on it. */
static enum weft_err
start_side(struct interfaces *all, unsigned dir)
{
	struct side *s = &all->side[dir];
	bool has_uso = all->side[1 - dir].packet.has_uso;
	struct gro_caps caps = {
		.has_tcp4 = true, .has_tcp6 = true, .has_udp4 = has_uso, .has_udp6 = has_uso};
	s->all = all;
	s->dir = dir;
	enum weft_err err = emu_ether_new(&caps, &s->ether);
	if (err) {
		return err;
	}
	return os_loop_add(all->e->loop, s->packet.fd, OS_READABLE, side_ready, s);
}

enum weft_err
emulate_interfaces_open(struct emulator *e)
{
	struct interfaces *all = calloc(1, sizeof(*all));
	if (!all) {
		return WEFT_ENOMEM;
	}
	all->e = e;
	enum weft_err err = os_loop_new(4, &e->loop);
	for (unsigned i = 0; i < 2 && !err; i++) {
		err = os_packet_open(e->options->interface[i], &e->log, &all->side[i].packet);
		e->channel[i].params.overhead_bytes = -ETHERNET_HEADER_BYTES;
		e->channel[i].params.corrupt_offset = ETHERNET_HEADER_BYTES;
	}
	for (unsigned dir = 0; dir < 2 && !err; dir++) {
		err = start_side(all, dir);
	}
	if (err) {
		close_interfaces(all);
		return err;
	}
	e->mode = &mode;
	e->ctx = all;
	return WEFT_OK;
}
