/* SPDX-License-Identifier: Apache-2.0 */
/* One machine a session:
 *
 *                    began, ours, and the peer may be asked;
 *                    timer, theirs: a known peer did not ask
 *          UNKNOWN ------------------------------------------> ASKING --+ timer: another request,
 *           |   |                                              |  |  ^--+ or a known peer waits
 *           |   | began, ours, and it may not;                 |  |       for data
 *           |   | timer, theirs: a stranger did not ask        |  |
 *           |   v             timer: it may not any more,      |  |
 *           | STOCK <------------------------------------------+  |
 *           |   | |            or no common version               |
 *           |   | | frame: asked on --> ASKING                    |
 *           |   |                                                 |
 *           |   | request; late answer                            | answer; request; timer,
 *           |   |                                                 | not any more, terms presumed
 *   request |   v                                                 |
 *           +-> AGREED <------------------------------------------+
 *                 ^--+ request: another answer
 *
 *   any -- switched off --> OFF -- switched on --> ASKING, if ours and the newest, else UNKNOWN
 *
 * What is known of the peer lies outside of it. One that was heard is known: its silence is loss,
 * and it is asked until it answers or `unanswered` is full. Anybody else is a stranger, and most
 * likely no node of weft: three requests, and `ask_after`. docs/decisions/hello.md has why. */
#include "wg/hello_step.h"

#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"

#define MONO_NONE ((struct mono){0})

/* To a stranger. From each request to the next, and from the last to the end: requests leave 0,
 * 0.25 and 1 s after the session began. The second comes soon, since on a path that loses a fifth
 * of all packets a third of exchanges fail, and until one succeeds nothing is recovered. */
static const int64_t stranger_gap_ns[WG_HELLO_STRANGER_TRIES] = {
	250 * WEFT_NS_PER_MS, 750 * WEFT_NS_PER_MS, 2 * WEFT_NS_PER_S};

/* To a known peer: twelve requests at the first distance, then each a twelfth more. 27 leave within
 * 10 s, of which all fail at a loss of a half in 0.75^27 = 0.04 % of sessions, and 58 within
 * 120 s. */
#define KNOWN_GAP_NS (250 * WEFT_NS_PER_MS)
#define KNOWN_GAP_MAX_NS (8 * WEFT_NS_PER_S)
#define KNOWN_GAP_PARTS 12

/* --- the peer --- */

/* It speaks: silence that follows is loss rather than ignorance. */
static void
peer_heard(struct wg_hello *h)
{
	h->is_known = true;
	h->unanswered = 0;
	h->patience = WG_HELLO_PATIENCE;
	h->ask_after = MONO_NONE;
}

static void
peer_is_stock(struct wg_hello *h, struct mono now)
{
	h->is_known = false;
	h->patience = 1;
	h->ask_after = mono_add_ns(now, WG_HELLO_SILENCE_NS);
}

/* A stranger let a session's requests pass. Where packets of its own are missing, too, they prove
 * little. */
static void
stranger_silent(struct wg_hello *h, const struct wg_hello_slot *s, struct mono now)
{
	bool is_lossy = s->in_end > s->in_n;
	if (is_lossy && h->patience > 1) {
		h->patience--;
	} else {
		peer_is_stock(h, now);
	}
}

static bool
may_ask(const struct wg_hello *h, const struct wg_hello_slot *s, struct mono now)
{
	return !mono_is_before(now, h->ask_after) &&
	       (h->is_known ? h->unanswered < WG_HELLO_UNANSWERED_MAX
			    : s->tries < WG_HELLO_STRANGER_TRIES);
}

/* --- actions on a session --- */

void
wg_hello_enter(struct wg_hello_slot *s, enum wg_hello_state state)
{
	s->state = state;
	s->due = MONO_NEVER;
	s->wanted = MONO_NEVER;
}

static int64_t
gap_to_next(const struct wg_hello *h, struct wg_hello_slot *s)
{
	if (!h->is_known && s->tries < WG_HELLO_STRANGER_TRIES) {
		return stranger_gap_ns[s->tries];
	}
	int64_t gap_ns = s->gap_ns ? s->gap_ns : KNOWN_GAP_NS;
	if (s->tries >= KNOWN_GAP_PARTS) {
		gap_ns += gap_ns / KNOWN_GAP_PARTS;
	}
	s->gap_ns = gap_ns < KNOWN_GAP_MAX_NS ? gap_ns : KNOWN_GAP_MAX_NS;
	return s->gap_ns;
}

