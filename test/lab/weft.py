# SPDX-License-Identifier: Apache-2.0
"""weft itself as tests, demo and benches drive it: through its command line only."""
from __future__ import annotations

import json
import os
from pathlib import Path

from .ns import CommandFailed, Namespace
from .wg import Conf, Dump, dump
from .wait import wait_for

TOP = Path(__file__).resolve().parent.parent.parent


def binary() -> str:
    """The program under test: WEFT_BINARY or build/weft."""
    path = Path(os.environ.get("WEFT_BINARY", TOP / "build" / "weft")).resolve()
    if not os.access(path, os.X_OK):
        raise FileNotFoundError(f"{path} is not built: run make")
    return str(path)


class Node:
    """A device brought up by `weft up FILE` in a namespace; the file's name gives the interface's."""

    def __init__(self, ns: Namespace, name: str, conf: Conf, options: list[str] | None = None, weft: str | None = None):
        self.ns, self.name, self.conf, self.options = ns, name, conf, options or []
        self.weft = weft or binary()
        folder = ns.lab.dir / ns.name
        folder.mkdir(exist_ok=True)
        self.file = folder / f"{name}.conf"
        self.write(conf)
        self.up()

    def write(self, conf: Conf) -> None:
        self.conf = conf
        self.file.touch(mode=0o600)
        self.file.write_text(conf.quick_text())

    def up(self) -> None:
        before = set(self.ns.processes("weft"))
        self.ns.run(self.weft, "up", *self.options, str(self.file))
        new = set(self.ns.processes("weft")) - before
        if not new:
            raise CommandFailed(f"{self.ns.name}: weft up {self.file.name} left no process")
        self.pid = min(new)

    def down(self) -> None:
        self.ns.run(self.weft, "down", str(self.file))
        wait_for(lambda: self.pid not in self.ns.processes("weft"), 5, "the daemon's end")

    @property
    def pids(self) -> list[int]:
        return [self.pid]

    def status(self) -> dict:
        return json.loads(self.ns.out(self.weft, "status", "--json", self.name))

    def drops(self) -> dict[str, int]:
        """Counters of every drop reason, the names as in pkt/drop.h in lower case."""
        return self.status()["drops"]

    def dump(self) -> Dump:
        return dump(self.ns, self.name)

    def stop(self) -> None:
        self.down()


def peer(node: Node, public: str = "") -> dict:
    """What a node's status says of a peer; of the first, when no key is given."""
    return next(p for p in node.status()["peers"] if public in ("", p["public_key"]))


def agreement(node: Node, public: str = "") -> str:
    return peer(node, public)["extensions"]["state"]


def wait_agreed(*nodes: Node, timeout: float = 10) -> None:
    """Until each of them has agreed with its first peer."""
    wait_for(lambda: all(agreement(n) == "agreed" for n in nodes), timeout, "all agreed")


class Run:
    """A device started by `weft run NAME`, which `wg` then fills."""

    def __init__(self, ns: Namespace, name: str, options: list[str] | None = None, weft: str | None = None):
        self.ns, self.name = ns, name
        self.process = ns.spawn(weft or binary(), "run", "--foreground", *(options or []), name)
        wait_for(lambda: not self.process.is_running or self.has_socket(), 5, "weft's UAPI socket")
        if not self.process.is_running:
            raise CommandFailed(f"{ns.name}: weft run {name}: {self.process.output}")

    def has_socket(self) -> bool:
        return self.ns.run("test", "-S", f"/run/wireguard/{self.name}.sock", check=False).returncode == 0

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def pids(self) -> list[int]:
        return [self.pid]

    def setconf(self, conf: Conf) -> None:
        path = self.ns.lab.dir / f"{self.ns.name}-{self.name}.wg"
        path.write_text(conf.wg_text())
        self.ns.run("wg", "setconf", self.name, str(path), timeout=300)

    def configure(self, conf: Conf) -> None:
        """setconf, then addresses, up and routes by `ip`, as a person would."""
        self.setconf(conf)
        for a in conf.addresses:
            self.ns.run("ip", "address", "add", a, "dev", self.name)
        self.ns.run("ip", "link", "set", "dev", self.name, "up")
        for p in conf.peers:
            for prefix in p.allowed:
                self.ns.run("ip", "route", "replace", prefix, "dev", self.name, check=False)

    def dump(self) -> Dump:
        return dump(self.ns, self.name)

    def status(self) -> dict:
        return json.loads(self.ns.out(binary(), "status", "--json", self.name))

    def stop(self) -> None:
        self.process.stop()
