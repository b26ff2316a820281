/* SPDX-License-Identifier: Apache-2.0 */
/* A way to reach other nodes: bytes of datagrams in, bytes of datagrams out, in batches.
 *
 * Owned by one worker. Implementations: udp.c (sockets with UDP_SEGMENT and UDP_GRO) and mem.c
 * (in-memory rings for the simulator and `weft bench tx`). */
#ifndef WEFT_LINK_LINK_H
#define WEFT_LINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "pkt/drop.h"

/* Datagrams back to back to one destination: all of seg bytes, the last one maybe shorter. */
struct link_run {
	const struct endpoint *to;
	uint8_t *data;
	uint32_t len;     /* all datagrams of the run; the link cuts longer runs as it must */
	uint16_t seg;     /* length of each datagram but the last; >= 1 */
	uint8_t ecn;      /* 0..3, for the outer header */
	bool src_cleared; /* out: the pinned local address was gone, sent without it */
	int errnum;       /* out: of the last datagram that was not sent; 0: all were */
};

/* A received buffer: one datagram, or a UDP_GRO run of equal ones. Empty datagrams are counted
 * by the link (DROP_RX_SHORT) and not handed on. */
struct link_rx {
	uint8_t *data;
	uint32_t len;
	uint16_t seg;         /* datagram length, >= 1; the last may be shorter */
	uint8_t ecn;          /* of the outer header */
	bool is_behind_drop;  /* the socket has dropped some since the one before */
	struct endpoint from; /* with src = the local address it came to */
};

struct link_stats {
	uint64_t rx_bytes, rx_datagrams, rx_calls;
	uint64_t tx_bytes, tx_datagrams, tx_calls;
	uint64_t gso_off_count; /* how often GSO was turned off after a refusal */
	struct drop_counts drops;
};

struct link;

struct link_ops {
	/* Fills up to cap entries, pointing into memory of the link that stays valid until the
	 * next receive. WEFT_EAGAIN: nothing there. */
	enum weft_err (*receive)(struct link *l, struct link_rx *rx, size_t cap, size_t *n);
	/* Sends every run; what cannot be sent is counted in stats.drops, never fatal, never
	 * stops the rest. */
	void (*send)(struct link *l, struct link_run *runs, size_t n);
	void (*close)(struct link *l);
};

/* First member of every implementation. */
struct link {
	const struct link_ops *ops;
	struct link_stats stats;
};

#endif