static void
ask(struct wg_hello *h, struct wg_hello_slot *s, struct mono now)
{
	s->state = WG_HELLO_STATE_ASKING;
	s->due = mono_add_ns(now, gap_to_next(h, s));
	s->wanted = now;
	/* Silence of one that is not reached at all says nothing: a session shows that it was at
	 * first, and packets from it that it still is. */
	if ((s->tries == 0 || s->has_data_in) && h->unanswered < UINT8_MAX) {
		h->unanswered++;
	}
	if (s->tries < UINT8_MAX) {
		s->tries++;
	}
	s->has_data_in = s->has_data = false;
}

static void
answer(struct wg_hello_slot *s, const struct wire_ext_hello *in, struct mono now)
{
	if (s->answers < WG_HELLO_ANSWERS_MAX) {
		s->echo_us = in->clock_us;
		s->arrived = now;
		s->wanted = now;
	}
}

static void
agree(struct wg_hello_slot *s, const struct wire_ext_hello *in)
{
	wg_hello_enter(s, WG_HELLO_STATE_AGREED);
	s->is_presumed = false;
	uint8_t ciphers = s->ciphers & in->ciphers;
	s->terms = (struct wg_hello_terms){
		.version = in->version_max < WG_HELLO_VERSION_MAX ? in->version_max
								  : WG_HELLO_VERSION_MAX,
		.cipher = ciphers & WIRE_EXT_CIPHER_AES_256_GCM ? WIRE_EXT_CIPHER_AES_256_GCM
								: WIRE_EXT_CIPHER_CHACHA20_POLY1305,
		.datagram_max = in->datagram_max,
		.features = s->features & in->features,
	};
	memcpy(s->terms.name, in->name, sizeof(s->terms.name));
}

/* What was measured stays. */
static void
renew(struct wg_hello_slot *s, const struct wire_ext_hello *in)
{
	int64_t rtt_ns = s->terms.rtt_ns, clock_diff_us = s->terms.clock_diff_us;
	agree(s, in);
	s->terms.rtt_ns = rtt_ns;
	s->terms.clock_diff_us = clock_diff_us;
}

/* A REPAIR or FEEDBACK is sent only by who has our request and agreed to it: its answer is lost or
 * late, but this much it must have said. The cipher is not known to be wanted. */
static void
presume(struct wg_hello_slot *s)
{
	s->is_presumed = true;
	s->terms = (struct wg_hello_terms){
		.version = WG_HELLO_VERSION_MIN,
		.cipher = WIRE_EXT_CIPHER_CHACHA20_POLY1305,
		.features = s->features & WIRE_EXT_FEATURE_FEC,
	};
}

/* sent: of the request that was answered. */
static void
measure(struct wg_hello_slot *s, const struct wire_ext_hello *in, struct mono sent, struct mono now)
{
	int64_t rtt_ns = mono_diff_ns(now, sent) - in->delay_us * WEFT_NS_PER_US;
	if (rtt_ns <= 0) {
		return; /* it claims more than all of the time */
	}
	/* As usual the ways are taken to be of one length. */
	uint32_t theirs = in->clock_us + (uint32_t)(rtt_ns / 2 / WEFT_NS_PER_US);
	s->terms.rtt_ns = rtt_ns;
	s->terms.clock_diff_us = (int32_t)(theirs - wg_hello_clock_us(now));
}

uint32_t
wg_hello_clock_us(struct mono t)
{
	return (uint32_t)(t.ns / WEFT_NS_PER_US);
}

struct mono
wg_hello_request_of(const struct wg_hello_slot *s, const struct wire_ext_hello *in)
{
	for (size_t i = 0; i < WEFT_ARRAY_LEN(s->sent); i++) {
		if (s->sent[i].ns != MONO_NEVER.ns &&
			wg_hello_clock_us(s->sent[i]) == in->echo_us) {
			return s->sent[i];
		}
	}
	return MONO_NEVER;
}

bool
wg_hello_slot_is_agreed(const struct wg_hello_slot *s)
{
	return s->state == WG_HELLO_STATE_AGREED ||
	       (s->state == WG_HELLO_STATE_ASKING && s->is_presumed);
}

