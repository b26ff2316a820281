/* SPDX-License-Identifier: Apache-2.0 */
/* REPAIR frames: what they tell about missing counters, and the equations that they are. */
#include "fec/decoder_state.h"

#include <string.h>

#include "base/assert.h"
#include "base/endian.h"
#include "fec/coef.h"
#include "fec/gf256.h"
#include "fec/symbol.h"
#include "pkt/ip.h"

/* A REPAIR laid against what is known. */
struct reading {
	const struct wire_ext_repair *r;
	uint64_t own, base;
	bool is_wrong;    /* contradicts what is known */
	bool is_unusable; /* has a source whose bytes are not here, and never will be */
	size_t known_n, unknown_n;
	uint8_t known_at[WIRE_EXT_SPAN_MAX], unknown_at[WIRE_EXT_SPAN_MAX]; /* in the span */
};

static void
read_source(struct fec_decoder *d, struct reading *x, uint8_t i)
{
	const struct fec_record *rec = fec_gaps_at(&d->gaps, x->base + i);
	uint8_t maybe = FEC_MAYBE(x->r->class);
	if (!rec) {
		x->is_unusable = true;
		return;
	}
	switch ((enum fec_state)rec->state) {
	case FEC_STATE_HERE:
		x->is_wrong = x->is_wrong || !rec->is_source;
		x->is_unusable = true;
		break;
	case FEC_STATE_STORED:
		x->is_wrong = x->is_wrong || rec->maybe != maybe ||
			      (size_t)rec->len + FEC_LEN_BYTES > x->r->payload_len;
		if (fec_store_has(&d->store, rec->place)) {
			x->known_at[x->known_n++] = i;
		} else {
			x->is_unusable = true;
			d->is_short_of_bytes = true;
		}
		break;
	case FEC_STATE_MISSING:
	case FEC_STATE_GONE:
		x->is_wrong = x->is_wrong || !(rec->maybe & maybe);
		x->unknown_at[x->unknown_n++] = i;
		break;
	}
}

/* Missing counters learn which class they are of. Those of neither carry no source: nothing is
 * missing there. */
static void
narrow(struct fec_decoder *d, const struct reading *x)
{
	uint8_t own = FEC_MAYBE(x->r->class);
	for (size_t i = 0; i < x->r->span; i++) {
		struct fec_record *rec = fec_gaps_at(&d->gaps, x->base + i);
		if (!rec || (rec->state != FEC_STATE_MISSING && rec->state != FEC_STATE_GONE)) {
			continue;
		}
		if (fec_has_bit(x->r->sources, i)) {
			rec->maybe = own;
			rec->is_source = true;
		} else if (!rec->is_source && rec->state == FEC_STATE_MISSING) {
			rec->maybe = x->r->is_alone ? 0 : rec->maybe & (uint8_t)~own;
			if (rec->maybe == 0) {
				fec_gaps_resolve(&d->gaps, rec, FEC_STATE_HERE);
			}
		}
	}
}

static bool
is_possible(const struct fec_decoder *d, const struct fec_solved *s, const struct fec_record *r)
{
	size_t len = s->len < FEC_LEN_BYTES ? 0 : load_le16(s->bytes);
	uint32_t exact;
	if (len < FEC_PACKET_MIN || len > d->packet_max || len + FEC_LEN_BYTES > s->len ||
		r->maybe != FEC_MAYBE(fec_class((uint32_t)len)) ||
		ip_exact_len(s->bytes + FEC_LEN_BYTES, len, &exact) || exact != len) {
		return false;
	}
	for (size_t i = FEC_LEN_BYTES + len; i < s->len; i++) {
		if (s->bytes[i]) {
			return false;
		}
	}
	return true;
}

/* In its turn if it is TCP and that has not passed; at once otherwise. */
static bool
send_out(struct fec_decoder *d, const struct fec_solved *s, struct fec_record *r)
{
	enum wire_ext_class class = fec_class(r->len);
	const struct fec_held held = {
		.counter = s->counter,
		.place = r->place,
		.since_ns = d->now.ns,
		.len = r->len,
		.class = (uint8_t) class,
		.is_recovered = true,
	};
	if (d->hold.turn[class] <= s->counter &&
		fec_hold_is_ordered(s->bytes + FEC_LEN_BYTES, r->len)) {
		return fec_hold_add(&d->hold, &held, r);
	}
	return fec_hold_add_ready(&d->hold, &held);
}

/* False: not a packet. */
static bool
recover(struct fec_decoder *d, const struct fec_solved *s, enum wire_ext_repair_why why)
{
	struct fec_record *r = fec_gaps_at(&d->gaps, s->counter);
	weft_dassert(r && (r->state == FEC_STATE_MISSING || r->state == FEC_STATE_GONE));
	if (!is_possible(d, s, r)) {
		return false;
	}
	bool is_wanted = r->state == FEC_STATE_MISSING;
	if (is_wanted && why == WIRE_EXT_WHY_ANSWER) {
		fec_report_answered(d, r);
	}
	uint64_t place;
	uint16_t len = load_le16(s->bytes);
	fec_report_changed(d);
	if (!fec_store_put(
		    &d->store, s->bytes + FEC_LEN_BYTES, len, fec_hold_floor(&d->hold), &place)) {
		if (is_wanted) {
			fec_gaps_give_up(&d->gaps, r);
		}
		return true;
	}
	if (is_wanted) {
		fec_gaps_resolve(&d->gaps, r, FEC_STATE_STORED);
	}
	/* One that was given up before is of use for others still, but has been written off. */
	r->state = FEC_STATE_STORED;
	r->place = place;
	r->len = len;
	if (!is_wanted) {
		return true;
	}
	if (!send_out(d, s, r)) {
		d->gaps.given_up++;
	} else if (why == WIRE_EXT_WHY_ANSWER) {
		d->stats.recovered_answer++;
	} else {
		d->stats.recovered_ahead++;
	}
	return true;
}

