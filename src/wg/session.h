/* SPDX-License-Identifier: Apache-2.0 */
/* A session: one pair of transport keys with its counters and its window.
 *
 * Referenced by the slot of its peer that holds it and by whoever works with it; keys are wiped
 * with the last reference. Only the choice of ciphers, `next_counter`, the window and its flag
 * change while several threads use it.
 *
 * Both ciphers have keys of their own from the start and share counters and window: a counter is
 * used once, whatever it is sealed with. */
#ifndef WEFT_WG_SESSION_H
#define WEFT_WG_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "crypto/aead.h"
#include "wg/device.h"
#include "wg/noise.h"
#include "wg/replay.h"
#include "wg/timer.h"

#define WG_REKEY_AFTER_MESSAGES (UINT64_C(1) << 60)
#define WG_REJECT_AFTER_MESSAGES (UINT64_MAX - (UINT64_C(1) << 13))

struct wg_session {
	struct wg_peer *peer;  /* a reference */
	struct mono born;      /* keys derived */
	struct mono initiated; /* initiation sent; initiator only */
	uint64_t id;           /* of no other session of the device */
	uint32_t local_index;
	uint32_t remote_index;
	bool is_initiator;
	bool is_confirmed; /* the other side has shown that it has the keys; [excl] writes */
	_Atomic uint32_t refs;
	struct aead_key send[AEAD_CIPHER_COUNT]; /* by enum aead_cipher */
	struct aead_key recv[AEAD_CIPHER_COUNT];
	_Atomic uint8_t send_cipher; /* enum aead_cipher */
	_Atomic bool is_aes_allowed; /* to the other side; ChaCha20-Poly1305 always is */

	WEFT_ALIGNED(64) _Atomic uint64_t next_counter;
	WEFT_ALIGNED(64) atomic_flag is_window_taken; /* guards window, once a batch */
	struct wg_replay window;
	uint64_t taken; /* messages that came, of window.end that were sent; guarded likewise */
};

/* Takes a reference to peer; wipes nothing of keys. The result has one reference. */
WEFT_MUST_CHECK enum weft_err wg_session_new(struct wg_peer *peer, struct mono now,
	bool is_initiator, const struct wg_noise_keys *keys, struct wg_session **out);

static inline bool
wg_session_is_too_old(const struct wg_session *s, struct mono now)
{
	return mono_diff_ns(now, s->born) >= WG_REJECT_AFTER_TIME_NS;
}

/* Takes n counters; false, and none is taken, when the session has not so many left. */
bool wg_session_take_counters(struct wg_session *s, uint32_t n, uint64_t *first);
/* Should a new session be made, now that this one has sent counter - 1 messages? */
bool wg_session_wants_rekey(const struct wg_session *s, uint64_t counter, struct mono now);

/* What wg_session_window_pass() let through. */
struct wg_session_passed {
	uint64_t packets;
	uint64_t bytes; /* of datagrams */
	uint64_t replays;
	bool has_data; /* not keepalives alone */
};

/* Takes ops that are ok out of the window, or makes them not ok. */
void wg_session_window_pass(
	struct wg_session *s, struct aead_op *ops, size_t n, struct wg_session_passed *out);

/* Adds what the other side has sent, as its counters tell, and what of it came. */
void wg_session_count_arrivals(struct wg_session *s, uint64_t *expected, uint64_t *arrived);

#endif
