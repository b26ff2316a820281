# SPDX-License-Identifier: Apache-2.0
"""A UDP relay in a namespace that can hold back, record, repeat and rebind.

    client ---> relay (listens on `port`) ---> server
                each client address gets a socket of its own towards the server, as a NAT does"""
from __future__ import annotations

import contextlib
import select
import socket
import threading
from dataclasses import dataclass
from typing import Callable

from .ns import Namespace

TO_SERVER, TO_CLIENT = "to server", "to client"


@dataclass
class Datagram:
    way: str
    data: bytes

    @property
    def kind(self) -> int:
        """WireGuard's message type: 1 initiation, 2 response, 3 cookie, 4 data; 0 when there is none."""
        return self.data[0] if self.data else 0


class Relay:
    """Runs in a thread of this program until stop(). filter: the datagrams to send in place of one."""

    def __init__(self, ns: Namespace, port: int, server: tuple[str, int], address: str = "0.0.0.0"):
        self.ns, self.server = ns, server
        self.recorded: list[Datagram] = []
        self.filter: Callable[[Datagram], list[Datagram]] = lambda d: [d]
        self._front = ns.udp_socket(address, port)
        self._back: dict[tuple, socket.socket] = {}
        self._lock = threading.Lock()
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def rebind(self) -> None:
        """From now on the server sees each client at a new port, as after a NAT lost its table."""
        with self._lock:
            for client in list(self._back):
                self._back.pop(client).close()
                self._back[client] = self._make_back()
        self._wake.send(b"x")

    def of_kind(self, kind: int, way: str = "") -> list[bytes]:
        """Recorded messages of a WireGuard type, in order."""
        return [d.data for d in list(self.recorded) if d.kind == kind and (not way or d.way == way)]

    def send_to_server(self, data: bytes) -> None:
        """Sends on behalf of the first client."""
        with self._lock:
            next(iter(self._back.values())).sendto(data, self.server)

    def stop(self) -> None:
        self._wake.send(b"q")
        self._thread.join(5)
        for s in (self._front, self._wake, self._woken, *self._back.values()):
            s.close()

    def _make_back(self) -> socket.socket:
        return self.ns.udp_socket("::" if ":" in self.server[0] else "0.0.0.0")

    def _pass(self, datagram: Datagram, send: Callable[[bytes], object]) -> None:
        self.recorded.append(datagram)
        for d in self.filter(datagram):
            with contextlib.suppress(OSError):
                send(d.data)

    def _run(self) -> None:
        while True:
            with self._lock:
                back = dict(self._back)
            ready, _, _ = select.select([self._front, self._woken, *back.values()], [], [], 1.0)
            if self._woken in ready and self._woken.recv(100).endswith(b"q"):
                return
            if self._front in ready:
                data, client = self._front.recvfrom(65536)
                with self._lock:
                    if client not in self._back:
                        self._back[client] = self._make_back()
                    out = self._back[client]
                self._pass(Datagram(TO_SERVER, data), lambda b: out.sendto(b, self.server))
            for client, s in back.items():
                if s in ready:
                    with contextlib.suppress(OSError):
                        data = s.recv(65536)
                        self._pass(Datagram(TO_CLIENT, data), lambda b: self._front.sendto(b, client))
