# SPDX-License-Identifier: Apache-2.0
"""A user without privilege in A, whose commands join the overlay by a file, and a device of `weft up` in B.

    A 10.0.1.1 ---- 10.0.1.2 B        in the overlay: A 10.9.0.1 fd09::1, B 10.9.0.2 fd09::2, called bee

A third peer, 10.9.0.3, called gone, never answers."""
from __future__ import annotations

import os
import subprocess

from .ns import Lab, Process
from .topo import pair
from .user import NOBODY, as_nobody
from .wait import wait_for
from .weft import Node, binary
from .wg import Conf, PeerConf, keys

USER = as_nobody(can_gain=False)
A4, A6, B4, B6, GONE = "10.9.0.1", "fd09::1", "10.9.0.2", "fd09::2", "10.9.0.3"


class Rootless:
    def __init__(self, lab: Lab):
        self.lab, self.wire = lab, pair(lab)
        self.a, self.b = self.wire.a, self.wire.b
        a, b, gone = keys(), keys(), keys()
        self.node = Node(self.b, "wg0", Conf(b.private, [PeerConf(a.public, [A4 + "/32", A6 + "/128"])], port=51820,
                                             addresses=[B4 + "/24", B6 + "/64"]))
        self.b_public = b.public
        self.home = lab.dir / "home"
        self.home.mkdir()
        self.file = self.home / "home.conf"
        self.file.write_text(Conf(a.private, [
            PeerConf(b.public, [B4 + "/32", B6 + "/128"], endpoint=f"{self.wire.b4}:51820", extra=["Name = bee"]),
            PeerConf(gone.public, [GONE + "/32"], endpoint="10.0.1.77:51820", extra=["Name = gone"])],
            addresses=[A4 + "/24", A6 + "/64"]).quick_text())
        lab.dir.chmod(0o755)
        for path, mode in ((self.home, 0o700), (self.file, 0o600)):
            os.chown(path, NOBODY, NOBODY)
            path.chmod(mode)

    def argv(self, command: str, *args: str) -> list[str]:
        return [*USER, "env", f"HOME={self.home}", binary(), command, str(self.file), *args]

    def spawn(self, command: str, *args: str) -> Process:
        return self.a.spawn(*self.argv(command, *args), log=command)

    def run(self, command: str, *args: str, input: bytes = b"", timeout: float = 20) -> subprocess.CompletedProcess:
        """Runs a command as the user to its end. Input and standard output are bytes, standard error is text."""
        r = subprocess.run(self.a._argv(self.argv(command, *args)), input=input, capture_output=True, timeout=timeout)
        return subprocess.CompletedProcess(r.args, r.returncode, r.stdout, r.stderr.decode(errors="replace"))

    def forward(self, *args: str) -> Process:
        """`weft forward`, once it listens."""
        p = self.spawn("forward", *args)
        rules = sum(1 for x in args if x in ("-L", "-R"))
        wait_for(lambda: not p.is_running or p.output.count(": listening on ") == rules, 10, "weft forward listens")
        assert p.is_running, p.output
        return p


def summary(output: str) -> dict[str, list[int]]:
    """The table at the end of `weft forward`: numbers by rule."""
    lines = output[output.index("\nrule "):].splitlines()[2:]
    cells = [[c.strip() for c in line.split("  ") if c.strip()] for line in lines if line.startswith("-")]
    return {c[0]: [int(x.replace(",", "")) for x in c[1:]] for c in cells}
