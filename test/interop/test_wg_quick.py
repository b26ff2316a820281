# SPDX-License-Identifier: Apache-2.0
"""wg-quick with weft as its user-space implementation does what it does with wireguard-go.

    A 10.0.1.1, wg-quick ---- 10.0.1.2 B, wireguard-go, and 198.51.100.1 behind it"""
from __future__ import annotations

import os
import re
import threading

import pytest

from lab import Conf, GoDevice, Lab, PeerConf, binary, genpsk, keys, pair, wait_for, wait_ping
from lab.device import A4, A6, B4, B6, DEVICE, PORT

BEHIND = "198.51.100.1"
SIZE = 4 << 20
WEFT, GO = "weft", "wireguard-go"


class Quick:
    """One machine whose wg-quick uses one implementation."""

    def __init__(self, lab: Lab, kind: str, texts):
        self.kind, self.wire = kind, pair(lab)
        self.ns, self.lab = self.wire.a, lab
        bin_dir = lab.dir / "bin"
        bin_dir.mkdir()
        (bin_dir / WEFT).symlink_to(binary())
        (bin_dir / "resolvconf").write_text(f'#!/bin/sh\n[ "$1" != -l ] || exit 1\n{{ echo "resolvconf $*"; [ "$1" != -a ] || cat; }} >>{lab.dir}/resolvconf\n')
        (bin_dir / "resolvconf").chmod(0o755)
        self.env = {"PATH": f"{bin_dir}:{os.environ['PATH']}", "WG_QUICK_USERSPACE_IMPLEMENTATION": kind}
        self.file = lab.dir / f"{DEVICE}.conf"
        self.file.touch(mode=0o600)
        self.file.write_text(texts.a.quick_text().replace("HOOKS", str(lab.dir / "hooks")))
        GoDevice(self.wire.b, DEVICE, texts.b)
        self.wire.b.run("ip", "address", "add", BEHIND + "/32", "dev", "lo")

    def run(self, *words: str) -> str:
        """The commands that wg-quick says that it runs, and its output."""
        r = self.ns.run(*words, env=self.env)
        said = [line for line in r.stderr.splitlines() if re.match(r"\[(#|!)\]", line)]
        return "\n".join([r.stdout, *said]).replace(str(self.lab.dir), "DIR").replace(self.kind, "IMPLEMENTATION")

    def sync(self, extra: str = "") -> str:
        """As the manual of wg says; the mark that wg-quick chose is in no file, and without it the file would take it away."""
        return self.run("bash", "-c", f"wg syncconf {DEVICE} <(wg-quick strip {self.file}; printf '[Interface]\\nFwMark = 51820\\n{extra}')")

    def dump(self) -> list[list[str]]:
        """`wg show all dump`; times and counters as whether there are any."""
        lines = [line.split("\t") for line in self.ns.out("wg", "show", "all", "dump").splitlines()]
        return [f if len(f) == 5 else [*f[:5], *(str(int(x) > 0) for x in f[5:8]), f[8]] for f in lines]

    def state(self) -> str:
        """Of the network, without the wire's own."""
        shown = []
        for words in ("ip -o address show dev wg0", "ip -o link show dev wg0", "ip -4 rule", "ip -6 rule", "ip -4 route show table all", "ip -6 route show table all",
                      "nft list ruleset", "sysctl -n net.ipv4.conf.all.src_valid_mark"):
            shown.append(f"--- {words}\n" + self.ns.run(words, check=False).stdout)
        text = re.sub(r"^.*\b(fe80|ff00)::.*\n|^.*dev eth0.*\n", "", "".join(shown), flags=re.M)
        return re.sub(r"^\d+: |qlen \d+|valid_lft.*|qdisc \w+", "", text, flags=re.M)

    def carry(self) -> bytes:
        """A stream to B's own address, by the default route."""
        with self.wire.b.tcp_socket(timeout=20) as listener, self.ns.tcp_socket(timeout=20) as out:
            listener.bind((BEHIND, 0))
            listener.listen(1)
            got = bytearray()

            def take() -> None:
                with listener.accept()[0] as s:
                    s.settimeout(20)
                    while chunk := s.recv(1 << 18):
                        got.extend(chunk)
            taker = threading.Thread(target=take, daemon=True)
            taker.start()
            out.connect(listener.getsockname())
            out.sendall(DATA)
            out.shutdown(1)
            taker.join(20)
            return bytes(got)


DATA = os.urandom(SIZE)


