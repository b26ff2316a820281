/* SPDX-License-Identifier: Apache-2.0 */
#include "emu/channel.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

/* A packet held for others to overtake does not wait longer for them than this. */
#define HOLD_NS_MAX WEFT_NS_PER_S
#define HELD_MAX 16384u

enum weft_err
emu_channel_init(struct emu_channel *c, const struct emu_channel_params *params,
	const struct emu_settings *settings)
{
	*c = (struct emu_channel){.params = *params, .set = *settings, .order_next = 1};
	if (params->packets_max == 0 || params->packets_max == EMU_SLOT_NONE) {
		return WEFT_EINVAL;
	}
	enum weft_err err = emu_queue_init(&c->queue, params->packets_max);
	if (err) {
		return err;
	}
	err = emu_ring_init(&c->ring, params->ring_bytes);
	if (err) {
		goto undo_queue;
	}
	c->held_cap = params->packets_max < HELD_MAX ? params->packets_max : HELD_MAX;
	c->held = calloc(c->held_cap, sizeof(*c->held));
	if (!c->held) {
		err = WEFT_ENOMEM;
		goto undo_ring;
	}
	struct rng root;
	rng_init(&root, params->seed);
	for (int i = 0; i < EMU_CHANCE_COUNT; i++) {
		rng_init(&c->chance[i], rng_u64(&root));
	}
	return WEFT_OK;

undo_ring:
	emu_ring_fini(&c->ring);
undo_queue:
	emu_queue_fini(&c->queue);
	return err;
}

void
emu_channel_fini(struct emu_channel *c)
{
	free(c->held);
	emu_ring_fini(&c->ring);
	emu_queue_fini(&c->queue);
	*c = (struct emu_channel){0};
}

void
emu_channel_set(struct emu_channel *c, struct mono now, const struct emu_settings *settings)
{
	uint64_t old = c->set.rate_bps, new = settings->rate_bps;
	if (old != new) {
		int64_t wait_ns = emu_channel_wait_ns(c, now);
		if (wait_ns > 0 && old > 0 && new > 0) {
			double scaled = (double)wait_ns * (double)old / (double)new;
			c->line_free = mono_add_ns(now, (int64_t)scaled);
		} else {
			c->line_free = now;
		}
		c->line_rest = 0;
	}
	if (settings->loss.to_bad == 0) {
		c->is_bad = false;
	}
	c->set = *settings;
}

int64_t
emu_channel_wait_ns(const struct emu_channel *c, struct mono now)
{
	return mono_is_before(now, c->line_free) ? mono_diff_ns(c->line_free, now) : 0;
}

static int64_t
queue_ns(const struct emu_channel *c)
{
	if (c->set.queue.bytes > 0) {
		/* At most 2^30 x 8e9 < 2^63. */
		return (int64_t)(c->set.queue.bytes * 8 * WEFT_NS_PER_S / c->set.rate_bps);
	}
	return c->set.queue.ns;
}

/* Puts a packet on the line and says when its last bit has left; false when the queue is full.
 *
 * What waits is measured in time at the rate, the unsent rest of the packet on the line
 * included. An idle line always takes a packet, however small the queue. */
static bool
take_line(struct emu_channel *c, struct mono now, uint64_t len, struct mono *sent)
{
	if (c->set.rate_bps == 0) {
		*sent = now;
		return true;
	}
	int64_t wait_ns = emu_channel_wait_ns(c, now);
	uint64_t rest = wait_ns > 0 ? c->line_rest : 0;
	/* The rest keeps the division from losing up to a nanosecond a packet. */
	uint64_t scaled = len * 8 * WEFT_NS_PER_S + rest;
	int64_t line_ns = (int64_t)(scaled / c->set.rate_bps);
	if (wait_ns > 0 && wait_ns + line_ns > queue_ns(c)) {
		return false;
	}
	c->line_rest = scaled % c->set.rate_bps;
	c->line_free = mono_add_ns(now, wait_ns + line_ns);
	*sent = c->line_free;
	return true;
}

static bool
is_lost(struct emu_channel *c)
{
	const struct emu_loss *l = &c->set.loss;
	struct rng *r = &c->chance[EMU_CHANCE_LOSS];
	if (l->to_bad > 0) {
		bool steps = rng_is_hit(r, c->is_bad ? l->to_good : l->to_bad);
		c->is_bad ^= steps;
	}
	double p = c->is_bad ? l->in_bad : l->in_good;
	return p > 0 && rng_is_hit(r, p);
}

static bool
is_chosen(struct emu_channel *c, enum emu_chance which, double share)
{
	return share > 0 && rng_is_hit(&c->chance[which], share);
}

/* A deviate of mean 0 and deviation 1, within 6: the sum of twelve uniform 16-bit numbers has
 * variance 12 x (2^32 - 1) / 12, and needs no libm. */
