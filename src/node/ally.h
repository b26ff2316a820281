/* SPDX-License-Identifier: Apache-2.0 */
/* An ally: what the node keeps of a peer beside the WireGuard engine. Its policy, what the two
 * nodes agreed on by HELLO, and loss recovery with it.
 *
 * A peer gets one when it is configured with a policy of its own, or with its first session; a
 * peer that was never heard of costs nothing. The engine's peer points to its ally; the table
 * holds a reference to the peer, and lets go of both after the peer was removed.
 *
 * Locks: the table changes with the device alone; an ally is found with the device shared, and
 * what is in it is guarded by its mutex, taken after the device's lock and before the table's
 * mutex. Recovered packets are written to the port under the ally's mutex, so that two workers
 * keep their order. */
#ifndef WEFT_NODE_ALLY_H
#define WEFT_NODE_ALLY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/mono.h"
#include "crypto/aead.h"
#include "fec/budget.h"
#include "fec/recovery.h"
#include "os/thread.h"
#include "wg/device.h"
#include "wg/hello.h"
#include "wire/ext.h"

/* What a REPAIR adds to the longest packet: [length], header, and a bitmap over 104 counters. On
 * IPv4, 1420 B and this make a datagram of 1500 B with all headers. */
#define ALLY_REPAIR_EXTRA_BYTES 20

enum ally_cipher {
	ALLY_CIPHER_AUTO, /* AES-256-GCM when both sides have it fast */
	ALLY_CIPHER_CHACHA20_POLY1305,
	ALLY_CIPHER_AES_256_GCM, /* when the other side offers it, fast or not */
};

struct ally_policy {
	bool has_extensions; /* false: the peer is treated as a stock one */
	enum ally_cipher cipher;
	struct fec_policy fec;
};

#define ALLY_BUDGET_US_DEFAULT 20000u
#define ALLY_POLICY_DEFAULT                                                                        \
	((struct ally_policy){.has_extensions = true,                                              \
		.cipher = ALLY_CIPHER_AUTO,                                                        \
		.fec = {.mode = FEC_MODE_AUTO, .budget_us = ALLY_BUDGET_US_DEFAULT}})

enum ally_state {
	ALLY_STATE_UNKNOWN, /* no session yet */
	ALLY_STATE_ASKING,  /* a HELLO is under way, or the other side's is awaited */
	ALLY_STATE_AGREED,  /* in the session that we send with */
	ALLY_STATE_STOCK,   /* it never answered */
	ALLY_STATE_OFF,     /* Extensions = off */
};

/* What status shows of one. */
struct ally_info {
	struct ally_policy policy;
	enum ally_state state;
	char name[WIRE_EXT_NAME_MAX + 1]; /* as the other side calls itself; empty: unknown */
	enum aead_cipher cipher;          /* of what we send now */
	bool has_fec;                     /* fec is valid */
	struct fec_recovery_stats fec;
};

struct ally {
	struct list of_table; /* under the device's lock, alone */
	struct list
		of_active;    /* under the table's mutex; in the list while deadline is not never */
	struct mono deadline; /* likewise */
	struct wg_peer *peer; /* a reference */
	struct os_mutex mutex; /* guards the rest */
	struct ally_policy policy;
	struct wg_hello hello;
	struct fec_recovery *recovery; /* NULL until agreed */
	struct mono ends_at;           /* recovery is let go of then; MONO_NEVER: it stays */
	char name[WIRE_EXT_NAME_MAX + 1];
};

/* What loss recovery may hold of packets, with all peers together: some 20 peers under loss at
 * 500 Mbit/s each, or 50 at least. Those beyond go without until others have no loss any more. */
#define ALLIES_RECOVERY_BYTES_MAX (UINT64_C(64) << 20)

struct allies {
	const char *self;         /* our name in HELLO; empty: none */
	uint16_t mtu;             /* of the interface */
	struct fec_budget budget; /* of all recoveries */
	struct list all;
	struct os_mutex mutex; /* guards active */
	struct list active;
	_Atomic int64_t deadline_ns; /* earliest of the active ones */
	struct mono swept_at;        /* with the device alone */
};

/* Longest frame of loss recovery. */
uint16_t allies_frame_max(const struct allies *t);
void allies_init(struct allies *t, const char *self, uint16_t mtu);
/* No worker runs any more. */
void allies_fini(struct allies *t);

/* --- with the device alone --- */
/* The peer's ally, made if it has none; NULL: no memory. */
struct ally *ally_of(struct allies *t, struct wg_peer *p);
/* What only leaves away holds at once. What the other side must hear of is offered from the next
 * session on: *wants_session. True: as ally_rearm(). */
bool ally_set_policy(struct allies *t, struct ally *a, const struct ally_policy *policy,
	struct mono now, bool *wants_session);
/* The peer can send in a session that it could not before. True: as ally_rearm(). */
bool allies_session(struct allies *t, struct wg_peer *p, struct mono now);
/* Lets go of the allies of removed peers, once a second at most. */
void allies_sweep(struct allies *t, struct mono now);

/* --- with the device shared --- */
/* Also of a peer without ally. */
void ally_info(const struct wg_peer *p, struct ally_info *out);

/* --- with a's mutex held, and the device shared --- */
/* After something happened to a: when it is due next. True: that is earlier than all others, and
 * worker 0, which sleeps until then, must be woken. */
bool ally_rearm(struct allies *t, struct ally *a, struct mono now);
/* A HELLO came in this session. False: it is malformed, or extensions are off. */
bool ally_hello(struct allies *t, struct ally *a, struct mono now, struct wg_session *s,
	const uint8_t *data, size_t len);
/* A HELLO of ours that is to leave in *session. Its length; 0: none. */
size_t ally_take_hello(
	struct ally *a, struct mono now, struct wg_session **session, uint8_t *out, size_t cap);
/* May loss recovery's frames be sent in this session? */
bool ally_may_send_frames(const struct ally *a, uint64_t session);
/* One came; may it be taken? Whoever sends them has our HELLO, though its answer may have been
 * lost. */
bool ally_takes_frame(struct allies *t, struct ally *a, struct mono now, struct wg_session *s);

/* Earliest time at which an ally has something to do. Any thread. */
struct mono allies_deadline(const struct allies *t);
/* Up to cap allies that are due, with references to their peers. With the device shared. */
size_t allies_due(struct allies *t, struct mono now, struct wg_peer **out, size_t cap);

#endif
