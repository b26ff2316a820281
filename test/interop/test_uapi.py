# SPDX-License-Identifier: Apache-2.0
"""What weft answers over the socket of wg, beside wireguard-go: every key, every kind of wrong input, odd readers and writers."""
from __future__ import annotations

import errno
import re
import socket

import pytest

from lab import GoDevice, Conf, Lab, keys
from lab.weft import Run

KEY, KEY2, PRIVATE = "a8" * 32, "b8" * 32, "e84b5a6d2717c1003a13b431570353dbaca9146cf150c5f8575680feba52027a"
ZERO = "00" * 32
PEER = f"public_key={KEY}\n"


class Client:
    def __init__(self, ns, name: str):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.settimeout(20)
        self.s.connect(f"/proc/{ns.pid}/root/run/wireguard/{name}.sock")

    def send(self, text: str) -> None:
        self.s.sendall(text.encode())

    def reply(self) -> str:
        """To its empty line; shorter when the other side closes."""
        text = b""
        while not text.endswith(b"\n\n") and (more := self.s.recv(1 << 16)):
            text += more
        return text.decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.s.close()


@pytest.fixture(scope="module")
def both():
    with Lab() as lab:
        ns, other = lab.namespace("u"), lab.namespace("g")
        Run(ns, "wg0")
        GoDevice(other, "wg0", Conf(keys().private, []))
        yield (ns, other)


def ask(ns, text: str) -> str:
    with Client(ns, "wg0") as c:
        c.send(text)
        return c.reply()


def number(reply: str) -> int:
    return abs(int(re.search(r"errno=(-?\d+)\n\n\Z", reply)[1]))


def reset(ns) -> None:
    assert ask(ns, f"set=1\nprivate_key={PRIVATE}\nreplace_peers=true\nlisten_port=0\nfwmark=0\n\n") == "errno=0\n\n"


SETTINGS = [
    "private_key=" + ZERO, "private_key=" + PRIVATE, "listen_port=40001", "fwmark=0", "fwmark=4294967295", "replace_peers=true",
    PEER + "preshared_key=" + KEY2, PEER + "preshared_key=" + ZERO, PEER + "endpoint=192.0.2.1:1", PEER + "endpoint=[2001:db8::1]:65535",
    PEER + "persistent_keepalive_interval=0", PEER + "persistent_keepalive_interval=65535", PEER + "protocol_version=1",
    PEER + "allowed_ip=10.1.2.3/8\nallowed_ip=fd00::1/16\nallowed_ip=0.0.0.0/0\nallowed_ip=::/0",
    PEER + "allowed_ip=10.0.0.0/8\nreplace_allowed_ips=true\nallowed_ip=11.0.0.0/8",
    PEER + f"allowed_ip=10.0.0.0/8\npublic_key={KEY2}\nallowed_ip=10.0.0.0/8",
    PEER + "remove=true", PEER + "update_only=true\nallowed_ip=10.0.0.0/8", PEER + PEER + "update_only=true\nallowed_ip=10.0.0.0/8",
    PEER + "allowed_ip=10.0.0.0/8\n" + PEER + "remove=true\n" + PEER[:-1], "public_key=" + KEY.upper(), "",
]


@pytest.mark.parametrize("lines", SETTINGS)
def test_setting_shows_as_with_wireguard_go(both, lines):
    """Values that go in come out the same, in the same lines; peers in any order."""
    seen = []
    for ns in both:
        reset(ns)
        assert ask(ns, f"set=1\n{lines}\n\n" if lines else "set=1\n\n") == "errno=0\n\n"
        reply = ask(ns, "get=1\n\n")
        if "listen_port=4" not in lines:
            reply = re.sub(r"listen_port=\d+\n", "listen_port\n", reply)
        device, *peers = re.split(r"(?=public_key=)", reply.removesuffix("errno=0\n\n"))
        seen.append((device, sorted("".join(sorted(p.splitlines(True))) for p in peers)))
    assert seen[0] == seen[1]


WRONG = [
    "nonsense=1", "no equals", "=", "private_key=", "private_key=" + KEY[1:], "private_key=" + KEY + "0", "private_key=g" + KEY[1:],
    "listen_port=65536", "listen_port=-1", "listen_port=", "listen_port=1x", "listen_port= 1", "fwmark=4294967296", "fwmark=-1", "fwmark=0x1",
    "replace_peers=false", "replace_peers=", "preshared_key=" + KEY, "remove=true", "endpoint=1.2.3.4:5", "protocol_version=1",
    "public_key=", "public_key=" + KEY[2:], PEER + "private_key=" + KEY, PEER + "listen_port=1", PEER + "fwmark=1", PEER + "replace_peers=true",
    PEER + "preshared_key=", PEER + "preshared_key=" + KEY[2:], PEER + "remove=false", PEER + "remove=1", PEER + "update_only=false",
    PEER + "endpoint=", PEER + "endpoint=1.2.3.4", PEER + "endpoint=1.2.3.4:65536", PEER + "endpoint=example.org:5", PEER + "endpoint=1.2.3:4",
    PEER + "endpoint=2001:db8::1:5", PEER + "persistent_keepalive_interval=65536", PEER + "persistent_keepalive_interval=off", PEER + "persistent_keepalive_interval=-1",
    PEER + "replace_allowed_ips=false", PEER + "allowed_ip=", PEER + "allowed_ip=1.2.3.4", PEER + "allowed_ip=1.2.3.4/33", PEER + "allowed_ip=::/129",
    PEER + "allowed_ip=1.2.3.4/-1", PEER + "allowed_ip=1.2.3.0/24/1", PEER + "protocol_version=0", PEER + "protocol_version=2", PEER + "nonsense=1",
    PEER + "last_handshake_time_sec=1", PEER + "rx_bytes=1",
]


