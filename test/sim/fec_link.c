/* SPDX-License-Identifier: Apache-2.0 */
#include "fec_link.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "pkt/ecn.h"

#define OUT_PACKETS 64
#define SEEN (UINT64_C(1) << 22) /* counters of a session */
#define BATCH_MAX 128

static void
broken(struct fec_link *l, const char *fmt, ...)
{
	if (!l->is_wrong) {
		va_list ap;
		va_start(ap, fmt);
		vsnprintf(l->text, sizeof(l->text), fmt, ap);
		va_end(ap);
		l->is_wrong = true;
	}
}

struct emu_loss
fec_link_loss(double share, double burst)
{
	if (burst <= 1) {
		return (struct emu_loss){.to_good = 1, .in_good = share};
	}
	return (struct emu_loss){
		.to_good = 1 / burst, .to_bad = share / (1 - share) / burst, .in_bad = 1};
}

/* --- packets --- */

static uint8_t
byte_of(uint64_t number, unsigned end, size_t i)
{
	return (uint8_t)(number * 0x9e3779b97f4a7c15u >> (8 * (i % 8)) ^ (number >> 3) ^ i ^ end);
}

/* An IPv4 packet: header, number, bytes that follow from it. */
static void
make_packet(uint8_t *p, uint32_t len, uint64_t number, unsigned end, enum fec_link_kind kind)
{
	memset(p, 0, 20);
	p[0] = 0x45;
	p[2] = (uint8_t)(len >> 8);
	p[3] = (uint8_t)len;
	p[8] = 64;
	p[9] = kind == FEC_LINK_TCP ? 6 : 17;
	p[15] = (uint8_t)(end + 1);
	p[19] = (uint8_t)(2 - end);
	for (size_t i = 20; i < len; i++) {
		p[i] = byte_of(number, end, i);
	}
	/* As long as a TCP header with nothing but ACK, where it would stand. */
	memset(p + 20, 0, 20 < len - 20 ? 20 : len - 20);
	p[32] = 0x50;
	p[33] = 0x10;
	memcpy(p + 24, &number, 8);
}

static uint64_t
number_of(const uint8_t *p, uint32_t len)
{
	uint64_t number = UINT64_MAX;
	if (len >= 40) {
		memcpy(&number, p + 24, 8);
	}
	return number;
}

/* --- receiving --- */

static bool *
seen_of(struct fec_link_end *e, uint64_t session)
{
	unsigned i = session % (FEC_SESSIONS + 1);
	if (e->seen_session[i] != session) {
		if (!e->seen[i]) {
			e->seen[i] = malloc(SEEN);
		}
		memset(e->seen[i], 0, SEEN);
		e->seen_session[i] = session;
	}
	return e->seen[i];
}

static void
time_delivery(struct fec_link *l, struct fec_link_counts *c, const struct fec_packet *p,
	struct mono sent_at)
{
	int64_t ns = mono_diff_ns(l->now, sent_at) - l->delay_ns;
	emu_histogram_add(p->is_recovered ? &c->repair_ns : &c->hold_ns, ns);
	c->recovered += p->is_recovered;
	c->late += ns > l->late_ns;
}