static double
normal_deviate(struct rng *r)
{
	int64_t sum = 0;
	for (int i = 0; i < 3; i++) {
		uint64_t x = rng_u64(r);
		sum += (int64_t)((x & 0xffff) + (x >> 16 & 0xffff) + (x >> 32 & 0xffff) +
				 (x >> 48));
	}
	return (double)(sum - 6 * 0xffff) / 65536.0;
}

static int64_t
draw_delay_ns(struct emu_channel *c)
{
	const struct emu_jitter *j = &c->set.jitter;
	int64_t ns = c->set.delay_ns;
	if (j->ns > 0) {
		struct rng *r = &c->chance[EMU_CHANCE_JITTER];
		if (j->shape == EMU_JITTER_NORMAL) {
			ns += (int64_t)(normal_deviate(r) * (double)j->ns);
		} else {
			ns += (int64_t)rng_below(r, 2 * (uint64_t)j->ns + 1) - j->ns;
		}
	}
	return ns > 0 ? ns : 0;
}

static void
held_swap(struct emu_channel *c, uint32_t a, uint32_t b)
{
	struct emu_held h = c->held[a];
	c->held[a] = c->held[b];
	c->held[b] = h;
}

static void
held_add(struct emu_channel *c, const struct emu_held *h)
{
	uint32_t at = c->held_n++;
	c->held[at] = *h;
	while (at > 0 && c->held[at].until < c->held[(at - 1) / 2].until) {
		held_swap(c, at, (at - 1) / 2);
		at = (at - 1) / 2;
	}
}

static void
held_remove_first(struct emu_channel *c)
{
	c->held[0] = c->held[--c->held_n];
	for (uint32_t at = 0, child; (child = 2 * at + 1) < c->held_n; at = child) {
		if (child + 1 < c->held_n && c->held[child + 1].until < c->held[child].until) {
			child++;
		}
		if (c->held[at].until <= c->held[child].until) {
			break;
		}
		held_swap(c, at, child);
	}
}

/* Packet number order is due at due: those that waited for it leave right behind it. */
static void
release_held(struct emu_channel *c, uint64_t order, struct mono due)
{
	while (c->held_n > 0 && c->held[0].until <= order) {
		const struct emu_held *h = &c->held[0];
		struct emu_slot *s = &c->queue.slots[h->slot];
		/* One that has left by time before is known by its order, which is unique. */
		if (s->is_held && s->order == h->order) {
			s->is_held = false;
			emu_queue_advance(&c->queue, h->slot, due);
		}
		held_remove_first(c);
	}
}

/* Puts the packet on its way; false when there is no room. */
static bool
add(struct emu_channel *c, struct mono due, const void *data, uint32_t len, uint32_t *slot)
{
	size_t off = EMU_RING_NONE;
	if (c->queue.n == c->queue.cap) {
		return false;
	}
	if (c->ring.cap > 0) {
		off = emu_ring_take(&c->ring, len);
		if (off == EMU_RING_NONE) {
			return false;
		}
		if (len > 0) {
			memcpy(emu_ring_at(&c->ring, off), data, len);
		}
	}
	*slot = emu_queue_add(&c->queue, due);
	struct emu_slot *s = &c->queue.slots[*slot];
	*s = (struct emu_slot){.off = off, .len = len, .heap_at = s->heap_at};
	return true;
}

