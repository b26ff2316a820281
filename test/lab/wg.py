# SPDX-License-Identifier: Apache-2.0
"""WireGuard keys and devices through `wg`, and wireguard-go as the other implementation."""
from __future__ import annotations

import subprocess
from dataclasses import dataclass, field

from .ns import Namespace, Process
from .wait import wait_for


def genkey() -> str:
    return subprocess.run(["wg", "genkey"], check=True, capture_output=True, text=True).stdout.strip()


def genpsk() -> str:
    return subprocess.run(["wg", "genpsk"], check=True, capture_output=True, text=True).stdout.strip()


def pubkey(private: str) -> str:
    return subprocess.run(["wg", "pubkey"], check=True, capture_output=True, text=True, input=private + "\n").stdout.strip()


@dataclass(frozen=True)
class Keys:
    private: str
    public: str


def keys() -> Keys:
    private = genkey()
    return Keys(private, pubkey(private))


@dataclass
class PeerConf:
    """One [Peer] section. extra: further lines."""

    public: str
    allowed: list[str]
    endpoint: str = ""
    psk: str = ""
    keepalive: int = 0
    extra: list[str] = field(default_factory=list)

    def text(self) -> str:
        lines = ["[Peer]", f"PublicKey = {self.public}"]
        if self.psk:
            lines.append(f"PresharedKey = {self.psk}")
        if self.allowed:
            lines.append(f"AllowedIPs = {', '.join(self.allowed)}")
        if self.endpoint:
            lines.append(f"Endpoint = {self.endpoint}")
        if self.keepalive:
            lines.append(f"PersistentKeepalive = {self.keepalive}")
        return "\n".join(lines + self.extra) + "\n"


@dataclass
class Conf:
    """One configuration file. addresses, mtu, table and extra are not in the form that `wg setconf` takes."""

    private: str
    peers: list[PeerConf]
    port: int = 0
    addresses: list[str] = field(default_factory=list)
    fwmark: int = 0
    mtu: int = 0
    table: str = ""
    extra: list[str] = field(default_factory=list)

    def wg_text(self) -> str:
        """What `wg setconf` takes."""
        lines = ["[Interface]", f"PrivateKey = {self.private}"]
        if self.port:
            lines.append(f"ListenPort = {self.port}")
        if self.fwmark:
            lines.append(f"FwMark = {self.fwmark:#x}")
        return "\n".join(lines) + "\n\n" + "\n".join(p.text() for p in self.peers)

    def quick_text(self) -> str:
        """What wg-quick and `weft up` take."""
        lines = ["[Interface]", f"PrivateKey = {self.private}"]
        if self.addresses:
            lines.append(f"Address = {', '.join(self.addresses)}")
        if self.port:
            lines.append(f"ListenPort = {self.port}")
        if self.mtu:
            lines.append(f"MTU = {self.mtu}")
        if self.fwmark:
            lines.append(f"FwMark = {self.fwmark:#x}")
        if self.table:
            lines.append(f"Table = {self.table}")
        return "\n".join(lines + self.extra) + "\n\n" + "\n".join(p.text() for p in self.peers)


@dataclass
class PeerDump:
    """A peer's line of `wg show NAME dump`."""

    public: str
    psk: str
    endpoint: str
    allowed: list[str]
    handshake: int  # seconds since 1970; 0 = never
    rx: int
    tx: int
    keepalive: int


@dataclass
class Dump:
    private: str
    public: str
    port: int
    fwmark: int
    peers: dict[str, PeerDump]


def dump(ns: Namespace, name: str) -> Dump:
    """`wg show NAME dump`, parsed."""
    lines = ns.out("wg", "show", name, "dump").splitlines()
    private, public, port, mark = lines[0].split("\t")
    peers = {}
    for line in lines[1:]:
        f = line.split("\t")
        none = lambda s: "" if s == "(none)" else s
        peers[f[0]] = PeerDump(f[0], none(f[1]), none(f[2]), none(f[3]).split(",") if none(f[3]) else [], int(f[4]), int(f[5]),
                               int(f[6]), 0 if f[7] == "off" else int(f[7]))
    return Dump(private, public, int(port), 0 if mark == "off" else int(mark, 16), peers)


class GoDevice:
    """A wireguard-go device, set up by hand with wg and ip. is_verbose: its log says what it drops, packet by packet."""

    def __init__(self, ns: Namespace, name: str, conf: Conf, is_verbose: bool = False):
        self.ns, self.name, self.conf = ns, name, conf
        # UAPI sockets live here; wireguard-go makes the folder itself, wg only looks.
        self.process: Process = ns.spawn("wireguard-go", "-f", name, env={"LOG_LEVEL": "verbose"} if is_verbose else None)
        wait_for(lambda: ns.run("test", "-S", f"/run/wireguard/{name}.sock", check=False).returncode == 0, 5, "wireguard-go's socket")
        self.setconf(conf)
        for a in conf.addresses:
            ns.run("ip", "address", "add", a, "dev", name)
        ns.run("ip", "link", "set", "dev", name, "mtu", str(conf.mtu or 1420), "up")
        for p in conf.peers:
            for prefix in p.allowed:
                ns.run("ip", "route", "replace", prefix, "dev", name, check=False)

    def setconf(self, conf: Conf) -> None:
        path = self.ns.lab.dir / f"{self.ns.name}-{self.name}.wg"
        path.write_text(conf.wg_text())
        self.ns.run("wg", "setconf", self.name, str(path))

    def dump(self) -> Dump:
        return dump(self.ns, self.name)

    @property
    def pids(self) -> list[int]:
        return [self.process.pid]

    def stop(self) -> None:
        self.process.stop()