static void
deliver(struct fec_link *l, unsigned to, uint64_t session, const struct fec_packet *p)
{
	unsigned from = 1 - to;
	struct fec_link_end *e = &l->ends[from];
	uint8_t expected[FEC_LINK_MTU];
	if (p->is_recovered) {
		bool *seen = seen_of(&l->ends[to], session);
		if (p->counter >= SEEN || seen[p->counter]) {
			return; /* the replay window drops it, as the node would */
		}
		seen[p->counter] = true;
	}
	uint64_t number = number_of(p->data, p->len);
	if (number >= e->number || p->len > FEC_LINK_MTU) {
		e->counts.wrong++;
		broken(l, "a packet that nobody sent: counter %llu recovered %d",
			(unsigned long long)p->counter, p->is_recovered);
		return;
	}
	make_packet(expected, p->len, number, from, p->data[9] == 6 ? FEC_LINK_TCP : FEC_LINK_UDP);
	expected[1] = e->is_marked[number] ? ECN_CE : e->is_ecn ? ECN_ECT0 : ECN_NOT_ECT;
	if (memcmp(expected, p->data, p->len) != 0) {
		e->counts.wrong++;
		broken(l, "packet %llu came out with other bytes (recovered %d)",
			(unsigned long long)number, p->is_recovered);
		return;
	}
	if (e->is_delivered[number]) {
		e->counts.twice++;
		broken(l, "packet %llu came out twice", (unsigned long long)number);
		return;
	}
	e->is_delivered[number] = 1;
	e->counts.delivered++;
	e->counts.delivered_armed +=
		e->armed_at.ns != 0 && !mono_is_before(e->sent_at[number], e->armed_at);
	e->counts.out_of_order += number < e->highest_delivered;
	e->highest_delivered = number > e->highest_delivered ? number : e->highest_delivered;
	time_delivery(l, &e->counts, p, e->sent_at[number]);
	if (l->on_delivery) {
		l->on_delivery(l->user, from, number);
	}
}

static void
deliver_all(struct fec_link *l, unsigned to, uint64_t session, struct fec_out *out)
{
	for (size_t i = 0; i < out->n; i++) {
		deliver(l, to, session, &out->packets[i]);
	}
	out->n = out->arena_used = 0;
}

static void
out_init(struct fec_out *out, struct fec_packet *packets, uint8_t *arena, size_t arena_cap)
{
	*out = (struct fec_out){
		.packets = packets, .cap = OUT_PACKETS, .arena = arena, .arena_cap = arena_cap};
}

/* The second end's clock is ahead. */
static struct mono
clock_of(const struct fec_link *l, unsigned end)
{
	return mono_add_ns(l->now, end == 0 ? 0 : (int64_t)l->clock_diff_us * WEFT_NS_PER_US);
}

static void
take_ready(struct fec_link *l, unsigned to)
{
	struct fec_packet packets[OUT_PACKETS];
	static uint8_t arena[OUT_PACKETS * 2048];
	struct fec_out out;
	uint64_t session;
	out_init(&out, packets, arena, sizeof(arena));
	for (int i = 0; fec_recovery_take(l->ends[to].recovery, clock_of(l, to), &session, &out);
		i++) {
		deliver_all(l, to, session, &out);
		if (i == 10000) {
			broken(l, "take never ends");
			return;
		}
	}
}

static void
receive(struct fec_link *l, unsigned to, const struct emu_packet *p)
{
	struct fec_link_end *e = &l->ends[to];
	uint64_t session, counter;
	uint8_t *data = p->data + FEC_LINK_HEADER;
	size_t len = p->len - FEC_LINK_HEADER;
	memcpy(&session, p->data, 8);
	memcpy(&counter, p->data + 8, 8);
	if (session + FEC_SESSIONS <= e->session || session < e->session_min) {
		return; /* its keys are gone */
	}
	bool *seen = seen_of(e, session);
	if (counter >= SEEN || seen[counter]) {
		return;
	}
	seen[counter] = true;
	struct fec_packet packets[OUT_PACKETS];
	static uint8_t arena[OUT_PACKETS * 2048];
	struct fec_out out;
	out_init(&out, packets, arena, sizeof(arena));
	struct mono now = clock_of(l, to);
	if (!wire_ext_is_frame(data, len) &&
		(l->is_off || fec_recovery_skip(e->recovery, now, session, counter, 1))) {
		deliver(l, to, session,
			&(struct fec_packet){
				.data = data, .len = (uint32_t)len, .counter = counter});
		return;
	}
	if (!fec_recovery_received(e->recovery, now, session,
		    &(struct fec_arrival){counter, data, len, 0, false}, &out)) {
		e->refused++;
		broken(l, "end %u refused a frame of its peer", to);
	}
	deliver_all(l, to, session, &out);
	take_ready(l, to);
}

/* --- sending --- */

