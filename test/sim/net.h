/* SPDX-License-Identifier: Apache-2.0 */
/* The network of the simulator: an emulated channel for each ordered pair of hosts, addresses
 * that move, and the links by which workers reach it.
 *
 * Every datagram is accounted for:
 *   sent + injected + copies = arrived + all kinds of loss + what is on its way. */
#ifndef WEFT_TEST_SIM_NET_H
#define WEFT_TEST_SIM_NET_H

#include "base/rng.h"
#include "emu/channel.h"
#include "link/link.h"
#include "ledger.h"
#include "packet.h"
#include "report.h"
#include "sniffer.h"
#include "wiretap.h"

#define SIM_WORKERS_MAX 4
#define SIM_DATAGRAM_MAX 2048
#define SIM_NOBODY SIM_HOSTS_MAX /* as a sender: somebody who is no host */

struct sim_datagram {
	struct sim_datagram *next; /* in a link's queue */
	unsigned refs;
	unsigned sender; /* host, or SIM_NOBODY */
	struct endpoint from, to;
	struct sim_inner in; /* OTHER once it was damaged */
	uint8_t ecn;
	uint32_t len;
	uint8_t bytes[];
};

enum sim_loss {
	SIM_LOSS_UNROUTED, /* no host has the address now */
	SIM_LOSS_PARTITION,
	SIM_LOSS_CHANNEL,  /* lost, or its queue was full */
	SIM_LOSS_MOVED,    /* the receiver has left the address meanwhile */
	SIM_LOSS_FILTERED, /* by the receiver's NAT */
	SIM_LOSS_DOWN,     /* the receiver does not run */
	SIM_LOSS_OVERFLOW, /* the receiver's socket queue is full */
	SIM_LOSS_SENDER,   /* the sender's own system refused it */
	SIM_LOSS_COUNT
};

struct sim_link {
	struct link base;
	struct sim_net *net;
	unsigned host, worker;
	struct sim_datagram *head, **tail;
	unsigned queued;
	size_t arena_used;
	uint8_t arena[64 * 1024]; /* what receive() gave out last */
};

/* Where a host is. */
struct sim_place {
	struct endpoint at;     /* as others see it */
	struct ip_addr local;   /* as it sees itself */
	int64_t nat_timeout_ns; /* 0: no NAT before it */
	int64_t last_out_ns[SIM_HOSTS_MAX];
	unsigned workers;
	struct sim_link *links[SIM_WORKERS_MAX]; /* NULL: does not run */
};

/* Of one host: datagrams between its links and the network. */
struct sim_port_tally {
	uint64_t data_out; /* data messages longer than a keepalive, but frames, handed to the link
			    */
	uint64_t out[SIM_KIND_COUNT], out_bytes[SIM_KIND_COUNT]; /* of what could be read */
	uint64_t in_frames; /* read by the node, by kind and so that they may be good */
	uint64_t initiations_out;
	uint64_t in_handshake;     /* read by the node: types 1 to 3 */
	uint64_t in_handshake_bad; /* of these, of a wrong length */
	uint64_t in_other;
};

struct sim_net {
	struct sim_report *report;
	unsigned n;
	struct sim_place places[SIM_HOSTS_MAX];
	struct emu_channel channels[SIM_HOSTS_MAX][SIM_HOSTS_MAX];
	bool is_blocked[SIM_HOSTS_MAX][SIM_HOSTS_MAX];
	double ce_share;         /* of ECN-capable datagrams, marked on the way */
	double send_error_share; /* of send calls */
	unsigned queue_max;      /* datagrams in a link's queue */
	struct rng chance;
	uint64_t sent, injected, copies, arrived, corrupted;
	uint64_t lost[SIM_LOSS_COUNT];
	struct sim_port_tally tally[SIM_HOSTS_MAX];
	struct sim_wiretap wiretaps[SIM_HOSTS_MAX];
	struct sim_sniffer *sniffer;
	struct sim_ledger *ledger;
	/* Sees every datagram as it leaves; is_lost: the channel has lost it. */
	void (*watch)(
		void *ctx, unsigned from, unsigned to, const struct sim_inner *in, bool is_lost);
	void *watch_ctx;
	/* Sees every datagram that is put into the queue of a node that reads it. */
	void (*tap)(void *ctx, unsigned host, const struct sim_datagram *d);
	void *tap_ctx;
};

/* channel_packets: on their way from one host to another; 0: a default. */
void sim_net_init(struct sim_net *net, struct sim_report *report, unsigned hosts,
	uint32_t channel_packets, uint64_t seed);
void sim_net_fini(struct sim_net *net);
/* For all pairs. */
void sim_net_set(struct sim_net *net, const struct emu_settings *s);
struct link *sim_net_link(struct sim_net *net, unsigned host, unsigned worker);
/* The host gets another address: a new local one, or only its NAT's mapping changes. */
void sim_net_move(struct sim_net *net, unsigned host, bool is_local);
struct mono sim_net_next(const struct sim_net *net);
/* Puts what is due into the links' queues. Returns the hosts that got some, as bits. */
unsigned sim_net_deliver(struct sim_net *net);
/* From somebody who is no host. False: the host does not run. */
bool sim_net_inject(struct sim_net *net, unsigned host, const struct endpoint *from,
	const uint8_t *data, uint32_t len);
/* Checks the account above. */
void sim_net_check(const struct sim_net *net);
uint64_t sim_net_lost(const struct sim_net *net);

#endif
