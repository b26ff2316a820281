/* SPDX-License-Identifier: Apache-2.0 */
/* What lies inside a host's data messages, read with the host's own keys as they leave: which inner
 * packet, or which frame. So it is known of each packet whether its own datagram arrived, and what
 * hosts say to each other beside packets, without asking the code under test. */
#ifndef WEFT_TEST_SIM_SNIFFER_H
#define WEFT_TEST_SIM_SNIFFER_H

#include "crypto/aead.h"
#include "report.h"
#include "wire/ext.h"

struct sim_host;

#define SIM_SNIFFED_KEYS 16

enum sim_kind {
	SIM_KIND_OTHER, /* no data message, or sniffing is off */
	SIM_KIND_KEEPALIVE,
	SIM_KIND_PACKET,
	SIM_KIND_HELLO,
	SIM_KIND_REPAIR,
	SIM_KIND_FEEDBACK,
	SIM_KIND_COUNT
};

struct sim_inner {
	enum sim_kind kind;
	enum wire_ext_repair_why why; /* REPAIR */
	bool is_answer;               /* HELLO */
	bool is_aes;
	uint32_t receiver; /* index of the session */
	uint32_t id;       /* PACKET: its number */
};

struct sim_sniffed_key {
	bool is_used;
	unsigned host;
	uint32_t receiver;
	struct aead_key key;
};

struct sim_sniffer {
	bool is_on;
	struct sim_report *report;
	struct sim_host *hosts;
	struct aead *aead;
	struct sim_sniffed_key keys[SIM_SNIFFED_KEYS];
	unsigned next;
	uint8_t text[2048];
};

void sim_sniffer_init(struct sim_sniffer *s, struct sim_report *report, struct sim_host *hosts);
void sim_sniffer_fini(struct sim_sniffer *s);
/* A datagram leaves host `from`. */
struct sim_inner sim_sniffer_look(
	struct sim_sniffer *s, unsigned from, const uint8_t *data, uint32_t len);

static inline bool
sim_kind_is_frame(enum sim_kind k)
{
	return k >= SIM_KIND_HELLO;
}

#endif