static bool
may_pass(const struct fec_link *l, struct fec_link_end *e, double bytes)
{
	if (e->police.bps <= 0) {
		return true;
	}
	e->tokens += e->police.bps / 8e9 * (double)mono_diff_ns(l->now, e->tokens_at);
	e->tokens = e->tokens < e->police.burst_bytes ? e->tokens : e->police.burst_bytes;
	e->tokens_at = l->now;
	bool is_good = e->tokens >= bytes;
	e->tokens -= is_good ? bytes : 0;
	return is_good;
}

static void
put(struct fec_link *l, unsigned end, uint64_t session, uint64_t counter, uint8_t *packet,
	size_t len)
{
	struct fec_link_end *e = &l->ends[end];
	memcpy(packet, &session, 8);
	memcpy(packet + 8, &counter, 8);
	size_t padded =
		wire_ext_is_frame(packet + FEC_LINK_HEADER, len) ? len : (len + 15) / 16 * 16;
	e->counts.wire_bytes += padded + FEC_LINK_WIRE_BYTES;
	if (!may_pass(l, e, (double)(padded + FEC_LINK_WIRE_BYTES))) {
		return;
	}
	emu_channel_push(&e->out, l->now, packet, (uint32_t)(len + FEC_LINK_HEADER), 0);
}

static void
send_due(struct fec_link *l, unsigned end)
{
	struct fec_link_end *e = &l->ends[end];
	struct mono now = clock_of(l, end);
	uint8_t packet[FEC_LINK_HEADER + FEC_LINK_FRAME_MAX];
	uint64_t session;
	for (int rounds = 0; (session = fec_recovery_due_session(e->recovery, now, 0)) != 0;
		rounds++) {
		size_t n = fec_recovery_frames_due(e->recovery, now, session);
		for (size_t i = 0; i < n; i++) {
			uint64_t counter = e->counters[session % (FEC_SESSIONS + 1)]++;
			size_t len = fec_recovery_frame(e->recovery, now, session, counter,
				packet + FEC_LINK_HEADER, FEC_LINK_FRAME_MAX);
			if (len == 0) {
				broken(l, "end %u: a frame was due and could not be made", end);
				return;
			}
			e->counts.frames++;
			put(l, end, session, counter, packet, len);
		}
		if (rounds == 1000) {
			broken(l, "end %u: frames are due for ever", end);
			return;
		}
	}
}

static void
note_armed(struct fec_link *l, unsigned end)
{
	struct fec_link_end *e = &l->ends[end];
	if (e->armed_at.ns == 0 && fec_recovery_is_armed(e->recovery)) {
		e->armed_at = l->now;
	}
}

uint64_t
fec_link_send(struct fec_link *l, unsigned end, uint32_t len, enum fec_link_kind kind)
{
	struct fec_link_end *e = &l->ends[end];
	uint8_t packet[FEC_LINK_HEADER + FEC_LINK_MTU];
	struct mono now = clock_of(l, end);
	uint64_t number = e->number;
	if (number >= l->numbers_max) {
		broken(l, "too many packets");
		return 0;
	}
	e->number++;
	make_packet(packet + FEC_LINK_HEADER, len, number, end, kind);
	e->is_marked[number] = e->is_ecn && !l->is_off && fec_recovery_take_mark(e->recovery, now);
	packet[FEC_LINK_HEADER + 1] = e->is_marked[number] ? ECN_CE
				      : e->is_ecn          ? ECN_ECT0
							   : ECN_NOT_ECT;
	uint64_t counter = e->counters[e->session % (FEC_SESSIONS + 1)]++;
	note_armed(l, end);
	if (l->is_off) {
		/* Nobody remembers it. */
	} else if (fec_recovery_wants_sources(e->recovery, now)) {
		fec_recovery_source(
			e->recovery, now, e->session, counter, packet + FEC_LINK_HEADER, len);
	} else {
		fec_recovery_sent_run(e->recovery, now, e->session, counter, 1, len);
	}
	e->sent_at[number] = l->now;
	e->counts.sent++;
	e->counts.sent_armed += e->armed_at.ns != 0;
	e->counts.inner_bytes += len;
	put(l, end, e->session, counter, packet, len);
	return number;
}

