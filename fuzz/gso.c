/* SPDX-License-Identifier: Apache-2.0 */
/* virtio_net_hdr (10 bytes), MTU (2), frame. What can be split is split as the naive model does
 * it. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/endian.h"
#include "fuzz.h"
#include "pkt/gso.h"
#include "pkt/ip.h"
#include "wire/vnet.h"

#include "../test/unit/pkt/naive.h"

#define ARENA_BYTES (256u << 10)
#define SEGS_MAX 128

static bool
has_routing_without_partial(const struct frame *f)
{
	/* Without a partial sum the destination behind a routing header counts for the model,
	 * the one in front for gso_split(). No kernel makes such frames. */
	return !f->needs_csum && f->data[0] >> 4 == 6 && f->data[6] != IP_PROTO_TCP &&
	       f->data[6] != IP_PROTO_UDP;
}

/* f was split once, so it can be. With the right partial sum, what comes is known exactly. */
static void
compare(struct frame f, uint16_t mtu, struct gso_arena *a)
{
	uint8_t *super = malloc(f.len), *cut = malloc(ARENA_BYTES);
	weft_assert(super && cut);
	memcpy(super, f.data, f.len);
	f.data = super;
	if (f.needs_csum) {
		naive_make_partial(super, f.len);
	}
	enum drop_reason why;
	a->used = 0;
	a->segs_n = 0;
	weft_assert(gso_split(&f, mtu, a, &why) > 0);
	uint32_t lens[SEGS_MAX];
	size_t n = naive_segment(
		super, f.len, f.gso_size, !f.needs_csum, cut, ARENA_BYTES, lens, SEGS_MAX);
	weft_assert(n == a->segs_n);
	const uint8_t *p = cut;
	for (size_t i = 0; i < n; i++) {
		const uint8_t *got = a->buf + a->segs[i].off + GSO_HEADROOM;
		weft_assert(a->segs[i].len == lens[i] && memcmp(got, p, lens[i]) == 0);
		p += lens[i];
	}
	free(super);
	free(cut);
}

static void
check_layout(const struct gso_arena *a, size_t n, uint16_t mtu)
{
	size_t at = 0;
	weft_assert(n == a->segs_n && n > 0);
	for (size_t i = 0; i < n; i++) {
		const struct gso_seg *s = &a->segs[i];
		weft_assert(s->off == at && s->padded_len >= s->len);
		weft_assert(s->padded_len == s->len || s->padded_len <= mtu);
		struct ip_view v;
		weft_assert(ip_parse(a->buf + at + GSO_HEADROOM, s->padded_len, &v) == WEFT_OK);
		weft_assert(v.len == s->len);
		at += GSO_HEADROOM + s->padded_len + GSO_TAILROOM;
	}
	weft_assert(at == a->used && at <= a->cap);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < VNET_HDR_LEN + 2) {
		return 0;
	}
	uint16_t mtu = load_be16(data + VNET_HDR_LEN);
	/* Only read: the cast does not lead to a write. */
	struct frame f = {.data = (uint8_t *)data + VNET_HDR_LEN + 2,
		.len = (uint32_t)(size - VNET_HDR_LEN - 2)};
	if (vnet_decode(data, &f)) {
		return 0;
	}
	struct gso_seg segs[SEGS_MAX];
	struct gso_arena a = {
		.buf = malloc(ARENA_BYTES), .cap = ARENA_BYTES, .segs = segs, .segs_cap = SEGS_MAX};
	weft_assert(a.buf);
	enum drop_reason why = DROP_COUNT;
	size_t n = gso_split(&f, mtu, &a, &why);
	if (n == 0) {
		weft_assert(
			why == DROP_TX_INNER || why == DROP_TX_OFFLOAD || why == DROP_TX_TOO_BIG);
		weft_assert(a.used == 0 && a.segs_n == 0);
	} else {
		check_layout(&a, n, mtu);
		if (f.gso != FRAME_GSO_NONE && !has_routing_without_partial(&f)) {
			compare(f, mtu, &a);
		}
	}
	free(a.buf);
	return 0;
}
