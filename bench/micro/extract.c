/* SPDX-License-Identifier: Apache-2.0 */
/* Views of a packet's headers and payload: nothing is copied, so the length must not matter. */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/micro/flow.h"
#include "pkt/ip.h"
#include "pkt/l4.h"

#define PACKETS 16 /* in turn, so that no branch is learnt from one packet */
/* Not a power of two: the headers would share one set of the L1 cache. */
#define SLOT (4096 + 128)

static const uint32_t sizes[] = {1280, 4096};

struct extract_work {
	uint8_t packets[PACKETS][SLOT];
	uint32_t size;
	uint64_t sum;
	uint64_t refused;
};

/* What joining and filtering ask of a packet: who to whom, which ports, where the payload is. */
struct packet_view {
	struct ip_view ip;
	const uint8_t *l4;
	const uint8_t *payload;
	uint32_t payload_len;
};

static bool
view_packet(const uint8_t *data, size_t len, struct packet_view *v)
{
	if (ip_parse(data, len, &v->ip) != WEFT_OK || !v->ip.has_l4) {
		return false;
	}
	uint32_t room = v->ip.len - v->ip.l4_off, header = UDP_HEADER_LEN;
	v->l4 = data + v->ip.l4_off;
	if (v->ip.proto == IP_PROTO_TCP) {
		header = room < TCP_HEADER_LEN ? TCP_HEADER_LEN
					       : (uint32_t)(v->l4[TCP_DATA_OFFSET] >> 4) * 4;
	} else if (v->ip.proto != IP_PROTO_UDP) {
		return false;
	}
	if (room < header) {
		return false;
	}
	v->payload = v->l4 + header;
	v->payload_len = room - header;
	return true;
}

static void
extract_many(void *ctx, uint64_t n)
{
	struct extract_work *w = ctx;
	for (uint64_t i = 0; i < n; i++) {
		struct packet_view v;
		if (!view_packet(w->packets[i % PACKETS], w->size, &v)) {
			w->refused++;
			continue;
		}
		w->sum += v.ip.dst[3] + v.l4[1] + v.payload[0] + v.payload_len + v.ip.tos;
	}
}

void
bench_extract(struct bench *b)
{
	struct extract_work *w = calloc(1, sizeof(*w));
	char series[32];
	if (!w) {
		bench_fail(b, "out of memory");
		return;
	}
	for (int k = 0; k < 4; k++) {
		for (size_t i = 0; i < WEFT_ARRAY_LEN(sizes); i++) {
			struct flow f = {.family = k & 1 ? IP_FAMILY_V6 : IP_FAMILY_V4,
				.is_tcp = k < 2,
				.src = {10, 1},
				.dst = {10, 2},
				.sport = 1,
				.dport = 2};
			struct frame frame;
			w->size = sizes[i];
			for (size_t p = 0; p < PACKETS; p++) {
				f.dst[3] = (uint8_t)p;
				flow_frame(&f, w->packets[p], w->size, 0, &frame);
			}
			snprintf(series, sizeof(series), "IPv%d %s", f.family,
				f.is_tcp ? "TCP" : "UDP");
			struct bench_label l = {.plot = "header and payload views",
				.series = series,
				.x_name = "bytes a packet",
				.x = w->size,
				.unit = "ns/packet"};
			bench_time(b, &l, extract_many, w, 1);
		}
	}
	if (w->refused > 0) {
		bench_fail(b, "packets were refused");
	}
	bench_use(b, w->sum);
	free(w);
}
