# SPDX-License-Identifier: Apache-2.0
"""weft proxy as an ordinary user: SOCKS 5 and HTTP into the overlay.

    A 10.0.1.1 ---- 10.0.1.2 B   with wg0: 10.99.0.2, fd99::2; servers of HTTP, DNS and UDP echo

A has no tunnel: what reaches B's overlay addresses went through the proxy."""
import hashlib
import os
import signal
import socket
import struct
import threading

import pytest

from lab import binary, stays, wait_for
from lab import procfs
from lab.overlay import B4, B6, DNS_NAME, far
from lab.user import NOBODY, as_nobody

SOCKS, HTTP = 1080, 8080


class Proxy:
    def __init__(self, f, *options, socks=f"127.0.0.1:{SOCKS}", http=f"127.0.0.1:{HTTP}"):
        self.f = f
        self.process = f.a.spawn(*as_nobody(binary(), "proxy", "--socks", socks, "--http", http, *options, str(f.conf)), log="proxy")
        wait_for(lambda: "HTTP on" in self.process.output or not self.process.is_running, 10, "the proxy")
        assert self.process.is_running, self.process.output

    def curl(self, *argv, check=True):
        return self.f.a.run(*as_nobody("curl", "-sS", "-m", "20", *argv), check=check)

    def tcp(self):
        s = self.f.a.tcp_socket()
        s.connect(("127.0.0.1", SOCKS))
        return s

    def connect(self, request):
        """The connection, and the reply's code, of a SOCKS request without its first byte."""
        s = self.tcp()
        s.sendall(b"\5\1\0")
        assert take(s, 2) == b"\5\0"
        s.sendall(b"\5" + request)
        return s, reply(s)


def take(s, n):
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            raise EOFError(data)
        data += more
    return data


def reply(s):
    """Code, address and port of a SOCKS reply."""
    version, code, _, kind = take(s, 4)
    assert version == 5
    family, n = (socket.AF_INET, 4) if kind == 1 else (socket.AF_INET6, 16)
    return code, socket.inet_ntop(family, take(s, n)), struct.unpack(">H", take(s, 2))[0]


def address(host, port):
    if ":" in host:
        return b"\4" + socket.inet_pton(socket.AF_INET6, host) + struct.pack(">H", port)
    if host[0].isdigit():
        return b"\1" + socket.inet_aton(host) + struct.pack(">H", port)
    return b"\3" + bytes([len(host)]) + host.encode() + struct.pack(">H", port)


@pytest.fixture
def there(lab):
    return far(lab, ["DNS = 10.99.0.2"])


@pytest.fixture
def proxy(there):
    return Proxy(there)


WAYS = [["--socks5", f"127.0.0.1:{SOCKS}"], ["--socks5-hostname", f"127.0.0.1:{SOCKS}"], ["--proxy", f"http://127.0.0.1:{HTTP}"],
        ["-p", "--proxy", f"http://127.0.0.1:{HTTP}"]]


def test_every_way_leads_to_every_address(proxy):
    for way in WAYS:
        hosts = [B4, f"[{B6}]"]
        if way[0] != "--socks5":  # there curl resolves names itself
            hosts += ["peer", DNS_NAME]
        for host in hosts:
            assert proxy.curl(*way, f"http://{host}/hello").stdout == "hello from b\n", (way, host)
    assert set(proxy.f.server.questions) == {DNS_NAME}


def test_listens_on_ipv6_and_on_any_port(there):
    p = Proxy(there, socks="[::1]:0", http="0")
    lines = dict(line.rsplit(" on ", 1) for line in p.process.output.splitlines())
    assert p.curl("-6", "--socks5-hostname", lines["SOCKS5"], "http://peer/hello").stdout == "hello from b\n"
    assert lines["HTTP"].startswith("127.0.0.1:")
    assert p.curl("--proxy", f"http://{lines['HTTP']}", "http://peer/hello").stdout == "hello from b\n"


