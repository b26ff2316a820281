/* SPDX-License-Identifier: Apache-2.0 */
/* One machine a session:
 *
 *                    began, ours, and the peer is worth asking
 *          UNKNOWN ------------------------------------------> ASKING --+ timer: another
 *           |   |                                              |  |  ^--+ request
 *           |   | began, ours, and it is not;                  |  |
 *           |   | timer, theirs: nobody asked                  |  |
 *           |   v                     timer: no request left,  |  |
 *           | STOCK <------------------------------------------+  |
 *           |   |              or no common version               |
 *           |   |                                                 |
 *           |   | request; late answer                            | answer; request; timer,
 *           |   |                                                 | no request left, terms presumed
 *   request |   v                                                 |
 *           +-> AGREED <------------------------------------------+
 *                 ^--+ request: another answer
 *
 *   any -- switched off --> OFF -- switched on --> ASKING, if ours and the newest, else UNKNOWN
 *
 * What is known of the peer lies outside of it: `ask_after` and `patience`, which whatever is
 * heard resets. */
#include "wg/hello.h"

#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"

/* Versions of the extension frames that we speak. */
#define VERSION_MIN 1
#define VERSION_MAX WIRE_EXT_VERSION

#define MONO_NONE ((struct mono){0})

enum wg_hello_event {
	WG_HELLO_EVENT_BEGAN_OURS,   /* as initiator */
	WG_HELLO_EVENT_BEGAN_THEIRS, /* as responder */
	WG_HELLO_EVENT_TIMER,
	WG_HELLO_EVENT_REQUEST,
	WG_HELLO_EVENT_ANSWER,  /* to a request of this session */
	WG_HELLO_EVENT_FOREIGN, /* either of these, of no version that we speak */
	WG_HELLO_EVENT_FRAME,   /* another extension frame */
	WG_HELLO_EVENT_OFF,
	WG_HELLO_EVENT_ON,
};

/* From each request to the next, and from the last to the end: requests leave 0, 0.25 and 1 s after
 * the session began. The second comes soon, since on a path that loses a fifth of all packets a
 * third of exchanges fail, and until one succeeds nothing is recovered. */
static const int64_t try_gap_ns[WG_HELLO_TRIES_MAX] = {
	250 * WEFT_NS_PER_MS, 750 * WEFT_NS_PER_MS, 2 * WEFT_NS_PER_S};

const char *
wg_hello_state_name(enum wg_hello_state s)
{
	static const char *const names[WG_HELLO_STATE_COUNT] = {
		[WG_HELLO_STATE_UNKNOWN] = "unknown",
		[WG_HELLO_STATE_ASKING] = "asking",
		[WG_HELLO_STATE_AGREED] = "agreed",
		[WG_HELLO_STATE_STOCK] = "stock",
		[WG_HELLO_STATE_OFF] = "off",
	};
	return names[s];
}

/* --- the peer --- */

static uint32_t
clock_us(struct mono t)
{
	return (uint32_t)(t.ns / WEFT_NS_PER_US);
}

/* It speaks: silence that follows is loss rather than ignorance. */
static void
peer_heard(struct wg_hello *h)
{
	h->patience = WG_HELLO_PATIENCE;
	h->ask_after = MONO_NONE;
}

static void
peer_is_stock(struct wg_hello *h, struct mono now)
{
	h->patience = 1;
	h->ask_after = mono_add_ns(now, WG_HELLO_SILENCE_NS);
}

/* All requests of a session came to nothing. */
static void
peer_silent(struct wg_hello *h, struct mono now)
{
	if (h->patience > 1) {
		h->patience--;
	} else {
		peer_is_stock(h, now);
	}
}

/* --- actions on a session --- */

static void
enter(struct wg_hello_slot *s, enum wg_hello_state state)
{
	s->state = state;
	s->due = MONO_NEVER;
	s->wanted = MONO_NEVER;
}

