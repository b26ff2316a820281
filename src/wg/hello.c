/* SPDX-License-Identifier: Apache-2.0 */
/* The machine of each session is in wg/hello_step.c; here are the sessions of a peer. */
#include "wg/hello.h"

#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "wg/hello_step.h"

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
	wg_hello_abandon(h, &h->slots[WG_HELLO_SESSIONS - 1], now);
	memmove(&h->slots[1], &h->slots[0], (WG_HELLO_SESSIONS - 1) * sizeof(h->slots[0]));
	struct wg_hello_slot *s = &h->slots[0];
	*s = (struct wg_hello_slot){.session = session,
		.is_initiator = is_initiator,
		.ciphers = h->ciphers,
		.features = h->features};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(s->sent); i++) {
		s->sent[i] = MONO_NEVER;
	}
	wg_hello_enter(s, h->is_off ? WG_HELLO_STATE_OFF : WG_HELLO_STATE_UNKNOWN);
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
	*h = (struct wg_hello){.patience = WG_HELLO_PATIENCE};
	for (size_t i = 0; i < WG_HELLO_SESSIONS; i++) {
		wg_hello_enter(&h->slots[i], WG_HELLO_STATE_UNKNOWN);
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
	h->patience = WG_HELLO_PATIENCE;
	h->unanswered = 0;
	h->ask_after = (struct mono){0};
	for (size_t i = 0; i < WG_HELLO_SESSIONS; i++) {
		if (h->slots[i].session) {
			wg_hello_step(h, &h->slots[i],
				h->is_off ? WG_HELLO_EVENT_OFF : WG_HELLO_EVENT_ON, now, NULL);
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
	wg_hello_step(h, s,
		s->is_initiator ? WG_HELLO_EVENT_BEGAN_OURS : WG_HELLO_EVENT_BEGAN_THEIRS, now,
		NULL);
}

static bool
is_foreign(const struct wire_ext_hello *in)
{
	return in->version_max < WG_HELLO_VERSION_MIN || in->version_min > WG_HELLO_VERSION_MAX;
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
	bool was_agreed = wg_hello_slot_is_agreed(s);
	if (!hello) {
		wg_hello_step(h, s, WG_HELLO_EVENT_FRAME, now, NULL);
	} else if (hello->is_answer && wg_hello_request_of(s, hello).ns == MONO_NEVER.ns) {
		return false; /* to nothing */
	} else if (is_foreign(hello)) {
		wg_hello_step(h, s, WG_HELLO_EVENT_FOREIGN, now, hello);
	} else {
		wg_hello_step(h, s,
			hello->is_answer ? WG_HELLO_EVENT_ANSWER : WG_HELLO_EVENT_REQUEST, now,
			hello);
	}
	return !was_agreed && wg_hello_slot_is_agreed(s);
}

bool
wg_hello_is_silent(const struct wg_hello *h)
{
	/* As many requests as leave in 3 s, or waits for data. */
	const struct wg_hello_slot *s = &h->slots[0];
	return s->state == WG_HELLO_STATE_STOCK ||
	       (s->state == WG_HELLO_STATE_ASKING && !s->is_presumed &&
		       (s->tries > 12 || s->due.ns == MONO_NEVER.ns));
}

bool
wg_hello_is_asking(const struct wg_hello *h, uint64_t session)
{
	size_t at = find(h, session);
	return at < WG_HELLO_SESSIONS && h->slots[at].state == WG_HELLO_STATE_ASKING;
}

bool
wg_hello_sent(struct wg_hello *h, struct mono now, uint64_t session)
{
	size_t at = find(h, session);
	if (at == WG_HELLO_SESSIONS) {
		return false;
	}
	struct mono before = h->slots[at].due;
	wg_hello_step(h, &h->slots[at], WG_HELLO_EVENT_DATA, now, NULL);
	return mono_is_before(h->slots[at].due, before);
}

bool
wg_hello_received(
	struct wg_hello *h, struct mono now, uint64_t session, const struct wg_hello_arrival *in)
{
	size_t at = find(h, session);
	if (at == WG_HELLO_SESSIONS) {
		return false;
	}
	struct wg_hello_slot *s = &h->slots[at];
	s->in_n += in->n;
	s->in_end = in->end > s->in_end ? in->end : s->in_end;
	s->has_data_in |= in->has_data;
	return in->has_data && wg_hello_sent(h, now, session);
}

void
wg_hello_tick(struct wg_hello *h, struct mono now)
{
	/* The older first: what it finds out spares the newer one a request. */
	for (size_t i = WG_HELLO_SESSIONS; i-- > 0;) {
		if (h->slots[i].due.ns <= now.ns) {
			wg_hello_step(h, &h->slots[i], WG_HELLO_EVENT_TIMER, now, NULL);
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
	*out = (struct wire_ext_hello){.version_min = WG_HELLO_VERSION_MIN,
		.version_max = WG_HELLO_VERSION_MAX,
		.ciphers = s->ciphers,
		.features = s->features,
		.datagram_max = h->datagram_max,
		.clock_us = wg_hello_clock_us(now),
		.name_len = h->name_len};
	memcpy(out->name, h->name, h->name_len);
	if (s->state == WG_HELLO_STATE_AGREED) {
		out->is_answer = true;
		out->echo_us = s->echo_us;
		out->delay_us = wg_hello_clock_us(now) - wg_hello_clock_us(s->arrived);
		s->answers++;
	} else {
		weft_assert(s->state == WG_HELLO_STATE_ASKING);
		s->sent[s->sent_n++ % WG_HELLO_REMEMBERED] = now;
	}
	return true;
}

bool
wg_hello_agreed(const struct wg_hello *h, uint64_t session, struct wg_hello_terms *out)
{
	size_t at = find(h, session);
	if (at == WG_HELLO_SESSIONS || !wg_hello_slot_is_agreed(&h->slots[at])) {
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
