# SPDX-License-Identifier: Apache-2.0
"""The tunnels that are compared, each set up between the namespaces of a Pair.

A contender is made, gives the far end's address and the numbers of its daemons, and is stopped.
Each runs with the defaults that its own manual proposes, over IPv4, on a path MTU of 1500."""
from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from lab import Conf, GoDevice, Node, Pair, PeerConf, Process, binary, keys, wait_ping

A4, B4 = "10.99.0.1", "10.99.0.2"
# Options of weft that are lines of the [Peer] section, on both sides.
PEER_KEYS = {"fec": "Fec", "fecdelay": "FecDelay", "cipher": "Cipher", "extensions": "Extensions"}
OPTIONS = ("aead", "workers", "binary", "offload", "label", *PEER_KEYS)
OPTIONS_HELP = "weft takes options: weft:aead=libcrypto:workers=2:binary=PATH:offload=off:fec=off:cipher=auto:extensions=off:label=NAME"


def not_installed(*programs: str) -> str:
    absent = [p for p in programs if not shutil.which(p)]
    return f"{', '.join(absent)} not installed" if absent else ""


def unusable(options: dict[str, str]) -> str:
    """Why the weft that the options name cannot run; empty when it can."""
    path = options.get("binary") or ""
    try:
        path = path or binary()
    except FileNotFoundError as e:
        return str(e)
    return "" if os.access(path, os.X_OK) else f"{path} is not a program"


@dataclass
class Spec:
    """What a word of --contenders names: `weft:aead=libcrypto:workers=2:binary=build/weft`."""

    kind: str
    options: dict[str, str] = field(default_factory=dict)
    label: str = ""
    cls: type[Contender] | None = None

    @staticmethod
    def parse(word: str, kinds: dict[str, type[Contender]] | None = None) -> Spec:
        kinds = kinds or KINDS
        kind, *pairs = word.split(":")
        if kind == "bare":
            kind = "veth"
        if kind not in kinds:
            raise ValueError(f"no contender {kind!r}; there are bare, {', '.join(kinds)}")
        options, takes = {}, kinds[kind].takes
        for pair in pairs:
            key, equals, value = pair.partition("=")
            if not equals or key not in takes:
                taken = f"{kind} takes {', '.join(o + '=' for o in takes)}" if takes else f"{kind} takes none"
                raise ValueError(f"{word!r}: {pair!r} is not an option; {taken}")
            options[key] = value
        label = options.pop("label", word)
        return Spec(kind, options, label, kinds[kind])

    def missing(self) -> str:
        """Why it cannot run here; empty when it can."""
        return self.cls.missing(self.options)

    def start(self, pair: Pair) -> Contender:
        return self.cls(pair, self.options)


class Contender:
    """The bare wire: no tunnel at all. The others derive from it."""

    programs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()  # names of options

    @classmethod
    def missing(cls, options: dict[str, str]) -> str:
        """Why it cannot run here with these options; empty when it can."""
        return not_installed(*cls.programs)

    def __init__(self, pair: Pair, options: dict[str, str]):
        self.pair, self.options = pair, options
        self.processes: list[Process] = []
        self.setup()
        self.wait()

    def wait(self) -> None:
        """Until it carries packets."""
        wait_ping(self.pair.a, self.address, 20)

    @property
    def address(self) -> str:
        """The far end's, through the tunnel."""
        return self.pair.b4

    def setup(self) -> None:
        pass

    def pids(self) -> list[int]:
        return [p.pid for p in self.processes]

    def recovery(self) -> dict[str, dict]:
        """What each side says of its loss recovery, when it can."""
        return {}

    def stop(self) -> None:
        for p in self.processes:
            p.stop()

    def sides(self):
        """(namespace, own inner address, far inner address, far outer address), A first."""
        return ((self.pair.a, A4, B4, self.pair.b4), (self.pair.b, B4, A4, self.pair.a4))

    def folder(self, ns) -> Path:
        folder = ns.lab.dir / f"{type(self).__name__}-{ns.name}"
        folder.mkdir(exist_ok=True)
        return folder


class Tunnel(Contender):
    @property
    def address(self) -> str:
        return B4


def confs(pair: Pair) -> tuple[Conf, Conf]:
    """Two WireGuard configurations that name each other."""
    a, b = keys(), keys()
    return (Conf(a.private, [PeerConf(b.public, [B4 + "/32"], pair.b4 + ":51820")], 51820, [A4 + "/24"]),
            Conf(b.private, [PeerConf(a.public, [A4 + "/32"], pair.a4 + ":51820")], 51820, [B4 + "/24"]))


class Weft(Tunnel):
    takes = OPTIONS

    @classmethod
    def missing(cls, options: dict[str, str]) -> str:
        return unusable(options)

    def setup(self) -> None:
        argv = []
        if "aead" in self.options:
            argv += ["--aead", self.options["aead"]]
        if "workers" in self.options:
            argv += ["--workers", self.options["workers"]]
        both = confs(self.pair)
        for peer in (conf.peers[0] for conf in both):
            peer.extra += [f"{PEER_KEYS[key]} = {value}" for key, value in self.options.items() if key in PEER_KEYS]
        if self.options.get("offload") == "off":
            for conf in both:
                conf.extra.append("Offload = off")
        weft = self.options.get("binary")
        self.nodes = [Node(ns, "weft0", conf, argv, str(Path(weft).resolve()) if weft else None)
                      for ns, conf in zip((self.pair.a, self.pair.b), both)]

    def pids(self) -> list[int]:
        return [n.pid for n in self.nodes]

    def recovery(self) -> dict[str, dict]:
        return {n.ns.name: peer["fec"] for n in self.nodes for peer in n.status()["peers"] if "fec" in peer}

    def stop(self) -> None:
        for n in self.nodes:
            n.stop()