static void
flip_bits(struct emu_channel *c, const struct emu_slot *s)
{
	if (s->off == EMU_RING_NONE || s->len <= c->params.corrupt_offset) {
		return;
	}
	uint8_t *data = emu_ring_at(&c->ring, s->off) + c->params.corrupt_offset;
	uint64_t bits = ((uint64_t)s->len - c->params.corrupt_offset) * 8;
	uint64_t last = bits;
	for (uint32_t i = 0; i < c->set.corrupt.bits; i++) {
		uint64_t bit = rng_below(&c->chance[EMU_CHANCE_FLIP], bits);
		/* One flipped twice in a row would be whole again. */
		if (bit == last) {
			bit = (bit + 1) % bits;
		}
		last = bit;
		data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
}

/* The time at which a packet that is not reordered leaves. */
static struct mono
draw_due(struct emu_channel *c, struct mono sent)
{
	struct mono due = mono_add_ns(sent, draw_delay_ns(c));
	if (mono_is_before(due, c->last_due)) {
		if (c->set.jitter.ns > 0 && c->set.jitter.may_reorder) {
			return due;
		}
		due = c->last_due;
	}
	c->last_due = due;
	return due;
}

/* A reordered packet leaves later by a time, or waits for others. Either way it does not move
 * last_due, so the ones behind it overtake. */
static bool
add_reordered(
	struct emu_channel *c, struct mono sent, const void *data, uint32_t len, uint32_t *slot)
{
	const struct emu_reorder *r = &c->set.reorder;
	struct mono due = mono_add_ns(sent, draw_delay_ns(c));
	if (mono_is_before(due, c->last_due)) {
		due = c->last_due;
	}
	if (r->extra_ns > 0) {
		return add(c, mono_add_ns(due, r->extra_ns), data, len, slot);
	}
	if (c->held_n == c->held_cap || !add(c, mono_add_ns(due, HOLD_NS_MAX), data, len, slot)) {
		return false;
	}
	uint64_t far = r->distance_min;
	far += rng_below(&c->chance[EMU_CHANCE_REORDER], r->distance_max - r->distance_min + 1u);
	c->queue.slots[*slot].is_held = true;
	held_add(c, &(struct emu_held){
			    .until = c->order_next + far, .order = c->order_next, .slot = *slot});
	return true;
}

static bool
send(struct emu_channel *c, struct mono sent, const void *data, uint32_t len, uint64_t tag)
{
	uint32_t slot;
	struct mono due = {0};
	bool is_reordered = is_chosen(c, EMU_CHANCE_REORDER, c->set.reorder.share);
	if (is_reordered) {
		if (!add_reordered(c, sent, data, len, &slot)) {
			return false;
		}
	} else {
		due = draw_due(c, sent);
		if (!add(c, due, data, len, &slot)) {
			return false;
		}
	}
	struct emu_slot *s = &c->queue.slots[slot];
	s->tag = tag;
	s->order = c->order_next++;
	if (!is_reordered) {
		release_held(c, s->order, due);
	}
	if (is_chosen(c, EMU_CHANCE_CORRUPT, c->set.corrupt.share)) {
		s->is_corrupt = true;
		flip_bits(c, s);
		c->counters.corrupted++;
	}
	return true;
}

/* The copy is of the packet as it came; it is damaged on its own or not at all. */
static bool
send_copy(struct emu_channel *c, struct mono sent, const void *data, uint32_t len, uint64_t tag)
{
	uint32_t slot;
	if (!add(c, draw_due(c, sent), data, len, &slot)) {
		return false;
	}
	struct emu_slot *s = &c->queue.slots[slot];
	s->tag = tag;
	s->order = c->order_next - 1;
	s->is_copy = true;
	return true;
}

unsigned
emu_channel_push(
	struct emu_channel *c, struct mono now, const void *data, uint32_t len, uint64_t tag)
{
	int64_t line_len = (int64_t)len + c->params.overhead_bytes;
	struct mono sent;
	weft_dassert(data || c->ring.cap == 0 || len == 0);
	c->counters.in++;
	c->counters.in_bytes += len;
	if (line_len < 0) {
		line_len = 0;
	}
	if (c->set.mtu > 0 && line_len > c->set.mtu) {
		c->counters.mtu_dropped++;
		return 0;
	}
	if (!take_line(c, now, (uint64_t)line_len, &sent)) {
		c->counters.queue_dropped++;
		return 0;
	}
	if (is_lost(c)) {
		c->counters.lost++;
		return 0;
	}
	if (!send(c, sent, data, len, tag)) {
		c->counters.queue_dropped++;
		c->counters.ring_full++;
		return 0;
	}
	if (!is_chosen(c, EMU_CHANCE_DUPLICATE, c->set.duplicate) ||
		!send_copy(c, sent, data, len, tag)) {
		return 1;
	}
	c->counters.duplicated++;
	return 2;
}

struct mono
emu_channel_next(const struct emu_channel *c)
{
	return emu_queue_first_due(&c->queue);
}

bool
emu_channel_pop(struct emu_channel *c, struct mono now, struct emu_packet *out)
{
	struct mono due = emu_queue_first_due(&c->queue);
	if (c->queue.n == 0 || mono_is_before(now, due)) {
		return false;
	}
	struct emu_slot *s = &c->queue.slots[emu_queue_first(&c->queue)];
	emu_queue_remove_first(&c->queue);
	*out = (struct emu_packet){.len = s->len,
		.tag = s->tag,
		.due = due,
		.is_copy = s->is_copy,
		.is_corrupt = s->is_corrupt};
	if (s->off != EMU_RING_NONE) {
		out->data = emu_ring_at(&c->ring, s->off);
		emu_ring_free(&c->ring, s->off);
	}
	s->is_held = false;
	c->counters.out++;
	c->counters.out_bytes += s->len;
	if (s->order < c->order_out_max && !s->is_copy) {
		c->counters.reordered++;
	}
	if (s->order > c->order_out_max) {
		c->order_out_max = s->order;
	}
	return true;
}

uint32_t
emu_channel_pending(const struct emu_channel *c)
{
	return c->queue.n;
}