def test_fifty_megabytes_arrive_as_they_were_both_ways(proxy):
    data = os.urandom(50_000_000)
    (proxy.f.files / "big").write_bytes(data)
    want = hashlib.sha256(data).hexdigest()
    for way in WAYS:
        out = proxy.f.lab.dir / "out"
        out.unlink(missing_ok=True)
        out.touch()
        os.chown(out, NOBODY, NOBODY)
        proxy.curl(*way, "-o", str(out), f"http://{B4}/big")
        assert hashlib.sha256(out.read_bytes()).hexdigest() == want, way
    # Towards B, with the end of the stream handed on.
    with proxy.f.b.entered():
        sink = socket.create_server((B4, 99))
    s, (code, *_) = proxy.connect(b"\1\0" + address(B4, 99))
    assert code == 0
    far_end, _ = sink.accept()
    far_end.settimeout(20)
    got = hashlib.sha256()
    sender = threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR)))
    sender.start()
    while more := far_end.recv(1 << 20):
        got.update(more)
    sender.join()
    assert got.hexdigest() == want
    far_end.sendall(b"answer after the end")
    far_end.close()
    assert take(s, 20) == b"answer after the end" and s.recv(1) == b""
    sink.close()


def test_what_a_client_sends_before_the_reply_is_not_lost(proxy):
    request = f"GET /hello HTTP/1.0\r\nHost: {B4}\r\n\r\n".encode()
    s = proxy.tcp()
    s.sendall(b"\5\1\0" + b"\5\1\0" + address(B4, 80) + request)
    assert take(s, 2) == b"\5\0" and reply(s)[0] == 0
    assert s.makefile("rb").read().endswith(b"hello from b\n")
    h = proxy.f.a.tcp_socket()
    h.connect(("127.0.0.1", HTTP))
    h.sendall(f"CONNECT {B4}:80 HTTP/1.1\r\n\r\n".encode() + request)
    assert h.makefile("rb").read().endswith(b"hello from b\n")
    # One byte at a time.
    for port, parts in ((SOCKS, b"\5\1\0" + b"\5\1\0" + address("peer", 80) + request), (HTTP, b"CONNECT peer:80 HTTP/1.1\r\nA: b\r\n\r\n" + request)):
        t = proxy.f.a.tcp_socket()
        t.connect(("127.0.0.1", port))
        t.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(parts)):
            t.sendall(parts[i:i + 1])
        assert t.makefile("rb").read().endswith(b"hello from b\n")


