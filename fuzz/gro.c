/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a length (2 bytes), a mode (1) and a packet. Mode bit 0: the packet is the last one
 * again with its sequence or id moved on, then changed by the record's bytes as (offset, xor)
 * pairs; the fuzzer finds runs much sooner that way. Mode bit 1: its checksums are made right.
 * Joined and cut again by the naive model, each flow must be what it was. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "fuzz.h"
#include "pkt/gro.h"
#include "pkt/ip.h"

#include "../test/unit/pkt/batch.h"

#define REPEAT 1u
#define FIX 2u
#define PACKETS_MAX 24
#define BATCH_BYTES (128u << 10)

static bool
has_known_l4(const uint8_t *p, uint32_t len, uint32_t *l4, uint8_t *proto)
{
	struct ip_view v;
	if (ip_parse(p, len, &v) || v.len != len || v.is_fragment || !v.has_l4 || v.has_ah) {
		return false;
	}
	*l4 = naive_l4(p, len, proto);
	return *l4 != 0;
}

/* Gives the packet the place behind the last one, if it has a sequence. */
static void
move_on(uint8_t *p, uint32_t len)
{
	uint32_t l4;
	uint8_t proto;
	if (!has_known_l4(p, len, &l4, &proto)) {
		return;
	}
	if (p[0] >> 4 == 4) {
		store_be16(p + 4, (uint16_t)(load_be16(p + 4) + 1));
	}
	uint32_t header = (p[l4 + 12] >> 4) * 4u;
	if (proto == 6 && l4 + header <= len) {
		store_be32(p + l4 + 4, load_be32(p + l4 + 4) + len - l4 - header);
	}
}

static void
fix(uint8_t *p, uint32_t len)
{
	uint32_t l4;
	uint8_t proto;
	if (has_known_l4(p, len, &l4, &proto)) {
		naive_complete(p, len, false);
	}
}

static void
add_record(struct batch *b, struct reader *r)
{
	uint16_t len = reader_be16(r);
	uint8_t mode = reader_u8(r);
	const uint8_t *bytes = reader_take(r, len < reader_left(r) ? len : reader_left(r));
	if (r->failed || !bytes) {
		return;
	}
	len = (uint16_t)(r->p - bytes);
	const struct gro_pkt *last = (mode & REPEAT) && b->n > 0 ? &b->pkts[b->n - 1] : NULL;
	if (!batch_has_room(b, last ? last->len : len)) {
		return;
	}
	uint8_t *p = batch_next(b);
	if (last) {
		memcpy(p, last->data, last->len);
		move_on(p, last->len);
		for (size_t i = 0; i + 1 < len && last->len > 0; i += 2) {
			p[bytes[i] % last->len] ^= bytes[i + 1];
		}
		len = (uint16_t)last->len;
	} else {
		memcpy(p, bytes, len);
	}
	if (mode & FIX) {
		fix(p, len);
	}
	batch_add(b, len);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct batch *b = malloc(sizeof(*b));
	weft_assert(b);
	batch_init(b, BATCH_BYTES);
	struct reader r;
	reader_init(&r, data, size);
	while (!r.failed && reader_left(&r) > 0 && b->n < PACKETS_MAX) {
		add_record(b, &r);
	}
	static const struct gro_caps all = {true, true, true, true};
	batch_join(b, &all);
	const char *wrong = batch_check(b);
	if (wrong) {
		fprintf(stderr, "%s\n", wrong);
	}
	weft_assert(!wrong);
	batch_fini(b);
	free(b);
	return 0;
}
