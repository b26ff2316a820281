# SPDX-License-Identifier: Apache-2.0
"""Transfers of known content: every byte is compared by its SHA-256."""
from __future__ import annotations

import hashlib
import random
import socket
import threading

from .ns import Namespace

CHUNK = 1 << 18


def _family(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def transfer(sender: Namespace, receiver: Namespace, address: str, size: int, seed: int = 1, timeout: float = 60.0) -> None:
    """Sends size seeded bytes over one TCP connection from sender to address, which is the receiver's.

    Fails when what arrived differs. Returns when the receiver has read the end of the stream."""
    data = random.Random(seed).randbytes(size)
    with receiver.tcp_socket(_family(address), timeout) as listener:
        listener.bind((address, 0))
        listener.listen(1)
        with sender.tcp_socket(_family(address), timeout) as out:
            failed: list[Exception] = []

            def send() -> None:
                try:
                    out.connect(listener.getsockname()[:2])
                    out.sendall(data)
                    out.shutdown(socket.SHUT_WR)
                except OSError as e:
                    failed.append(e)
            thread = threading.Thread(target=send, daemon=True)
            thread.start()
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                raise AssertionError(f"{sender.name} to {address}: no connection in {timeout:g} s {failed}") from None
            digest, got = hashlib.sha256(), 0
            with connection:
                connection.settimeout(timeout)
                while True:
                    try:
                        chunk = connection.recv(CHUNK)
                    except TimeoutError:
                        raise AssertionError(f"{sender.name} to {address}: stalled at {got} of {size} bytes {failed}") from None
                    if not chunk:
                        break
                    digest.update(chunk)
                    got += len(chunk)
            thread.join(timeout)
    if failed:
        raise AssertionError(f"{sender.name} to {address}: {failed[0]} after {got} of {size} bytes")
    assert got == size, f"{got} of {size} bytes arrived"
    assert digest.digest() == hashlib.sha256(data).digest(), f"content differs (seed {seed}, {size} bytes)"


def datagrams(sender: Namespace, receiver: Namespace, address: str, count: int = 2000, window: int = 40) -> list[int]:
    """Sends numbered datagrams of many sizes, never more than window ahead of the receiver, and returns the numbers as
    they arrived. A window is far below what any queue on the way holds, so what is lost is lost by the tunnel."""
    got: list[int] = []
    with receiver.udp_socket(address, timeout=5) as inbound, sender.udp_socket("::" if ":" in address else "0.0.0.0") as out:
        target = inbound.getsockname()[:2]
        for n in range(count):
            out.sendto(n.to_bytes(4, "big") + bytes(n * 37 % 1300), target)
            while n + 1 - len(got) >= window or (n + 1 == count and len(got) < count):
                try:
                    got.append(int.from_bytes(inbound.recv(2000)[:4], "big"))
                except TimeoutError:
                    return got
        inbound.settimeout(0.05)
        try:
            while True:
                got.append(int.from_bytes(inbound.recv(2000)[:4], "big"))
        except TimeoutError:
            return got