class WireguardGo(Tunnel):
    programs = ("wireguard-go", "wg")

    def setup(self) -> None:
        self.devices = [GoDevice(ns, "wg0", conf) for ns, conf in zip((self.pair.a, self.pair.b), confs(self.pair))]
        self.processes = [d.process for d in self.devices]


class OpenVpn(Tunnel):
    """TLS point to point with self-signed certificates named by their fingerprints; ChaCha20-Poly1305."""

    programs = ("openvpn", "openssl")

    def setup(self) -> None:
        prints = []
        for ns, *_ in self.sides():
            folder = self.folder(ns)
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                            "-subj", f"/CN={ns.name}", "-keyout", folder / "key", "-out", folder / "cert"], check=True, capture_output=True)
            out = subprocess.run(["openssl", "x509", "-in", folder / "cert", "-noout", "-fingerprint", "-sha256"], check=True,
                                 capture_output=True, text=True).stdout
            prints.append(out.partition("=")[2].strip())
        for (ns, own, far, outer), role, far_print in zip(self.sides(), ("client", "server"), reversed(prints)):
            argv = ["openvpn", "--dev", "tun9", "--dev-type", "tun", "--proto", "udp4", "--port", "1194", "--remote", outer, "--ifconfig", own, far,
                    "--cert", folder_file(self, ns, "cert"), "--key", folder_file(self, ns, "key"), "--peer-fingerprint", far_print,
                    "--data-ciphers", "CHACHA20-POLY1305", "--disable-dco", "--verb", "1", f"--tls-{role}"]
            self.processes.append(ns.spawn(*argv, *(["--dh", "none"] if role == "server" else [])))


def folder_file(c: Contender, ns, name: str) -> str:
    return str(c.folder(ns) / name)


class N2n(Tunnel):
    programs = ("edge", "supernode")

    def setup(self) -> None:
        self.supernode = self.pair.a.spawn("supernode", "-l", "7777")
        for ns, own, _far, _outer in self.sides():
            self.processes.append(ns.spawn("edge", "-d", "n2n0", "-a", own, "-s", "255.255.255.0", "-c", "bench", "-k", "benchkey",
                                           "-l", f"{self.pair.a4}:7777", "-u", "0", "-g", "0"))

    def stop(self) -> None:
        super().stop()
        self.supernode.stop()


class Tinc(Tunnel):
    programs = ("tincd",)

    def setup(self) -> None:
        for ns, own, _far, outer in self.sides():
            folder = self.folder(ns)
            (folder / "hosts").mkdir(exist_ok=True)
            other = "b" if ns is self.pair.a else "a"
            me = "a" if ns is self.pair.a else "b"
            (folder / "tinc.conf").write_text(f"Name = {me}\nInterface = tinc0\nAddressFamily = ipv4\nConnectTo = {other}\n")
            address = self.pair.a4 if me == "a" else self.pair.b4
            (folder / "hosts" / me).write_text(f"Address = {address}\nSubnet = {own}/32\n")
            (folder / "tinc-up").write_text(f"#!/bin/sh\nip address add {own}/24 dev $INTERFACE\nip link set $INTERFACE mtu 1400 up\n")
            (folder / "tinc-up").chmod(0o755)
            ns.run("tincd", "-c", str(folder), "-K2048", input="\n\n", timeout=60)
        for (ns, *_), (other, *_) in zip(self.sides(), reversed(self.sides())):
            name = "a" if ns is self.pair.a else "b"
            shutil.copy(self.folder(ns) / "hosts" / name, self.folder(other) / "hosts" / name)
        for ns, *_ in self.sides():
            self.processes.append(ns.spawn("tincd", "-c", str(self.folder(ns)), "-D", f"--pidfile={self.folder(ns)}/pid"))


class Fastd(Tunnel):
    programs = ("fastd",)

    def setup(self) -> None:
        made = []
        for ns, *_ in self.sides():
            secret = ns.out("fastd", "--machine-readable", "--generate-key")
            conf = self.folder(ns) / "fastd.conf"
            conf.write_text(f'secret "{secret}";\n')
            made.append((secret, ns.out("fastd", "--machine-readable", "--show-key", "-c", str(conf))))
        for (ns, own, _far, outer), (secret, _), (_, far_public) in zip(self.sides(), made, reversed(made)):
            conf = self.folder(ns) / "fastd.conf"
            conf.write_text(f'''mode tun; interface "fastd0"; method "salsa2012+umac"; mtu 1406; bind 0.0.0.0:10000; secret "{secret}";
on up "ip address add {own}/24 dev fastd0; ip link set fastd0 up";
peer "far" {{ key "{far_public}"; remote {outer}:10000; }}
''')
            self.processes.append(ns.spawn("fastd", "-c", str(conf)))


KINDS: dict[str, type[Contender]] = {
    "veth": Contender,
    "weft": Weft,
    "wireguard-go": WireguardGo,
    "openvpn": OpenVpn,
    "n2n": N2n,
    "tinc": Tinc,
    "fastd": Fastd,
}


def chosen(words: str, given: dict[str, str] | None = None, kinds: dict[str, type[Contender]] | None = None) -> list[Spec]:
    """Contenders of a list with commas that can run here; the others are named. given: options for each weft that has none of that name.
    kinds: those that there are, unless KINDS."""
    specs = []
    for word in words.split(","):
        spec = Spec.parse(word, kinds)
        if spec.kind == "weft":
            spec.options = {**(given or {}), **spec.options}
        why = spec.missing()
        if why:
            print(f"without {spec.label}: {why}")
        else:
            specs.append(spec)
    return specs
