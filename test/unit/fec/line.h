/* SPDX-License-Identifier: Apache-2.0 */
/* One direction of a session for tests: an encoder, what it sends by counter, a decoder, a replay
 * window, and a log of what the decoder delivered. Which counters arrive, when and in which order
 * is the test's. Each delivered packet is compared with the one that was sent. */
#ifndef WEFT_TEST_FEC_LINE_H
#define WEFT_TEST_FEC_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mono.h"
#include "fec/decoder.h"
#include "fec/encoder.h"
#include "packets.h"

#define LINE_PACKET_MAX 1420
#define LINE_FRAME_MAX 1443

struct line_sent {
	uint16_t len; /* 0: a keepalive */
	bool is_source;
	bool is_ordered;                  /* TCP with data or FIN */
	bool is_used;                     /* in the replay window */
	bool is_recovered;                /* delivered as such */
	int64_t arrived_ns, delivered_ns; /* 0: not */
	uint8_t bytes[PACKET_LEN_MAX];
};

struct line {
	enum wire_ext_repair_why why; /* of what line_ahead() makes; AHEAD at first */
	struct fec_decoder_config config;
	uint64_t seed, first; /* the first counter */
	struct fec_encoder *e;
	struct fec_decoder *d;
	struct line_sent *sent;
	size_t n, cap;
	uint64_t *log; /* counters in the order of delivery */
	size_t log_n;
	size_t out_cap; /* room that the decoder is given; 0: 64 */
	size_t refused; /* REPAIRs */
};

struct line_config {
	uint64_t seed, first;
	size_t cap;              /* counters */
	uint32_t records, bytes; /* 0: 1024 and 1 MiB */
};

void line_open(struct line *l, const struct line_config *c);
void line_close(struct line *l);
/* A new decoder, as if nothing had arrived; what was sent stays. */
void line_restart(struct line *l);

/* Each takes the next counter and gives it. */
uint64_t line_source(struct line *l, int64_t now_ns, enum packet_kind kind, size_t len);
uint64_t line_keepalive(struct line *l);
/* A repair over the last sources; UINT64_MAX (and no counter) when there is none to send. */
uint64_t line_ahead(struct line *l, enum wire_ext_class class, unsigned window);
/* The answers to a FEEDBACK: as many as it wants of each class that it needs, and one that names
 * what is no source. Returns how many counters were taken, from l->first + l->n on before. */
size_t line_answer(struct line *l, const struct wire_ext_feedback *f);

/* The counter arrives; twice is once. */
void line_arrive(struct line *l, int64_t now_ns, uint64_t counter);
/* Takes all that is ready. */
void line_take(struct line *l, int64_t now_ns);

struct line_sent *line_at(const struct line *l, uint64_t counter);
bool line_is_delivered(const struct line *l, uint64_t counter);
struct fec_decoder_stats line_stats(const struct line *l);

#endif
