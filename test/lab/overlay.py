# SPDX-License-Identifier: Apache-2.0
"""A machine without a tunnel of its own, whose programs reach a peer through `weft proxy`, `weft exec`
and their kin, as an ordinary user.

    A 10.0.1.1 ---- 10.0.1.2 B   with wg0: 10.99.0.2, fd99::2; servers of HTTP, DNS and UDP echo"""
from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from . import procfs
from .device import A4, A6, B4, B6, WEFT, ends, make
from .dns import NameServer
from .ns import Lab, Namespace, Process
from .topo import pair
from .user import NOBODY, as_nobody
from .wait import wait_for
from .weft import binary

DNS_NAME = "web.corp.example"  # 10.99.0.2 and no IPv6 address, by the DNS server


@dataclass
class Far:
    """Both machines, the configuration file of A, and what B serves."""

    lab: Lab
    a: Namespace
    b: Namespace
    conf: Path
    files: Path  # what HTTP serves
    server: NameServer

    def argv(self, command: str, *argv: str) -> list[str]:
        """`weft COMMAND CONF ARGV` as nobody."""
        return as_nobody(binary(), command, str(self.conf), *argv)

    def spawn(self, command: str, *argv: str) -> Process:
        return self.a.spawn(*self.argv(command, *argv), log=command)


def far(lab: Lab, extra: list[str] | None = None, peer_extra: list[str] | None = None) -> Far:
    """extra, peer_extra: lines for A's configuration."""
    wire = pair(lab)
    e = ends("", wire.b4)
    e.a_conf.port = 0
    e.a_conf.extra += extra or []
    e.a_conf.peers[0].extra += ["Name = peer", *(peer_extra or [])]
    make(WEFT, wire.b, e.b_conf)
    lab.dir.chmod(0o711)
    conf = lab.dir / "a.conf"
    conf.touch(mode=0o600)
    conf.write_text(e.a_conf.quick_text())
    os.chown(conf, NOBODY, NOBODY)
    files = lab.dir / "files"
    files.mkdir()
    (files / "hello").write_text("hello from b\n")
    server = NameServer(wire.b, B4, {DNS_NAME: [B4]})
    lab.on_exit(server.stop)
    f = Far(lab, wire.a, wire.b, conf, files, server)
    wire.b.spawn(sys.executable, "-m", "http.server", "80", "--bind", "::", "-d", str(files))
    wait_for(lambda: procfs.is_listening(wire.b.pid, 80), 10, "the HTTP server")
    for address in (B4, B6):
        _echo(lab, wire.b.udp_socket(address, 7))
    return f


def _echo(lab: Lab, s: socket.socket) -> None:
    """Sends datagrams back until the lab ends."""
    end = threading.Event()
    s.settimeout(0.1)

    def run() -> None:
        while not end.is_set():
            with contextlib.suppress(TimeoutError, ConnectionError):
                data, at = s.recvfrom(65535)
                s.sendto(data, at)

    thread = threading.Thread(target=run)
    thread.start()

    def stop() -> None:
        end.set()
        thread.join()
        s.close()

    lab.on_exit(stop)


__all__ = ["A4", "A6", "B4", "B6", "DNS_NAME", "Far", "far"]
