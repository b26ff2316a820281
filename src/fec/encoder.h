/* SPDX-License-Identifier: Apache-2.0 */
/* Encoder: remembers the source packets of one session's sending direction, and combines them
 * into REPAIR frames at any time.
 *
 * Owns copies of the last packets, each as [length, 16 bit | packet], in one ring of bytes and
 * one of records by counter. Decides nothing: when, how many and over what is the
 * controller's. Memory is taken when it is made and when it is told to grow; no other call
 * allocates. */
#ifndef WEFT_FEC_ENCODER_H
#define WEFT_FEC_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mono.h"
#include "fec/budget.h"
#include "wire/ext.h"

struct gf256;
struct fec_encoder;

struct fec_encoder_config {
	const struct gf256 *gf;
	uint32_t records; /* counters remembered; a power of two, 256..65536 */
	uint32_t bytes; /* of packets remembered, 64 KiB..16 MiB; rounded down to that of 64 KiB */
	uint16_t packet_max;     /* longest source packet, 20..FEC_PACKET_MAX; longer ones are not
				  * protected */
	uint16_t frame_max;      /* longest REPAIR plaintext, 64..65535; spans shrink so that it is
				  * kept. A packet is protected only if it is at most this less 7, and
				  * in full spans if at most this less 23. Frames are sealed without
				  * padding. */
	enum fec_budget_use use; /* what it is taken as */
	struct fec_budget *budget; /* outlives it; NULL: none */
};

WEFT_MUST_CHECK enum weft_err fec_encoder_new(
	const struct fec_encoder_config *c, struct fec_encoder **out);
void fec_encoder_free(struct fec_encoder *e);
/* Bytes taken. */
uint64_t fec_encoder_size(const struct fec_encoder *e);

/* An IP packet takes this counter. Counters only grow from call to call; those left out carry no
 * source. What lies behind the packet's own length is no part of it; one that contradicts its own
 * length is not protected. */
void fec_encoder_source(struct fec_encoder *e, struct mono now, uint64_t counter,
	const uint8_t *packet, size_t len);
/* Packets leave, or have left, without being given: no repair reaches back beyond the next that is
 * given. */
void fec_encoder_pause(struct fec_encoder *e);
/* As made with these records and bytes from the start; what is remembered stays. No less than it
 * has. False: no memory or none left in the budget, and nothing is forgotten for it. */
bool fec_encoder_grow(
	struct fec_encoder *e, uint32_t records, uint32_t bytes, enum fec_budget_use use);
/* What it has to grow to, since what it would forget next is younger than keep_ns: twice the
 * records, or a little more bytes. False: it is not short, or is as large as it gets. */
bool fec_encoder_is_short(
	const struct fec_encoder *e, int64_t keep_ns, uint32_t *records, uint32_t *bytes);
/* Gives some bytes back, if what it forgets with them is older than keep_ns, down to these. */
void fec_encoder_shrink(struct fec_encoder *e, int64_t keep_ns, uint32_t bytes);
/* When the packet with this counter was sent. False: not remembered. */
bool fec_encoder_sent_at(const struct fec_encoder *e, uint64_t counter, struct mono *out);
/* Is it a source of this class that is still remembered? Of the missing counters of a FEEDBACK's
 * block, those that are sources are what its answer has to bring. */
bool fec_encoder_has(const struct fec_encoder *e, uint64_t counter, enum wire_ext_class class);

/* About n repairs ahead over the same sources come next, from the counter `own` on, one after the
 * other: then they are computed together. A guess that is wrong costs time, nothing else. */
void fec_encoder_expect(struct fec_encoder *e, uint64_t own, unsigned n);
/* Where a REPAIR is written, and the counter that it will be sealed with: above all sources. */
struct fec_place {
	uint64_t own;
	uint8_t *bytes;
	size_t cap;
};
/* Missing counters that a repair is made over: those of a class, in a bitmap over
 * base..base + span - 1, as it stands in a FEEDBACK. */
struct fec_wanted {
	enum wire_ext_class class;
	uint64_t base;
	unsigned span; /* 1..WIRE_EXT_SPAN_MAX */
	const uint8_t *missing;
};
/* A repair over `window` sources of a class (1..WIRE_EXT_SPAN_MAX; fewer when the span of counters
 * would be too wide), the last ones but `skip`; without `skip` where so many are not known any
 * more. Returns the frame's length; 0 when there is no source to protect, or cap is too small. */
size_t fec_encoder_ahead(struct fec_encoder *e, enum wire_ext_class class, unsigned window,
	unsigned skip, enum wire_ext_repair_why why, const struct fec_place *to);
/* A repair over those of the wanted counters that are sources. With none it still makes a frame
 * that says so, without payload. What has been forgotten is not covered; 0 when all has. Sources
 * that do not fit are left out at one end, at the other when own is odd. */
size_t fec_encoder_answer(
	struct fec_encoder *e, const struct fec_wanted *w, const struct fec_place *to);

#endif