static void
send_batch(struct fec_link *l, unsigned end)
{
	struct fec_link_end *e = &l->ends[end];
	unsigned n = e->flow.batch > 0 ? e->flow.batch : 1;
	for (unsigned i = 0; i < n; i++) {
		fec_link_send(l, end, e->flow.len, e->flow.kind);
	}
	e->next = mono_add_ns(e->next, (int64_t)(1e9 * n / e->flow.pps));
}

/* --- time --- */

static struct mono
deadline_of(const struct fec_link *l, unsigned end)
{
	struct mono at = fec_recovery_deadline(l->ends[end].recovery);
	if (at.ns == MONO_NEVER.ns) {
		return at;
	}
	at = mono_add_ns(at, end == 0 ? 0 : -(int64_t)l->clock_diff_us * WEFT_NS_PER_US);
	return mono_is_before(at, l->now) ? l->now : at;
}

/* t, or the end of the moment in which the end does not run then. */
static struct mono
awake_at(struct fec_link *l, struct fec_link_end *e, struct mono t)
{
	if (e->stalls.every_ns == 0 || t.ns == MONO_NEVER.ns) {
		return t;
	}
	while (!mono_is_before(l->now, e->stall_ends)) {
		uint64_t gap = rng_below(&l->rng, (uint64_t)(2 * e->stalls.every_ns));
		uint64_t more = (uint64_t)(e->stalls.max_ns - e->stalls.min_ns);
		e->stall_begins = mono_add_ns(e->stall_ends, (int64_t)gap);
		e->stall_ends = mono_add_ns(
			e->stall_begins, e->stalls.min_ns + (int64_t)rng_below(&l->rng, more + 1));
	}
	bool is_in = !mono_is_before(t, e->stall_begins) && mono_is_before(t, e->stall_ends);
	return is_in ? e->stall_ends : t;
}

static void
step(struct fec_link *l)
{
	for (unsigned end = 0; end < 2; end++) {
		struct emu_packet p;
		bool is_any = false;
		if (mono_is_before(l->now, awake_at(l, &l->ends[end], l->now))) {
			continue;
		}
		while (emu_channel_pop(&l->ends[1 - end].out, l->now, &p)) {
			receive(l, end, &p);
			is_any = true;
		}
		while (!mono_is_before(l->now, l->ends[end].next)) {
			send_batch(l, end);
			is_any = true;
		}
		if (is_any || !mono_is_before(l->now, deadline_of(l, end))) {
			take_ready(l, end);
			send_due(l, end);
		}
	}
}

void
fec_link_run(struct fec_link *l, int64_t ns)
{
	struct mono until = mono_add_ns(l->now, ns);
	unsigned stuck = 0;
	while (!l->is_wrong) {
		struct mono at = MONO_NEVER;
		for (unsigned end = 0; end < 2; end++) {
			struct fec_link_end *e = &l->ends[end];
			at = mono_min(at, awake_at(l, e, e->next));
			at = mono_min(at, awake_at(l, e, emu_channel_next(&l->ends[1 - end].out)));
			at = mono_min(at, awake_at(l, e, deadline_of(l, end)));
		}
		if (!mono_is_before(at, until)) {
			break;
		}
		stuck = at.ns == l->now.ns ? stuck + 1 : 0;
		if (stuck > 100000) {
			broken(l, "a deadline that is never met");
		}
		l->now = at;
		step(l);
	}
	l->now = until;
}

void
fec_link_drain(struct fec_link *l, int64_t ns)
{
	struct mono next[2];
	for (unsigned end = 0; end < 2; end++) {
		next[end] = l->ends[end].next;
		l->ends[end].next = MONO_NEVER;
	}
	fec_link_run(l, ns);
	for (unsigned end = 0; end < 2; end++) {
		l->ends[end].next = next[end].ns == MONO_NEVER.ns ? next[end] : l->now;
	}
}

