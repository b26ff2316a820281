/* SPDX-License-Identifier: Apache-2.0 */
/* The WireGuard engine of one interface, without I/O, clock, locks or randomness of its own.
 *
 * Concurrency is the owner's: calls marked [excl] need the device alone; calls marked [shared]
 * may run in several threads at once as long as no [excl] call runs (the node holds one
 * reader-writer lock, taken once a batch). What [shared] calls write is atomic or, for the
 * replay window, under a spin flag taken once a batch. What they notice and may not do is
 * left in a struct wg_note, which the caller brings back in an [excl] call,
 * wg_device_settle().
 *
 * Time comes in with every call. Datagrams that the engine wants sent and news for the owner
 * go out through struct wg_out. */
#ifndef WEFT_WG_DEVICE_H
#define WEFT_WG_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/entropy.h"
#include "base/err.h"
#include "base/mono.h"
#include "crypto/aead.h"
#include "pkt/drop.h"

#define WG_PEERS_MAX (1u << 20)
#define WG_KEY_LEN 32
#define WG_MSG_MAX 148 /* the longest message that the engine itself makes: an initiation */
#define WG_HEADER_LEN 16
#define WG_OVERHEAD 32 /* header and tag of a data message */

struct wg_device;
struct wg_peer;
struct wg_session;

struct wg_time {
	struct mono mono; /* CLOCK_BOOTTIME: key ages and timers */
	int64_t wall_ns;  /* CLOCK_REALTIME since 1970: TAI64N of initiations only */
};

struct wg_msg {
	struct endpoint to;
	uint16_t len;
	uint8_t bytes[WG_MSG_MAX];
};

enum wg_event_kind {
	WG_EVENT_SESSION,   /* peer can send now: take its staged packets */
	WG_EVENT_ENDPOINT,  /* peer roamed from wg_peer_moved_from() to its endpoint */
	WG_EVENT_GAVE_UP,   /* no answer for REKEY_ATTEMPT_TIME; value = packets dropped */
	WG_EVENT_STAMP,     /* value = TAI64N seconds to persist before the messages are sent: goes
			     * into stamp_s of the next start, and lies ahead of the clock */
	WG_EVENT_STALE,     /* peer sent an initiation with an old timestamp */
	WG_EVENT_HANDSHAKE, /* an initiation is going out; value = attempt, from 1 */
	WG_EVENT_EXPIRED,   /* the last session has run out without a new one */
};

struct wg_event {
	enum wg_event_kind kind;
	struct wg_peer *peer; /* valid until the device is next changed */
	uint64_t value;
};

/* Filled by [excl] calls, emptied by the caller. When msgs or events are full the engine stops
 * early and has more to do: wg_device_tick() is due again at once. Both have at least the
 * capacities below, and wg_device_handle() needs as much free, else its message is dropped. */
#define WG_OUT_MSGS_MIN 2
#define WG_OUT_EVENTS_MIN 7

struct wg_out {
	struct wg_msg *msgs;
	size_t msgs_cap, msgs_n;
	struct wg_event *events;
	size_t events_cap, events_n;
	struct drop_counts *drops; /* counted here */
};

/* What a [shared] call noticed. Bits of needs. */
#define WG_NEED_HANDSHAKE 1u /* no usable session, or its time has come */
#define WG_NEED_CONFIRM 2u   /* first data on a responder's new session */
#define WG_NEED_ENDPOINT 4u  /* authenticated data came from another endpoint */
#define WG_NEED_TIMER 8u     /* a timer must be armed earlier than it is */

struct wg_note {
	struct wg_peer *peer;       /* a reference, released by wg_device_settle() */
	struct wg_session *session; /* a reference or NULL, likewise */
	uint32_t needs;
	struct endpoint from; /* with WG_NEED_ENDPOINT */
};

struct wg_device_config {
	struct entropy entropy;
	uint64_t stamp_s;    /* TAI64N seconds persisted last time; 0 = none */
	size_t staged_bytes; /* ceiling of staged packets of the whole device; 0 = 1 MiB */
};

/* --- life and configuration: all [excl] --- */
WEFT_MUST_CHECK enum weft_err wg_device_new(
	const struct wg_device_config *c, struct wg_device **out);
void wg_device_free(struct wg_device *d);

