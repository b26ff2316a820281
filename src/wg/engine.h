/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of a device, and what the engine's files call of each other. All [excl]. */
#ifndef WEFT_WG_ENGINE_H
#define WEFT_WG_ENGINE_H

#include "base/list.h"
#include "base/timerwheel.h"
#include "wg/allowed.h"
#include "wg/cookie.h"
#include "wg/device.h"
#include "wg/index.h"
#include "wg/limiter.h"
#include "wg/load.h"
#include "wg/noise.h"
#include "wg/peer.h"
#include "wg/roster.h"
#include "wg/session.h"
#include "wg/stage.h"
#include "wg/stamp.h"
#include "wg/trouble.h"

struct crypto;

struct wg_device {
	struct crypto *crypto;
	struct entropy entropy;
	struct allowed *allowed;
	struct wg_index index;
	struct wg_noise_identity identity;
	struct wg_cookie_checker checker;
	struct wg_roster roster;
	struct wg_stage_pool stage_pool;
	struct wg_stamp stamp;
	struct wg_load load;
	struct wg_bucket cookie_replies; /* of all sources together */
	struct list todo;                /* peers with todo != 0 */
	struct mono now;                 /* latest time seen */
	uint64_t sessions;               /* made so far: the last one's id */
	uint64_t lost_packets;           /* staged for removed peers; counted with the next out */
	bool is_up;
	struct wg_troubles troubles;
	struct timerwheel wheel;
	struct wg_limiter limiter;
};

/* --- device.c --- */
/* Up to WG_REKEY_TIMEOUT_JITTER_NS. */
int32_t wg_device_jitter_ns(struct wg_device *d);
/* Arms the peer's timer for what it awaits now. After every change to p->timers. */
void wg_peer_arm(struct wg_device *d, struct wg_peer *p);
void wg_peer_move_endpoint(struct wg_device *d, struct wg_peer *p, const struct endpoint *from);
/* key NULL: of no peer. At the latest time seen. */
void wg_device_note_trouble(struct wg_device *d, enum wg_trouble_kind kind, const uint8_t *key,
	const struct endpoint *at);

/* --- keyring.c: the three slots --- */
/* Both take over the caller's reference; s is in the index table. */
void wg_keyring_add_initiated(struct wg_device *d, struct wg_peer *p, struct wg_session *s);
void wg_keyring_add_answered(struct wg_device *d, struct wg_peer *p, struct wg_session *s);
/* The other side uses s. True when this is news, and p can send now. */
bool wg_keyring_confirm(struct wg_device *d, struct wg_peer *p, struct wg_session *s);
/* All sessions end, and so does an initiation without an answer. */
void wg_keyring_clear(struct wg_device *d, struct wg_peer *p);
void wg_keyring_drop_pending(struct wg_device *d, struct wg_peer *p);

/* --- handshake.c --- */
/* Sends an initiation now. out has room for WG_OUT_MSGS_MIN and WG_OUT_EVENTS_MIN. */
void wg_handshake_initiate(
	struct wg_device *d, struct wg_peer *p, struct wg_time now, struct wg_out *out);

/* The initiation under way goes to the rival as it is: either answer fits it. There is room. */
void wg_handshake_send_rival(struct wg_peer *p, struct wg_out *out);

/* --- agenda.c: what peers still have to put into an out --- */
void wg_agenda_add(struct wg_device *d, struct wg_peer *p, uint32_t todo);
void wg_agenda_cancel(struct wg_peer *p, uint32_t todo);
/* Asks for an initiation. Within REKEY_TIMEOUT of the last one it waits until then, and when a
 * session can carry data meanwhile it is not sent at all. A retry continues a series of attempts,
 * anything else begins one. */
void wg_agenda_want_session(struct wg_device *d, struct wg_peer *p, struct mono now, bool is_retry);
/* The same although a session can carry data, and the wait does not end it. */
void wg_agenda_renew(struct wg_device *d, struct wg_peer *p, struct mono now);
/* A session is there: the race of endpoints is over, and its end is told unless another follows. */
void wg_agenda_expect_end(struct wg_device *d, struct wg_peer *p);
/* Does what fits into out. Ends every call that has an out. */
void wg_agenda_run(struct wg_device *d, struct wg_time now, struct wg_out *out);
bool wg_out_has_room(const struct wg_out *out);
/* There is room. */
void wg_out_event(struct wg_out *out, enum wg_event_kind kind, struct wg_peer *p, uint64_t value);
/* The next message, addressed, of len bytes, which the caller fills in. There is room. */
uint8_t *wg_out_msg(struct wg_out *out, const struct endpoint *to, uint16_t len);

#endif
