/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of a peer, for the files of the engine.
 *
 * Everything is written in [excl] calls, except what is marked as the data path's: those fields
 * are atomic and stand on cache lines of their own. A configured peer without a session costs
 * this struct, two words in the key table and its AllowedIPs. */
#ifndef WEFT_WG_PEER_H
#define WEFT_WG_PEER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/timerwheel.h"
#include "wg/allowed.h"
#include "wg/cookie.h"
#include "wg/device.h"
#include "wg/noise.h"
#include "wg/stage.h"
#include "wg/timer.h"
#include "wire/wg.h"

/* What a peer still has to put into a struct wg_out: bits of todo. */
#define WG_TODO_ENDPOINT 1u /* event */
#define WG_TODO_STALE 2u    /* event */
#define WG_TODO_GAVE_UP 4u  /* event */
#define WG_TODO_SESSION 8u  /* event */
#define WG_TODO_INITIATION 16u
#define WG_TODO_KEEPALIVE 32u
#define WG_TODO_RIVAL 64u    /* the initiation under way, once more to the rival */
#define WG_TODO_EXPIRED 128u /* event */

/* How long an initiation waits for its answer before it goes to the rival, as RFC 8305 has it for
 * connections. */
#define WG_RIVAL_DELAY_NS (250 * WEFT_NS_PER_MS)

/* A second place where a peer may be. */
struct wg_rival {
	struct endpoint to;
	struct mono due; /* MONO_NEVER: no initiation that it has not got */
	uint8_t initiation[WIRE_WG_INITIATION_LEN];
};

struct wg_peer {
	/* The three sessions of the paper, section 6; each slot holds a reference or is NULL. */
	struct wg_session *current;  /* what we send with */
	struct wg_session *previous; /* packets may still be under way */
	struct wg_session *next;     /* we answered; the initiator has not used it yet */
	int64_t initiation_ns;       /* last initiation sent; REKEY_TIMEOUT before time 0: none */
	struct endpoint endpoint;
	void *user;
	void *ally;
	atomic_bool is_removed;

	/* Written by data path threads. */
	WEFT_ALIGNED(64) struct wg_timers timers;
	atomic_bool has_rekeyed_on_receive; /* in this session */
	_Atomic uint32_t refs;
	_Atomic uint64_t tx_bytes, tx_packets;
	_Atomic uint64_t rx_bytes, rx_packets;
	_Atomic uint64_t rejected_moves;

	WEFT_ALIGNED(64) struct list of_device; /* in order of addition */
	struct wg_peer *next_in_bucket;         /* roster.c's */
	struct list todo_link;                  /* in the device's list while todo != 0 */
	uint32_t todo;
	uint32_t gave_up_packets; /* value of the event */
	struct timer timer;
	struct endpoint moved_from; /* of the last WG_TODO_ENDPOINT */
	int64_t expire_ns;          /* when to look whether a session is left; 0 = not at all */
	struct wg_rival *rival;     /* NULL: none */
	struct allowed_owner allowed;
	struct wg_stage stage;
	struct wg_noise_remote remote;

	/* Our initiation without an answer. */
	bool has_pending;
	uint8_t pending_failures; /* responses that did not authenticate */
	uint32_t pending_index;
	struct wg_noise_pending pending;
	struct wg_cookie_jar jar;

	/* Of the initiations accepted. */
	bool has_stamp;
	bool is_stamp_proven; /* a session that one of them led to was used */
	uint8_t stamp[WIRE_WG_STAMP_LEN];
	int64_t accepted_ns;
	uint32_t unconfirmed; /* since one of the sessions that they led to was used */

	int64_t last_handshake_wall_ns;
	uint64_t stale_initiations, handshakes, handshake_tries;
	int64_t gave_up_ns; /* 0 = never */
	uint32_t gave_up_tries;
	int64_t series_ns; /* first of the initiations without an answer */
};

/* The result has one reference, belongs to no device and has no key. */
WEFT_MUST_CHECK enum weft_err wg_peer_new(struct wg_peer **out);
/* The race is over. */
void wg_peer_drop_rival(struct wg_peer *p);

#endif
