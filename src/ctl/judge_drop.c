/* SPDX-License-Identifier: Apache-2.0 */
/* Every reason of pkt/drop.h: what it means for people, and what they can do. */
#include "ctl/judge.h"

static const struct judge_drop drops[DROP_COUNT] = {
	[DROP_RX_SHORT] = {"Datagrams too short for WireGuard came to the port",
		"Harmless: something else sends to this port. If it comes from a peer, look for a "
		"device on the way that cuts datagrams.",
		false, NULL},
	[DROP_RX_TYPE] = {"Datagrams that are not WireGuard's came to the port",
		"Harmless when strangers send them. If a peer does, it may be obfuscated "
		"WireGuard, or another protocol that is configured with this port.",
		false, NULL},
	[DROP_RX_TRUNCATED] = {"Datagrams longer than the receive buffer came",
		"The other side uses a larger MTU than a datagram can carry: set MTU there to 1420 "
		"or less.",
		true, NULL},
	[DROP_RX_REBIND] = {"More came than could be taken while the listen port changed",
		"Nothing: it ends by itself.", false, NULL},
	[DROP_RX_INDEX] = {"Data came for sessions that are not known any more",
		"Usual for some seconds after a restart of this side. If it goes on, a peer does "
		"not get our handshakes: run `weft why` for it, here and there.",
		false, NULL},
	[DROP_RX_AUTH] = {"Data came that does not authenticate",
		"Something on the way changes datagrams, or forges them. Look for faulty hardware "
		"or a middlebox that rewrites UDP, and capture on both sides to compare.",
		true, NULL},
	[DROP_RX_REPLAY] = {"Packets came twice, or far too late",
		"Harmless when few: networks repeat packets. When many, look for a loop or for "
		"somebody who replays traffic.",
		false, NULL},
	[DROP_RX_EXPIRED] = {"Packets came for keys past their time",
		"A peer goes on sending with keys older than 3 minutes: it does not get our "
		"handshakes, or it was suspended. Run `weft why` for it.",
		false, NULL},
	[DROP_RX_INNER] = {"Peers sent what is no IP packet",
		"The other side's implementation is at fault, or something there writes raw data "
		"to the tunnel.",
		true, NULL},
	[DROP_RX_ECN] = {"Packets that met congestion and cannot carry the mark were dropped",
		"As RFC 6040 demands. The path marks congestion (CE): enable ECN in the senders, "
		"or turn the marking off at the congested router.",
		true, NULL},
	[DROP_RX_SOURCE] = {"Packets came with a source address that is not the peer's",
		"Add the source to AllowedIPs of the peer that sends it, or stop that peer from "
		"forwarding it.",
		false, "source_refused"},
	[DROP_RX_EXT] = {"Extension frames came that were not agreed on",
		"The two weft versions do not match: update the older one, or set Extensions = off "
		"for the peer.",
		false, NULL},
	[DROP_HS_MAC1] = {"Handshake messages came that are for another public key",
		"Somebody has the wrong public key of this device in his [Peer]: compare it with "
		"`weft show`. From strangers it is harmless.",
		false, "other_key_here"},
	[DROP_HS_MAC2] = {"Handshakes were put off by a cookie, as this device is under load",
		"Nothing if it was short. If it lasts, somebody floods the port: limit it in the "
		"firewall.",
		false, NULL},
	[DROP_HS_RATE] = {"Handshake messages above the limit of their source were refused",
		"Somebody floods the port with handshakes, or many peers share one address: limit "
		"the flood in the firewall.",
		false, NULL},
	[DROP_HS_AUTH] = {"Handshake messages came that do not authenticate",
		"A key does not fit: compare PublicKey and PresharedKey of the peers on both "
		"sides.",
		false, "psk_mismatch"},
	[DROP_HS_PEER] = {"Handshakes came from public keys that are not configured",
		"If it is a peer of yours, add a [Peer] with that key; else it is harmless.", false,
		"unknown_key"},
	[DROP_HS_STALE] = {"Handshakes with an old timestamp were refused",
		"The clock of a peer went backward, or its key is in use at two places.", false,
		"stale_timestamp"},
	[DROP_HS_FLOOD] = {"A peer sent handshakes faster than 50 a second",
		"Its key is in use at two places, or its implementation is at fault.", false, NULL},
	[DROP_HS_INDEX] = {"Handshake answers came that answer nothing of ours",
		"Usual when an answer comes late. If it goes on with a peer whose handshakes fail, "
		"the way there takes longer than 5 s, or somebody forges answers.",
		false, NULL},
	[DROP_TX_QUEUE] = {"Programs sent faster than this machine can encrypt",
		"Nothing for TCP, which slows down by it. Else send slower, or give the device "
		"more processors (Workers in the file).",
		true, NULL},
	[DROP_TX_INNER] = {"Programs sent what is no IP packet into the interface",
		"A program writes raw packets to the interface: find it with tcpdump.", false,
		NULL},
	[DROP_TX_ROUTE] = {"Packets were sent to addresses in nobody's AllowedIPs",
		"Add the address to AllowedIPs of the peer that has it, or take the route to this "
		"interface away.",
		false, "no_peer"},
	[DROP_TX_ENDPOINT] = {"Packets were sent to a peer whose endpoint is not known",
		"Set Endpoint of the peer, or have the peer send first.", false, "no_endpoint"},
	[DROP_TX_STAGED] = {"Too much waited for a handshake, and the oldest went",
		"Nothing if the handshake succeeded since. Else find out why it does not.", false,
		NULL},
	[DROP_TX_NO_SESSION] = {"Packets waited for a handshake that had no answer",
		"Find out why the peer does not answer: `weft why` for it.", false, "no_answer"},
	[DROP_TX_LOOP] = {"The tunnel's own datagrams were routed into the tunnel",
		"Give the endpoint a route outside the tunnel, or set FwMark and Table = auto in "
		"the file.",
		false, "endpoint_loop"},
	[DROP_TX_OFFLOAD] = {"Frames came from the interface that cannot be split",
		"A fault of the kernel's driver: set Offload = off in the file.", true, NULL},
	[DROP_TX_TOO_BIG] = {"Packets longer than a batch were sent",
		"The interface's MTU is larger than a datagram can carry: set MTU = 1420.", true,
		NULL},
	[DROP_LINK_PERM] = {"This machine's firewall refused our datagrams (EPERM)",
		"Allow UDP from our port in the OUTPUT hook: look at `nft list ruleset`.", false,
		"firewall"},
	[DROP_LINK_UNREACH] = {"There was no route for our datagrams",
		"Look at `ip route get` for the endpoint: the network may be down.", false,
		"endpoint_unreachable"},
	[DROP_LINK_REFUSED] = {"The port at the other end is closed",
		"Start WireGuard there, or correct the port of Endpoint.", false, "port_closed"},
	[DROP_LINK_MSGSIZE] = {"Our datagrams were longer than the path takes",
		"Set a smaller MTU in the file.", false, "mtu"},
	[DROP_LINK_NOBUFS] = {"The socket's or the network card's queue was full",
		"This machine sends faster than its network takes. Nothing for TCP; else send "
		"slower.",
		true, NULL},
	[DROP_LINK_FAMILY] = {"There is no socket for the family of an endpoint",
		"IPv6 (or IPv4) is turned off on this machine: turn it on, or use an endpoint of "
		"the other family.",
		false, "send_error"},
	[DROP_LINK_ERROR] = {"Sends failed for another reason",
		"The log of the device may say more.", false, "send_error"},
	[DROP_LINK_RX_OVERFLOW] = {"More came than this machine could decrypt",
		"Look what else uses its processors; give the device more Workers, or have the "
		"peers send slower.",
		true, "receive_overflow"},
	[DROP_PORT_FULL] = {"The interface's queue to the programs here was full",
		"Programs do not read as fast as it comes; or memory ran out. Look at the load of "
		"this machine.",
		true, NULL},
	[DROP_PORT_DOWN] = {"Packets came while the interface was down",
		"Set it up: `ip link set NAME up`.", false, "interface_down"},
	[DROP_PORT_ERROR] = {"The kernel refused packets that came by the tunnel",
		"Look at the kernel's log (dmesg).", true, NULL},
};

const struct judge_drop *
judge_drop_of(enum drop_reason r)
{
	return &drops[r];
}
