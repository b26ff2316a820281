# SPDX-License-Identifier: Apache-2.0
"""`weft emulate` between two namespaces, and its counters.

    A 10.0.1.1 eth0 --- toa [E: weft emulate] tob --- eth0 10.0.1.2 B"""
from __future__ import annotations

import json
import re

from .ns import Lab, Namespace, Process
from .topo import Pair
from .wait import wait_for
from .weft import binary


class Emulator:
    """A running emulator; stop() gives its counters."""

    def __init__(self, ns: Namespace, *argv: str):
        self.json = ns.lab.dir / f"{ns.name}-{len(argv)}-{id(self)}.json"
        self.process: Process = ns.spawn(binary(), "emulate", "--json", str(self.json), *argv)
        wait_for(lambda: "seed" in self.process.output or not self.process.is_running, 5, "the emulator's first line", 0.002)
        assert self.process.is_running, self.process.output

    def stop(self, may_lose: bool = False) -> dict:
        """Its JSON. Every packet must be accounted for, and none lost but by a setting unless may_lose is set."""
        assert self.process.stop() == 0, self.process.output
        return self.counters(may_lose)

    def counters(self, may_lose: bool = False) -> dict:
        found = json.loads(self.json.read_text())
        for way in ("ab", "ba"):
            assert_balance(found[way])
            assert may_lose or unasked(found[way]) == 0, found[way]
        return found


def unasked(n: dict) -> int:
    """Packets of one direction that no setting lost: the machine was too slow, or could not carry them."""
    return n["kernel_dropped"] + n["refused"] + n["send_failed"]


def assert_balance(n: dict) -> None:
    """Nothing is lost unseen."""
    assert n["in_packets"] + n["duplicated"] == (n["out_packets"] + n["lost"] + n["queue_dropped"] + n["mtu_dropped"] + n["pending"]), n


def wire(lab: Lab) -> tuple[Pair, Namespace]:
    """A and B on one Ethernet on which nobody speaks unasked: no IPv6, no ARP. Also E, where the emulator is to run on toa and tob."""
    a, e, b = lab.namespace("a"), lab.namespace("e"), lab.namespace("b")
    for ns in (a, e, b):
        ns.sysctl(net__ipv6__conf__default__disable_ipv6=1)
    pair = Pair(a, b)
    lab.veth(a, "eth0", [pair.a4 + "/24"], e, "toa", [])
    lab.veth(b, "eth0", [pair.b4 + "/24"], e, "tob", [])
    for ns, other, address in ((a, b, pair.b4), (b, a, pair.a4)):
        mac = re.search(r"link/ether (\S+)", other.ip("link show eth0"))[1]
        ns.ip(f"neigh replace {address} lladdr {mac} dev eth0 nud permanent")
    return pair, e
