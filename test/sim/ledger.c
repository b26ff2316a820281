/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger.h"

#include <stdlib.h>
#include <string.h>

#include "base/endian.h"

void
sim_ledger_init(struct sim_ledger *l, struct sim_report *report)
{
	*l = (struct sim_ledger){.report = report, .is_ordered = true};
}

void
sim_ledger_fini(struct sim_ledger *l)
{
	free(l->packets);
}

static struct sim_flow *
flow_of(struct sim_ledger *l, const struct sim_packet *p)
{
	return &l->flows[p->src][p->dst][p->flow][p->proto][p->is_v6];
}

uint32_t
sim_ledger_add(struct sim_ledger *l, struct sim_packet *first, uint32_t n, uint16_t last_len)
{
	struct sim_flow *f = flow_of(l, first);
	uint32_t body = first->len - sim_packet_header_len(first);
	if (l->n + n > l->cap) {
		l->cap = (l->n + n) * 2 + 1024;
		l->packets = realloc(l->packets, l->cap * sizeof(*l->packets));
	}
	first->seq = f->next_seq;
	first->tcp_seq = f->next_tcp;
	first->ip_id = f->next_ip_id;
	f->next_seq += n;
	f->next_tcp += n * body;
	f->next_ip_id = (uint16_t)(f->next_ip_id + n);
	for (uint32_t i = 0; i < n; i++) {
		struct sim_packet *p = &l->packets[l->n + i];
		*p = sim_packet_of_frame(first, i, n, last_len);
		p->injected = 1;
		p->sent_ns = l->report->now.ns;
	}
	l->n += n;
	l->injected += n;
	return l->n - n;
}

void
sim_ledger_undo(struct sim_ledger *l, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		l->packets[l->n - 1 - i].injected = 0;
	}
	l->injected -= n;
}

/* Sets what the network may have changed, as it is in `seen`. */
static void
allow_marks(struct sim_ledger *l, struct sim_packet *want, uint8_t seen_tos)
{
	bool is_capable = (want->tos & 3) != 0;
	if (l->has_marks && is_capable && (seen_tos & 3) == 3 && (want->tos & 3) != 3) {
		want->tos |= 3;
		l->marked++;
	}
}

static void
check_order(struct sim_ledger *l, const struct sim_packet *p, uint32_t id)
{
	struct sim_flow *f = flow_of(l, p);
	bool is_late =
		f->has_last && (p->injected > 1 ? p->seq < f->last_seq : p->seq <= f->last_seq);
	/* One that was lost on the way and recovered may come late; nothing else may. */
	bool is_recovered = p->delivered > p->arrived;
	sim_check(l->report, !l->is_ordered || !is_late || is_recovered,
		"packet %u, number %u of flow %u from host %u to %u, came after number %u; "
		"protocol "
		"%d, %u bytes, sent %.3f ms before",
		id, p->seq, p->flow, p->src, p->dst, f->last_seq, (int)p->proto, p->len,
		(double)(l->report->now.ns - p->sent_ns) / 1e6);
	l->late += is_late;
	l->late_tcp += is_late && p->proto == SIM_PROTO_TCP;
	f->last_seq = is_late ? f->last_seq : p->seq;
	f->has_last = true;
}

/* The packet with that number has come to host. */
static struct sim_packet *
claim(struct sim_ledger *l, unsigned host, uint32_t id, unsigned from)
{
	sim_check(l->report, id < l->n, "packet %u was never sent", id);
	struct sim_packet *p = &l->packets[id];
	sim_check(l->report, p->injected, "packet %u was never sent", id);
	sim_check(l->report, p->dst == host, "packet %u for host %u came to host %u", id, p->dst,
		host);
	sim_check(l->report, p->claimed == p->src && p->src == from,
		"packet %u of host %u came with the source of host %u", id, p->src, from);
	sim_check(l->report, p->delivered < p->injected, "packet %u from %u to %u came twice", id,
		p->src, p->dst);
	p->delivered++;
	p->came_ns = p->delivered == 1 ? l->report->now.ns : p->came_ns;
	l->delivered++;
	check_order(l, p, id);
	return p;
}

struct shape {
	bool is_v6;
	uint8_t proto, tos;
	uint32_t l4_off, hdr_len;
	unsigned from;
};

