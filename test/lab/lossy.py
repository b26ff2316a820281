# SPDX-License-Identifier: Apache-2.0
"""Two weft nodes whose wire is emulated, and changes while their tunnel stays up.

    A 10.0.1.1 eth0 --- toa [E: weft emulate] tob --- eth0 10.0.1.2 B"""
from __future__ import annotations

import re

from .device import B4, WEFT, Ends, ends
from .emulator import Emulator
from .ns import Lab, Namespace
from .offload import segmentation_off
from .topo import Fault, Pair, wait_ping
from .weft import Node, peer, wait_agreed

DELAY = ("--delay", "5ms")


class LossyTunnel:
    """Up and agreed after start(), A having called, on a path that loses nothing; path() makes it another."""

    def __init__(self, lab: Lab, *, extra: list[str] | None = None, mtu: int = 0, wire_mtu: int = 1500, over_ipv6: bool = False,
                 options: list[str] | None = None):
        self.pair, self.e = quiet_wire(lab, wire_mtu)
        self.a, self.b = self.pair.a, self.pair.b
        at = (self.pair.a6, self.pair.b6) if over_ipv6 else (self.pair.a4, self.pair.b4)
        self.ends: Ends = ends(*at)
        for conf in (self.ends.a_conf, self.ends.b_conf):
            conf.mtu, conf.extra = mtu, list(extra or [])
        self.ends.options = options or []
        self.emulator: Emulator | None = None

    def start(self, *settings: str) -> LossyTunnel:
        """settings: of the path; 5 ms each way without."""
        self.path(*(settings or DELAY))
        self.ends.up(self.a, WEFT, self.b, WEFT)
        wait_ping(self.a, B4)
        wait_agreed(*self.nodes)
        return self

    def path(self, *settings: str) -> dict | None:
        """From now on the wire is such. The counters of the one before."""
        before = self.emulator.stop(may_lose=True) if self.emulator else None
        self.emulator = Emulator(self.e, *settings, "toa", "tob")
        return before

    def arrivals(self) -> Fault:
        """Counts datagrams of A that reach B and hold an ECN-capable packet: weft's own frames are not, so these are
        the packets of a flow that was sent with ECT(0), and nothing else."""
        segmentation_off(self.e, "tob")
        return Fault(self.b, "arrivals", "meta l4proto udp udp dport 51820 ip ecn ect0", "accept", "input")

    @property
    def nodes(self) -> tuple[Node, Node]:
        return self.ends.a, self.ends.b

    def fec(self, node: Node | None = None) -> dict:
        """What a node says of loss recovery; A, unless another is named."""
        return peer(node or self.ends.a)["fec"]


def quiet_wire(lab: Lab, mtu: int) -> tuple[Pair, Namespace]:
    """A and B with both families on one Ethernet on which nobody speaks unasked, and E, where the emulator is to run."""
    a, e, b = lab.namespace("a"), lab.namespace("e"), lab.namespace("b")
    e.sysctl(net__ipv6__conf__default__disable_ipv6=1)
    for ns in (a, b):
        ns.sysctl(net__ipv6__conf__default__addr_gen_mode=1, net__ipv6__conf__default__router_solicitations=0)
    pair = Pair(a, b)
    lab.veth(a, "eth0", [pair.a4 + "/24", pair.a6 + "/64"], e, "toa", [], mtu)
    lab.veth(b, "eth0", [pair.b4 + "/24", pair.b6 + "/64"], e, "tob", [], mtu)
    for ns, other, addresses in ((a, b, (pair.b4, pair.b6)), (b, a, (pair.a4, pair.a6))):
        mac = re.search(r"link/ether (\S+)", other.ip("link show eth0"))[1]
        for address in addresses:
            ns.ip(f"neigh replace {address} lladdr {mac} dev eth0 nud permanent")
    return pair, e
