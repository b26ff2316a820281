/* SPDX-License-Identifier: Apache-2.0 */
/* One worker: a link and a port of its own, the batches between them, and its turn.
 *
 * Free of waiting and of clocks: worker_turn() does what there is to do at the time it is
 * told, so the simulator runs whole nodes under virtual time with the code of the daemon.
 * runner.c gives it a thread. */
#ifndef WEFT_NODE_WORKER_H
#define WEFT_NODE_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "crypto/aead.h"
#include "fec/decoder.h"
#include "link/link.h"
#include "node/job.h"
#include "os/thread.h"
#include "pkt/drop_times.h"
#include "port/port.h"
#include "wg/device.h"
#include "wg/trouble.h"

#define WORKER_NOTES_MAX 128
#define WORKER_MSGS_MAX 64
#define WORKER_EVENTS_MAX 64
#define WORKER_READY_MAX 256
/* A frame, 64 B of slack for headers, and room so that a read never ends at the edge. */
#define WORKER_FRAME_LEN (65536 + 256)

struct allies;
struct crew;
struct troubles;

/* What the workers of one device share. */
struct worker_env {
	struct wg_device *device;
	struct os_rwlock *lock; /* guards device as wg/device.h says */
	/* Under the lock alone: put there by control, taken by the worker that has the lock next.
	 * Its events, WG_EVENT_SESSION only, hold a reference to their peer. */
	struct wg_out *mail;
	/* News, called with the lock held alone, before the messages that came with it are sent. */
	void (*event)(void *ctx, const struct wg_event *e, struct wg_time now);
	void *ctx;
	_Atomic uint16_t *listen_port; /* to know our own outer packets at the port */
	_Atomic int64_t *deadline_ns;  /* of the engine; written under the lock alone */
	/* Makes worker i leave its wait; any thread. NULL with one worker that nobody waits for. */
	void (*wake)(void *ctx, unsigned i);
	struct crew *crew; /* NULL with one worker */
	/* What is agreed with peers beyond WireGuard; NULL: every peer is treated as a stock one.
	 */
	struct allies *allies;
	struct troubles *troubles; /* NULL: nobody wants to know */
};

struct worker_stats {
	struct drop_counts drops;
	uint64_t handshakes_rx, keepalives_rx;
	uint64_t frames_rx;    /* extension frames taken */
	uint64_t recovered_rx; /* packets put in by loss recovery; each has used its counter */
	uint64_t gaps;         /* times that worker_wake() was called */
};

struct worker {
	struct worker_env env;
	struct link *link;
	struct port *port;
	struct aead *aead;
	bool has_used_keys;    /* since worker_rest() last looked */
	struct mono keys_at;   /* when it saw that last */
	struct mono forget_at; /* MONO_NEVER: aead holds no key */
	unsigned index;
	bool is_closed; /* the port is gone */

	/* Outbound. */
	uint8_t *frame_buf;
	struct frame frame;
	bool has_frame;            /* read, not yet split: the arena was full */
	struct egress_job *egress; /* with one worker; the lane's jobs otherwise */
	struct egress_job *flush;  /* for packets that waited for a handshake */

	/* Inbound. */
	struct link_rx rx[JOB_RX_MAX];
	size_t rx_n, rx_i; /* entries rx_i.. are not yet taken */
	bool has_overflow; /* the socket has dropped some just before these */
	/* Datagrams received when the socket was last found empty, and at the time before. */
	uint64_t empty_at, empty_before;
	size_t rx_off; /* bytes of entry rx_i already taken */
	struct ingress_job *ingress;
	struct gro_pkt *pkts; /* on their way to the port, in order */
	size_t pkts_n;
	struct fec_out recovered; /* on their way to pkts, from a decoder */
	struct gro_out joined;

	struct wg_note notes[WORKER_NOTES_MAX];
	size_t notes_n;
	struct wg_out out;
	struct wg_peer *ready[WORKER_READY_MAX]; /* references: can send, may have packets staged */
	size_t ready_n;
	struct worker_stats stats;

	/* When what was dropped. */
	struct drop_times dropped;
	struct mono look_at;                         /* when to look at the counters next */
	struct mono now;                             /* of the latest turn or tick */
	struct mono source_noted_at, route_noted_at; /* floods are noted in part */
};

/* Counters of drops are looked at so often while turns are made. */
#define WORKER_LOOK_NS (1 * WEFT_NS_PER_S)

/* Bits of what may have something to read. */
#define WORKER_READY_LINK 1u
#define WORKER_READY_PORT 2u

/* A key that was not used for so long is let go of: its session may have ended, and the engine
 * keeps a copy of the last. */
#define WORKER_KEYS_IDLE_NS (10 * WEFT_NS_PER_S)

struct worker_config {
	struct worker_env env;
	struct link *link; /* the worker closes them */
	struct port *port;
	enum aead_backend aead;
	unsigned index;
};

/* On failure link and port stay the caller's. */
WEFT_MUST_CHECK enum weft_err worker_new(const struct worker_config *c, struct worker **out);
void worker_free(struct worker *w);

/* Takes batches from what `ready` names. Returns the bits where more may be waiting. */
unsigned worker_turn(struct worker *w, struct wg_time now, unsigned ready);
/* After turns: lets go of keys that are idle. Returns when to call again; MONO_NEVER: not before
 * the next turn. */
struct mono worker_rest(struct worker *w, struct mono now);
/* Runs what is due: the engine's timers, control's mail, loss recovery. Worker 0 alone. */
void worker_tick(struct worker *w, struct wg_time now);
/* When worker_tick() is due. Any thread. */
struct mono worker_deadline(const struct worker *w);
/* The device did not run since `since`. In place of a tick. Worker 0 alone. */
void worker_wake(struct worker *w, struct mono since, struct wg_time now);

/* Looks at the counters of drops; what is new was dropped by the latest turn. Between turns. */
void worker_look(struct worker *w);

/* Goes on with another link, after taking what has come on the present one: all of it, unless
 * more comes all the while; what is in hand then counts as DROP_RX_REBIND. Returns the one it
 * had, which is the caller's now. Between turns. */
struct link *worker_swap_link(struct worker *w, struct link *fresh, struct wg_time now);

/* --- for egress.c, ingress.c and crew.c --- */
/* Alone under the lock between begin and end; end sends what the engine made. */
void worker_begin_engine(struct worker *w);
void worker_end_engine(struct worker *w, struct wg_time now);
/* Brings notes back to the engine when there are any. */
void worker_settle(struct worker *w, struct wg_time now);
/* A packet of the kind was dropped in this turn. key: the peer's public key, or NULL. */
void worker_note_trouble(
	struct worker *w, enum wg_trouble_kind kind, const uint8_t *key, const struct endpoint *at);
/* A datagram to that place was not sent. */
void worker_note_unsent(struct worker *w, const struct endpoint *to, int errnum);
/* Room for one more note, settling when needed is the caller's: NULL when full. */
struct wg_note *worker_note_slot(struct worker *w);
/* The peer's staged packets are to be sent at the next egress_flush_ready(). Under the lock. */
void worker_add_ready(struct worker *w, struct wg_peer *p);
/* Keeps the slot if the engine filled it. */
void worker_note_keep(struct worker *w, struct wg_note *note);

#endif
