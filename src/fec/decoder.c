/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/decoder.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "fec/decoder_state.h"
#include "fec/symbol.h"
#include "pkt/ip.h"

#define RECORDS_MIN 256
#define RECORDS_MAX 65536
#define QUIET_MAX 10000 /* packets without gap or REPAIR, then it is idle again */

/* What is skipped has a record each, to be asked for. A peer decides how many: those that a packet
 * received earns bound the work, and let losses of up to 97 % through. An outage may use what is
 * saved up; of one that is longer, answers could bring a small part anyway. */
#define SKIPS_A_PACKET 32u
#define SKIPS_MAX 4096u

#define RTT_UNKNOWN_NS (10 * WEFT_NS_PER_MS)
#define GRACE_MIN_NS WEFT_NS_PER_MS
/* RTT and 3 ms is what a FEEDBACK and its answer take. Beyond 30 ms a receiver's own repair is the
 * better choice. */
#define HOLD_MARGIN_NS (3 * WEFT_NS_PER_MS)
#define HOLD_MAX_NS (30 * WEFT_NS_PER_MS)
/* A sender that sees congestion does not answer for large packets, and says so. Waiting would only
 * keep from TCP what it must hear, and pile up what it then sends at once. */
#define REFUSED_NS WEFT_NS_PER_S
#define REPAIRED_LATELY_NS WEFT_NS_PER_S

enum weft_err
fec_decoder_new(const struct fec_decoder_config *c, struct fec_decoder **out)
{
	if (!c->gf || c->records < RECORDS_MIN || c->records > RECORDS_MAX ||
		(c->records & (c->records - 1)) || c->bytes < FEC_STORE_MIN ||
		c->bytes > FEC_STORE_MAX || c->records_max > RECORDS_MAX ||
		c->bytes_max > FEC_STORE_MAX || c->packet_max < FEC_PACKET_MIN ||
		c->packet_max > FEC_PACKET_MAX) {
		return WEFT_EINVAL;
	}
	struct fec_decoder *d = calloc(1, sizeof(*d));
	if (!d) {
		return WEFT_ENOMEM;
	}
	d->gf = c->gf;
	d->records = d->records_min = c->records;
	d->bytes = d->bytes_min = (uint32_t)fec_store_size(c->bytes);
	d->records_max = c->records_max;
	d->bytes_max = c->bytes_max;
	d->budget = c->budget;
	d->packet_max = c->packet_max;
	d->is_trusted = true;
	d->skips = SKIPS_MAX;
	d->last_repair_ns = d->last_ahead_ns = d->crowded_ns = d->refused_ns = FEC_NEVER_NS;
	d->report = (struct fec_reporting){FEC_NEVER_NS, INT64_MAX, INT64_MAX, FEC_NEVER_NS};
	fec_decoder_set_rtt(d, 0);
	*out = d;
	return WEFT_OK;
}

void
fec_decoder_free(struct fec_decoder *d)
{
	if (!d) {
		return;
	}
	fec_decoder_release(d);
	free(d);
}

void
fec_decoder_set_rtt(struct fec_decoder *d, int64_t rtt_ns)
{
	d->rtt_ns = rtt_ns > 0 ? rtt_ns : RTT_UNKNOWN_NS;
	d->grace_ns = d->rtt_ns / 16 > GRACE_MIN_NS ? d->rtt_ns / 16 : GRACE_MIN_NS;
}

/* Awake, and nothing would be lost by sleep. */
static bool
has_nothing_to_do(const struct fec_decoder *d)
{
	return d->gaps.missing_n == 0 && d->gaps.unripe_n == 0 && fec_hold_is_empty(&d->hold) &&
	       d->report.settle_ns == INT64_MAX;
}

static void
sleep_if_quiet(struct fec_decoder *d)
{
	if (d->quiet_n >= QUIET_MAX && has_nothing_to_do(d)) {
		fec_decoder_sleep(d);
	}
}

/* The share of records and of bytes that may be held: beyond it waits end at once, before new
 * packets would find no room. */
