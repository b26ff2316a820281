/* SPDX-License-Identifier: Apache-2.0 */
/* Timers of one peer: WireGuard paper, section 6.
 *
 * Callers report what happened; this file alone decides what is due when. The data path only
 * notes times in relaxed atomics and compares them with the deadline for which the owner is
 * armed, so a busy flow asks for an exclusive call once in ten seconds, not once a batch.
 *
 *   what is awaited            starts with                 ends with             fires after
 *   an answer to data          data sent                   anything received     15 s + jitter
 *   our answer to data         data received               anything sent         10 s
 *   an answer to an initiation initiation sent             session complete      5 s + jitter,
 *                                                                        gives up after 90 s
 *   the end of keys            session derived             -                     540 s
 *   a persistent keepalive     anything sent or received   -                     as configured
 */
#ifndef WEFT_WG_TIMER_H
#define WEFT_WG_TIMER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/mono.h"

#define WG_REKEY_AFTER_TIME_NS (120 * WEFT_NS_PER_S)
#define WG_REJECT_AFTER_TIME_NS (180 * WEFT_NS_PER_S)
#define WG_REKEY_ATTEMPT_TIME_NS (90 * WEFT_NS_PER_S)
#define WG_REKEY_TIMEOUT_NS (5 * WEFT_NS_PER_S)
#define WG_REKEY_TIMEOUT_JITTER_NS (334 * WEFT_NS_PER_MS)
#define WG_KEEPALIVE_TIMEOUT_NS (10 * WEFT_NS_PER_S)
#define WG_SEEN_NS (100 * WEFT_NS_PER_MS)
#define WG_ZERO_KEYS_NS (3 * WG_REJECT_AFTER_TIME_NS)
#define WG_INITIATION_INTERVAL_NS (20 * WEFT_NS_PER_MS) /* accepted of one peer */

/* What is due: bits of wg_timers_run()'s result. */
#define WG_DUE_RETRANSMIT 1u    /* no answer to an initiation: another attempt */
#define WG_DUE_GIVE_UP 2u       /* no answer for REKEY_ATTEMPT_TIME */
#define WG_DUE_KEEPALIVE 4u     /* data came and nothing went back: passive keepalive */
#define WG_DUE_NEW_HANDSHAKE 8u /* data went and nothing came back */
#define WG_DUE_ZERO_KEYS 16u    /* no new session for three lifetimes */
#define WG_DUE_PERSISTENT 32u   /* persistent keepalive */

struct wg_timers {
	/* Written by data path threads, relaxed; ns, 0 = nothing awaited. A lost race moves a
	 * timer by the length of a batch, which no timer notices. */
	_Atomic int64_t unanswered_ns; /* first data sent since anything came */
	_Atomic int64_t unacked_ns;    /* first data received since anything went */
	_Atomic int64_t traversal_ns;  /* last authenticated packet either way */
	/* The last of either direction, to WG_SEEN_NS: for people. */
	_Atomic int64_t sent_ns, received_ns;

	/* Written in exclusive calls only. */
	int64_t armed_ns;      /* the owner will call wg_timers_run() then; INT64_MAX = never */
	int64_t retransmit_ns; /* 0 = no initiation awaits its answer */
	int64_t attempt_ns;    /* when the present series of attempts began */
	int64_t zero_ns;       /* 0 = no keys to zero */
	int32_t jitter_ns;     /* of the awaited answer to data */
	uint32_t attempts;     /* initiations sent since the last session or giving up */
	uint16_t persistent_s; /* 0 = off */
	bool is_up;            /* persistent keepalives run */
};

void wg_timers_init(struct wg_timers *t);

/* --- data path, any number of threads ---
 * A packet of the current session goes out, or authenticated ones have come. True: the owner
 * must be armed earlier than it is. */
bool wg_timers_sent(struct wg_timers *t, struct mono now, bool has_data);
bool wg_timers_received(struct wg_timers *t, struct mono now, bool has_data);

/* --- exclusive --- */
/* New data wants a session: the time until giving up begins anew. */
void wg_timers_want_session(struct wg_timers *t, struct mono now);
/* An initiation is wanted then, unless one is awaited anyway. */
void wg_timers_initiation_wanted(struct wg_timers *t, struct mono when);
void wg_timers_initiation_sent(struct wg_timers *t, struct mono now, int32_t jitter_ns);
/* Keys exist, on either side. */
void wg_timers_session_derived(struct wg_timers *t, struct mono now);
/* The other side has shown that it has the keys, too. */
void wg_timers_session_complete(struct wg_timers *t);
/* Nothing is awaited any more, except persistent keepalives. */
void wg_timers_stop(struct wg_timers *t);
/* Persistent keepalives every so many seconds, 0 = off, while is_up. */
void wg_timers_set_persistent(struct wg_timers *t, uint16_t seconds, bool is_up, struct mono now);
/* Takes what is due: WG_DUE_ bits. */
WEFT_MUST_CHECK uint32_t wg_timers_run(struct wg_timers *t, struct mono now, int32_t jitter_ns);
/* When wg_timers_run() has something next; MONO_NEVER for nothing. */
struct mono wg_timers_deadline(const struct wg_timers *t);

#endif
