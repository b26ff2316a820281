/* SPDX-License-Identifier: Apache-2.0 */
/* 10 bytes of header, the rest the frame. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "fuzz.h"
#include "pkt/frame.h"
#include "pkt/gro.h"
#include "wire/vnet.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < VNET_HDR_LEN) {
		return 0;
	}
	/* The frame is only read: the cast does not lead to a write. */
	struct frame f = {
		.data = (uint8_t *)data + VNET_HDR_LEN, .len = (uint32_t)(size - VNET_HDR_LEN)};
	if (vnet_decode(data, &f)) {
		return 0;
	}
	weft_assert(f.gso == FRAME_GSO_NONE || f.gso_size > 0);
	weft_assert(!f.needs_csum || f.csum_start + f.csum_offset + 2u <= f.len);
	/* What decode kept, encode writes and decode reads again. */
	struct gro_frame g = {.gso = f.gso,
		.gso_size = f.gso_size,
		.hdr_len = f.hdr_len,
		.needs_csum = f.needs_csum,
		.csum_start = f.csum_start,
		.csum_offset = f.csum_offset,
		.len = f.len};
	uint8_t hdr[VNET_HDR_LEN];
	vnet_encode(&g, hdr);
	struct frame again = {.data = f.data, .len = f.len};
	weft_assert(vnet_decode(hdr, &again) == WEFT_OK);
	weft_assert(again.gso == f.gso && again.gso_size == f.gso_size);
	weft_assert(again.needs_csum == f.needs_csum && again.csum_start == f.csum_start);
	return 0;
}