static bool
is_pressed(struct fec_decoder *d)
{
	if (fec_hold_is_empty(&d->hold)) {
		return false;
	}
	const struct fec_hold *h = &d->hold;
	uint64_t bytes = d->store.head - fec_hold_floor(h);
	uint64_t records = h->last - h->first;
	for (int k = 0; k < WIRE_EXT_CLASS_COUNT; k++) {
		uint64_t behind = h->waiting_n[k] > 0 ? d->gaps.high - h->turn[k] : 0;
		records = behind > records ? behind : records;
	}
	/* Before it comes to that. */
	d->is_short_of_bytes |= bytes > d->store.cap / 8 * 3;
	d->is_short_of_records |= records > d->records / 8 * 3;
	return bytes > d->store.cap / 2 || records > d->records / 2;
}

/* A request that waits for repairs sent ahead is answered so much later, and one that passes a
 * standing queue as well. */
static int64_t
hold_now_ns(const struct fec_decoder *d)
{
	int64_t ns = d->rtt_ns + fec_report_patience_ns(d), seen_ns = fec_report_answer_ns(d);
	ns = (ns > seen_ns ? ns : seen_ns) + HOLD_MARGIN_NS;
	return d->is_hold_off ? 0 : ns < HOLD_MAX_NS ? ns : HOLD_MAX_NS;
}

void
fec_decoder_settle(struct fec_decoder *d)
{
	uint64_t lost = d->gaps.lost;
	if (fec_gaps_ripen(&d->gaps, d->now, d->grace_ns) && d->report.due_ns > d->now.ns) {
		d->report.due_ns = d->now.ns;
	}
	if (d->gaps.lost != lost) {
		fec_report_changed(d);
	}
	int64_t hold_ns = is_pressed(d) ? 0 : hold_now_ns(d);
	bool has_moved;
	do {
		has_moved = false;
		for (unsigned k = 0; k < WIRE_EXT_CLASS_COUNT; k++) {
			has_moved |= fec_hold_advance(&d->hold, &d->gaps, (enum wire_ext_class)k,
				d->gaps.high, d->now, hold_ns);
		}
	} while (has_moved);
}

/* Records below `low` leave. */
static void
drop_below(struct fec_decoder *d, uint64_t low)
{
	struct fec_gaps *g = &d->gaps;
	uint64_t given_up = g->given_up;
	while (g->low < low) {
		struct fec_record *r = &g->records[g->low & g->mask];
		if (r->is_held) {
			fec_hold_release(&d->hold, r);
		}
		fec_gaps_drop(g);
	}
	fec_solver_forget_below(&d->solver, low);
	for (unsigned k = 0; k < WIRE_EXT_CLASS_COUNT; k++) {
		d->hold.turn[k] = d->hold.turn[k] > low ? d->hold.turn[k] : low;
	}
	if (g->given_up != given_up) {
		fec_report_changed(d);
		d->is_short_of_records = true;
	}
}

static void
earn_skips(struct fec_decoder *d, size_t n)
{
	size_t earned = n < SKIPS_MAX / SKIPS_A_PACKET ? n * SKIPS_A_PACKET : SKIPS_MAX;
	d->skips = earned < SKIPS_MAX - d->skips ? d->skips + (uint32_t)earned : SKIPS_MAX;
}

/* Too many are skipped to look for them: nothing is known below `counter` from here on. */
static struct fec_record *
jump(struct fec_decoder *d, uint64_t counter)
{
	struct fec_gaps *g = &d->gaps;
	uint64_t skipped = counter - g->high;
	drop_below(d, g->high);
	d->is_short_of_records = false; /* no more of them would have been of use */
	if (d->is_overflowed) {
		d->stats.overflowed += skipped;
	} else {
		fec_gaps_skip(g, skipped);
		fec_report_changed(d);
	}
	fec_gaps_start(g, counter);
	fec_hold_start(&d->hold, counter);
	d->stats.jumps++;
	d->quiet_n = 0;
	d->edge_at.ns = 0;
	return fec_gaps_extend(g, counter, d->now, FEC_SKIP_LOSS);
}

