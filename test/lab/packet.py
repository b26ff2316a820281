# SPDX-License-Identifier: Apache-2.0
"""Packets made by hand, put into an interface and caught at another.

Checksums follow RFC 1071; the virtio_net_hdr is the kernel's (linux/virtio_net.h), little endian."""
from __future__ import annotations

import ipaddress
import socket
import struct
import time
from dataclasses import dataclass, replace

from .ns import Namespace

ETH_P_ALL, ETH_P_IP, ETH_P_IPV6 = 3, 0x0800, 0x86DD
SOL_PACKET, PACKET_VNET_HDR = 263, 15
PACKET_OUTGOING = 4
TCP, UDP = 6, 17
FIN, SYN, RST, PSH, ACK, URG, ECE, CWR = (1 << i for i in range(8))
GSO_TCP4, GSO_TCP6, GSO_UDP, GSO_ECN = 1, 4, 5, 0x80
NEEDS_CSUM = 1


def ones(data: bytes, start: int = 0) -> int:
    """Ones' complement sum, folded, not inverted."""
    if len(data) % 2:
        data += b"\0"
    total = start + sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@dataclass(frozen=True)
class Ip:
    """An IP header to be."""

    src: str
    dst: str
    ttl: int = 64
    tos: int = 0  # DSCP and ECN
    id: int = 1
    has_df: bool = True
    fragment: int = 0  # flags and offset besides DF, IPv4
    flow: int = 0  # IPv6 flow label
    options: bytes = b""  # IPv4 options, or an IPv6 extension header that names the protocol itself
    extension: int = 0  # protocol number of the IPv6 extension header

    @property
    def is_v6(self) -> bool:
        return ":" in self.src

    def pseudo(self, protocol: int, length: int) -> int:
        """Sum over the pseudo header."""
        return ones(ipaddress.ip_address(self.src).packed + ipaddress.ip_address(self.dst).packed, protocol + length)

    def header(self, protocol: int, length: int) -> bytes:
        """For length bytes behind it."""
        src, dst = ipaddress.ip_address(self.src).packed, ipaddress.ip_address(self.dst).packed
        if self.is_v6:
            word = 6 << 28 | self.tos << 20 | self.flow
            return struct.pack("!IHBB", word, length + len(self.options), self.extension if self.options else protocol, self.ttl) + src + dst + self.options
        size = 20 + len(self.options)
        head = struct.pack("!BBHHHBBH", 4 << 4 | size // 4, self.tos, size + length, self.id, self.has_df << 14 | self.fragment, self.ttl, protocol, 0) + src + dst
        head += self.options
        check = 0xFFFF - ones(head)
        return head[:10] + struct.pack("!H", check) + head[12:]


def tcp(ip: Ip, sport: int, dport: int, seq: int, payload: bytes, flags: int = ACK, ack: int = 1, window: int = 500, options: bytes = b"",
        urgent: int = 0, bad: bool = False, partial: bool = False) -> bytes:
    """A TCP segment. bad: its checksum is wrong; partial: it holds the pseudo header's sum, as NEEDS_CSUM wants."""
    head = struct.pack("!HHIIBBHHH", sport, dport, seq & 0xFFFFFFFF, ack, (20 + len(options)) // 4 << 4, flags & 0xFF, window, 0, urgent) + options
    length = len(head) + len(payload)
    check = ip.pseudo(TCP, length) if partial else 0xFFFF - ones(head + payload, ip.pseudo(TCP, length))
    if bad:
        check ^= 0x5555
    return ip.header(TCP, length) + head[:16] + struct.pack("!H", check) + head[18:] + payload


def udp(ip: Ip, sport: int, dport: int, payload: bytes, zero: bool = False, bad: bool = False, partial: bool = False) -> bytes:
    """A UDP datagram. zero: without checksum."""
    length = 8 + len(payload)
    head = struct.pack("!HHHH", sport, dport, length, 0)
    check = ip.pseudo(UDP, length) if partial else 0xFFFF - ones(head + payload, ip.pseudo(UDP, length)) or 0xFFFF
    if bad:
        check ^= 0x5555
    return ip.header(UDP, length) + head[:6] + struct.pack("!H", 0 if zero else check) + payload


def super_tcp(ip: Ip, size: int, **fields) -> bytes:
    """A TCP super-frame with its virtio_net_hdr: segments of size bytes."""
    packet = tcp(ip, partial=True, **fields)
    start = len(packet) - len(fields["payload"]) - 20 - len(fields.get("options", b""))
    kind = (GSO_TCP6 if ip.is_v6 else GSO_TCP4) | (GSO_ECN if fields.get("flags", 0) & CWR else 0)
    return struct.pack("<BBHHHH", NEEDS_CSUM, kind, len(packet) - len(fields["payload"]), size, start, 16) + packet


def super_udp(ip: Ip, size: int, **fields) -> bytes:
    """A UDP super-frame with its virtio_net_hdr: datagrams of size bytes."""
    packet = udp(ip, partial=True, **fields)
    start = len(packet) - len(fields["payload"]) - 8
    return struct.pack("<BBHHHH", NEEDS_CSUM, GSO_UDP, start + 8, size, start, 6) + packet


def plain(packet: bytes) -> bytes:
    """A packet with the header that asks for nothing."""
    return bytes(10) + packet


class Injector:
    """Puts packets into an interface without link header, as if the kernel had routed them there."""

    def __init__(self, ns: Namespace, device: str):
        self._device = device
        # Only sockets for whole frames take the header; on an interface without link header a frame is a packet.
        with ns.entered():
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self._socket.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
            self._socket.bind((device, 0))

    def send(self, frame: bytes) -> None:
        """frame begins with a virtio_net_hdr."""
        self._socket.sendto(frame, (self._device, ETH_P_IPV6 if frame[10] >> 4 == 6 else ETH_P_IP))

    def close(self) -> None:
        self._socket.close()


class Sniffer:
    """Catches the IP packets that arrive at an interface."""

    def __init__(self, ns: Namespace, device: str):
        with ns.entered():
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
            self._socket.bind((device, ETH_P_ALL))

    def take(self, count: int, match, timeout: float = 5.0) -> list[bytes]:
        """Waits for count packets that match; fewer when time runs out."""
        got: list[bytes] = []
        deadline = time.monotonic() + timeout
        while len(got) < count and (left := deadline - time.monotonic()) > 0:
            self._socket.settimeout(left)
            try:
                data, address = self._socket.recvfrom(1 << 17)
            except TimeoutError:
                break
            if address[2] != PACKET_OUTGOING and match(data):
                got.append(data)
        return got

    def close(self) -> None:
        self._socket.close()


def destination(packet: bytes) -> str:
    """Destination address; empty for what is neither IPv4 nor IPv6."""
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= 20:
        return str(ipaddress.ip_address(packet[16:20]))
    if version == 6 and len(packet) >= 40:
        return str(ipaddress.ip_address(packet[24:40]))
    return ""


def with_id(ip: Ip, n: int) -> Ip:
    return replace(ip, id=n & 0xFFFF)