@pytest.mark.parametrize("lines", WRONG)
def test_wrong_setting_gets_the_errno_of_wireguard_go_and_changes_nothing(both, lines):
    """wireguard-go may have applied the lines before; weft applies all or none."""
    replies = [ask(ns, f"set=1\n{lines}\n\n") for ns in both]
    assert number(replies[0]) == number(replies[1]) == (errno.EPROTO if lines == "no equals" else errno.EINVAL)
    reset(both[0])
    before = ask(both[0], "get=1\n\n")
    assert number(ask(both[0], f"set=1\nlisten_port=40002\n{lines}\n\n")) != 0
    assert ask(both[0], "get=1\n\n") == before


def test_port_that_is_taken_is_told_as_by_wireguard_go(both):
    for ns in both:
        with ns.udp_socket(port=40003):
            assert number(ask(ns, "set=1\nlisten_port=40003\n\n")) == errno.EADDRINUSE


def test_prefix_with_a_minus_goes(both):
    """As newer versions have it; wireguard-go of Debian 12 does not know it."""
    ns = both[0]
    reset(ns)
    assert ask(ns, f"set=1\n{PEER}allowed_ip=10.0.0.0/8\nallowed_ip=11.0.0.0/8\npublic_key={KEY2}\nallowed_ip=12.0.0.0/8\n\n") == "errno=0\n\n"
    # Of another peer, and what is not there: nothing happens, and that is right.
    assert ask(ns, f"set=1\n{PEER}allowed_ip=-10.0.0.0/8\nallowed_ip=-12.0.0.0/8\nallowed_ip=-13.0.0.0/8\n\n") == "errno=0\n\n"
    assert re.findall("allowed_ip=(.*)", ask(ns, "get=1\n\n")) == ["11.0.0.0/8", "12.0.0.0/8"]
    assert number(ask(ns, f"set=1\n{PEER}allowed_ip=-10.0.0.0/33\n\n")) == errno.EINVAL


@pytest.mark.parametrize("step", [1, 3, 7])
def test_requests_in_pieces_are_answered_in_order(both, step):
    text = f"set=1\nreplace_peers=true\n{PEER}allowed_ip=10.0.0.0/8\n\nget=1\n\nset=1\nnonsense=1\n\nget=1\n\n"
    for ns in both[:1]:
        with Client(ns, "wg0") as c:
            for i in range(0, len(text), step):
                c.send(text[i:i + step])
            got = ""
            while got.count("errno=") < 4 or not got.endswith("\n\n"):
                got += c.s.recv(5).decode()
    a, b, c_, d = [p for p in got.split("\n\n") if p]
    assert (a, c_) == ("errno=0", "errno=-22") and b == d and "allowed_ip=10.0.0.0/8" in b


def test_clients_that_stop_reading_or_writing_hold_up_nobody(both):
    """A get is 10 MB here: no socket holds it."""
    ns = both[0]
    peers = "".join(f"public_key={i:064x}\nallowed_ip=10.{i >> 16}.{i >> 8 & 255}.{i & 255}/32\n" for i in range(1, 30001))
    assert ask(ns, f"set=1\nreplace_peers=true\n{peers}\n") == "errno=0\n\n"
    deaf, half = [Client(ns, "wg0") for _ in range(20)], [Client(ns, "wg0") for _ in range(20)]
    for c in deaf:
        c.send("get=1\n\nget=1\n\n")
    for c in half:
        c.send(f"set=1\nreplace_peers=true\n{PEER}allowed_")
    assert ask(ns, "get=1\n\n").count("public_key=") == 30000
    assert ask(ns, "set=1\nfwmark=7\n\n") == "errno=0\n\n"
    # Who reads on later gets the whole of it, without the peers that went meanwhile.
    assert ask(ns, "set=1\nreplace_peers=true\n\n") == "errno=0\n\n"
    late = deaf[0].reply()
    assert number(late) == 0 and 0 < late.count("public_key=") < 30000
    for c in deaf + half:
        c.s.close()
    assert "fwmark=7" in ask(ns, "get=1\n\n")


@pytest.mark.parametrize("text", ["set=1\n" + "x" * 300, "set=1\n" + "a=" + "b" * 5000 + "\n\n", "x" * 70000])
def test_endless_line_ends_its_connection_alone(both, text):
    with Client(both[0], "wg0") as c:
        try:
            c.send(text)
        except (BrokenPipeError, ConnectionResetError):
            pass
        try:
            assert number(c.reply()) == errno.EMSGSIZE and c.s.recv(1) == b""
        except ConnectionResetError:
            pass
    assert number(ask(both[0], "get=1\n\n")) == 0
