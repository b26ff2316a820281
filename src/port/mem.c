/* SPDX-License-Identifier: Apache-2.0 */
#include "port/mem.h"

#include <stdlib.h>
#include <string.h>

#include "os/ring.h"

#define ROUND16(n) (((n) + 15) & ~(size_t)15)
#define INJECT_LEN ROUND16(sizeof(struct frame))
#define DELIVER_LEN ROUND16(sizeof(struct port_mem_frame))

struct port_mem {
	struct port base;
	struct os_ring *in;  /* owner to node: struct frame and its bytes */
	struct os_ring *out; /* node to owner: struct port_mem_frame and its bytes */
};

static struct port_mem *
self_of(struct port *p)
{
	return WEFT_CONTAINER_OF(p, struct port_mem, base);
}

static enum weft_err
receive(struct port *base, uint8_t *buf, size_t cap, struct frame *f)
{
	struct port_mem *m = self_of(base);
	size_t len;
	for (;;) {
		const uint8_t *p = os_ring_take(m->in, &len);
		if (!p) {
			return WEFT_EAGAIN;
		}
		struct frame r;
		memcpy(&r, p, sizeof(r));
		bool fits = r.len <= cap;
		if (fits) {
			memcpy(buf, p + INJECT_LEN, r.len);
			base->stats.rx_frames++;
			base->stats.rx_bytes += r.len;
		}
		os_ring_release(m->in);
		if (fits) {
			r.data = buf;
			*f = r;
			return WEFT_OK;
		}
		base->stats.drops.n[DROP_TX_TOO_BIG]++;
	}
}

static void
send_frames(struct port *base, const struct gro_out *out)
{
	struct port_mem *m = self_of(base);
	for (size_t i = 0; i < out->frames_n; i++) {
		const struct gro_frame *f = &out->frames[i];
		uint8_t *p = os_ring_reserve(m->out, DELIVER_LEN + f->len);
		if (!p) {
			base->stats.drops.n[DROP_PORT_FULL] += f->packets;
			continue;
		}
		struct port_mem_frame r = {.len = f->len,
			.gso = f->gso,
			.gso_size = f->gso_size,
			.needs_csum = f->needs_csum,
			.csum_valid = f->csum_valid,
			.csum_start = f->csum_start,
			.csum_offset = f->csum_offset,
			.packets = f->packets};
		memcpy(p, &r, sizeof(r));
		uint8_t *at = p + DELIVER_LEN;
		for (uint32_t k = 0; k < f->n; k++) {
			const struct gro_piece *piece = &out->pieces[f->first + k];
			memcpy(at, piece->data, piece->len);
			at += piece->len;
		}
		os_ring_push(m->out, DELIVER_LEN + f->len);
		base->stats.tx_frames++;
		base->stats.tx_bytes += f->len;
	}
}

static void
close_port(struct port *base)
{
	struct port_mem *m = self_of(base);
	os_ring_free(m->in);
	os_ring_free(m->out);
	free(m);
}

static const struct port_ops ops = {.receive = receive, .send = send_frames, .close = close_port};

enum weft_err
port_mem_new(size_t bytes, uint16_t mtu, const struct gro_caps *caps, struct port **out)
{
	struct port_mem *m = calloc(1, sizeof(*m));
	if (!m) {
		return WEFT_ENOMEM;
	}
	m->base = (struct port){.ops = &ops, .caps = *caps, .mtu = mtu};
	enum weft_err err = os_ring_new(bytes, &m->in);
	if (!err) {
		err = os_ring_new(bytes, &m->out);
	}
	if (err) {
		close_port(&m->base);
		return err;
	}
	*out = &m->base;
	return WEFT_OK;
}

bool
port_mem_inject(struct port *base, const struct frame *f)
{
	struct port_mem *m = self_of(base);
	uint8_t *p = os_ring_reserve(m->in, INJECT_LEN + f->len);
	if (!p) {
		return false;
	}
	memcpy(p, f, sizeof(*f));
	memcpy(p + INJECT_LEN, f->data, f->len);
	os_ring_push(m->in, INJECT_LEN + f->len);
	return true;
}

bool
port_mem_take(struct port *base, struct port_mem_frame *out)
{
	struct port_mem *m = self_of(base);
	size_t len;
	os_ring_release(m->out);
	uint8_t *p = os_ring_take(m->out, &len);
	if (!p) {
		return false;
	}
	memcpy(out, p, sizeof(*out));
	out->data = p + DELIVER_LEN;
	return true;
}

void
port_mem_set_polled(struct port *p)
{
	os_ring_set_polled(self_of(p)->in);
	os_ring_set_polled(self_of(p)->out);
}

int
port_mem_fd(const struct port *p)
{
	return os_ring_fd(WEFT_CONTAINER_OF(p, const struct port_mem, base)->in);
}

int
port_mem_outer_fd(const struct port *p)
{
	return os_ring_fd(WEFT_CONTAINER_OF(p, const struct port_mem, base)->out);
}