def test_socks_tells_why_not_by_its_code(proxy):
    cases = [(b"\1\0" + address(B4, 81), 5), (b"\1\0" + address("10.98.0.1", 80), 3), (b"\1\0" + address("no.such.example", 80), 4),
             (b"\2\0" + address(B4, 80), 7), (b"\7\0" + address(B4, 80), 7), (b"\1\0\2" + b"\0" * 6, 8)]
    for request, want in cases:
        s, (code, host, port) = proxy.connect(request)
        assert (code, host, port) == (want, "0.0.0.0", 0), request
        assert s.recv(1) == b""
    s = proxy.tcp()
    s.sendall(b"\5\1\2")  # a method that is not wanted here
    assert take(s, 2) == b"\5\xff" and s.recv(1) == b""
    s = proxy.tcp()
    s.sendall(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises((EOFError, ConnectionResetError)):
        take(s, 1)


def test_http_tells_why_not_by_status_and_words(proxy):
    way = ["-o", "-", "-w", "%{http_code}", "--proxy", f"http://127.0.0.1:{HTTP}"]
    cases = [("http://peer:81/", "Connection refused\n502"), ("http://10.98.0.1/", "AllowedIPs, nor an address of this node\n502"),
             ("http://no.such.example/", "there is no such name\n502")]
    for url, want in cases:
        assert proxy.curl(*way, url).stdout.endswith(want), url
        r = proxy.curl("-p", *way, url, check=False)
        assert r.returncode == 56 and "502" in r.stderr
    assert "absolute URI" in proxy.curl(f"http://127.0.0.1:{HTTP}/").stdout
    assert proxy.curl("-o", "/dev/null", "-w", "%{http_code}", f"http://127.0.0.1:{HTTP}/").stdout == "400"


def test_target_that_is_silent_times_out_and_holds_up_nobody(proxy):
    proxy.f.b.nft("table inet t {\nchain c {\ntype filter hook input priority 0\ntcp dport 9 drop\n}\n}\n")
    s = proxy.tcp()
    s.sendall(b"\5\1\0" + b"\5\1\0" + address(B4, 9))
    assert take(s, 2) == b"\5\0"
    h = proxy.f.a.tcp_socket(timeout=30)
    h.connect(("127.0.0.1", HTTP))
    h.sendall(f"CONNECT {B4}:9 HTTP/1.1\r\n\r\n".encode())
    for way in WAYS:
        assert proxy.curl("-m", "5", *way, f"http://{B4}/hello").stdout == "hello from b\n"
    s.settimeout(30)
    assert reply(s)[0] == 6
    assert h.makefile("rb").read().startswith(b"HTTP/1.1 504 ")


def test_names_without_dns_are_those_of_peers(lab):
    p = Proxy(far(lab))
    assert p.curl(*WAYS[1], "http://peer/hello").stdout == "hello from b\n"
    assert "no peer has this name, and the configuration has no DNS" in p.curl(*WAYS[2], f"http://{DNS_NAME}/").stdout
    assert p.connect(b"\1\0" + address(DNS_NAME, 80))[1][0] == 4


def test_reload_brings_new_names_and_keeps_connections(proxy):
    s, (code, *_) = proxy.connect(b"\1\0" + address("peer", 80))
    assert code == 0
    proxy.f.conf.write_text(proxy.f.conf.read_text().replace("Name = peer", "Name = other"))
    proxy.process.signal(signal.SIGHUP)
    wait_for(lambda: proxy.connect(b"\1\0" + address("other", 80))[1][0] == 0, 5, "the new name")
    s.sendall(b"GET /hello HTTP/1.0\r\n\r\n")
    assert s.makefile("rb").read().endswith(b"hello from b\n")


# --- users ---
def test_users_must_tell_their_password(there):
    users = there.lab.dir / "users"
    users.touch(mode=0o600)
    users.write_text("# who may\nalice:secret\nbob:b:b\n")
    os.chown(users, NOBODY, NOBODY)
    p = Proxy(there, "--user", str(users), socks=f"0.0.0.0:{SOCKS}", http=f"[::]:{HTTP}")
    url = "http://peer/hello"
    for login in ("alice:secret", "bob:b:b"):
        assert p.curl("--socks5-hostname", f"127.0.0.1:{SOCKS}", "--proxy-user", login, url).stdout == "hello from b\n"
        assert p.curl("--proxy", f"http://[::1]:{HTTP}", "--proxy-user", login, url).stdout == "hello from b\n"
        assert p.curl("-p", "--proxy", f"http://[::1]:{HTTP}", "--proxy-user", login, url).stdout == "hello from b\n"
    for login in ("alice:wrong", "alice:", "carol:secret"):
        assert p.curl("--socks5-hostname", f"127.0.0.1:{SOCKS}", "--proxy-user", login, url, check=False).returncode == 97
        assert p.curl("-o", "/dev/null", "-w", "%{http_code}", "--proxy", f"http://[::1]:{HTTP}", "--proxy-user", login, url).stdout == "407"
    assert p.curl("-o", "/dev/null", "-w", "%{http_code}", "--proxy", f"http://[::1]:{HTTP}", url).stdout == "407"
    assert p.curl("--socks5-hostname", f"127.0.0.1:{SOCKS}", url, check=False).returncode == 97


def test_others_are_not_let_in_by_accident(there):
    for options in (["--socks", "0.0.0.0:0"], ["--http", "10.0.1.1:0"], ["--socks", "[::]:0"]):
        r = there.a.run(*as_nobody(binary(), "proxy", *options, str(there.conf)), check=False)
        assert r.returncode == 2 and "--user" in r.stderr, r
    p = Proxy(there, "--open", socks=f"10.0.1.1:{SOCKS}")
    assert p.curl("--socks5-hostname", f"10.0.1.1:{SOCKS}", "http://peer/hello").stdout == "hello from b\n"


def test_more_connections_than_allowed_wait_their_turn(there):
    p = Proxy(there, "--connections", "3")
    first = [p.connect(b"\1\0" + address(B4, 80))[0] for _ in range(3)]
    late = p.tcp()
    late.sendall(b"\5\1\0")
    late.settimeout(0.3)
    with pytest.raises(TimeoutError):
        late.recv(2)
    first[0].close()
    late.settimeout(10)
    assert take(late, 2) == b"\5\0"


# --- datagrams ---
class Association:
    def __init__(self, proxy, port=0):
        self.control = proxy.tcp()
        self.control.sendall(b"\5\1\0" + b"\5\3\0" + address("0.0.0.0", port))
        assert take(self.control, 2) == b"\5\0"
        code, host, self.port = reply(self.control)
        assert code == 0 and host == "127.0.0.1"
        self.proxy = proxy
        self.udp = proxy.f.a.udp_socket("127.0.0.1")

    def send(self, host, port, data, fragment=0, by=None):
        (by or self.udp).sendto(b"\0\0" + bytes([fragment]) + address(host, port) + data, ("127.0.0.1", self.port))

    def receive(self):
        """Address, port and payload of a datagram."""
        data, at = self.udp.recvfrom(65535)
        assert at == ("127.0.0.1", self.port) and data[:3] == b"\0\0\0"
        family, n = (socket.AF_INET, 4) if data[3] == 1 else (socket.AF_INET6, 16)
        return socket.inet_ntop(family, data[4:4 + n]), struct.unpack(">H", data[4 + n:6 + n])[0], data[6 + n:]

    def gets_nothing(self, seconds=0.3):
        self.udp.settimeout(seconds)
        try:
            self.udp.recvfrom(65535)
            return False
        except TimeoutError:
            return True
        finally:
            self.udp.settimeout(5)


def test_datagrams_go_to_addresses_and_names_and_back(proxy):
    a = Association(proxy)
    for host, comes_from in ((B4, B4), (B6, B6), ("peer", None), (DNS_NAME, B4)):
        for size in (0, 1, 1200, 9000):
            payload = os.urandom(size)
            a.send(host, 7, payload)
            source, port, data = a.receive()
            assert (port, data) == (7, payload) and source in ([comes_from] if comes_from else [B4, B6])
    assert set(proxy.f.server.questions) == {DNS_NAME}


def test_datagram_boundaries_and_order_are_kept(proxy):
    a = Association(proxy)
    for start in range(0, 1000, 20):
        sent = [struct.pack(">I", i) * (1 + i % 50) for i in range(start, start + 20)]
        for data in sent:
            a.send(B4, 7, data)
        assert [a.receive()[2] for _ in sent] == sent


def test_fragments_and_strangers_are_refused(proxy):
    a = Association(proxy)
    a.send(B4, 7, b"fragment", fragment=1)
    a.send(B4, 7, b"last fragment", fragment=0x81)
    a.udp.sendto(b"\0\0\0\7rubbish", ("127.0.0.1", a.port))
    a.udp.sendto(b"", ("127.0.0.1", a.port))
    a.send("no.such.example", 7, b"nowhere")
    a.send("10.98.0.1", 7, b"nobody")
    assert a.gets_nothing()
    a.send(B4, 7, b"first")
    assert a.receive()[2] == b"first"
    stranger = proxy.f.a.udp_socket("127.0.0.1")
    a.send(B4, 7, b"from another port", by=stranger)
    other = proxy.f.a.udp_socket("127.0.0.3")
    a.send(B4, 7, b"from another address", by=other)
    stranger.settimeout(0.3)
    with pytest.raises(TimeoutError):
        stranger.recvfrom(100)
    assert a.gets_nothing()
    told = Association(proxy, port=a.udp.getsockname()[1])
    told.send(B4, 7, b"not from the port that was told")
    assert told.gets_nothing()


def test_association_ends_with_its_connection(proxy):
    a = Association(proxy)
    a.send(B4, 7, b"x")
    assert a.receive()[2] == b"x"
    count = len(os.listdir(f"/proc/{proxy.process.pid}/fd"))
    a.control.close()
    wait_for(lambda: len(os.listdir(f"/proc/{proxy.process.pid}/fd")) == count - 3, 5, "the descriptors of the association")


def test_stops_when_it_is_told_and_leaves_nothing(proxy):
    held = [proxy.connect(b"\1\0" + address(B4, 80))[0] for _ in range(5)]
    assert proxy.process.stop() == 0
    assert not procfs.is_listening(proxy.f.a.pid, SOCKS)
    stays(lambda: not proxy.f.a.processes("weft"), 0.2, "no process is left")
    for s in held:
        with pytest.raises((EOFError, ConnectionResetError)):
            take(s, 1)
