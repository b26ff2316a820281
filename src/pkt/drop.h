/* SPDX-License-Identifier: Apache-2.0 */
/* Why a packet went no further: the one table behind counters, status and manual.
 *
 * X(name, text): DROP_<name> is the index, "<name>" in lower case the key in JSON. */
#ifndef WEFT_PKT_DROP_H
#define WEFT_PKT_DROP_H

#include <stdint.h>

#define DROP_TABLE(X)                                                                              \
	X(RX_SHORT, "datagram shorter than its message type, or empty")                            \
	X(RX_TYPE, "datagram with an unknown type, reserved bits, or longer than its type")        \
	X(RX_TRUNCATED, "datagram longer than the receive buffer")                                 \
	X(RX_REBIND, "more came than could be taken while the listen port changed")                \
	X(RX_INDEX, "no session has the receiver index")                                           \
	X(RX_AUTH, "authentication tag is wrong")                                                  \
	X(RX_REPLAY, "counter seen before, older than the window, or past REJECT_AFTER_MESSAGES")  \
	X(RX_EXPIRED, "session is past REJECT_AFTER_TIME")                                         \
	X(RX_INNER, "inner packet is malformed")                                                   \
	X(RX_ECN, "outer packet marked CE around an inner one that is not ECN-capable (RFC 6040)") \
	X(RX_SOURCE, "inner source address is not in the peer's AllowedIPs")                       \
	X(RX_EXT, "extension frame that is malformed, unknown or not agreed on; or no IP at all")  \
	X(HS_MAC1, "handshake message with a wrong mac1")                                          \
	X(HS_MAC2, "handshake message without a valid cookie while under load")                    \
	X(HS_RATE, "handshake messages above the limit of their source")                           \
	X(HS_AUTH, "handshake message that does not authenticate")                                 \
	X(HS_PEER, "handshake message from a public key that is not configured")                   \
	X(HS_STALE, "initiation with a timestamp not newer than the last one")                     \
	X(HS_FLOOD, "initiation too soon after the last one of the same peer")                     \
	X(HS_INDEX, "handshake response or cookie reply that answers nothing of ours")             \
	X(TX_QUEUE, "queue of the interface full before it was read: sent faster than encrypted")  \
	X(TX_INNER, "outgoing packet is malformed")                                                \
	X(TX_ROUTE, "destination is in no peer's AllowedIPs")                                      \
	X(TX_ENDPOINT, "peer has no known endpoint")                                               \
	X(TX_STAGED, "too much waits for a handshake; the oldest goes")                            \
	X(TX_NO_SESSION, "handshake was given up; what waited for it is dropped")                  \
	X(TX_LOOP, "outer packet of our own arrived at our own interface")                         \
	X(TX_OFFLOAD, "super-frame with an offload header that cannot be split")                   \
	X(TX_TOO_BIG, "packet longer than the batch buffer")                                       \
	X(LINK_PERM, "send refused: EPERM (local firewall)")                                       \
	X(LINK_UNREACH, "send failed: no route, or unreachable")                                   \
	X(LINK_REFUSED, "send failed: an earlier datagram met a closed port")                      \
	X(LINK_MSGSIZE, "send failed: longer than the path MTU")                                   \
	X(LINK_NOBUFS, "send failed: socket or device queue full")                                 \
	X(LINK_FAMILY, "no socket for the endpoint's address family")                              \
	X(LINK_ERROR, "send failed for another reason")                                            \
	X(LINK_RX_OVERFLOW, "kernel dropped at the full receive socket (SO_RXQ_OVFL)")             \
	X(PORT_FULL, "interface queue full, or buffer memory exhausted")                           \
	X(PORT_DOWN, "interface is down")                                                          \
	X(PORT_ERROR, "interface write failed")

enum drop_reason {
#define X(name, text) DROP_##name,
	DROP_TABLE(X)
#undef X
		DROP_COUNT
};

/* Counters of one owner. */
struct drop_counts {
	uint64_t n[DROP_COUNT];
};

/* "rx_short": the key in JSON and metrics. Static storage; "unknown" out of range. */
const char *drop_name(enum drop_reason r);
/* The sentence of the table. */
const char *drop_text(enum drop_reason r);

#endif
