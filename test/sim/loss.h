/* SPDX-License-Identifier: Apache-2.0 */
/* Two nodes of weft over a lossy path: a flow each way, what becomes of it, and what must hold. */
#ifndef WEFT_TEST_SIM_LOSS_H
#define WEFT_TEST_SIM_LOSS_H

#include "world.h"

/* Of one sender; from 0 on at sim_loss_watch(). */
struct sim_loss_way {
	int64_t first_loss_ns;   /* a packet left and was lost; 0: none */
	int64_t shown_ns;        /* the next that was not lost left: now the other side can know */
	int64_t first_repair_ns; /* the first REPAIR left */
	int64_t last_frame_ns;
	uint64_t frames[SIM_KIND_COUNT], frame_bytes[SIM_KIND_COUNT];
	uint64_t frames_after[SIM_KIND_COUNT]; /* since the last packet of either side */
	uint64_t feedbacks_lost_before;        /* before the other side's first REPAIR */
	uint64_t packets, packets_lost;        /* datagrams */
	/* Of the session that sends now. */
	uint32_t receiver;
	int64_t session_ns;    /* its first packet */
	unsigned requests;     /* HELLOs that are no answers, in it */
	unsigned requests_max; /* in any */
	uint64_t sessions;
	int64_t heard_ns;       /* when the last HELLO that is to arrive here left */
	bool has_heard;         /* one of this session */
	bool has_unagreed;      /* all HELLOs of a session to here were lost */
	uint64_t unmarked_late; /* packets not of AES-256-GCM, SIM_LOSS_AGREE_NS after */
};

/* A session of nodes that know each other has agreed by then. */
#define SIM_LOSS_AGREE_NS (8 * WEFT_NS_PER_S)

struct sim_loss_story {
	struct sim_world *world;
	int64_t last_packet_ns; /* of any host */
	struct sim_loss_way ways[SIM_HOSTS_MAX];
};

/* A flow of equal packets. */
struct sim_loss_flow {
	unsigned from, to;
	enum sim_proto proto;
	uint16_t len;
	double pps;
	unsigned batch; /* so many at a time */
};

/* Of the packets of one direction with numbers first..end - 1. */
struct sim_loss_result {
	uint64_t sent, arrived, delivered, recovered;
	uint64_t missing;              /* of those sent since `from_ns` */
	double p50_ms, p99_ms, max_ms; /* of recovered ones, beyond the way itself */
};

struct emu_loss sim_loss_of(double share, double burst);
/* Begins to look at what leaves. */
void sim_loss_watch(struct sim_loss_story *s, struct sim_world *w);
/* A session each way and all agreed, on a clean path. */
void sim_loss_meet(struct sim_world *w, int64_t delay_ns);
/* Of one direction. */
void sim_loss_set(struct sim_world *w, unsigned from, unsigned to, const struct emu_loss *loss,
	int64_t delay_ns);
void sim_loss_run(struct sim_world *w, const struct sim_loss_flow *flows, size_t n, double seconds);
/* What holds always, for packets from number `first` on: whatever arrived was delivered, at once,
 * or if it is TCP within hold_ns. */
void sim_loss_check(struct sim_world *w, uint32_t first, int64_t hold_ns);
/* No packet has left for so long that frames must have ended, which they did soon after the last of
 * them, and were not many. */
void sim_loss_check_quiet(
	struct sim_world *w, const struct sim_loss_story *s, int64_t rtt_ns, double pps);
void sim_loss_judge(struct sim_world *w, unsigned from, uint32_t first, int64_t from_ns,
	int64_t delay_ns, struct sim_loss_result *out);

#endif
