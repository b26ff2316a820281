# SPDX-License-Identifier: Apache-2.0
"""weft forward: ports between a machine and an overlay, by a user without privilege.

    A 10.0.1.1 ---- 10.0.1.2 B        in the overlay: A 10.9.0.1 fd09::1, B 10.9.0.2 fd09::2"""
from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import socket
import struct
import threading

import pytest

from lab import binary, wait_for
from lab.rootless import A4, A6, B4, B6, Rootless, summary


@pytest.fixture
def net(lab):
    return Rootless(lab)


def listen(ns, address: str, port: int) -> socket.socket:
    s = ns.tcp_socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port))
    s.listen(1024)
    return s


def connect(ns, address: str, port: int) -> socket.socket:
    s = ns.tcp_socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    s.connect((address, port))
    return s


def serve(listener: socket.socket, handle) -> None:
    """handle(connection) in a thread for each."""
    def one(c: socket.socket) -> None:
        with c:
            try:
                handle(c)
            except OSError:
                pass

    def loop() -> None:
        while True:
            try:
                c, _ = listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            c.settimeout(20)
            threading.Thread(target=one, args=(c,), daemon=True).start()
    threading.Thread(target=loop, daemon=True).start()


def read_all(c: socket.socket) -> bytes:
    parts = []
    while part := c.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def answer_when_all_is_read(c: socket.socket) -> None:
    c.sendall(hashlib.sha256(read_all(c)).digest())


def end(p) -> dict[str, list[int]]:
    p.signal(signal.SIGINT)
    assert p.wait(10) == 0, p.output
    return summary(p.output)


@pytest.fixture
def web(net):
    """HTTP servers in the overlay at B and on A itself, and what they give."""
    folder = net.lab.dir / "www"
    folder.mkdir()
    (folder / "big").write_bytes(os.urandom(3 << 20))
    for ns, address, port in ((net.b, B4, 80), (net.b, B6, 80), (net.a, "127.0.0.1", 8000)):
        ns.spawn("/usr/bin/python3", "-m", "http.server", str(port), "--bind", address, "-d", str(folder))
        wait_for(lambda: ns.run("curl", "-sSo", "/dev/null", f"http://{url(address, port)}", check=False).returncode == 0, 10, "HTTP server")
    return hashlib.sha256((folder / "big").read_bytes()).hexdigest()