/* Awake, and the counter is above all seen. */
static struct fec_record *
extend(struct fec_decoder *d, uint64_t counter)
{
	struct fec_gaps *g = &d->gaps;
	uint64_t skipped = counter - g->high;
	if (skipped > d->skips || skipped >= fec_gaps_cap(g)) {
		return jump(d, counter);
	}
	d->skips -= (uint32_t)skipped;
	if (counter - g->low > g->mask) {
		drop_below(d, counter - g->mask);
	}
	if (skipped > 0 && d->is_overflowed) {
		d->stats.overflowed += skipped;
		return fec_gaps_extend(g, counter, d->now, FEC_SKIP_OVERFLOW);
	}
	if (skipped > 0) {
		d->quiet_n = 0;
		d->edge = g->high - 1;
		d->edge_at = d->highest_at;
	}
	bool is_refused = d->refused_ns != FEC_NEVER_NS && d->now.ns - d->refused_ns < REFUSED_NS;
	bool is_waited =
		!is_refused &&
		(d->is_trusted || (d->last_repair_ns != FEC_NEVER_NS &&
					  d->now.ns - d->last_repair_ns < REPAIRED_LATELY_NS));
	return fec_gaps_extend(
		g, counter, d->now, is_waited ? FEC_SKIP_WAITED_LOSS : FEC_SKIP_LOSS);
}

/* While idle: true when it stays so. */
static bool
note_idle(struct fec_decoder *d, uint64_t counter)
{
	if (!d->is_begun) {
		d->is_begun = true;
		d->next = counter;
	}
	if (counter <= d->next) {
		if (counter == d->next) {
			d->next++;
			d->highest_at = d->now;
		}
		return true;
	}
	if (d->is_overflowed) {
		d->stats.overflowed += counter - d->next;
		d->next = counter + 1;
		d->highest_at = d->now;
		return true;
	}
	if (fec_decoder_wake(d, d->next)) {
		return false;
	}
	/* Without memory nothing can be repaired, but the losses are counted. */
	fec_gaps_skip(&d->gaps, counter - d->next);
	d->next = counter + 1;
	d->highest_at = d->now;
	return true;
}

void
fec_decoder_set_overflow(struct fec_decoder *d, bool has_overflowed)
{
	d->is_overflowed = has_overflowed;
}

void
fec_decoder_set_hold(struct fec_decoder *d, bool is_on)
{
	d->is_hold_off = !is_on;
}

bool
fec_decoder_skip(struct fec_decoder *d, struct mono now, uint64_t first, size_t n)
{
	if (d->is_awake || (d->is_begun && first != d->next)) {
		return false;
	}
	d->is_begun = true;
	d->now = d->highest_at = now;
	d->next = first + n;
	d->stats.received += n;
	earn_skips(d, n);
	return true;
}

static void
pass(struct fec_out *out, const struct fec_packet *p)
{
	weft_assert(out->n < out->cap);
	out->packets[out->n++] = *p;
}

/* Copies a source into the store; it stays HERE when it is no packet, too long, or there is no
 * room. */
static void
store(struct fec_decoder *d, struct fec_record *r, const uint8_t *data, size_t len)
{
	uint32_t exact;
	uint64_t place;
	r->is_source = true;
	if (ip_exact_len(data, len, &exact) || exact > d->packet_max ||
		!fec_store_put(
			&d->store, data, (uint16_t)exact, fec_hold_floor(&d->hold), &place)) {
		return;
	}
	r->state = FEC_STATE_STORED;
	r->place = place;
	r->len = (uint16_t)exact;
	r->maybe = FEC_MAYBE(fec_class(exact));
}

/* A gap's own packet came. What the solver has of it becomes known, or is dropped. */
static void
fill_gap(struct fec_decoder *d, struct fec_record *r, uint64_t counter)
{
	if (!fec_solver_has(&d->solver, counter)) {
		return;
	}
	if (r->state == FEC_STATE_STORED) {
		fec_solver_known(&d->solver, counter, fec_store_at(&d->store, r->place),
			(uint16_t)(r->len + FEC_LEN_BYTES));
	} else {
		fec_solver_forget(&d->solver, counter);
	}
	if (!fec_repair_collect(d, WIRE_EXT_WHY_AHEAD)) {
		d->stats.repairs_refused++;
	}
}

/* Does it have to wait, for missing ones or for those on their way out? Then it is held. */
static bool
hold(struct fec_decoder *d, struct fec_record *r, const struct fec_packet *p)
{
	if (r->state != FEC_STATE_STORED || !fec_hold_is_ordered(p->data, p->len)) {
		return false;
	}
	enum wire_ext_class class = fec_class(r->len);
	(void)fec_hold_advance(
		&d->hold, &d->gaps, class, p->counter, d->now, is_pressed(d) ? 0 : hold_now_ns(d));
	uint64_t turn = d->hold.turn[class];
	if (turn > p->counter || (turn == p->counter && !fec_hold_has_ready(&d->hold))) {
		return false;
	}
	const struct fec_held held = {
		.counter = p->counter,
		.place = r->place,
		.since_ns = d->now.ns,
		.len = r->len,
		.class = (uint8_t) class,
		.ecn = p->ecn,
	};
	return fec_hold_add(&d->hold, &held, r);
}

