/* SPDX-License-Identifier: Apache-2.0 */
/* Packets for the tests of loss recovery: valid IP, contents from a seed and a number, so that any
 * of them can be made again and compared. */
#ifndef WEFT_TEST_FEC_PACKETS_H
#define WEFT_TEST_FEC_PACKETS_H

#include <stddef.h>
#include <stdint.h>

enum packet_kind {
	PACKET_UDP,
	PACKET_TCP_DATA,
	PACKET_TCP_ACK,
	PACKET_TCP_SYN,
	PACKET_TCP_FIN,
	PACKET_TCP_FRAGMENT,
};

#define PACKET_LEN_MAX 1500
/* Shortest of any kind: TCP with data in IPv6. */
#define PACKET_LEN_MIN 61

/* Writes packet `number` of that kind; ACK, SYN and FIN have no payload, whatever len says. IPv6
 * when is_v6. Returns its length. */
size_t packet_make(
	uint8_t *out, uint64_t seed, uint64_t number, enum packet_kind kind, int is_v6, size_t len);

#endif
