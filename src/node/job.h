/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of packets on its way through a worker, in one buffer that is reused for ever.
 *
 * A job passes three stages. Its owner fills it in the order of arrival, and that fixes
 * counters and order. The middle stage, sealing or opening, touches nothing but the job and
 * a key, so any worker may do it. The owner finishes jobs in the order of filling. */
#ifndef WEFT_NODE_JOB_H
#define WEFT_NODE_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "crypto/aead.h"
#include "pkt/gso.h"
#include "wg/device.h"

/* One super-frame of 61,000 B at 1368 B of payload makes 45 segments, 64,200 B sealed; a whole
 * 64 KiB frame of 536 B segments 123, 77,900 B. */
#define JOB_ARENA_LEN (80u << 10)
#define JOB_SEGS_MAX 192
/* What a segment takes beside its payload: IPv6 and TCP headers with all options, padding, and the
 * room around it. */
#define JOB_SEG_EXTRA_BYTES (40 + 60 + 15 + GSO_HEADROOM + GSO_TAILROOM)
#define JOB_SPANS_MAX 64
/* UDP_GRO gives at most 64 datagrams a buffer. */
#define JOB_RX_MAX 16
#define JOB_PKTS_MAX 256
#define JOB_RUNS_MAX 64
/* What a job looks at, taken or dropped, so that a flood of what is dropped keeps its worker
 * neither from its other side nor from its timers, and nobody from the lock. */
#define JOB_FRAMES_MAX 256
#define JOB_LOOKS_MAX 512

enum job_kind {
	JOB_KIND_EGRESS,
	JOB_KIND_INGRESS,
};

enum job_state {
	JOB_STATE_EMPTY, /* the owner may fill it */
	JOB_STATE_READY, /* filled; whoever moves it to CLAIMED does the middle stage */
	JOB_STATE_CLAIMED,
	JOB_STATE_DONE, /* the owner may finish it */
};

struct job {
	_Atomic int state; /* enum job_state; guards all else of the job */
	enum job_kind kind;
};

/* Consecutive segments to one peer with one ECN codepoint. */
struct egress_span {
	struct wg_peer *peer;       /* valid under the lock it was found under */
	struct wg_session *session; /* a reference; NULL: not to be sent */
	struct endpoint to;
	uint64_t counter;  /* of the first segment */
	uint16_t first, n; /* in segs */
	uint8_t ecn;
	bool is_src_cleared; /* sent, but not from the pinned local address */
	bool has_frames_due; /* of loss recovery, to follow these */
};

struct egress_job {
	struct job job;
	struct gso_arena arena;
	struct gso_seg segs[JOB_SEGS_MAX];
	struct egress_span spans[JOB_SPANS_MAX];
	size_t spans_n;
	uint8_t buf[JOB_ARENA_LEN];
};

/* Consecutive data messages of one session and cipher from one endpoint. */
struct ingress_run {
	struct wg_session *session; /* a reference */
	const struct aead_key *key; /* the session's for that cipher */
	struct endpoint from;
	uint16_t first, n; /* in ops */
	bool has_frames_due;
};

struct ingress_job {
	struct job job;
	struct aead_op ops[JOB_PKTS_MAX];
	uint8_t ecn[JOB_PKTS_MAX]; /* of the outer header */
	size_t ops_n;
	bool has_overflow; /* the socket has dropped some of what came between these */
	size_t looks;      /* datagrams looked at; 0..JOB_LOOKS_MAX */
	struct ingress_run runs[JOB_RUNS_MAX];
	size_t runs_n;
	size_t buf_used;
	uint8_t *buf; /* copies of the datagrams; NULL: they lie in the link */
	size_t buf_len;
};

#endif
