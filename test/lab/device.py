# SPDX-License-Identifier: Apache-2.0
"""Two ends of a tunnel, each of either implementation.

Inner addresses: 10.99.0.1 and fd99::1 on A, 10.99.0.2 and fd99::2 on B."""
from __future__ import annotations

from dataclasses import dataclass, field

from .ns import Namespace
from .weft import Node
from .wg import Conf, GoDevice, Keys, PeerConf, keys

PORT = 51820
WEFT, GO = "weft", "go"
DEVICE = "wg0"
A4, B4, A6, B6 = "10.99.0.1", "10.99.0.2", "fd99::1", "fd99::2"


@dataclass
class Ends:
    """Keys and configurations of A and B, and the devices once they are up."""

    a_keys: Keys
    b_keys: Keys
    a_conf: Conf
    b_conf: Conf
    a: Node | GoDevice | None = None
    b: Node | GoDevice | None = None
    options: list[str] = field(default_factory=list)  # for `weft up`

    def up(self, a_ns: Namespace, a_kind: str, b_ns: Namespace, b_kind: str) -> Ends:
        self.up_b(b_ns, b_kind)
        self.a = make(a_kind, a_ns, self.a_conf, self.options)
        return self

    def up_b(self, ns: Namespace, kind: str) -> None:
        self.b = make(kind, ns, self.b_conf, self.options)

    def a_sees(self):
        """A's view of B."""
        return self.a.dump().peers[self.b_keys.public]

    def b_sees(self):
        """B's view of A."""
        return self.b.dump().peers[self.a_keys.public]


def make(kind: str, ns: Namespace, conf: Conf, options: list[str] | None = None, name: str = DEVICE) -> Node | GoDevice:
    return Node(ns, name, conf, options) if kind == WEFT else GoDevice(ns, name, conf)


def ends(a_endpoint: str = "", b_endpoint: str = "", psk: str = "") -> Ends:
    """Configurations that name each other. a_endpoint: where B finds A; empty: B waits to be called. Likewise b_endpoint."""
    ka, kb = keys(), keys()
    a = Conf(ka.private, [PeerConf(kb.public, [B4 + "/32", B6 + "/128"], at(b_endpoint), psk)], PORT, [A4 + "/24", A6 + "/64"])
    b = Conf(kb.private, [PeerConf(ka.public, [A4 + "/32", A6 + "/128"], at(a_endpoint), psk)], PORT, [B4 + "/24", B6 + "/64"])
    return Ends(ka, kb, a, b)


def at(address: str, port: int = PORT) -> str:
    """address:port as configuration files write it."""
    return "" if not address else f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