/* --- life --- */

void
fec_link_set(struct fec_link *l, unsigned end, const struct emu_settings *s)
{
	emu_channel_set(&l->ends[end].out, l->now, s);
}

static bool
new_recovery(struct fec_link *l, unsigned end, const struct fec_policy *policy)
{
	struct fec_recovery_config c = {
		.policy = *policy, .packet_max = FEC_LINK_MTU, .frame_max = FEC_LINK_FRAME_MAX};
	return !fec_recovery_new(&c, &l->ends[end].recovery);
}

/* As the HELLO exchange of a new session would. */
static void
tell_path(struct fec_link *l, unsigned end)
{
	int64_t diff = (int64_t)l->clock_diff_us * (end == 0 ? 1 : -1);
	fec_recovery_set_path(
		l->ends[end].recovery, clock_of(l, end), 2 * l->delay_ns + 100000, diff);
}

void
fec_link_rekey(struct fec_link *l)
{
	for (unsigned end = 0; end < 2; end++) {
		struct fec_link_end *e = &l->ends[end];
		e->session++;
		e->counters[e->session % (FEC_SESSIONS + 1)] = 0;
	}
}

bool
fec_link_restart(struct fec_link *l, unsigned end, const struct fec_policy *policy)
{
	fec_recovery_free(l->ends[end].recovery);
	l->ends[end].recovery = NULL;
	fec_link_rekey(l);
	l->ends[end].session_min = l->ends[end].session;
	if (!new_recovery(l, end, policy)) {
		return false;
	}
	tell_path(l, end);
	return true;
}

static bool
end_init(struct fec_link *l, unsigned end, const struct fec_link_config *c)
{
	struct fec_link_end *e = &l->ends[end];
	struct emu_channel_params params = {.seed = c->seed * 2 + end,
		.ring_bytes = 64u << 20,
		.packets_max = 65536,
		.overhead_bytes = FEC_LINK_WIRE_BYTES - FEC_LINK_HEADER};
	if (emu_channel_init(&e->out, &params, &c->settings[end])) {
		return false;
	}
	e->sent_at = calloc(c->numbers_max, sizeof(*e->sent_at));
	e->is_delivered = calloc(c->numbers_max, 1);
	e->is_marked = calloc(c->numbers_max, sizeof(*e->is_marked));
	e->stalls = c->stalls;
	e->stall_begins = e->stall_ends = l->now;
	if (end == 0) {
		e->police = c->police;
		e->tokens = c->police.burst_bytes;
		e->tokens_at = l->now;
		e->is_ecn = c->is_ecn;
	}
	e->session = 1;
	e->flow = c->flow[end];
	e->next = e->flow.pps > 0 ? l->now : MONO_NEVER;
	if (!e->sent_at || !e->is_delivered || !e->is_marked ||
		!new_recovery(l, end, &c->policy[end])) {
		return false;
	}
	tell_path(l, end);
	return true;
}

bool
fec_link_init(struct fec_link *l, const struct fec_link_config *c)
{
	*l = (struct fec_link){.now = {WEFT_NS_PER_S},
		.start = {WEFT_NS_PER_S},
		.delay_ns = c->settings[0].delay_ns,
		.late_ns = 1000 * WEFT_NS_PER_MS,
		.numbers_max = c->numbers_max,
		.is_off = c->is_off,
		.clock_diff_us = 0xfff00000};
	rng_init(&l->rng, c->seed + 77);
	return end_init(l, 0, c) && end_init(l, 1, c);
}

void
fec_link_fini(struct fec_link *l)
{
	for (unsigned end = 0; end < 2; end++) {
		struct fec_link_end *e = &l->ends[end];
		fec_recovery_free(e->recovery);
		emu_channel_fini(&e->out);
		free(e->sent_at);
		free(e->is_delivered);
		free(e->is_marked);
		for (unsigned i = 0; i <= FEC_SESSIONS; i++) {
			free(e->seen[i]);
		}
	}
}