/* NULL clears the key. Existing sessions end; handshakes start anew. A peer whose key is our
 * own public key is removed. */
void wg_device_set_private_key(struct wg_device *d, const uint8_t key[WG_KEY_LEN]);
/* Both return false when none is set. */
bool wg_device_public_key(const struct wg_device *d, uint8_t out[WG_KEY_LEN]);
bool wg_device_private_key(const struct wg_device *d, uint8_t out[WG_KEY_LEN]);

/* WEFT_EEXIST, WEFT_ENOMEM above WG_PEERS_MAX, WEFT_EINVAL for our own key. */
WEFT_MUST_CHECK enum weft_err wg_peer_add(
	struct wg_device *d, const uint8_t key[WG_KEY_LEN], struct wg_peer **out);
void wg_peer_remove(struct wg_device *d, struct wg_peer *p);
struct wg_peer *wg_peer_find(const struct wg_device *d, const uint8_t key[WG_KEY_LEN]);
/* Walks all peers in order of addition: NULL starts, NULL ends. */
struct wg_peer *wg_peer_next(const struct wg_device *d, struct wg_peer *p);
size_t wg_device_peer_count(const struct wg_device *d);
void wg_peer_set_psk(struct wg_peer *p, const uint8_t psk[WG_KEY_LEN]); /* zeros = none */
void wg_peer_set_endpoint(struct wg_peer *p, const struct endpoint *e);
/* A second place where the peer may be, raced against its endpoint: an initiation
 * made after this that has no answer for 250 ms goes there, too, and where the answer comes from is
 * the endpoint then. Ends with the next session, and with the next endpoint set. Without memory
 * there is no race. */
void wg_peer_set_rival(struct wg_peer *p, const struct endpoint *e);
/* seconds 0 = off. Sends at once when it was off before and the peer has an endpoint. */
void wg_peer_set_keepalive(struct wg_device *d, struct wg_peer *p, uint16_t seconds,
	struct wg_time now, struct wg_out *out);
/* A new session, though the present one is good: what is agreed on in it may have changed. As
 * soon as the last initiation allows it; without a session, or an endpoint, nothing. */
void wg_peer_renew(struct wg_device *d, struct wg_peer *p, struct wg_time now, struct wg_out *out);
/* Moves the prefix here when another peer has it. */
WEFT_MUST_CHECK enum weft_err wg_peer_allow(
	struct wg_device *d, struct wg_peer *p, const struct ip_prefix *prefix);
bool wg_peer_disallow(struct wg_device *d, struct wg_peer *p, const struct ip_prefix *prefix);
void wg_peer_disallow_all(struct wg_device *d, struct wg_peer *p);
/* Walks a peer's prefixes: *cursor = NULL starts; false ends. */
bool wg_peer_allowed_next(const struct wg_peer *p, void **cursor, struct ip_prefix *out);
/* Local interface went up: persistent keepalives start. Down: they stop, sessions stay. */
void wg_device_set_up(struct wg_device *d, bool is_up, struct wg_time now, struct wg_out *out);
/* Cookies are demanded of whoever starts a handshake. [shared] */
bool wg_device_is_under_load(const struct wg_device *d, struct mono now);

/* A copy of what show and status need. */
struct wg_peer_info {
	uint8_t public_key[WG_KEY_LEN];
	bool has_psk;
	struct endpoint endpoint;
	uint16_t keepalive_s;
	int64_t last_handshake_wall_ns; /* 0 = never */
	uint64_t rx_bytes, tx_bytes;    /* of datagrams, as the kernel implementation counts */
	uint64_t rx_packets, tx_packets;
	uint64_t stale_initiations, rejected_moves, handshakes, handshake_tries;
	uint32_t unanswered; /* initiations since the last session or giving up */
	uint32_t staged_packets, staged_bytes;
	bool has_session;
	struct mono session_born; /* valid with has_session */
};
void wg_peer_info(const struct wg_peer *p, struct wg_peer_info *out); /* [shared] */

/* What happened with a peer, and when; 0 = never. Of what was sent and received the times are
 * exact to WG_SEEN_NS. */