def url(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def fetch(ns, host: str, port: int) -> str:
    return ns.out("sh", "-c", f"curl -gsS --max-time 20 http://{url(host, port)}/big | sha256sum").split()[0]


def test_curl_fetches_both_ways_by_names_and_addresses_of_both_families(net, web):
    p = net.forward("-v", "-L", "8080:bee:80", "-L", f"[::1]:8081:[{B6}]:80", "-R", "9090:localhost:8000", "-R", f"[{A6}]:9091:127.0.0.1:8000")
    assert fetch(net.a, "127.0.0.1", 8080) == fetch(net.a, "::1", 8080) == fetch(net.a, "::1", 8081) == web
    assert fetch(net.b, A4, 9090) == fetch(net.b, A6, 9090) == fetch(net.b, A6, 9091) == web
    # What was not asked for does not listen: on other addresses, or as the other family.
    assert net.b.run("curl", "-sS", "--max-time", "5", f"http://{net.wire.a4}:8080/", check=False).returncode == 7
    assert net.b.run("curl", "-sS", "--max-time", "5", f"http://{A4}:9091/", check=False).returncode == 7
    table = end(p)
    assert table["-L 8080:bee:80"][:3] == [2, 0, 0] and table["-L 8080:bee:80"][4] > 6 << 20
    assert table["-R 9090:localhost:8000"][:3] == [2, 0, 0]
    assert re.search(r"-R 9090:\S+ 10\.9\.0\.2:\d+ \(bee\): connected", p.output), p.output
    assert re.search(r"-R 9090:\S+ \[fd09::2\]:\d+ \(bee\): closed after [\d.]+ s, \d+ bytes to the target, 3\d{6} from it", p.output), p.output


def test_half_close_passes_each_way(net):
    server = listen(net.b, B4, 7)
    serve(server, answer_when_all_is_read)
    p = net.forward("-L", "7000:bee:7")
    data = os.urandom(2 << 20)
    with connect(net.a, "127.0.0.1", 7000) as c:
        c.sendall(data)
        c.shutdown(socket.SHUT_WR)
        assert read_all(c) == hashlib.sha256(data).digest()
    assert end(p)["-L 7000:bee:7"] == [1, 0, 0, len(data), 32]


def reset(c: socket.socket) -> None:
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_reset_passes_each_way(net):
    seen = []

    def reset_or_see(c: socket.socket) -> None:
        if c.recv(1) == b"r":
            reset(c)
        else:
            try:
                c.sendall(b"k")
                seen.append(c.recv(1))
            except ConnectionResetError:
                seen.append("reset")
    server = listen(net.b, B4, 7)
    serve(server, reset_or_see)
    p = net.forward("-L", "7000:bee:7")
    with connect(net.a, "127.0.0.1", 7000) as c:
        c.sendall(b"r")
        with pytest.raises(ConnectionResetError):
            c.recv(1)
    c = connect(net.a, "127.0.0.1", 7000)
    c.sendall(b"x")
    assert c.recv(1) == b"k"
    reset(c)
    c.close()
    assert wait_for(lambda: seen, 5, "the server sees an end") == ["reset"]
    assert end(p)["-L 7000:bee:7"][:3] == [2, 0, 2]


def test_connection_that_fails_is_reset_with_a_reason_and_a_slow_one_holds_up_nobody(net):
    server = listen(net.b, B4, 7)
    serve(server, answer_when_all_is_read)
    p = net.forward("-L", "7000:bee:7", "-L", "7001:bee:8", "-L", "7002:gone:7")
    slow = [connect(net.a, "127.0.0.1", 7002) for _ in range(3)]

    def is_reset() -> None:
        with pytest.raises(ConnectionResetError):
            with connect(net.a, "127.0.0.1", 7001) as c:
                c.recv(1)
    is_reset()
    with connect(net.a, "127.0.0.1", 7000) as c:
        c.shutdown(socket.SHUT_WR)
        assert read_all(c) == hashlib.sha256(b"").digest()
    assert re.search(r"-L 7001:bee:8: 127\.0\.0\.1:\d+: not connected: Connection refused", p.output), p.output
    for _ in range(40):
        is_reset()
    assert p.output.count("not connected") == 6  # a minute
    table = end(p)
    assert table["-L 7001:bee:8"][:2] == [41, 41] and table["-L 7002:gone:7"][:2] == [3, 0]
    for c in slow:
        c.close()


def test_thousand_connections_at_once_and_no_more_than_the_limit(net):
    server = listen(net.b, B4, 7)
    serve(server, lambda c: [c.sendall(x) for x in iter(lambda: c.recv(100), b"")])
    p = net.forward("-L", "7000:bee:7", "--connections", "600")
    clients = [connect(net.a, "127.0.0.1", 7000) for _ in range(1000)]
    for i, c in enumerate(clients[:600]):
        c.sendall(b"%d" % i)
    for i, c in enumerate(clients[:600]):
        assert c.recv(100) == b"%d" % i
    # The others wait to be accepted; each that ends makes room for one.
    clients[700].sendall(b"late")
    clients[700].settimeout(0.3)
    with pytest.raises(TimeoutError):
        clients[700].recv(100)
    for c in clients[:600]:
        c.close()
    clients[700].settimeout(10)
    assert clients[700].recv(100) == b"late"
    for c in clients[600:]:
        c.close()
    wait_for(lambda: "600 connections: no more are accepted until one ends" in p.output, 5, "the limit is told")
    assert end(p)["-L 7000:bee:7"][0] >= 601


def upper(s: socket.socket) -> None:
    def loop() -> None:
        while True:
            try:
                data, at = s.recvfrom(65536)
                s.sendto(data.upper() + b"!", at)
            except TimeoutError:
                continue
            except OSError:
                return
    threading.Thread(target=loop, daemon=True).start()


@pytest.mark.parametrize("side", ["-L", "-R"])
@pytest.mark.parametrize("family", ["4", "6"])
def test_datagrams_keep_their_boundaries_and_find_back(net, side, family):
    here, there = ("127.0.0.1", B4) if family == "4" else ("::1", B6)
    own = A4 if family == "4" else A6
    if side == "-L":
        server, client_ns, at = net.b.udp_socket(there, 53), net.a, here
        p = net.forward("-v", "-L", f"udp:{url(here, 5353)}:{url(there, 53)}", "--udp-timeout", "5")
    else:
        server, client_ns, at = net.a.udp_socket(here, 53), net.b, own
        p = net.forward("-v", "-R", f"udp:{url(own, 5353)}:{url(here, 53)}", "--udp-timeout", "5")
    upper(server)
    any_address = "0.0.0.0" if family == "4" else "::"
    clients = [client_ns.udp_socket(any_address) for _ in range(5)]
    sizes = [1, 0, 1200, 1200, 1200, 7, 1300, 3000, 20000]
    for c in clients:  # a little at first: what waits for the handshake has a limit of 64 KiB
        c.sendto(b"", (at, 5353))
        assert c.recvfrom(10)[0] == b"!"
    for k, c in enumerate(clients):
        for n in sizes:
            c.sendto(b"%c" % (97 + k) * n, (at, 5353))
        got = [c.recvfrom(65536) for _ in sizes]
        assert [x for x, _ in got] == [b"%c" % (65 + k) * n + b"!" for n in sizes]
        assert {a[:2] for _, a in got} == {(at, 5353)}
    wait_for(lambda: p.output.count(": silent after") >= 5, 20, "flows end")
    numbers = next(iter(end(p).values()))
    assert numbers[:3] == [5, 0, 0] and numbers[5:] == [5 * len(sizes) + 5, 5 * len(sizes) + 5, 0]


def test_refused_datagrams_are_counted_and_told_once_and_flow_again_later(net):
    p = net.forward("-L", "udp:5353:bee:53")
    c = net.a.udp_socket("127.0.0.1")
    c.connect(("127.0.0.1", 5353))
    for n in range(3):
        c.send(b"x")
        wait_for(lambda: net.b.run("true").returncode == 0, 1)
    wait_for(lambda: "the target refuses: nobody listens there" in p.output, 5, "a refusal")
    upper(net.b.udp_socket(B4, 53))

    def asks() -> bool:
        c.settimeout(0.2)
        try:
            c.send(b"y")
            return c.recv(10) == b"Y!"
        except OSError:
            return False
    wait_for(asks, 5, "an answer")
    assert p.output.count("refuses") == 1
    assert end(p)["-L udp:5353:bee:53"][2] >= 1


def test_wildcard_answers_from_the_address_that_was_asked(net):
    net.a.ip("address add 10.0.1.50/24 dev eth0")
    upper(net.b.udp_socket(B4, 53))
    net.forward("-L", "udp:*:5353:bee:53")
    c = net.b.udp_socket("0.0.0.0")
    for at in ("10.0.1.50", "10.0.1.1"):
        c.sendto(b"x", (at, 5353))
        assert c.recvfrom(10) == (b"X!", (at, 5353))


def test_thick_datagrams_of_two_flows_come_in_order_and_sparse_ones_after_them(net):
    """So thick, unless the machine is slow, that the sockets rest between turns, both ways."""
    server = net.b.udp_socket(B4, 53)

    def echo() -> None:
        while True:
            try:
                data, at = server.recvfrom(2000)
                server.sendto(data, at)
            except OSError:
                return
    threading.Thread(target=echo, daemon=True).start()
    p = net.forward("-L", "udp:5353:bee:53")
    clients = [net.a.udp_socket("127.0.0.1") for _ in range(2)]
    for c in clients:
        c.connect(("127.0.0.1", 5353))
        c.send(b"first")
        assert c.recv(2000) == b"first"
    window, total = 50, 2500
    for start in range(0, total, window):
        sent = [struct.pack(">I", k) * 200 for k in range(start, start + window)]
        for data in sent:
            for c in clients:
                c.send(data)
        for c in clients:
            assert [c.recv(2000) for _ in sent] == sent
    for c in clients:
        c.send(b"last")
        assert c.recv(2000) == b"last"
    numbers = end(p)["-L udp:5353:bee:53"]
    assert numbers[:3] == [2, 0, 0] and numbers[5:] == [2 * (total + 2), 2 * (total + 2), 0]
    server.close()


def test_iperf3_runs_through_it(net):
    net.b.spawn("iperf3", "-s", "-B", B4)

    def measure(*args: str) -> dict:
        # Between two tests its server does not listen for a moment.
        wait_for(lambda: net.b.run("sh", "-c", "ss -tln | grep -q :5201", check=False).returncode == 0, 5, "iperf3 listens")
        return json.loads(net.a.out("iperf3", "-J", "-t", "1", "-c", "127.0.0.1", *args))["end"]
    p = net.forward("-L", f"5201:{B4}:5201", "-L", f"udp:5201:{B4}:5201")
    for extra in ([], ["-R"], ["-P", "4"]):
        assert measure(*extra)["sum_received"]["bits_per_second"] > 0
    for extra in ([], ["-R"]):
        assert measure("-u", "-b", "20M", "-l", "1200", *extra)["sum"]["lost_percent"] < 100
    assert end(p)[f"-L 5201:{B4}:5201"][1] == 0


def test_hangup_reads_the_file_again(net):
    server = listen(net.b, B4, 7)
    serve(server, answer_when_all_is_read)
    p = net.forward("-L", "7000:10.9.0.2:7")
    with connect(net.a, "127.0.0.1", 7000) as c:
        net.file.write_text(net.file.read_text().replace("Name = gone", "Name = away"))
        p.signal(signal.SIGHUP)
        wait_for(lambda: "read again" in p.output, 5, "reload")
        c.sendall(b"still")
        c.shutdown(socket.SHUT_WR)
        assert read_all(c) == hashlib.sha256(b"still").digest()
    net.file.write_text("[Interface]\nPrivateKey = nonsense\n")
    p.signal(signal.SIGHUP)
    wait_for(lambda: "PrivateKey" in p.output, 5, "what is wrong is told")
    assert end(p)["-L 7000:10.9.0.2:7"][0] == 1


@pytest.mark.parametrize("args, code, text", [
    (["-L", "8080:bee"], 2, "a part is missing"),
    (["-L", "8080:fd09::2:80"], 2, "an IPv6 address in brackets"),
    (["-R", "x:localhost:80"], 2, '"x" is no port to listen on'),
    ([], 2, "a rule is wanted, as in -L 8080:db:80"),
    (["8080:bee:80"], 2, "rules are written with -L or -R"),
    (["-L", "8080:wasp:80"], 1, 'the host "wasp" is no IP address and no peer\'s Name'),
    (["-L", "192.0.2.1:8080:bee:80"], 1, "cannot listen on 192.0.2.1:8080"),
    (["-R", "10.9.0.99:8080:localhost:80"], 1, "10.9.0.99:8080"),
    (["-L", "80:bee:80"], 1, "ports below 1024 need root"),
])
def test_wrong_rules_say_which_part_is_wrong(net, args, code, text):
    r = net.run("forward", *args)
    assert r.returncode == code and text in r.stderr, r.stderr


def test_help_says_it_all(net):
    r = net.a.run(binary(), "forward", "--help")
    assert r.returncode == 0 and "-L [udp:][BIND:]PORT:HOST:PORT" in r.stdout
    assert net.a.run(binary(), "forward", check=False).returncode == 2
