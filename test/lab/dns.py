# SPDX-License-Identifier: Apache-2.0
"""A name server that says what it is told to."""
from __future__ import annotations

import ipaddress
import struct
import threading

from .ns import Namespace

A, AAAA = 1, 28
ANSWER, NO_SUCH_NAME = 0x8180, 0x8183
TTL_S = 1


class NameServer:
    """answers: the addresses of every name, or those of each name that there is. is_silent: nothing is answered at all."""

    def __init__(self, ns: Namespace, address: str, answers: list[str] | dict[str, list[str]]):
        self._socket = ns.udp_socket(address, 53, 0.1)
        self.answers, self.is_silent = answers, False
        self.questions: list[str] = []  # the names, as often as they were asked for
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def asked(self) -> int:
        return len(self.questions)

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                question, client = self._socket.recvfrom(512)
            except (TimeoutError, ConnectionError):
                continue
            answer = self._answer(question)
            if not self.is_silent:
                self._socket.sendto(answer, client)

    def _answer(self, ask: bytes) -> bytes:
        """RFC 1035, to one question."""
        at, labels = 12, []
        while ask[at]:
            labels.append(ask[at + 1:at + 1 + ask[at]].decode())
            at += 1 + ask[at]
        name, end = ".".join(labels), at + 5  # name, type, class
        self.questions.append(name)
        found = self.answers.get(name) if isinstance(self.answers, dict) else self.answers
        kind = int.from_bytes(ask[end - 4:end - 2], "big")
        packed = [ipaddress.ip_address(a).packed for a in found or []]
        fits = [p for p in packed if len(p) == {A: 4, AAAA: 16}.get(kind)]
        records = b"".join(struct.pack("!HHHIH", 0xc00c, kind, 1, TTL_S, len(p)) + p for p in fits)
        return ask[:2] + struct.pack("!HHHHH", NO_SUCH_NAME if found is None else ANSWER, 1, len(fits), 0, 0) + ask[12:end] + records

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._socket.close()


def use(ns: Namespace, *servers: str) -> None:
    """Makes them the name servers of the namespace."""
    path = ns.lab.dir / f"{ns.name}-resolv.conf"
    path.write_text("".join(f"nameserver {s}\n" for s in servers))
    ns.run("mount", "--bind", str(path), "/etc/resolv.conf")
