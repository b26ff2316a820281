# SPDX-License-Identifier: Apache-2.0
"""The two topologies that tests and benches use, and the faults that a router can have.

    pair:    A 10.0.1.1 ------------------------- 10.0.1.2 B

    routed:  A 10.0.1.2 --- 10.0.1.1 R 10.0.2.1 --- 10.0.2.2 B

IPv6 runs beside it: fd00:0:0:1::/64 and fd00:0:0:2::/64 with the same last numbers."""
from __future__ import annotations

import json
import re
from dataclasses import dataclass

from .ns import Lab, Namespace
from .wait import wait_for


@dataclass
class Pair:
    """Two namespaces on one wire; the device is eth0 on both sides."""

    a: Namespace
    b: Namespace
    a4: str = "10.0.1.1"
    b4: str = "10.0.1.2"
    a6: str = "fd00:0:0:1::1"
    b6: str = "fd00:0:0:1::2"


@dataclass
class Routed:
    """Two namespaces with a router between. A and B call their device eth0; R has toa and tob."""

    a: Namespace
    r: Namespace
    b: Namespace
    a4: str = "10.0.1.2"
    b4: str = "10.0.2.2"
    ra4: str = "10.0.1.1"
    rb4: str = "10.0.2.1"
    a6: str = "fd00:0:0:1::2"
    b6: str = "fd00:0:0:2::2"
    ra6: str = "fd00:0:0:1::1"
    rb6: str = "fd00:0:0:2::1"


def pair(lab: Lab, names: tuple[str, str] = ("a", "b"), mtu: int = 1500) -> Pair:
    t = Pair(lab.namespace(names[0]), lab.namespace(names[1]))
    lab.veth(t.a, "eth0", [t.a4 + "/24", t.a6 + "/64"], t.b, "eth0", [t.b4 + "/24", t.b6 + "/64"], mtu)
    for ns in (t.a, t.b):
        wait_for(lambda: "state UP" in ns.ip("link show dev eth0"), 5, "the wire")
    return t


def routed(lab: Lab, mtu: int = 1500) -> Routed:
    t = Routed(lab.namespace("a"), lab.namespace("r"), lab.namespace("b"))
    lab.veth(t.a, "eth0", [t.a4 + "/24", t.a6 + "/64"], t.r, "toa", [t.ra4 + "/24", t.ra6 + "/64"], mtu)
    lab.veth(t.b, "eth0", [t.b4 + "/24", t.b6 + "/64"], t.r, "tob", [t.rb4 + "/24", t.rb6 + "/64"], mtu)
    t.r.sysctl(net__ipv4__ip_forward=1, net__ipv6__conf__all__forwarding=1)
    for ns, via4, via6 in ((t.a, t.ra4, t.ra6), (t.b, t.rb4, t.rb6)):
        ns.run("ip", "-batch", "-", input=f"route add default via {via4}\nroute add default via {via6}\n")
    return t


class Fault:
    """One nft rule in a router's forwarding path, with a counter; removed by remove()."""

    def __init__(self, ns: Namespace, name: str, match: str, verdict: str = "drop", hook: str = "forward"):
        self.ns, self.table = ns, f"fault_{name}"
        ns.nft(f"""table inet {self.table} {{
            chain faults {{ type filter hook {hook} priority 0; policy accept;
                {match} counter {verdict} comment "{name}"
            }}
        }}""")

    def count(self) -> int:
        """Packets that the rule met."""
        listing = json.loads(self.ns.out("nft", "-j", "list", "table", "inet", self.table))
        return sum(e["counter"]["packets"] for item in listing["nftables"] if "rule" in item
                   for e in item["rule"]["expr"] if "counter" in e)

    def remove(self) -> None:
        self.ns.run("nft", "delete", "table", "inet", self.table)


def hole(ns: Namespace, longer_than: int, hook: str = "forward") -> Fault:
    """HOLE n: silently drops UDP packets longer than n bytes of IP."""
    return Fault(ns, "hole", f"meta l4proto udp meta length > {longer_than}", hook=hook)


def loss(ns: Namespace, percent: int) -> Fault:
    """LOSS p: drops p percent of UDP at random."""
    return Fault(ns, "loss", f"meta l4proto udp numgen random mod 100 < {percent}")


def burst(ns: Namespace, k: int, n: int) -> Fault:
    """BURST k/n: of each n UDP packets drops k in a row."""
    return Fault(ns, "burst", f"meta l4proto udp numgen inc mod {n} < {k}")


def cut(ns: Namespace, hook: str = "forward") -> Fault:
    """Drops all UDP."""
    return Fault(ns, "cut", "meta l4proto udp", hook=hook)


def nat(ns: Namespace, out_device: str) -> None:
    """NAT: masquerades what leaves by the device."""
    ns.nft(f"""table inet nat {{
        chain after {{ type nat hook postrouting priority 100;
            oifname "{out_device}" masquerade
        }}
    }}""")


def established_only(ns: Namespace, in_device: str) -> Fault:
    """Lets only answers in from one side."""
    return Fault(ns, "established", f'iifname "{in_device}" ct state new')


def wait_ping(ns: Namespace, address: str, timeout: float = 10.0) -> None:
    """Waits until one echo request is answered."""
    wait_for(lambda: ns.run("ping", "-n", "-c", "1", "-W", "1", address, check=False).returncode == 0,
             timeout, f"{ns.name} pings {address}")


def steady(text: str) -> str:
    """What `ip` printed without the link-local address of a wire (eth0), which the kernel adds when it pleases."""
    text = re.sub(r"^(eth0.*?) *fe80::\S+", r"\1", text, flags=re.M)
    return re.sub(r"^.*\b(fe80|ff00)::.* dev eth0 .*\n", "", text, flags=re.M)