struct wg_peer_trail {
	struct mono sent, received;   /* anything that authenticates */
	struct mono unanswered_since; /* data left then, and nothing has come since */
	struct mono tried;            /* the last initiation of ours */
	struct mono trying_since;     /* the first of those that wait for an answer now */
	struct mono gave_up;          /* the last series without an answer ended */
	uint32_t gave_up_tries;       /* of that series */
	struct mono called;           /* the last initiation of the peer that was taken */
	uint32_t calls_unused;        /* of these since a session was last used or answered */
	/* Of the present sessions: messages that the peer has sent, as its counters tell, and those
	 * that have come. */
	uint64_t expected, arrived;
};
void wg_peer_trail(const struct wg_peer *p, struct wg_peer_trail *out); /* [shared] */
struct wg_troubles;
const struct wg_troubles *wg_device_troubles(const struct wg_device *d); /* [shared] */
void wg_peer_psk(const struct wg_peer *p, uint8_t out[WG_KEY_LEN]);      /* [shared] */

/* --- running: [excl] --- */
/* An arrived message of type 1, 2 or 3. Drops are counted in out->drops. */
void wg_device_handle(struct wg_device *d, struct wg_time now, const uint8_t *data, size_t len,
	const struct endpoint *from, struct wg_out *out);
/* Runs what is due. */
void wg_device_tick(struct wg_device *d, struct wg_time now, struct wg_out *out);
/* Nobody looked at the device since `since` (process stopped, machine suspended), and keys aged
 * meanwhile. Peers that were in use begin a handshake where theirs is at its end, before the
 * first packet asks: those whose session could still send at `since`, and those with a
 * persistent keepalive. One whose session had run out by then was idle, and stays so until it
 * has something to say. Takes the place of wg_device_tick(), which alone would forget which
 * peers had keys, and give up attempts that it had no chance to repeat. */
void wg_device_wake(struct wg_device *d, struct mono since, struct wg_time now, struct wg_out *out);
/* When wg_device_tick() is due next; MONO_NEVER when nothing is armed. */
struct mono wg_device_deadline(const struct wg_device *d);
/* Does what [shared] calls asked for, and releases the notes' references. */
void wg_device_settle(struct wg_device *d, struct wg_time now, struct wg_note *notes, size_t n,
	struct wg_out *out);
/* Keeps a copy of a finished IP packet until the peer has a session. Bounded per peer (128
 * packets, 64 KiB: stage.h) and per device; the oldest goes first and is counted. A packet for
 * a peer without endpoint and without a handshake under way is dropped: DROP_TX_ENDPOINT. */
void wg_peer_stage(struct wg_device *d, struct wg_peer *p, const uint8_t *packet, size_t len,
	struct wg_out *out);
/* Copies the oldest staged packet out; false when none is left, or it is longer than cap. */
bool wg_peer_unstage(
	struct wg_device *d, struct wg_peer *p, uint8_t *packet, size_t cap, size_t *len);

/* --- data path: [shared] --- */
/* Packets wait for a session: later ones must wait behind them, or they would overtake. */
bool wg_peer_has_staged(const struct wg_peer *p);
/* Would wg_peer_begin_send() give a session for one packet? */
bool wg_peer_can_send(const struct wg_peer *p, struct mono now);
/* The peer whose AllowedIPs has the longest match; NULL for none. */
struct wg_peer *wg_device_route(const struct wg_device *d, const struct ip_addr *dst);
/* Same from raw network-order bytes: family 4 or 6. The fast form. */
struct wg_peer *wg_device_route_raw(
	const struct wg_device *d, enum ip_family family, const uint8_t *dst);

/* Takes n counters of the peer's current session. NULL: no session may send, stage and settle
 * note->needs (WG_NEED_HANDSHAKE is then set). bytes = length of the datagrams, for statistics.
 * note is overwritten; with needs != 0 it holds references. A run of 0 data bytes (keepalives:
 * bytes = n x WG_OVERHEAD) counts as no data. The session, like those that other [shared] calls
 * give, is valid as long as no [excl] call runs; wg_session_get() makes it last. */
struct wg_session *wg_peer_begin_send(struct wg_device *d, struct wg_peer *p, struct mono now,
	uint32_t n, uint64_t bytes, uint64_t *first_counter, struct wg_note *note);
