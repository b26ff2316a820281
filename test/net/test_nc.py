# SPDX-License-Identifier: Apache-2.0
"""weft nc: standard streams to a connection in an overlay, by a user without privilege; ssh through it.

    A 10.0.1.1 ---- 10.0.1.2 B        in the overlay: A 10.9.0.1 fd09::1, B 10.9.0.2 fd09::2"""
from __future__ import annotations

import hashlib
import os
import pty
import socket
import subprocess

import pytest

from lab import binary, wait_for
from lab.rootless import A4, A6, B4, B6, USER, Rootless
from lab.user import NOBODY

from test_forward import answer_when_all_is_read, connect, listen, read_all, reset, serve, upper


@pytest.fixture
def net(lab):
    return Rootless(lab)


@pytest.mark.parametrize("host, family", [("bee", []), (B4, []), (B6, []), (f"[{B6}]", []), ("bee", ["-6"])])
def test_binary_data_goes_and_comes_and_the_end_of_input_is_passed_on(net, host, family):
    for address in (B4, B6):
        serve(listen(net.b, address, 7), lambda c: c.sendall(read_all(c)[::-1]))
    data = os.urandom(1 << 20)
    r = net.run("nc", *family, host, "7", input=data)
    assert (r.returncode, r.stdout == data[::-1], r.stderr) == (0, True, "")


def test_verbose_names_the_peer(net):
    serve(listen(net.b, B4, 7), answer_when_all_is_read)
    r = net.run("nc", "-v", "-4", "bee", "7")
    assert f"connected to {B4}:7, peer bee, key {net.b_public}, at 10.0.1.2:51820" in r.stderr


def test_input_may_be_a_file_and_all_of_it_arrives_before_the_node_goes(net):
    got = []
    # This one closes its half at once, as a receiver without input does.
    serve(listen(net.b, B4, 7), lambda c: (c.shutdown(socket.SHUT_WR), got.append(hashlib.sha256(read_all(c)).digest())))
    path = net.lab.dir / "big"
    path.write_bytes(os.urandom(5 << 20))
    with path.open("rb") as f:
        r = subprocess.run(net.a._argv(net.argv("nc", "bee", "7")), stdin=f, capture_output=True, timeout=20)
    assert r.returncode == 0, r.stderr
    assert wait_for(lambda: got, 5) == [hashlib.sha256(path.read_bytes()).digest()]


def test_failures_give_1_and_a_reason(net):
    r = net.run("nc", "bee", "8")
    assert r.returncode == 1 and "nc: bee:8: not connected: Connection refused" in r.stderr
    r = net.run("nc", "-w", "1", "gone", "8")
    assert r.returncode == 1 and "no answer in time" in r.stderr
    r = net.run("nc", "wasp", "8")
    assert r.returncode == 1 and "no peer's Name" in r.stderr and "bee, gone" in r.stderr
    serve(listen(net.b, B4, 7), lambda c: (c.recv(1), reset(c)))
    r = net.run("nc", "-4", "bee", "7", input=b"x")
    assert r.returncode == 1 and "reset by peer" in r.stderr


@pytest.mark.parametrize("args", [[], ["bee"], ["bee", "99999"], ["bee", "x-y"], ["-k", "bee", "7"], ["-z", "-l", "7"], ["-w", "soon", "bee", "7"]])
def test_wrong_usage_gives_2(net, args):
    assert net.run("nc", *args).returncode == 2


def test_probe_tells_whether_somebody_listens(net):
    listener = listen(net.b, B4, 7)
    assert net.run("nc", "-z", "bee", "7").returncode == 0
    assert net.run("nc", "-z", "bee", "8").returncode == 1
    silent = net.b.udp_socket(B4, 53)
    assert net.run("nc", "-u", "-z", "-w", "1", "bee", "53").returncode == 0
    assert net.run("nc", "-u", "-z", "bee", "54").returncode == 1
    silent.close()
    listener.close()


def listening(net, *args):
    p = net.spawn("nc", "-v", "-l", *args)
    wait_for(lambda: "listening on" in p.output, 10, "nc listens")
    return p


def test_listener_takes_one_connection_and_says_from_whom(net):
    p = listening(net, "9000")
    with connect(net.b, A6, 9000) as c:
        c.sendall(b"hello\n")
        c.shutdown(socket.SHUT_WR)
        assert read_all(c) == b""
    assert p.wait(10) == 0
    assert f"connection from [{B6}]:" in p.output and f", peer bee, key {net.b_public}" in p.output and "hello\n" in p.output
    with pytest.raises(ConnectionRefusedError):
        p = listening(net, A4, "9001")
        connect(net.b, A4, 9000)


def test_kept_listener_takes_one_after_another(net):
    p = listening(net, "-k", "9000")
    for k in range(3):
        with connect(net.b, A4, 9000) as c:
            c.sendall(b"number %d\n" % k)
            c.shutdown(socket.SHUT_WR)
            assert read_all(c) == b""
    wait_for(lambda: "number 2" in p.output, 5)
    assert [line for line in p.output.splitlines() if line.startswith("number")] == ["number 0", "number 1", "number 2"]
    p.stop()


