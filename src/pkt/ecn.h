/* SPDX-License-Identifier: Apache-2.0 */
/* Explicit congestion notification through a tunnel: RFC 6040, normal mode. */
#ifndef WEFT_PKT_ECN_H
#define WEFT_PKT_ECN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/* The two bits as they lie in the header. */
enum ecn {
	ECN_NOT_ECT = 0,
	ECN_ECT1 = 1,
	ECN_ECT0 = 2,
	ECN_CE = 3,
};

/* The outer field on entry: the inner one (figure 3). */
uint8_t ecn_encapsulate(uint8_t inner);

/* The field to forward on exit (figure 4). false: drop the packet, as DROP_RX_ECN; the outer
 * says that there was congestion, to an inner packet whose sender would never hear of it. */
WEFT_MUST_CHECK bool ecn_decapsulate(uint8_t inner, uint8_t outer, uint8_t *out);

/* The same to a whole packet that ip_parse() or ip_exact_len() accepted, in place. */
WEFT_MUST_CHECK bool ecn_decapsulate_packet(uint8_t *ip, uint8_t outer);

#endif