/* Session by the receiver index of a data message; NULL: counted by the caller. */
struct wg_session *wg_device_session(const struct wg_device *d, uint32_t index);
/* A session past its time opens nothing: DROP_RX_EXPIRED. */
bool wg_session_can_open(const struct wg_session *s, struct mono now);
struct wg_peer *wg_session_peer(const struct wg_session *s);
/* The key to seal with now. Asked for once a run of packets: the next call may give another, and
 * the messages' headers are marked with the cipher of the key that they were sealed with. */
const struct aead_key *wg_session_send_key(const struct wg_session *s);
/* ChaCha20-Poly1305 at first. Only what the other side has allowed may be set; others may be
 * sending meanwhile. Keepalives that the engine makes itself stay ChaCha20-Poly1305. */
void wg_session_set_send_cipher(struct wg_session *s, enum aead_cipher cipher);
/* The key to open messages marked with that cipher; NULL: not allowed, DROP_RX_TYPE. */
const struct aead_key *wg_session_recv_key(const struct wg_session *s, enum aead_cipher cipher);
/* From now on messages marked with it are opened, beside ChaCha20-Poly1305. To be called before
 * the other side is told, and never taken back. */
void wg_session_allow_cipher(struct wg_session *s, enum aead_cipher cipher);
uint32_t wg_session_remote_index(const struct wg_session *s);
/* After opening: ops[i].ok and not seen before stays ok, else ok = false. Adds replays and what
 * is too old to *replays. Moves the window. Statistics count those that stayed ok. from:
 * endpoint of the batch. ops[i].len is the length of the text, 0 for a keepalive. note is
 * overwritten as above. */
void wg_session_accept(struct wg_device *d, struct wg_session *s, struct mono now,
	struct aead_op *ops, size_t n, const struct endpoint *from, uint64_t *replays,
	struct wg_note *note);
/* A name that no other session of this device ever has; never 0. */
uint64_t wg_session_id(const struct wg_session *s);
/* Did our initiation lead to it? */
bool wg_session_is_initiator(const struct wg_session *s);
/* The session that wg_peer_begin_send() takes; NULL: none. */
struct wg_session *wg_peer_session(const struct wg_peer *p);
/* Of the peer's sessions, the one with this id, as long as its keys may be used; else NULL. */
struct wg_session *wg_peer_session_by_id(const struct wg_peer *p, uint64_t id, struct mono now);
/* Takes n counters of this session, the peer's current one or not, for frames that are no data:
 * no timer awaits an answer to them. False: it has not so many left. */
WEFT_MUST_CHECK bool wg_session_begin_frames(struct wg_session *s, uint32_t n, uint64_t *first);
/* n of them leave, in datagrams of together so many bytes. */
void wg_session_end_frames(struct wg_session *s, struct mono now, uint32_t n, uint64_t bytes);
/* Marks a counter as seen without a message of its own: its packet was recovered from others.
 * False: it was seen before, or is too old. */
WEFT_MUST_CHECK bool wg_session_mark(struct wg_session *s, uint64_t counter);
/* The endpoint as it is now, by value. */
struct endpoint wg_peer_endpoint(const struct wg_peer *p);
/* Where it was before it moved last. */
struct endpoint wg_peer_moved_from(const struct wg_peer *p);
/* Does the longest match for src belong to p? */
bool wg_peer_may_source(const struct wg_device *d, const struct wg_peer *p, enum ip_family family,
	const uint8_t *src);
/* The pinned source address did not work. */
void wg_peer_clear_src(struct wg_device *d, struct wg_peer *p); /* [excl] */
/* Sessions and peers live while referenced, also after their removal. Any thread. */
void wg_session_get(struct wg_session *s);
void wg_session_put(struct wg_session *s);
void wg_peer_get(struct wg_peer *p);
void wg_peer_put(struct wg_peer *p);
/* A place for the owner's own data of a peer (the node's name for it). */
void wg_peer_set_user(struct wg_peer *p, void *user);
void *wg_peer_user(const struct wg_peer *p);
/* A second place: what the owner agreed with the peer beyond WireGuard. [excl] to set. */
void wg_peer_set_ally(struct wg_peer *p, void *ally);
void *wg_peer_ally(const struct wg_peer *p);
bool wg_peer_is_removed(const struct wg_peer *p);

#endif
