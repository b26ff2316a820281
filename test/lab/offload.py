# SPDX-License-Identifier: Apache-2.0
"""Segmentation offloads of an interface, by the ethtool ioctl, so that the ethtool program is not needed."""
from __future__ import annotations

import array
import fcntl
import socket
import struct
from typing import Callable

from .ns import Namespace

SIOCETHTOOL = 0x8946
GSTRINGS, GSSET_INFO, GFEATURES, SFEATURES = 0x1B, 0x37, 0x3A, 0x3B
SS_FEATURES = 4


def _call(s: socket.socket, device: str, request: bytes, room: int = 0) -> bytes:
    buffer = array.array("B", request + bytes(room))
    fcntl.ioctl(s, SIOCETHTOOL, struct.pack("16sP16x", device.encode(), buffer.buffer_info()[0]))
    return buffer.tobytes()


def _names(s: socket.socket, device: str) -> list[str]:
    info = _call(s, device, struct.pack("IIQI", GSSET_INFO, 0, 1 << SS_FEATURES, 0))
    count = struct.unpack_from("I", info, 16)[0]
    strings = _call(s, device, struct.pack("III", GSTRINGS, SS_FEATURES, count), count * 32)
    return [strings[12 + i * 32:44 + i * 32].partition(b"\0")[0].decode() for i in range(count)]


def is_segmentation(feature: str) -> bool:
    return feature.startswith("tx-") and (feature.endswith("-segmentation") or feature == "tx-gso-list")


def active(ns: Namespace, device: str) -> set[str]:
    """Names of the features that are on."""
    with ns.tcp_socket() as s:
        names = _names(s, device)
        blocks = (len(names) + 31) // 32
        answer = _call(s, device, struct.pack("II", GFEATURES, blocks), blocks * 16)
    on = set()
    for i, name in enumerate(names):
        word = struct.unpack_from("I", answer, 8 + (i // 32) * 16 + 8)[0]
        if name and word >> (i % 32) & 1:
            on.add(name)
    return on


def features_off(ns: Namespace, device: str, is_meant: Callable[[str], bool]) -> None:
    """Turns features off by name; the kernel keeps what it cannot turn off."""
    with ns.tcp_socket() as s:
        names = _names(s, device)
        words = [0] * ((len(names) + 31) // 32)
        for i, name in enumerate(names):
            if is_meant(name):
                words[i // 32] |= 1 << (i % 32)
        _call(s, device, struct.pack("II", SFEATURES, len(words)) + b"".join(struct.pack("II", w, 0) for w in words))


def segmentation_off(ns: Namespace, device: str) -> None:
    """Every datagram and segment becomes its own packet on this interface (`ethtool -K DEV tso off gso off ...`)."""
    features_off(ns, device, is_segmentation)
    left = active(ns, device) & {"tx-tcp-segmentation", "tx-generic-segmentation", "tx-udp-segmentation"}
    if left:
        raise RuntimeError(f"{ns.name} {device}: segmentation stays on: {sorted(left)}")


def checksums_off(ns: Namespace, device: str) -> None:
    """Packets leave this interface with finished checksums, so that a sniffer behind it sees them."""
    features_off(ns, device, lambda f: f.startswith("tx-checksum"))
