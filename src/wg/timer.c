/* SPDX-License-Identifier: Apache-2.0 */
#include "wg/timer.h"

static int64_t
get(const _Atomic int64_t *a)
{
	return atomic_load_explicit(a, memory_order_relaxed);
}

static void
set(_Atomic int64_t *a, int64_t v)
{
	atomic_store_explicit(a, v, memory_order_relaxed);
}

/* 0 means "nothing awaited", so the first nanosecond of virtual time counts as the second. */
static int64_t
mark(struct mono now)
{
	return now.ns > 0 ? now.ns : 1;
}

/* Reads first: a store would take the line from the other threads each time. */
static void
clear(_Atomic int64_t *a)
{
	if (get(a) != 0) {
		set(a, 0);
	}
}

void
wg_timers_init(struct wg_timers *t)
{
	*t = (struct wg_timers){.armed_ns = INT64_MAX};
}

static int64_t
answer_due(const struct wg_timers *t, int64_t since_ns)
{
	return since_ns + WG_KEEPALIVE_TIMEOUT_NS + WG_REKEY_TIMEOUT_NS + t->jitter_ns;
}

static void
note_traversal(struct wg_timers *t, struct mono now)
{
	if (t->persistent_s) {
		set(&t->traversal_ns, mark(now));
	}
}

/* A store ten times a second, for the same reason. */
static void
note_seen(_Atomic int64_t *a, struct mono now)
{
	if (now.ns - get(a) >= WG_SEEN_NS || get(a) == 0) {
		set(a, mark(now));
	}
}

bool
wg_timers_sent(struct wg_timers *t, struct mono now, bool has_data)
{
	note_seen(&t->sent_ns, now);
	clear(&t->unacked_ns);
	note_traversal(t, now);
	if (!has_data || get(&t->unanswered_ns) != 0) {
		return false;
	}
	set(&t->unanswered_ns, mark(now));
	return answer_due(t, mark(now)) < t->armed_ns;
}

bool
wg_timers_received(struct wg_timers *t, struct mono now, bool has_data)
{
	note_seen(&t->received_ns, now);
	clear(&t->unanswered_ns);
	note_traversal(t, now);
	if (!has_data || get(&t->unacked_ns) != 0) {
		return false;
	}
	set(&t->unacked_ns, mark(now));
	return mark(now) + WG_KEEPALIVE_TIMEOUT_NS < t->armed_ns;
}

void
wg_timers_want_session(struct wg_timers *t, struct mono now)
{
	t->attempt_ns = now.ns;
}

void
wg_timers_initiation_wanted(struct wg_timers *t, struct mono when)
{
	if (!t->retransmit_ns) {
		t->retransmit_ns = mark(when);
	}
}

void
wg_timers_initiation_sent(struct wg_timers *t, struct mono now, int32_t jitter_ns)
{
	(void)wg_timers_sent(t, now, false);
	t->attempts++;
	t->retransmit_ns = mark(now) + WG_REKEY_TIMEOUT_NS + jitter_ns;
}

void
wg_timers_session_derived(struct wg_timers *t, struct mono now)
{
	t->zero_ns = mark(now) + WG_ZERO_KEYS_NS;
}

void
wg_timers_session_complete(struct wg_timers *t)
{
	t->retransmit_ns = 0;
	t->attempts = 0;
}

void
wg_timers_stop(struct wg_timers *t)
{
	clear(&t->unanswered_ns);
	clear(&t->unacked_ns);
	t->retransmit_ns = 0;
	t->attempts = 0;
	t->zero_ns = 0;
}

void
wg_timers_set_persistent(struct wg_timers *t, uint16_t seconds, bool is_up, struct mono now)
{
	/* traversal_ns is not kept up to date while they do not run. */
	if (!t->persistent_s || !t->is_up) {
		set(&t->traversal_ns, mark(now));
	}
	t->persistent_s = seconds;
	t->is_up = is_up;
}

/* Each gives its time, or INT64_MAX. */
static int64_t
retransmit_due(const struct wg_timers *t)
{
	if (!t->retransmit_ns) {
		return INT64_MAX;
	}
	int64_t give_up = t->attempt_ns + WG_REKEY_ATTEMPT_TIME_NS;
	return t->retransmit_ns < give_up ? t->retransmit_ns : give_up;
}

static int64_t
unanswered_due(const struct wg_timers *t)
{
	int64_t since = get(&t->unanswered_ns);
	return since ? answer_due(t, since) : INT64_MAX;
}

static int64_t
unacked_due(const struct wg_timers *t)
{
	int64_t since = get(&t->unacked_ns);
	return since ? since + WG_KEEPALIVE_TIMEOUT_NS : INT64_MAX;
}

static int64_t
zero_due(const struct wg_timers *t)
{
	return t->zero_ns ? t->zero_ns : INT64_MAX;
}

static int64_t
persistent_due(const struct wg_timers *t)
{
	return t->persistent_s && t->is_up ? get(&t->traversal_ns) + t->persistent_s * WEFT_NS_PER_S
					   : INT64_MAX;
}

uint32_t
wg_timers_run(struct wg_timers *t, struct mono now, int32_t jitter_ns)
{
	uint32_t due = 0;
	if (retransmit_due(t) <= now.ns) {
		t->retransmit_ns = 0; /* armed again by wg_timers_initiation_sent() */
		if (now.ns - t->attempt_ns < WG_REKEY_ATTEMPT_TIME_NS) {
			due |= WG_DUE_RETRANSMIT;
		} else {
			due |= WG_DUE_GIVE_UP;
			t->attempts = 0;
			clear(&t->unacked_ns); /* no keepalive: it would start over */
			if (!t->zero_ns) {
				t->zero_ns = now.ns + WG_ZERO_KEYS_NS;
			}
		}
	}
	if (unanswered_due(t) <= now.ns) {
		due |= WG_DUE_NEW_HANDSHAKE;
		set(&t->unanswered_ns, 0);
		t->jitter_ns = jitter_ns; /* of the next time */
	}
	if (unacked_due(t) <= now.ns) {
		due |= WG_DUE_KEEPALIVE;
		set(&t->unacked_ns, 0);
	}
	if (zero_due(t) <= now.ns) {
		due |= WG_DUE_ZERO_KEYS;
		t->zero_ns = 0;
	}
	if (persistent_due(t) <= now.ns) {
		due |= WG_DUE_PERSISTENT;
		set(&t->traversal_ns, mark(now)); /* also when nothing can be sent */
	}
	return due;
}

struct mono
wg_timers_deadline(const struct wg_timers *t)
{
	int64_t all[] = {retransmit_due(t), unanswered_due(t), unacked_due(t), zero_due(t),
		persistent_due(t)};
	int64_t min = INT64_MAX;
	for (unsigned i = 0; i < WEFT_ARRAY_LEN(all); i++) {
		min = all[i] < min ? all[i] : min;
	}
	return (struct mono){min};
}
