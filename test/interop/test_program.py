# SPDX-License-Identifier: Apache-2.0
"""A program with libweft, and wireguard-go behind the wire.

    A 10.0.1.1, a program, 10.99.0.1 inside ---- 10.0.1.2 B, wireguard-go, 10.99.0.2 inside

The program is this one: its node is made by the class that examples/echo.py has, while the thread is
in A's namespace, so that the outer packets leave from there."""
from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import random
import re
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from lab import Lab, pair
from lab.device import A4, A6, B4, B6, GO, ends
from lab.wait import wait_for

TOP = Path(__file__).resolve().parent.parent.parent
SIZE = 8 << 20
NO_TUN = 1

_spec = importlib.util.spec_from_file_location("weft_echo_example", TOP / "examples" / "echo.py")
echo = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(echo)


@pytest.fixture(scope="module")
def library():
    """Beside build/weft, which is built with it."""
    return str(TOP / "build" / "include" / "libweft.so.0")


class Program(echo.Node):
    def __init__(self, text, flags, library):
        self.lib = ctypes.CDLL(library)
        self.lib.weft_node_free.restype = None
        self.handle = ctypes.c_void_p()
        config = echo.Config(size=ctypes.sizeof(echo.Config), text=text.encode(), flags=flags)
        self.call("weft_node_new", ctypes.byref(config), ctypes.byref(self.handle))
        self.call("weft_node_start", self.handle)

    def open(self, function, network, address):
        fd = ctypes.c_int()
        self.call(function, self.handle, network.encode(), address.encode(), None, ctypes.byref(fd))
        return socket.socket(fileno=fd.value)


@pytest.fixture(params=[0, NO_TUN], ids=["tun", "no tun"])
def wire(request, library):
    with Lab() as lab:
        w = pair(lab)
        e = ends(w.a4, w.b4)
        e.a_conf.peers[0].extra.append("Name = go")
        e.up_b(w.b, GO)
        with w.a.entered():
            program = Program(e.a_conf.quick_text(), request.param, library)
        with program:
            yield w, program


def stream(out, listener, accept):
    """SIZE bytes each way over one connection, one way closed before the other begins."""
    data = random.Random(7).randbytes(SIZE)
    answer = {}

    def serve():
        connection, answer["from"] = accept(listener)
        with connection:
            connection.settimeout(60)
            got = b"".join(iter(lambda: connection.recv(1 << 18), b""))
            connection.sendall(hashlib.sha256(got).digest() + got[::-1])
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    out.settimeout(60)
    out.sendall(data)
    out.shutdown(socket.SHUT_WR)
    back = b"".join(iter(lambda: out.recv(1 << 18), b""))
    thread.join(60)
    assert back == hashlib.sha256(data).digest() + data[::-1]
    return answer["from"]


@pytest.mark.parametrize("address, family", [(B4, socket.AF_INET), (B6, socket.AF_INET6), ("go", socket.AF_INET)])
def test_a_program_dials_what_is_behind_wireguard_go(wire, address, family):
    w, program = wire
    with w.b.tcp_socket(family, 60) as listener:
        listener.bind((B6 if family == socket.AF_INET6 else B4, 0))
        listener.listen(1)
        port = listener.getsockname()[1]
        with program.dial("tcp", f"[{address}]:{port}" if ":" in address else f"{address}:{port}") as out:
            came_from = stream(out, listener, lambda s: s.accept())
    assert came_from[0] == (A6 if family == socket.AF_INET6 else A4)


@pytest.mark.parametrize("address, family", [(A4, socket.AF_INET), (A6, socket.AF_INET6)])
def test_what_is_behind_wireguard_go_reaches_a_listening_program(wire, address, family):
    w, program = wire
    with program.open("weft_listen", "tcp", ":0") as listener, w.b.tcp_socket(family, 60) as out:
        listener.settimeout(60)
        out.connect((address, listener.getsockname()[1]))
        came_from = stream(out, listener, lambda s: s.accept())
    assert came_from[0] == (B6 if family == socket.AF_INET6 else f"::ffff:{B4}")


def test_datagrams_pass_both_ways(wire):
    w, program = wire
    with program.open("weft_packet", "udp4", ":0") as ours, w.b.udp_socket(B4) as theirs:
        ours.settimeout(10)
        theirs.settimeout(10)
        for size in (0, 1, 1200, 1392, 9000):
            ours.sendto(bytes(size), theirs.getsockname())
            data, where = theirs.recvfrom(65536)
            assert (len(data), where[0]) == (size, A4)
            theirs.sendto(data + b"x", where)
            assert len(ours.recvfrom(65536)[0]) == size + 1


@pytest.mark.parametrize("way", [[], ["-R"]], ids=["up", "down"])
def test_iperf3_behind_wireguard_go_sees_no_error(wire, way):
    """A control connection and a data connection of iperf3's own, through sockets of the library."""
    w, program = wire
    server = w.b.spawn("iperf3", "-s", "-1", "-B", B4, "-p", "5201")
    wait_for(lambda: w.b.run("ss", "-Hltn", "sport = :5201").stdout.strip(), 10, "iperf3 listens")
    with socket.socket() as front:
        front.bind(("127.0.0.1", 0))
        front.listen(8)
        port = front.getsockname()[1]

        def pump(a, b):
            try:
                for chunk in iter(lambda: a.recv(1 << 18), b""):
                    b.sendall(chunk)
                b.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        def forward():
            while True:
                try:
                    inside = front.accept()[0]
                except OSError:
                    return
                outside = program.dial("tcp", f"{B4}:5201")
                for pair_of in ((inside, outside), (outside, inside)):
                    threading.Thread(target=pump, args=pair_of, daemon=True).start()
        threading.Thread(target=forward, daemon=True).start()
        r = subprocess.run(["iperf3", "-c", "127.0.0.1", "-p", str(port), "-n", "20M", "-J", *way], capture_output=True, text=True, timeout=60)
        front.shutdown(socket.SHUT_RDWR)
    assert r.returncode == 0, r.stdout + r.stderr
    # Up, iperf3 counts without waiting for what is under way.
    assert int(re.search(r'"sum_received":\s*{[^}]*"bytes":\s*(\d+)', r.stdout)[1]) >= ((20 if way else 1) << 20)
    server.wait(10)
