# SPDX-License-Identifier: Apache-2.0
"""WireGuard messages on a wire, as tcpdump would show them: lengths, headers, ECN; nothing of what is inside the seal."""
from __future__ import annotations

import contextlib
import ipaddress
import socket
from dataclasses import dataclass

from .ns import Namespace
from .offload import segmentation_off
from .packet import ETH_P_ALL, PACKET_OUTGOING, UDP

SO_RCVBUFFORCE = 33
DATA = 4
HEADER, OVERHEAD = 16, 32  # of a data message: before the seal; in all
FRAGMENT = 44  # next header of IPv6


@dataclass(frozen=True)
class Message:
    """One UDP datagram."""

    is_out: bool  # leaves the namespace
    src: str
    dst: str
    ecn: int
    sport: int
    dport: int
    data: bytes

    @property
    def is_data(self) -> bool:
        return len(self.data) >= OVERHEAD and self.data[0] == DATA

    @property
    def cipher(self) -> int:
        """Second byte of a data message: 0 ChaCha20-Poly1305, 1 AES-256-GCM."""
        return self.data[1]

    @property
    def inner_len(self) -> int:
        """Bytes inside the seal."""
        return len(self.data) - OVERHEAD

    @property
    def counter(self) -> int:
        return int.from_bytes(self.data[8:16], "little")


class Capture:
    """All UDP datagrams that pass an Ethernet device from now on. Super-frames are switched off there, so that what leaves is
    one packet a datagram; for what arrives, they must be off at the wire's other end too."""

    def __init__(self, ns: Namespace, device: str = "eth0"):
        segmentation_off(ns, device)
        self.fragments = 0  # IP packets that were pieces of one
        with ns.entered():
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self._socket.bind((device, ETH_P_ALL))
        self._socket.setblocking(False)

    def take(self) -> list[Message]:
        """Those since the last call, in order."""
        found: list[Message] = []
        with contextlib.suppress(BlockingIOError):
            while True:
                packet, address = self._socket.recvfrom(1 << 16)
                found += self._parse(packet, address[2] == PACKET_OUTGOING)
        return found

    def close(self) -> None:
        self._socket.close()

    def _parse(self, p: bytes, is_out: bool) -> list[Message]:
        if p[0] >> 4 == 4:
            end, l4, proto, ecn, src, dst = int.from_bytes(p[2:4], "big"), (p[0] & 15) * 4, p[9], p[1] & 3, p[12:16], p[16:20]
            is_fragment = int.from_bytes(p[6:8], "big") & 0x3FFF != 0
        elif p[0] >> 4 == 6:
            end, l4, proto, ecn, src, dst = 40 + int.from_bytes(p[4:6], "big"), 40, p[6], p[1] >> 4 & 3, p[8:24], p[24:40]
            is_fragment = proto == FRAGMENT
        else:
            return []
        self.fragments += is_fragment
        if is_fragment or proto != UDP:
            return []
        text = lambda a: str(ipaddress.ip_address(a))
        port = lambda at: int.from_bytes(p[at:at + 2], "big")
        return [Message(is_out, text(src), text(dst), ecn, port(l4), port(l4 + 2), p[l4 + 8:end])]


def data(messages: list[Message], is_out: bool | None = None, but: tuple[int, ...] = ()) -> list[Message]:
    """Data messages of one direction, or of both; but: not those with so many bytes inside the seal."""
    return [m for m in messages if m.is_data and is_out in (None, m.is_out) and m.inner_len not in but]