static void
ask(struct wg_hello_slot *s, struct mono now)
{
	weft_assert(s->tries < WG_HELLO_TRIES_MAX);
	s->state = WG_HELLO_STATE_ASKING;
	s->due = mono_add_ns(now, try_gap_ns[s->tries]);
	s->wanted = now;
	s->tries++;
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
	enter(s, WG_HELLO_STATE_AGREED);
	s->is_presumed = false;
	uint8_t ciphers = s->ciphers & in->ciphers;
	s->terms = (struct wg_hello_terms){
		.version = in->version_max < VERSION_MAX ? in->version_max : VERSION_MAX,
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
		.version = VERSION_MIN,
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
	s->terms.clock_diff_us = (int32_t)(theirs - clock_us(now));
}

/* When the request was sent that `in` answers; MONO_NEVER when it is an answer to nothing. */
static struct mono
request_of(const struct wg_hello_slot *s, const struct wire_ext_hello *in)
{
	for (size_t i = 0; i < WEFT_ARRAY_LEN(s->sent); i++) {
		if (s->sent[i].ns != MONO_NEVER.ns && clock_us(s->sent[i]) == in->echo_us) {
			return s->sent[i];
		}
	}
	return MONO_NEVER;
}

static bool
is_agreed(const struct wg_hello_slot *s)
{
	return s->state == WG_HELLO_STATE_AGREED ||
	       (s->state == WG_HELLO_STATE_ASKING && s->is_presumed);
}

/* --- the machine --- */

static void
on_began(struct wg_hello *h, struct wg_hello_slot *s, bool is_ours, struct mono now)
{
	switch (s->state) {
	case WG_HELLO_STATE_UNKNOWN:
		if (is_ours && mono_is_before(now, h->ask_after)) {
			enter(s, WG_HELLO_STATE_STOCK);
		} else if (is_ours && s->tries < WG_HELLO_TRIES_MAX) {
			ask(s, now);
		} else if (s->due.ns == MONO_NEVER.ns) {
			s->due = mono_add_ns(now, WG_HELLO_UNASKED_NS);
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

static void
on_timer(struct wg_hello *h, struct wg_hello_slot *s, struct mono now)
{
	switch (s->state) {
	case WG_HELLO_STATE_ASKING:
		if (mono_is_before(now, h->ask_after)) {
			enter(s, WG_HELLO_STATE_STOCK); /* found out in another session */
		} else if (s->tries < WG_HELLO_TRIES_MAX) {
			ask(s, now);
		} else if (s->is_presumed) {
			enter(s, WG_HELLO_STATE_AGREED);
		} else {
			enter(s, WG_HELLO_STATE_STOCK);
			peer_silent(h, now);
		}
		break;
	case WG_HELLO_STATE_UNKNOWN:
		/* Of this session alone: it may take us for stock, and we ask in the next of ours.
		 */
		enter(s, WG_HELLO_STATE_STOCK);
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
		measure(s, in, request_of(s, in), now);
		break;
	case WG_HELLO_STATE_AGREED: /* to another try, or at last to what was presumed */
		if (s->is_presumed) {
			agree(s, in);
			measure(s, in, request_of(s, in), now);
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
		enter(s, WG_HELLO_STATE_STOCK);
		peer_is_stock(h, now);
		break;
	case WG_HELLO_STATE_AGREED: /* it said otherwise before */
	case WG_HELLO_STATE_OFF:
	case WG_HELLO_STATE_COUNT:
		break;
	}
}

static void
on_frame(struct wg_hello *h, struct wg_hello_slot *s)
{
	switch (s->state) {
	case WG_HELLO_STATE_ASKING: /* the next request follows anyway */
		peer_heard(h);
		presume(s);
		break;
	case WG_HELLO_STATE_UNKNOWN:
	case WG_HELLO_STATE_STOCK: /* requests are used up, but in the next session it is asked */
		peer_heard(h);
		break;
	case WG_HELLO_STATE_AGREED:
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
		enter(s, WG_HELLO_STATE_UNKNOWN);
		/* An older session may have no other end any more: its silence would mean
		 * nothing. */
		if (s == &h->slots[0] && s->is_initiator && s->tries < WG_HELLO_TRIES_MAX) {
			ask(s, now);
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

/* in: of a REQUEST or an ANSWER. */
static void
step(struct wg_hello *h, struct wg_hello_slot *s, enum wg_hello_event e, struct mono now,
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
		on_frame(h, s);
		break;
	case WG_HELLO_EVENT_OFF:
		enter(s, WG_HELLO_STATE_OFF); /* from every state */
		break;
	case WG_HELLO_EVENT_ON:
		on_switched_on(h, s, now);
		break;
	}
}

/* --- sessions --- */

/* WG_HELLO_SESSIONS when it is not remembered. */
static size_t
find(const struct wg_hello *h, uint64_t session)
{
	size_t i = 0;
	while (i < WG_HELLO_SESSIONS && (session == 0 || h->slots[i].session != session)) {
		i++;
	}
	return i;
}

/* The oldest is forgotten. */
static struct wg_hello_slot *
claim(struct wg_hello *h, uint64_t session, bool is_initiator, struct mono now)
{
	if (h->slots[WG_HELLO_SESSIONS - 1].state == WG_HELLO_STATE_ASKING) {
		/* Else one that makes sessions faster than we give up was asked for ever. */
		peer_silent(h, now);
	}
	memmove(&h->slots[1], &h->slots[0], (WG_HELLO_SESSIONS - 1) * sizeof(h->slots[0]));
	struct wg_hello_slot *s = &h->slots[0];
	*s = (struct wg_hello_slot){.session = session,
		.is_initiator = is_initiator,
		.ciphers = h->ciphers,
		.features = h->features};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(s->sent); i++) {
		s->sent[i] = MONO_NEVER;
	}
	enter(s, h->is_off ? WG_HELLO_STATE_OFF : WG_HELLO_STATE_UNKNOWN);
	return s;
}

static void
set_name(struct wg_hello *h, const char *name)
{
	size_t len = 0;
	for (; name && name[len] && len < WIRE_EXT_NAME_MAX; len++) {
		h->name[len] = name[len] >= 0x21 && name[len] <= 0x7e ? name[len] : '-';
	}
	h->name_len = (uint8_t)len;
}

static void
set_offer(struct wg_hello *h, const struct wg_hello_config *c)
{
	h->is_off = c->is_off;
	h->ciphers = c->ciphers;
	h->features = c->features;
	h->datagram_max = c->datagram_max;
	set_name(h, c->name);
}

void
wg_hello_init(struct wg_hello *h, const struct wg_hello_config *c)
{
	*h = (struct wg_hello){.patience = 1};
	for (size_t i = 0; i < WG_HELLO_SESSIONS; i++) {
		enter(&h->slots[i], WG_HELLO_STATE_UNKNOWN);
	}
	set_offer(h, c);
}

void
wg_hello_configure(struct wg_hello *h, struct mono now, const struct wg_hello_config *c)
{
	bool is_switched = c->is_off != h->is_off;
	set_offer(h, c);
	if (!is_switched) {
		return;
	}
	/* Who switches it on wants to know. */
	h->patience = 1;
	h->ask_after = MONO_NONE;
	for (size_t i = 0; i < WG_HELLO_SESSIONS; i++) {
		if (h->slots[i].session) {
			step(h, &h->slots[i], h->is_off ? WG_HELLO_EVENT_OFF : WG_HELLO_EVENT_ON,
				now, NULL);
		}
	}
}

void
wg_hello_session(struct wg_hello *h, struct mono now, uint64_t session, bool is_initiator)
{
	weft_assert(session != 0);
	size_t at = find(h, session);
	struct wg_hello_slot *s =
		at < WG_HELLO_SESSIONS ? &h->slots[at] : claim(h, session, is_initiator, now);
	step(h, s, s->is_initiator ? WG_HELLO_EVENT_BEGAN_OURS : WG_HELLO_EVENT_BEGAN_THEIRS, now,
		NULL);
}

static bool
is_foreign(const struct wire_ext_hello *in)
{
	return in->version_max < VERSION_MIN || in->version_min > VERSION_MAX;
}

bool
wg_hello_frame_in(
	struct wg_hello *h, struct mono now, uint64_t session, const struct wire_ext_hello *hello)
{
	size_t at = find(h, session);
	if (at == WG_HELLO_SESSIONS) {
		return false; /* as old as to be forgotten */
	}
	struct wg_hello_slot *s = &h->slots[at];
	bool was_agreed = is_agreed(s);
	if (!hello) {
		step(h, s, WG_HELLO_EVENT_FRAME, now, NULL);
	} else if (hello->is_answer && request_of(s, hello).ns == MONO_NEVER.ns) {
		return false; /* to nothing */
	} else if (is_foreign(hello)) {
		step(h, s, WG_HELLO_EVENT_FOREIGN, now, hello);
	} else {
		step(h, s, hello->is_answer ? WG_HELLO_EVENT_ANSWER : WG_HELLO_EVENT_REQUEST, now,
			hello);
	}
	return !was_agreed && is_agreed(s);
}

void
wg_hello_tick(struct wg_hello *h, struct mono now)
{
	/* The older first: what it finds out spares the newer one a request. */
	for (size_t i = WG_HELLO_SESSIONS; i-- > 0;) {
		if (h->slots[i].due.ns <= now.ns) {
			step(h, &h->slots[i], WG_HELLO_EVENT_TIMER, now, NULL);
		}
	}
}

struct mono
wg_hello_deadline(const struct wg_hello *h)
{
	struct mono min = MONO_NEVER;
	for (size_t i = 0; i < WG_HELLO_SESSIONS; i++) {
		min = mono_min(min, mono_min(h->slots[i].due, h->slots[i].wanted));
	}
	return min;
}

bool
wg_hello_take(struct wg_hello *h, struct mono now, uint64_t *session, struct wire_ext_hello *out)
{
	struct wg_hello_slot *s = NULL;
	for (size_t i = 0; i < WG_HELLO_SESSIONS && !s; i++) {
		s = h->slots[i].wanted.ns != MONO_NEVER.ns ? &h->slots[i] : NULL;
	}
	if (!s) {
		return false;
	}
	s->wanted = MONO_NEVER;
	*session = s->session;
	*out = (struct wire_ext_hello){.version_min = VERSION_MIN,
		.version_max = VERSION_MAX,
		.ciphers = s->ciphers,
		.features = s->features,
		.datagram_max = h->datagram_max,
		.clock_us = clock_us(now),
		.name_len = h->name_len};
	memcpy(out->name, h->name, h->name_len);
	if (s->state == WG_HELLO_STATE_AGREED) {
		out->is_answer = true;
		out->echo_us = s->echo_us;
		out->delay_us = clock_us(now) - clock_us(s->arrived);
		s->answers++;
	} else {
		weft_assert(s->state == WG_HELLO_STATE_ASKING);
		s->sent[s->tries - 1] = now;
	}
	return true;
}

bool
wg_hello_agreed(const struct wg_hello *h, uint64_t session, struct wg_hello_terms *out)
{
	size_t at = find(h, session);
	if (at == WG_HELLO_SESSIONS || !is_agreed(&h->slots[at])) {
		return false;
	}
	if (out) {
		*out = h->slots[at].terms;
	}
	return true;
}

bool
wg_hello_is_newest(const struct wg_hello *h, uint64_t session)
{
	return h->slots[0].session == session;
}

enum wg_hello_state
wg_hello_state(const struct wg_hello *h, uint64_t session)
{
	size_t at = session ? find(h, session) : 0;
	if (h->is_off) {
		return WG_HELLO_STATE_OFF;
	}
	return at < WG_HELLO_SESSIONS ? h->slots[at].state : WG_HELLO_STATE_UNKNOWN;
}