def test_datagrams_go_and_come(net):
    upper(net.b.udp_socket(B4, 53))
    r = net.run("nc", "-u", "-w", "1", "bee", "53", input=b"question")
    assert (r.returncode, r.stdout) == (0, b"QUESTION!"), r.stderr
    r = net.run("nc", "-u", "bee", "54", input=b"question")
    assert r.returncode == 1 and "nobody listens there" in r.stderr
    p = listening(net, "-u", "9000")
    c = net.b.udp_socket("0.0.0.0")

    def hears() -> bool:  # B learns where A is now by the handshake that the listener began
        c.sendto(b"to nc\n", (A4, 9000))
        return "to nc" in p.output
    wait_for(hears, 5, "a datagram", interval=0.1)
    assert "datagrams from 10.9.0.2:" in p.output and "peer bee" in p.output
    p.stop()


def test_reader_that_has_had_enough_ends_it(net):
    serve(listen(net.b, B4, 7), lambda c: [c.sendall(b"y\n" * 5000) for _ in iter(int, 1)])
    r = net.a.run("sh", "-c", 'exec 3>&1; { "$@" </dev/null; echo "exit $?" >&3; } | head -n 2', "sh", *net.argv("nc", "bee", "7"))
    assert r.stdout.splitlines()[:2] == ["y", "y"] and "exit 1" in r.stdout, r


def test_it_ends_with_the_connection_at_a_terminal(net):
    serve(listen(net.b, B4, 7), lambda c: c.sendall(b"bye"))
    master, slave = pty.openpty()
    p = subprocess.Popen(net.a._argv(net.argv("nc", "bee", "7")), stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = p.communicate(timeout=15)
    finally:
        p.kill()
        os.close(master)
    assert (p.returncode, out) == (0, b"bye"), err
    # The terminal is as it was for others that have it.
    assert os.get_blocking(slave)
    os.close(slave)


@pytest.fixture
def sshd(net):
    """An ssh server in B that the user's key opens."""
    folder = net.lab.dir / "ssh"
    folder.mkdir()
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    (folder / "config").write_text(f"HostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\n"
                                   f"PidFile none\nListenAddress {B4}\nPermitRootLogin yes\nPasswordAuthentication no\n")
    (folder / "known").write_text("*  " + (folder / "host.pub").read_text())
    user_key = net.home / "key"
    user_key.write_bytes((folder / "user").read_bytes())
    user_key.chmod(0o600)
    os.chown(user_key, NOBODY, NOBODY)
    net.b.run("mkdir", "-p", "/run/sshd")
    p = net.b.spawn("/usr/sbin/sshd", "-D", "-e", "-f", str(folder / "config"))
    wait_for(lambda: "Server listening" in p.output or not p.is_running, 10, "sshd listens")
    return ["ssh", "-i", str(user_key), "-o", f"UserKnownHostsFile={folder / 'known'}", "-o", "BatchMode=yes"]


def test_ssh_runs_commands_and_copies_through_it(net, sshd):
    proxy = " ".join([binary(), "nc", str(net.file), "%h", "%p"])
    ssh = [*USER, "env", f"HOME={net.home}", *sshd, "-o", f"ProxyCommand={proxy}", "root@bee"]
    r = net.a.run(*ssh, "echo $SSH_CONNECTION; exit 7", check=False)
    assert r.returncode == 7 and r.stdout.split()[0] == A4 and r.stdout.split()[2] == B4, (r.stdout, r.stderr)
    data = os.urandom(2 << 20)
    r = subprocess.run(net.a._argv([*ssh, "sha256sum"]), input=data, capture_output=True, timeout=30)
    assert r.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest(), r.stderr
    assert not net.a.processes("weft")


def test_ssh_runs_through_weft_forward_and_weft_proxy(net, sshd):
    forward = net.forward("-L", "2222:bee:22")
    r = net.a.run(*USER, *sshd, "-p", "2222", "root@127.0.0.1", "echo from $(hostname >/dev/null && echo inside)")
    assert r.stdout == "from inside\n"
    forward.stop()  # two nodes of one key take each other's packets
    proxy = net.a.spawn(*USER, binary(), "proxy", "--socks", "1080", "--http", "8080", str(net.file), log="proxy")
    wait_for(lambda: "HTTP on" in proxy.output or not proxy.is_running, 10, "the proxy")
    assert proxy.is_running, proxy.output
    data = os.urandom(2 << 20)
    # As weft-proxy(8) has it, and by HTTP. The name is the overlay's: nothing here but the proxy knows it.
    for way in ("nc -X 5 -x 127.0.0.1:1080 %h %p", "nc -X connect -x 127.0.0.1:8080 %h %p"):
        ssh = [*USER, "env", f"HOME={net.home}", *sshd, "-o", f"ProxyCommand={way}", "root@bee", "sha256sum; echo $SSH_CONNECTION"]
        r = subprocess.run(net.a._argv(ssh), input=data, capture_output=True, timeout=30)
        words = r.stdout.decode().split()
        assert words[0] == hashlib.sha256(data).hexdigest() and (words[2], words[4]) == (A4, B4), (way, r.stdout, r.stderr)