bool
fec_repair_collect(struct fec_decoder *d, enum wire_ext_repair_why why)
{
	struct fec_solved s;
	bool is_good = true;
	while (fec_solver_take(&d->solver, &s)) {
		is_good = recover(d, &s, why) && is_good;
	}
	return is_good;
}

/* The equation over what is unknown, with what is known taken out of its bytes. False: it follows
 * from those at hand. */
static bool
add_equation(struct fec_decoder *d, const struct reading *x)
{
	uint8_t row[FEC_COEFS_MAX], cs[FEC_COEFS_MAX];
	uint64_t counters[FEC_COEFS_MAX];
	fec_coefs(fec_key(x->own), row, x->r->span);
	for (size_t i = 0; i < x->unknown_n; i++) {
		counters[i] = x->base + x->unknown_at[i];
		cs[i] = row[x->unknown_at[i]];
	}
	uint64_t crowded = d->solver.crowded;
	uint8_t *bytes = fec_solver_begin(&d->solver, counters, cs, x->unknown_n);
	d->crowded_ns = d->solver.crowded != crowded ? d->now.ns : d->crowded_ns;
	if (!bytes) {
		return false;
	}
	const uint8_t *data[FEC_COEFS_MAX];
	uint16_t lens[FEC_COEFS_MAX];
	for (size_t i = 0; i < x->known_n; i++) {
		const struct fec_record *rec = fec_gaps_at(&d->gaps, x->base + x->known_at[i]);
		data[i] = fec_store_at(&d->store, rec->place);
		lens[i] = (uint16_t)(rec->len + FEC_LEN_BYTES);
		cs[i] = row[x->known_at[i]];
	}
	memcpy(bytes, x->r->payload, x->r->payload_len);
	d->gf->dot(bytes, data, lens, cs, x->known_n, x->r->payload_len);
	fec_solver_finish(&d->solver, (uint16_t)x->r->payload_len);
	return true;
}

static bool
use_repair(struct fec_decoder *d, const struct reading *x)
{
	narrow(d, x);
	/* A source longer than what can be stored here is one more that never will be. */
	if (x->is_unusable || x->unknown_n == 0 ||
		x->r->payload_len > (size_t)d->packet_max + FEC_LEN_BYTES || !add_equation(d, x)) {
		d->stats.repairs_useless += x->r->payload_len > 0;
		return true;
	}
	return fec_repair_collect(d, x->r->why);
}

#define AHEAD_INTERVAL_MAX_NS (10 * WEFT_NS_PER_MS)

static void
note_ahead(struct fec_decoder *d)
{
	int64_t ns = AHEAD_INTERVAL_MAX_NS;
	if (d->last_ahead_ns != FEC_NEVER_NS && d->now.ns - d->last_ahead_ns < ns) {
		ns = d->now.ns - d->last_ahead_ns;
	}
	d->ahead_interval_ns += (ns - d->ahead_interval_ns) / 8;
	d->last_ahead_ns = d->now.ns;
}

/* One sent ahead, or behind the last source, reaches up to a source that has left: all
 * before that is missing now. An answer says nothing of that kind, and lost ones are not to be
 * asked for by reason of the next: else frames about frames would go on for ever behind the last
 * source. */
static void
note_sources(struct fec_decoder *d, const struct reading *x)
{
	if (x->r->why == WIRE_EXT_WHY_ANSWER || x->r->payload_len == 0) {
		return;
	}
	uint64_t end = x->base + x->r->span;
	fec_gaps_show(&d->gaps, end, d->now);
	if (x->r->why == WIRE_EXT_WHY_TAIL && d->tail_end == end) {
		fec_report_soon(d);
	}
	d->tail_end = end;
}

bool
fec_decoder_repair(
	struct fec_decoder *d, struct mono now, uint64_t counter, const struct wire_ext_repair *r)
{
	d->now = now;
	d->stats.repairs++;
	d->last_repair_ns = now.ns;
	if (r->why == WIRE_EXT_WHY_AHEAD) {
		note_ahead(d);
	}
	if (r->why == WIRE_EXT_WHY_TAIL && r->payload_len == 0) {
		d->refused_ns = now.ns;
	} else if (r->class == WIRE_EXT_CLASS_LARGE && r->payload_len > 0) {
		d->refused_ns = FEC_NEVER_NS;
	}
	d->is_trusted = true;
	d->quiet_n = 0;
	if (!d->is_awake && !fec_decoder_wake(d, d->next)) {
		d->stats.repairs_useless++;
		return true;
	}
	struct reading x = {.r = r, .own = counter, .base = counter - r->back};
	/* Its own counter has been noted, and all of the span is below. */
	if (counter >= d->gaps.high || counter < r->back || r->back < r->span) {
		d->stats.repairs_refused++;
		return false;
	}
	note_sources(d, &x);
	for (unsigned i = 0; i < r->span; i++) {
		if (fec_has_bit(r->sources, i)) {
			read_source(d, &x, (uint8_t)i);
		}
	}
	bool is_good = !x.is_wrong && use_repair(d, &x);
	d->stats.repairs_refused += !is_good;
	fec_decoder_settle(d);
	return is_good;
}
