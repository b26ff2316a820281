/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files named recovery*.c alone. */
#ifndef WEFT_FEC_RECOVERY_INTERNAL_H
#define WEFT_FEC_RECOVERY_INTERNAL_H

#include "fec/encoder.h"
#include "fec/mark.h"
#include "fec/recovery.h"
#include "fec/schedule.h"
#include "fec/trail.h"

/* An encoder that nothing was given to for so long is freed, and what a decoder holds of a session
 * in which nothing came or nothing was missing. Of a session that has a successor, what is under
 * way is a few round trips old. */
#define FEC_KEEP_NS (30 * WEFT_NS_PER_S)
#define FEC_KEEP_OLD_NS (2 * WEFT_NS_PER_S)
/* After memory or budget was refused: when to try again. */
#define FEC_STARVED_NS WEFT_NS_PER_S
/* While congested: repair bytes that may be saved up. */
#define FEC_PURSE_MAX 16384.0
/* Beside the share, so many bytes a second, or pings and voice, which earn little by a share, would
 * go bare: 32 kbit/s. */
#define FEC_PURSE_RATE 4000.0

struct fec_session {
	uint64_t id;    /* 0: unused */
	uint64_t order; /* of its first mention: the lowest is crowded out */
	struct fec_encoder *encoder;
	struct fec_decoder *decoder;
	struct fec_schedule schedule;
	struct fec_trail trail;
	struct mono source_at; /* when the encoder was last given one */
	struct mono shrunk_at; /* when it may give memory back again */
	uint64_t given_from;   /* first counter given since it was made or paused */
	bool is_given;         /* sources are given one by one; else it is paused */
	/* Counters that show the other side our last source: its own, and the last of the REPAIRs
	 * over it. Other frames may have come and told nothing of it. */
	uint64_t shows[FEC_PROBES_MAX + 1];
	unsigned shows_n;              /* so many there were, ever */
	bool is_calm;                  /* the encoder is a small one, for answers to a first loss */
	bool is_announced;             /* the receiver was told to keep what comes */
	struct wire_ext_feedback seen; /* the last that came */
	struct wire_ext_feedback due;  /* to be sent, if has_due; else the last one */
	bool has_due;
	/* Frames as they went out and came in: on a lossy path each goes out twice, and the second
	 * to arrive is no new round. */
	uint8_t sent[WIRE_EXT_FEEDBACK_MAX], came[WIRE_EXT_FEEDBACK_MAX];
	size_t sent_len, came_len;
	struct mono repeat_at;             /* MONO_NEVER: no second time */
	unsigned repeats;                  /* still to come, otherwise */
	uint32_t told_lost, told_received; /* by the last that went out */
	double rx_lost, rx_all;            /* lately */
};

struct fec_recovery {
	struct fec_recovery_config config;
	const struct gf256 *gf;
	struct fec_controller controller;
	struct fec_session sessions[FEC_SESSIONS];
	bool is_hold_off;
	uint64_t order;
	struct mono sent_at;                       /* anything, in any session */
	unsigned source_len[WIRE_EXT_CLASS_COUNT]; /* about the longest lately */
	bool has_overflowed;                       /* our own receive socket, just now */
	double allowance;                          /* packets that may be remembered while calm */
	struct mono allowed_at;
	double answers; /* that may be sent */
	double answer_bytes;
	double purse; /* bytes, while congested */
	struct mono purse_at;
	struct fec_marks marks;
	double source_bytes_lately, repair_bytes_lately;
	double packets_lately, given_up_lately; /* sources */
	uint64_t judged_sources;                /* of those sent, taken into the above */
	/* The rate of what is sent, over the last span of some milliseconds: what has to be
	 * remembered follows from it. */
	struct {
		struct mono at; /* the current span's begin */
		uint64_t n, bytes;
		double n_a_ns, bytes_a_ns; /* in the last */
	} rate;
	bool is_starved; /* memory for sources was refused, and has not been had since */
	struct mono starved_until;
	bool was_calm_refusal; /* of what is taken while calm: more is allowed to one in need */
	struct mono growth_starved_until, decoder_starved_until;
	struct fec_recovery_stats stats; /* counts; the rest is filled in when asked */
};

/* How long what a session holds is kept without use. */
int64_t fec_recovery_keep_ns(const struct fec_recovery *r, const struct fec_session *s);
/* The session's encoder; NULL for want of memory or budget: nothing is remembered for now. */
struct fec_encoder *fec_recovery_encoder(
	struct fec_recovery *r, struct fec_session *s, struct mono now);
/* The session's decoder; NULL for want of memory: then nothing is recovered. */
struct fec_decoder *fec_recovery_decoder(struct fec_recovery *r, struct fec_session *s);
/* In the newest session alone: what it brings must not overtake what waits in another. */
bool fec_recovery_may_hold(const struct fec_recovery *r, const struct fec_session *s);
/* More memory for what was short of it. */
void fec_recovery_grow(struct fec_recovery *r, struct fec_session *s, struct mono now);
/* NULL: not remembered. */
struct fec_session *fec_recovery_find(struct fec_recovery *r, uint64_t id);
/* n counters leave now. Stamps are so far apart that the trail reaches two round trips back. */
void fec_recovery_leave_trail(
	struct fec_recovery *r, struct fec_session *s, struct mono now, uint64_t first, size_t n);
/* Sources are not given for now; what is due of repairs is forgotten. */
void fec_recovery_pause_encoder(struct fec_session *s);
void fec_recovery_drop_encoder(struct fec_session *s);

/* A FEEDBACK about session s. False: it contradicts what was sent. */
bool fec_recovery_feedback(struct fec_recovery *r, struct mono now, struct fec_session *s,
	const struct wire_ext_feedback *f);

#endif
