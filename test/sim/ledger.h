/* SPDX-License-Identifier: Apache-2.0 */
/* Every inner packet that was ever handed to a node, and what must hold when one comes out. */
#ifndef WEFT_TEST_SIM_LEDGER_H
#define WEFT_TEST_SIM_LEDGER_H

#include "packet.h"
#include "port/mem.h"
#include "report.h"

struct sim_flow {
	uint32_t next_seq; /* of what is sent */
	uint32_t next_tcp;
	uint32_t last_seq; /* delivered */
	uint16_t next_ip_id;
	bool has_last;
};

struct sim_ledger {
	struct sim_report *report;
	struct sim_packet *packets; /* by number */
	uint32_t n, cap;
	struct sim_flow flows[SIM_HOSTS_MAX][SIM_HOSTS_MAX][SIM_FLOWS_MAX][SIM_PROTO_COUNT][2];
	bool is_ordered; /* the network keeps the order, so deliveries must */
	bool has_marks;  /* the network sets CE */
	uint64_t injected, delivered, marked;
	uint64_t late, late_tcp; /* came out behind a later one of their flow */
};

void sim_ledger_init(struct sim_ledger *l, struct sim_report *report);
void sim_ledger_fini(struct sim_ledger *l);
/* Enters n packets in a row, as sim_packet_of_frame() makes them; seq, tcp_seq and ip_id of
 * first are filled in. Returns the number of the first. */
uint32_t sim_ledger_add(
	struct sim_ledger *l, struct sim_packet *first, uint32_t n, uint16_t last_len);
/* The last n were not taken by the node. */
void sim_ledger_undo(struct sim_ledger *l, uint32_t n);
/* A frame came out at a host: everything in it must have been sent to it by whom it says, as it
 * says, and not be there already. */
void sim_ledger_take(struct sim_ledger *l, unsigned host, const struct port_mem_frame *f);
/* The datagram of a packet was read by its node. */
void sim_ledger_arrived(struct sim_ledger *l, uint32_t id);
/* Packets that came out more often than their datagrams arrived. */
uint64_t sim_ledger_recovered(const struct sim_ledger *l, unsigned host);
/* Numbers from..n-1 that were injected and not delivered. */
uint64_t sim_ledger_missing(const struct sim_ledger *l, uint32_t from);

#endif