void
wg_hello_abandon(struct wg_hello *h, const struct wg_hello_slot *s, struct mono now)
{
	/* Else a stranger that makes sessions faster than we give up was asked for ever. */
	if (s->state == WG_HELLO_STATE_ASKING && !h->is_known &&
		!mono_is_before(now, h->ask_after)) {
		stranger_silent(h, s, now);
	}
}

/* --- the machine --- */

static void
on_began(struct wg_hello *h, struct wg_hello_slot *s, bool is_ours, struct mono now)
{
	switch (s->state) {
	case WG_HELLO_STATE_UNKNOWN:
		if (is_ours && h->is_known && !may_ask(h, s, now)) {
			peer_is_stock(h, now); /* of many sessions, each too short to be given up */
		}
		if (is_ours && mono_is_before(now, h->ask_after)) {
			wg_hello_enter(s, WG_HELLO_STATE_STOCK);
		} else if (is_ours && may_ask(h, s, now)) {
			ask(h, s, now);
		} else if (s->due.ns == MONO_NEVER.ns) {
			s->due = mono_add_ns(
				now, h->is_known ? WG_HELLO_OVERDUE_NS : WG_HELLO_UNASKED_NS);
		}
		break;
	case WG_HELLO_STATE_ASKING: /* known already */
	case WG_HELLO_STATE_AGREED:
	case WG_HELLO_STATE_STOCK:
	case WG_HELLO_STATE_OFF:
	case WG_HELLO_STATE_COUNT:
		break;
	}
}

/* It has been asked as often as is allowed. */
static void
give_up(struct wg_hello *h, struct wg_hello_slot *s, struct mono now)
{
	bool was_stock = mono_is_before(now, h->ask_after); /* found out in another session */
	if (s->is_presumed) {
		wg_hello_enter(s, WG_HELLO_STATE_AGREED);
		return;
	}
	wg_hello_enter(s, WG_HELLO_STATE_STOCK);
	if (!was_stock && h->is_known) {
		peer_is_stock(h, now);
	} else if (!was_stock) {
		stranger_silent(h, s, now);
	}
}

static void
on_timer(struct wg_hello *h, struct wg_hello_slot *s, struct mono now)
{
	bool is_newest = s == &h->slots[0];
	switch (s->state) {
	case WG_HELLO_STATE_ASKING:
		if (!may_ask(h, s, now)) {
			give_up(h, s, now);
		} else if (s->tries < WG_HELLO_STRANGER_TRIES || s->has_data) {
			ask(h, s, now);
		} else {
			s->due = MONO_NEVER; /* nobody uses it now */
		}
		break;
	case WG_HELLO_STATE_UNKNOWN:
		if (h->is_known && is_newest && may_ask(h, s, now)) {
			ask(h, s, now);
		} else {
			/* Of this session alone: it may take us for stock, and we ask in the next
			 * of ours. */
			wg_hello_enter(s, WG_HELLO_STATE_STOCK);
		}
		break;
	case WG_HELLO_STATE_AGREED:
	case WG_HELLO_STATE_STOCK:
	case WG_HELLO_STATE_OFF:
	case WG_HELLO_STATE_COUNT:
		break;
	}
}

static void
on_request(struct wg_hello *h, struct wg_hello_slot *s, const struct wire_ext_hello *in,
	struct mono now)
{
	switch (s->state) {
	case WG_HELLO_STATE_UNKNOWN:
	case WG_HELLO_STATE_ASKING:
	case WG_HELLO_STATE_STOCK:
		peer_heard(h);
		agree(s, in);
		answer(s, in, now);
		break;
	case WG_HELLO_STATE_AGREED: /* our answer was lost, or its offer has changed */
		peer_heard(h);
		renew(s, in);
		answer(s, in, now);
		break;
	case WG_HELLO_STATE_OFF:
	case WG_HELLO_STATE_COUNT:
		break;
	}
}

static void
on_answer(struct wg_hello *h, struct wg_hello_slot *s, const struct wire_ext_hello *in,
	struct mono now)
{
	switch (s->state) {
	case WG_HELLO_STATE_ASKING:
	case WG_HELLO_STATE_STOCK: /* late, but true */
		peer_heard(h);
		agree(s, in);
		measure(s, in, wg_hello_request_of(s, in), now);
		break;
	case WG_HELLO_STATE_AGREED:
		if (s->is_presumed) {
			agree(s, in);
		}
		if (s->terms.rtt_ns == 0) { /* else it is to another try */
			measure(s, in, wg_hello_request_of(s, in), now);
		}
		break;
	case WG_HELLO_STATE_UNKNOWN: /* to what was asked before we were switched off */
	case WG_HELLO_STATE_OFF:
	case WG_HELLO_STATE_COUNT:
		break;
	}
}