static bool
parse(const uint8_t *d, uint32_t len, struct shape *s)
{
	if (len < 20) {
		return false;
	}
	s->is_v6 = d[0] >> 4 == 6;
	if (s->is_v6 && len < 40) {
		return false;
	}
	s->l4_off = s->is_v6 ? 40 : 20;
	s->proto = s->is_v6 ? d[6] : d[9];
	s->tos = s->is_v6 ? (uint8_t)(load_be16(d) >> 4) : d[1];
	s->hdr_len = s->l4_off + (s->proto == 17 ? 8 : s->proto == 6 ? 20 : 0);
	s->from = sim_host_of_address(d + (s->is_v6 ? 8 : 12), s->is_v6);
	return len >= s->hdr_len + SIM_BODY_MIN;
}

/* A packet that was joined with none: all of it must be as it was sent. */
static void
take_single(
	struct sim_ledger *l, unsigned host, const struct port_mem_frame *f, const struct shape *s)
{
	uint8_t want[SIM_MTU];
	uint32_t id = load_le32(f->data + s->hdr_len);
	struct sim_packet p = *claim(l, host, id, s->from);
	allow_marks(l, &p, s->tos);
	sim_check(l->report, f->len == p.len && !f->needs_csum, "packet %u has changed its length",
		id);
	sim_packet_write(&p, id, want);
	sim_check(l->report, memcmp(want, f->data, p.len) == 0, "packet %u has changed", id);
}

/* Joined ones: the bodies as they were sent, the headers as far as they are the same for all. */
static void
take_joined(
	struct sim_ledger *l, unsigned host, const struct port_mem_frame *f, const struct shape *s)
{
	uint8_t want[SIM_MTU];
	uint32_t packets = 0, tcp_seq = s->proto == 6 ? load_be32(f->data + s->l4_off + 4) : 0;
	for (uint32_t at = s->hdr_len; at < f->len; at += f->gso_size) {
		uint32_t len = f->len - at < f->gso_size ? f->len - at : f->gso_size;
		uint32_t id = load_le32(f->data + at);
		struct sim_packet p = *claim(l, host, id, s->from);
		allow_marks(l, &p, s->tos);
		sim_check(l->report, p.len == s->hdr_len + len, "packet %u has changed its length",
			id);
		sim_packet_write(&p, id, want);
		sim_check(l->report, memcmp(want + s->hdr_len, f->data + at, len) == 0,
			"the body of packet %u has changed", id);
		bool is_same = p.tos == s->tos &&
			       memcmp(want + s->l4_off, f->data + s->l4_off, 4) == 0 &&
			       memcmp(want + (s->is_v6 ? 8 : 12), f->data + (s->is_v6 ? 8 : 12),
				       s->is_v6 ? 32 : 8) == 0;
		sim_check(l->report, is_same, "packet %u was joined with another flow's", id);
		sim_check(l->report, s->proto != 6 || tcp_seq + (at - s->hdr_len) == p.tcp_seq,
			"packet %u has another TCP sequence number", id);
		packets++;
	}
	sim_check(l->report, packets == f->packets, "a frame says %u packets and has %u",
		f->packets, packets);
}

void
sim_ledger_take(struct sim_ledger *l, unsigned host, const struct port_mem_frame *f)
{
	struct shape s;
	sim_check(l->report, parse(f->data, f->len, &s), "garbage came out at host %u", host);
	if (f->gso == FRAME_GSO_NONE) {
		take_single(l, host, f, &s);
	} else {
		take_joined(l, host, f, &s);
	}
	sim_hash(l->report, load_le32(f->data + s.hdr_len));
}

uint64_t
sim_ledger_missing(const struct sim_ledger *l, uint32_t from)
{
	uint64_t n = 0;
	for (uint32_t i = from; i < l->n; i++) {
		n += l->packets[i].injected > l->packets[i].delivered;
	}
	return n;
}

void
sim_ledger_arrived(struct sim_ledger *l, uint32_t id)
{
	sim_check(l->report, id < l->n, "packet %u was sent by nobody", id);
	uint8_t *arrived = &l->packets[id].arrived;
	l->packets[id].arrived_ns = *arrived ? l->packets[id].arrived_ns : l->report->now.ns;
	*arrived = *arrived < UINT8_MAX ? (uint8_t)(*arrived + 1) : UINT8_MAX;
}

uint64_t
sim_ledger_recovered(const struct sim_ledger *l, unsigned host)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < l->n; i++) {
		const struct sim_packet *p = &l->packets[i];
		if (p->dst == host && p->delivered > p->arrived) {
			n += (uint64_t)(p->delivered - p->arrived);
		}
	}
	return n;
}