class Texts:
    """The same keys for both implementations."""

    def __init__(self):
        ka, kb, psk = keys(), keys(), genpsk()
        self.extra = keys().public
        self.a = Conf(ka.private, [PeerConf(kb.public, ["0.0.0.0/0", "::/0"], f"10.0.1.2:{PORT}", psk, 25)], PORT, [A4 + "/24", A6 + "/64"], mtu=1380,
                      extra=["DNS = 10.99.0.2, corp.example", "PreUp = echo pre-up %i >>HOOKS", "PostUp = echo post-up %i >>HOOKS; wg show %i fwmark >>HOOKS",
                             "PreDown = echo pre-down %i >>HOOKS", "PostDown = echo post-down %i >>HOOKS"])
        self.b = Conf(kb.private, [PeerConf(ka.public, [A4 + "/32", A6 + "/128"], "", psk)], PORT, [B4 + "/24", B6 + "/64"])


def story(kind: str, texts: Texts) -> dict[str, object]:
    """All that a person sees from up to down."""
    seen: dict[str, object] = {}
    with Lab() as lab:
        q = Quick(lab, kind, texts)
        before = q.state()
        seen["up"] = q.run("wg-quick", "up", str(q.file))
        seen["state"] = q.state()
        wait_ping(q.ns, BEHIND)
        wait_ping(q.ns, B6)
        assert q.carry() == DATA
        seen["dump"] = q.dump()
        seen["show"] = [line for line in q.ns.out("wg", "show").splitlines() if not re.search("handshake|transfer", line)]
        handshake = q.ns.out("wg", "show", DEVICE, "latest-handshakes")
        seen["strip"] = q.run("wg-quick", "strip", str(q.file))
        q.sync(f"[Peer]\\nPublicKey = {texts.extra}\\nAllowedIPs = 203.0.113.0/24\\n")
        seen["more"] = q.dump()
        q.sync()
        # The session has outlived both.
        assert q.ns.out("wg", "show", DEVICE, "latest-handshakes") == handshake
        wait_ping(q.ns, BEHIND)
        seen["dump after"] = q.dump()
        seen["save"] = q.run("wg-quick", "save", str(q.file))
        seen["saved"] = re.sub(r"Endpoint = 10\.0\.1\.2:\d+", "Endpoint", re.sub(r"fe80::\S+|hooks", "", q.file.read_text())).replace(str(lab.dir), "DIR")
        assert q.carry() == DATA
        pids = q.ns.processes(kind)
        assert len(pids) == 1
        seen["down"] = q.run("wg-quick", "down", str(q.file))
        wait_for(lambda: not q.ns.processes(kind), 5, "the program's end")
        # wg-quick leaves src_valid_mark as it set it.
        assert q.state().replace("src_valid_mark\n1", "src_valid_mark\n0") == before
        assert q.ns.out("wg", "show", "interfaces") == ""
        seen["hooks"] = (lab.dir / "hooks").read_text()
        seen["resolvconf"] = (lab.dir / "resolvconf").read_text()
        # A second time, with the file that was saved.
        q.run("wg-quick", "up", str(q.file))
        wait_ping(q.ns, BEHIND)
        q.run("wg-quick", "down", str(q.file))
    return seen


@pytest.mark.skipif(os.path.exists("/sys/module/wireguard"), reason="the kernel has WireGuard: wg-quick takes that")
def test_a_full_configuration_goes_up_and_down_as_with_wireguard_go():
    texts = Texts()
    go, weft = story(GO, texts), story(WEFT, texts)
    for what, seen in go.items():
        assert weft[what] == seen, what
    assert f"[#] IMPLEMENTATION {DEVICE}" in go["up"] and "post-up wg0\n0xca6c\n" in go["hooks"] and "-a wg0" in go["resolvconf"]


def test_a_name_alone_starts_a_device_for_wg_quick_only(lab):
    ns = lab.namespace("q")
    r = ns.run(binary(), DEVICE, check=False)
    assert r.returncode == 2 and "no command" in r.stderr and not ns.has_device(DEVICE)
    env = {"WG_QUICK_USERSPACE_IMPLEMENTATION": binary()}
    ns.run(binary(), DEVICE, env=env)
    # It is there when the call is over.
    assert ns.has_device(DEVICE) and ns.out("wg", "show", "interfaces") == DEVICE
    again = ns.run(binary(), DEVICE, check=False, env=env)
    assert again.returncode == 1 and "already" in again.stderr
    assert "weft " in ns.out(binary(), "version", env=env)
    ns.run("ip", "link", "del", DEVICE)
    wait_for(lambda: not ns.processes("weft"), 5, "the daemon's end")
