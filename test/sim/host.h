/* SPDX-License-Identifier: Apache-2.0 */
/* A host of the simulator: one whole node (engine, workers, links, ports) with its key, its
 * clocks, and what it remembers over a restart. */
#ifndef WEFT_TEST_SIM_HOST_H
#define WEFT_TEST_SIM_HOST_H

#include <stdatomic.h>

#include "ledger.h"
#include "net.h"
#include "node/ally.h"
#include "node/crew.h"
#include "node/worker.h"

/* What one host is configured to know of another. */
struct sim_peer {
	struct sim_host *host; /* whose configuration this is */
	unsigned other;
	bool is_wanted;    /* in the configuration at all */
	bool has_endpoint; /* the other's first address stands in it */
	bool is_in;        /* in the device now; is_wanted is what a restart brings */
	uint16_t keepalive_s;
	uint8_t psk[WG_KEY_LEN]; /* zeros: none */
	uint64_t events[8];      /* by kind */
	int64_t last_try_ns;     /* world time of the last initiation; 0: none since it was added */
};

/* Of all lives of a host together. Packets are what super-frames are cut into. */
struct sim_tally {
	uint64_t injected; /* packets that its port took */
	uint64_t no_route; /* frames without a peer, as they were injected */
	uint64_t no_route_packets;
	uint64_t malformed;     /* frames injected as such */
	uint64_t delivered;     /* packets that came out of its port */
	uint64_t lost_in_crash; /* packets staged or not yet read when it ended */
	uint64_t events[8];
	/* Of the lives that ended. */
	struct drop_counts drops;
	uint64_t handshakes_rx, keepalives_rx, frames_rx, recovered_rx, rejected_moves;
	uint64_t lost_held; /* received, held for those before them, and gone with their peer */
};

struct sim_host {
	struct sim_report *report;
	struct sim_net *net;
	struct sim_ledger *ledger;
	struct sim_host *all; /* hosts by index */
	unsigned index, workers;
	struct gro_caps caps;
	enum aead_backend aead;
	struct sim_peer peers[SIM_HOSTS_MAX];
	uint8_t private_key[WG_KEY_LEN], public_key[WG_KEY_LEN];
	struct endpoint home; /* its first address, which stands in configurations */
	struct rng entropy;

	int64_t mono_off_ns;       /* its CLOCK_BOOTTIME less the world's time */
	int64_t wall_off_ns;       /* its wall clock less the world's time */
	uint64_t stamp_s;          /* persisted */
	bool has_allies;           /* speaks extension frames; changes between lives alone */
	struct ally_policy policy; /* of all its peers, with has_allies */
	int64_t asleep_until_ns;   /* 0: awake */
	int64_t asleep_since_ns;   /* of the present or last sleep, world time */

	/* Of the present life; device NULL: none. */
	struct wg_device *device;
	struct os_rwlock lock;
	_Atomic uint16_t listen_port;
	_Atomic int64_t deadline_ns;
	struct crew *crew;
	struct allies allies;
	struct worker *w[SIM_WORKERS_MAX];
	struct wg_out mail;
	struct wg_msg mail_msgs[16];
	struct wg_event mail_events[32];
	uint64_t unread;    /* packets in the ports that the node has not read */
	int64_t turn_at_ns; /* world time at which it reads them at the latest; 0: no such */

	struct sim_tally tally;
};

/* Parts of the world that it belongs to are set by the caller; gives it a key. */
void sim_host_init(struct sim_host *h, uint64_t seed);
void sim_host_start(struct sim_host *h);
/* As a kill -9. */
void sim_host_stop(struct sim_host *h);
struct wg_time sim_host_time(const struct sim_host *h);
/* When it has something to do, in world time. */
struct mono sim_host_next(const struct sim_host *h);
/* Awake and running. */
bool sim_host_is_live(const struct sim_host *h);
/* Ends its sleep. */
void sim_host_wake(struct sim_host *h);
/* Ticks if it is time, and turns all workers until they have nothing to do. */
void sim_host_turn(struct sim_host *h);
/* n packets as one frame; false when the port is full. Does not turn. */
bool sim_host_inject(struct sim_host *h, unsigned worker, const struct frame *f, uint32_t n);
/* Control: puts the peer into the device, or takes it out. */
void sim_host_add_peer(struct sim_host *h, unsigned other);
void sim_host_remove_peer(struct sim_host *h, unsigned other);
void sim_host_set_keepalive(struct sim_host *h, unsigned other, uint16_t seconds);
/* The same key once more: all sessions end. */
void sim_host_renew_key(struct sim_host *h);
/* For all its peers, now and later. */
void sim_host_set_policy(struct sim_host *h, const struct ally_policy *policy);
/* The interface goes down and up again: sessions stay. */
void sim_host_bounce(struct sim_host *h);
/* NULL: not in the device. */
struct wg_peer *sim_host_peer(const struct sim_host *h, unsigned other);
/* Of this life and those before. */
uint64_t sim_host_drops(const struct sim_host *h, enum drop_reason r);
uint64_t sim_host_staged(const struct sim_host *h);
uint64_t sim_host_rejected_moves(const struct sim_host *h);
/* Packets that loss recovery has put in. */
uint64_t sim_host_recovered(const struct sim_host *h);
/* Every packet and datagram of it must be accounted for. */
void sim_host_check(const struct sim_host *h);

#endif