void
fec_decoder_packet(
	struct fec_decoder *d, struct mono now, const struct fec_arrival *a, struct fec_out *out)
{
	const struct fec_packet p = {a->data, (uint32_t)a->len, a->ecn, false, a->counter};
	uint64_t counter = a->counter;
	bool was_awake = d->is_awake;
	bool is_source = a->is_source && a->len > 0;
	d->now = now;
	d->stats.received++;
	earn_skips(d, 1);
	if (!was_awake && note_idle(d, counter)) {
		if (is_source) {
			pass(out, &p);
		}
		return;
	}
	struct fec_record *r = fec_gaps_at(&d->gaps, counter);
	bool is_new = counter >= d->gaps.high;
	bool is_filling = r && (r->state == FEC_STATE_MISSING || r->state == FEC_STATE_GONE);
	if (is_new) {
		r = extend(d, counter);
		d->highest_at = now;
		d->quiet_n++;
	} else if (r) {
		fec_gaps_arrived(&d->gaps, r);
	}
	if (is_source && (is_new || is_filling)) {
		fec_gaps_show(&d->gaps, counter, now);
		store(d, r, a->data, a->len);
		if (!hold(d, r, &p)) {
			pass(out, &p);
		}
	} else if (is_source && !(r && fec_hold_confirm(&d->hold, r, counter, a->ecn))) {
		/* Older than all records; or recovered and on its way out at once: that one will
		 * find its counter used. */
		pass(out, &p);
	}
	if (is_filling) {
		fill_gap(d, r, counter);
	}
	if (d->gaps.unripe_n > 0 || d->gaps.missing_n > 0 || !fec_hold_is_empty(&d->hold)) {
		fec_decoder_settle(d);
	} else {
		sleep_if_quiet(d);
	}
}

bool
fec_decoder_take(struct fec_decoder *d, struct mono now, struct fec_out *out)
{
	d->now = now;
	if (!d->is_awake) {
		return false;
	}
	weft_assert(out->arena_cap >= d->packet_max);
	fec_decoder_settle(d);
	const struct fec_held *p;
	while ((p = fec_hold_peek(&d->hold)) != NULL) {
		if (out->n == out->cap || out->arena_cap - out->arena_used < p->len) {
			return true;
		}
		uint8_t *at = out->arena + out->arena_used;
		memcpy(at, fec_store_at(&d->store, p->place) + FEC_LEN_BYTES, p->len);
		out->arena_used += p->len;
		pass(out, &(struct fec_packet){at, p->len, p->ecn, p->is_recovered, p->counter});
		if (!p->is_recovered) {
			/* Another worker's turn may have begun before the one that held it. */
			int64_t held_ns = now.ns - p->since_ns;
			uint64_t ns = held_ns > 0 ? (uint64_t)held_ns : 0;
			d->stats.held++;
			d->stats.hold_ns_sum += ns;
			d->stats.hold_ns_max =
				ns > d->stats.hold_ns_max ? ns : d->stats.hold_ns_max;
		}
		fec_hold_pop(&d->hold);
	}
	sleep_if_quiet(d);
	return false;
}

struct mono
fec_decoder_deadline(const struct fec_decoder *d)
{
	if (!d->is_awake) {
		return MONO_NEVER;
	}
	if (fec_hold_has_ready(&d->hold)) {
		return d->now;
	}
	struct mono at = fec_hold_until(&d->hold, &d->gaps, hold_now_ns(d));
	at = mono_min(at, fec_gaps_ripe_at(&d->gaps, d->grace_ns));
	return mono_min(at, fec_report_at(d));
}

void
fec_decoder_stats(const struct fec_decoder *d, struct fec_decoder_stats *out)
{
	*out = d->stats;
	out->lost = d->gaps.lost;
	out->runs = d->gaps.runs;
	out->given_up = d->gaps.given_up;
	out->late = d->gaps.late;
}