static void
on_foreign(struct wg_hello *h, struct wg_hello_slot *s, struct mono now)
{
	switch (s->state) {
	case WG_HELLO_STATE_UNKNOWN:
	case WG_HELLO_STATE_ASKING:
	case WG_HELLO_STATE_STOCK:
		wg_hello_enter(s, WG_HELLO_STATE_STOCK);
		peer_is_stock(h, now);
		break;
	case WG_HELLO_STATE_AGREED: /* it said otherwise before */
	case WG_HELLO_STATE_OFF:
	case WG_HELLO_STATE_COUNT:
		break;
	}
}

static void
on_frame(struct wg_hello *h, struct wg_hello_slot *s, struct mono now)
{
	switch (s->state) {
	case WG_HELLO_STATE_ASKING: /* the next request follows anyway */
		peer_heard(h);
		presume(s);
		break;
	case WG_HELLO_STATE_STOCK: /* a request of ours did arrive, though no answer came back */
		peer_heard(h);
		if (s->tries > 0) {
			presume(s);
			ask(h, s, now);
		}
		break;
	case WG_HELLO_STATE_UNKNOWN: /* to what it had before we were switched off */
		peer_heard(h);
		break;
	case WG_HELLO_STATE_AGREED:
	case WG_HELLO_STATE_OFF:
	case WG_HELLO_STATE_COUNT:
		break;
	}
}

static void
on_data(struct wg_hello_slot *s, struct mono now)
{
	switch (s->state) {
	case WG_HELLO_STATE_ASKING:
		s->has_data = true;
		if (s->due.ns == MONO_NEVER.ns) {
			s->due = now;
		}
		break;
	case WG_HELLO_STATE_UNKNOWN: /* asked when the other side is overdue */
	case WG_HELLO_STATE_AGREED:
	case WG_HELLO_STATE_STOCK:
	case WG_HELLO_STATE_OFF:
	case WG_HELLO_STATE_COUNT:
		break;
	}
}

static void
on_switched_on(struct wg_hello *h, struct wg_hello_slot *s, struct mono now)
{
	switch (s->state) {
	case WG_HELLO_STATE_OFF:
		wg_hello_enter(s, WG_HELLO_STATE_UNKNOWN);
		/* An older session may have no other end any more: its silence would mean
		 * nothing. */
		if (s == &h->slots[0] && s->is_initiator && may_ask(h, s, now)) {
			ask(h, s, now);
		} else {
			s->due = mono_add_ns(now, WG_HELLO_UNASKED_NS);
		}
		break;
	case WG_HELLO_STATE_UNKNOWN: /* is on */
	case WG_HELLO_STATE_ASKING:
	case WG_HELLO_STATE_AGREED:
	case WG_HELLO_STATE_STOCK:
	case WG_HELLO_STATE_COUNT:
		break;
	}
}

void
wg_hello_step(struct wg_hello *h, struct wg_hello_slot *s, enum wg_hello_event e, struct mono now,
	const struct wire_ext_hello *in)
{
	switch (e) {
	case WG_HELLO_EVENT_BEGAN_OURS:
	case WG_HELLO_EVENT_BEGAN_THEIRS:
		on_began(h, s, e == WG_HELLO_EVENT_BEGAN_OURS, now);
		break;
	case WG_HELLO_EVENT_TIMER:
		on_timer(h, s, now);
		break;
	case WG_HELLO_EVENT_REQUEST:
		on_request(h, s, in, now);
		break;
	case WG_HELLO_EVENT_ANSWER:
		on_answer(h, s, in, now);
		break;
	case WG_HELLO_EVENT_FOREIGN:
		on_foreign(h, s, now);
		break;
	case WG_HELLO_EVENT_FRAME:
		on_frame(h, s, now);
		break;
	case WG_HELLO_EVENT_DATA:
		on_data(s, now);
		break;
	case WG_HELLO_EVENT_OFF:
		wg_hello_enter(s, WG_HELLO_STATE_OFF); /* from every state */
		break;
	case WG_HELLO_EVENT_ON:
		on_switched_on(h, s, now);
		break;
	}
}
