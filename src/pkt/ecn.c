/* SPDX-License-Identifier: Apache-2.0 */
#include "pkt/ecn.h"

#include "pkt/ip.h"

uint8_t
ecn_encapsulate(uint8_t inner)
{
	return inner & 3;
}

bool
ecn_decapsulate(uint8_t inner, uint8_t outer, uint8_t *out)
{
	/* RFC 6040, figure 4. Rows: inner; columns: outer; both in the order of enum ecn. */
	enum { DROP = 0xff };
	static const uint8_t combined[4][4] = {
		[ECN_NOT_ECT] = {ECN_NOT_ECT, ECN_NOT_ECT, ECN_NOT_ECT, DROP},
		[ECN_ECT1] = {ECN_ECT1, ECN_ECT1, ECN_ECT1, ECN_CE},
		[ECN_ECT0] = {ECN_ECT0, ECN_ECT1, ECN_ECT0, ECN_CE},
		[ECN_CE] = {ECN_CE, ECN_CE, ECN_CE, ECN_CE},
	};
	uint8_t r = combined[inner & 3][outer & 3];
	if (r == DROP) {
		return false;
	}
	*out = r;
	return true;
}

bool
ecn_decapsulate_packet(uint8_t *ip, uint8_t outer)
{
	uint8_t inner = ip_ecn(ip), combined;
	if (!ecn_decapsulate(inner, outer, &combined)) {
		return false;
	}
	if (combined != inner) {
		ip_set_ecn(ip, combined);
	}
	return true;
}
