/* SPDX-License-Identifier: Apache-2.0 */
/* Loss recovery with one peer: controller, encoders and decoders of its sessions joined, without
 * I/O, clock or locks. The node has one a peer that agreed to it, under a mutex of its own.
 *
 * What belongs to a session travels in that session: sources are named by (session, counter),
 * and REPAIR and FEEDBACK speak of the session that they are sealed in. A session is named by
 * an id that the caller never uses twice (0 is none); the last FEC_SESSIONS are remembered. */
#ifndef WEFT_FEC_RECOVERY_H
#define WEFT_FEC_RECOVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mono.h"
#include "fec/controller.h"
#include "fec/decoder.h"
#include "wire/ext.h"

#define FEC_SESSIONS 3

struct fec_recovery;

struct fec_recovery_config {
	struct fec_policy policy;
	uint16_t packet_max;       /* longest inner packet: the interface's MTU */
	uint16_t frame_max;        /* longest frame that still fits a datagram on the path */
	struct fec_budget *budget; /* shared by all recoveries, outlives them; NULL: none */
};

WEFT_MUST_CHECK enum weft_err fec_recovery_new(
	const struct fec_recovery_config *c, struct fec_recovery **out);
void fec_recovery_free(struct fec_recovery *r);
void fec_recovery_set_policy(struct fec_recovery *r, const struct fec_policy *p);
/* The path's round trip and clock difference (the peer's less ours, at one instant) as the HELLO
 * exchange of a session saw them. The clocks are those of HELLO and FEEDBACK, `now` in
 * microseconds; both are modulo 2^32, and so may the difference be. */
void fec_recovery_set_path(
	struct fec_recovery *r, struct mono now, int64_t rtt_ns, int64_t clock_diff_us);
/* The session's keys are gone: nothing is due in it any more, what it held is freed. Also called
 * without need it is harmless. Sessions that are only crowded out need no call. */
void fec_recovery_forget(struct fec_recovery *r, uint64_t session);

/* --- sending --- */
/* Was something lost lately? */
bool fec_recovery_is_armed(const struct fec_recovery *r);
/* Must sources be given one by one? When armed, and for a flow so slow that it costs nothing, which
 * is remembered in case of a first loss. When not, fec_recovery_sent_run() is enough. */
bool fec_recovery_wants_sources(struct fec_recovery *r, struct mono now);
/* n packets left unprotected, with consecutive counters. */
void fec_recovery_sent_run(struct fec_recovery *r, struct mono now, uint64_t session,
	uint64_t first, size_t n, size_t bytes);
/* An IP packet is about to leave with this counter. */
void fec_recovery_source(struct fec_recovery *r, struct mono now, uint64_t session,
	uint64_t counter, const uint8_t *packet, size_t len);
/* An ECN-capable packet is about to leave. True: it should leave marked CE, in place of a loss that
 * a queue made and recovery hid. Before the packet is shown to fec_recovery_source(). */
bool fec_recovery_take_mark(struct fec_recovery *r, struct mono now);
/* How many frames (REPAIR, FEEDBACK) should leave now in this session. The caller takes that
 * many counters and then makes each; a counter whose frame could not be made is left unused,
 * which the other side takes for a loss: so it happens for want of room in `out` alone. Due behind
 * each batch of sources, after what was received, and at the deadline. They leave behind
 * the sources, never in one send with them. */
size_t fec_recovery_frames_due(struct fec_recovery *r, struct mono now, uint64_t session);
/* The next due frame, to be sealed with `counter`. Length; 0 when none is due any more. */
size_t fec_recovery_frame(struct fec_recovery *r, struct mono now, uint64_t session,
	uint64_t counter, uint8_t *out, size_t cap);
/* Walks the sessions that have frames due now: index from 0; 0 ends. */
uint64_t fec_recovery_due_session(struct fec_recovery *r, struct mono now, unsigned index);

/* --- receiving --- */
/* As fec_decoder_set_overflow(), for what is given from now on. */
void fec_recovery_set_overflow(struct fec_recovery *r, bool has_overflowed);
/* As fec_decoder_set_hold(): off before it is freed, so that nothing received is lost with it. */
void fec_recovery_set_hold(struct fec_recovery *r, bool is_on);
/* Something was received in this session. True: the first; what waits in older ones is ready, to be
 * taken before. Ids of newer sessions are greater. */
bool fec_recovery_begin(struct fec_recovery *r, uint64_t session);
/* As fec_decoder_skip(). */
bool fec_recovery_skip(
	struct fec_recovery *r, struct mono now, uint64_t session, uint64_t first, size_t n);
/* A packet, keepalive, REPAIR, FEEDBACK or other frame, in order of arrival: as
 * fec_decoder_packet(), after which fec_recovery_take() is due. Whether it is a source is found
 * here. A frame that the caller has refused is given with len 0: it is no loss. False: a REPAIR or
 * FEEDBACK that is malformed or contradicts what is known; counted by the caller as DROP_RX_EXT. */
bool fec_recovery_received(struct fec_recovery *r, struct mono now, uint64_t session,
	const struct fec_arrival *p, struct fec_out *out);
/* Moves out what is ready, of one session at a time: *session says of which. True: something was
 * moved, or would be if out had room; empty it and call again. */
bool fec_recovery_take(
	struct fec_recovery *r, struct mono now, uint64_t *session, struct fec_out *out);

/* When to call fec_recovery_take() and ask for due frames; MONO_NEVER: not before something
 * happens. */
struct mono fec_recovery_deadline(const struct fec_recovery *r);

/* For status: sums over all sessions since the start, and what is believed now. */
struct fec_recovery_stats {
	enum fec_why why;
	/* Sending direction, as the other side reports it. */
	double loss, burst; /* raw share lost, 0..1; mean run in packets */
	double residual;    /* share lost for good lately */
	double overhead;    /* repair bytes to source bytes lately; plaintext */
	double ahead_share; /* repairs sent ahead a source, as decided now */
	int64_t rtt_ns;     /* 0 = unknown */
	int64_t queue_ns;   /* one-way delay above the least seen */
	uint64_t sources, source_bytes, repairs_ahead, repairs_answer, repairs_tail, repair_bytes;
	uint64_t memory;          /* bytes of the budget held now */
	uint64_t memory_refusals; /* what asked for more of it and went on with less */
	uint64_t feedback_tx, feedback_rx;
	uint64_t ce_marked; /* packets that left marked CE for a loss that was hidden */
	uint64_t peer_recovered_ahead, peer_recovered_answer, peer_given_up, peer_lost;
	/* Receiving direction, as seen here. */
	struct fec_decoder_stats rx;
};
void fec_recovery_stats(const struct fec_recovery *r, struct fec_recovery_stats *out);

#endif
