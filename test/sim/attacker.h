/* SPDX-License-Identifier: Apache-2.0 */
/* Somebody on the path who keeps what nodes have read, and sends it to them again, from
 * addresses of his own or of others, at any later time.
 *
 * Each replay stands alone: whatever else is due has happened before, so that every change of
 * an endpoint that follows is the replay's doing, and a failure. */
#ifndef WEFT_TEST_SIM_ATTACKER_H
#define WEFT_TEST_SIM_ATTACKER_H

#include "host.h"

struct crypto;

#define SIM_RECORDS_MAX 512
#define SIM_RECORD_BYTES_MAX 1600
#define SIM_WINDOW_RECORDS 16384 /* a power of two above the replay window */

struct sim_record {
	unsigned host; /* that has read it */
	struct endpoint from;
	uint32_t len;
	uint8_t bytes[SIM_RECORD_BYTES_MAX];
};

struct sim_attacker {
	struct sim_report *report;
	struct sim_host *hosts;
	unsigned n;
	struct rng chance;
	struct sim_record *records;
	unsigned records_n;
	uint64_t seen;
	/* Data messages to host 0 by counter modulo SIM_WINDOW_RECORDS, to replay those at the edge
	 * of its window. NULL: not done. */
	struct sim_record *by_counter;
	uint64_t replays, window_replays, forged;
};

/* Replays at the edge of the window need a lot of memory: only if asked for. */
void sim_attacker_init(struct sim_attacker *a, struct sim_report *report, struct sim_host *hosts,
	unsigned n, uint64_t seed);
void sim_attacker_fini(struct sim_attacker *a);
void sim_attacker_watch_window(struct sim_attacker *a);
/* For struct sim_net's tap. */
void sim_attacker_tap(void *ctx, unsigned host, const struct sim_datagram *d);
/* Sends one recorded datagram to whoever read it, or to somebody else. */
void sim_attacker_replay(struct sim_attacker *a);
/* Sends those again that lie around a window behind the last one. */
void sim_attacker_replay_window(struct sim_attacker *a);
/* An initiation to host with a valid mac1 and nothing else, from an address that nobody has. */
void sim_attacker_forge(struct sim_attacker *a, struct crypto *crypto, unsigned host);

#endif
