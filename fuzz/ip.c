/* SPDX-License-Identifier: Apache-2.0 */
/* First byte: the outer ECN field. The rest: a padded packet. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "fuzz.h"
#include "pkt/ecn.h"
#include "pkt/ip.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1) {
		return 0;
	}
	size_t n = size - 1;
	uint8_t *ip = malloc(n ? n : 1);
	weft_assert(ip);
	memcpy(ip, data + 1, n);
	struct ip_view v;
	uint32_t exact;
	enum weft_err err = ip_parse(ip, n, &v);
	weft_assert(ip_exact_len(ip, n, &exact) == err);
	if (!err) {
		weft_assert(exact == v.len && v.len <= n && v.l4_off <= v.len);
		uint32_t header_len = v.version == 4 ? IP4_HEADER_LEN : IP6_HEADER_LEN;
		weft_assert(v.l4_off >= header_len);
		weft_assert((size_t)(v.dst - ip) + (v.version == 4 ? 4 : 16) == header_len);
		uint8_t inner = ip_ecn(ip), want = inner;
		bool is_kept = ecn_decapsulate(inner, data[0] & 3, &want);
		weft_assert(ecn_decapsulate_packet(ip, data[0] & 3) == is_kept);
		weft_assert(ip_ecn(ip) == want);
		struct ip_view again;
		weft_assert(ip_parse(ip, n, &again) == WEFT_OK && again.l4_off == v.l4_off);
	}
	free(ip);
	return 0;
}
