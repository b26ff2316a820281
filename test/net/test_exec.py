# SPDX-License-Identifier: Apache-2.0
"""weft exec as an ordinary user: a command whose network is the overlay.

    A 10.0.1.1 ---- 10.0.1.2 B   with wg0: 10.99.0.2, fd99::2; servers of HTTP, DNS and UDP echo"""
import json
import signal
from pathlib import Path

import pytest

from lab import binary, wait_for
from lab.overlay import A4, B4, B6, DNS_NAME, far
from lab.terminal import Terminal
from lab.traffic import IperfServer
from lab.user import NOBODY, as_nobody


@pytest.fixture
def there(lab):
    return far(lab, ["DNS = 10.99.0.2, corp.example"])


def run(f, *argv, check=True, **kw):
    return f.a.run(*f.argv("exec", "--", *argv), check=check, **kw)


def test_programs_find_the_peer_by_name_and_address(there):
    for host in (B4, f"[{B6}]", "peer", DNS_NAME, "web"):
        assert run(there, "curl", "-sS", "-m", "10", f"http://{host}/hello").stdout == "hello from b\n", host
    for argv in (["ping", "-c", "1", "-W", "5", B4], ["ping", "-c", "1", "-W", "5", "peer"], ["ping", "-6", "-c", "1", "-W", "5", "peer"]):
        assert "1 received" in run(there, *argv).stdout
    assert set(there.server.questions) == {DNS_NAME}


def test_iperf3_runs_both_ways(there):
    IperfServer(there.b)
    for direction in ([], ["-R"]):
        r = json.loads(run(there, "iperf3", "-J", "-t", "1", "-c", "peer", *direction).stdout)
        assert r["end"]["sum_received"]["bytes"] > 0


def test_servers_take_any_port_and_are_reached(there):
    # B knows no endpoint of A before A has spoken.
    server = there.spawn("exec", "--", "sh", "-c", f"ping -c 1 -W 5 peer && exec python3 -m http.server 80 --bind {A4} -d {there.files}")
    wait_for(lambda: "Serving" in server.output or not server.is_running, 10, "the server inside")
    for _ in range(3):
        assert there.b.out("curl", "-sS", "-m", "10", f"http://{A4}/hello") == "hello from b"
    server.signal(signal.SIGTERM)
    assert server.wait() == 143


def test_network_is_the_overlay_alone(there):
    out = run(there, "ip", "-j", "address").stdout
    devices = {d["ifname"]: [a["local"] for a in d["addr_info"]] for d in json.loads(out)}
    assert "lo" in devices and "eth0" not in devices
    assert [v for k, v in devices.items() if k != "lo" and v] == [[A4, "fd99::1"]]
    r = run(there, "curl", "-sS", "-m", "2", "http://10.0.1.2/hello", check=False)
    assert r.returncode == 7, r


def test_user_environment_and_streams_are_the_same(there):
    r = run(there, "sh", "-c", "id -u; id -g; echo $COLOUR; pwd; cat; echo err >&2; grep -E '^(CapEff|CapPrm|SigBlk|SigIgn):' /proc/self/status",
            input="through stdin\n", env={"COLOUR": "green"}, cwd=Path("/usr"))
    lines = r.stdout.splitlines()
    assert lines[:5] == [str(NOBODY), str(NOBODY), "green", "/usr", "through stdin"]
    assert r.stderr == "err\n"
    libc = 3 << 31  # signals 32 and 33, which no program can set
    assert {line.split(":")[0]: int(line.split()[1], 16) & ~libc for line in lines[5:]} == {"SigBlk": 0, "SigIgn": 0, "CapPrm": 0, "CapEff": 0}


@pytest.mark.parametrize("command, status", [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 143), ("kill -9 $$", 137), ("kill -INT $$", 130)])
def test_status_is_that_of_the_command(there, command, status):
    assert run(there, "sh", "-c", command, check=False).returncode == status


def test_own_failures_have_their_own_status(there):
    for argv, status, text in ((["no-such-command"], 127, "No such file"), (["/etc/passwd"], 126, "Permission denied"), (["/nowhere/x"], 127, "No such file")):
        r = run(there, *argv, check=False)
        assert r.returncode == status and text in r.stderr
    for argv in (["exec"], ["exec", str(there.conf)], ["exec", "--bad"], ["exec", "/nowhere.conf", "true"]):
        r = there.a.run(*as_nobody(binary(), *argv), check=False)
        assert r.returncode == 125 and r.stderr


def test_names_are_in_place_for_the_command_alone(there):
    before = {p: Path(p).read_text() for p in ("/etc/hosts", "/etc/resolv.conf")}
    r = run(there, "cat", "/etc/hosts", "/etc/resolv.conf")
    assert f"{B4}\tpeer" in r.stdout and f"{B6}\tpeer" in r.stdout and before["/etc/hosts"] in r.stdout
    assert "nameserver 10.99.0.2" in r.stdout and "search corp.example" in r.stdout
    assert {p: Path(p).read_text() for p in before} == before
    assert run(there, "sh", "-c", "getent hosts peer").stdout.split()[0] in (B4, B6)
    argv = as_nobody(binary(), "exec", "--no-names", str(there.conf), "cat", "/etc/hosts")
    assert there.a.run(*argv).stdout == before["/etc/hosts"]


def test_signals_that_are_sent_reach_the_command(there):
    for number, status in ((signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGUSR1, 9), (signal.SIGINT, 130)):
        p = there.spawn("exec", "--", "sh", "-c", "trap 'exit 9' USR1; echo ready; while :; do sleep 0.05; done")
        wait_for(lambda: "ready" in p.output, 10, "the command")
        p.signal(number)
        assert p.wait(10) == status


def test_command_ends_with_weft(there):
    p = there.spawn("exec", "--", "sh", "-c", "echo ready; exec sleep 1000")
    wait_for(lambda: "ready" in p.output, 10, "the command")
    p.signal(signal.SIGKILL)
    wait_for(lambda: not there.a.processes("sleep"), 5, "the end of the command")


@pytest.fixture
def terminal(there):
    """An interactive shell of nobody's."""
    t = Terminal(there.a, *as_nobody("bash", "--norc", "--noprofile", "-i"),
                 env={"PS1": "prompt> ", "HOME": "/", "WEFT": binary(), "CONF": str(there.conf), "TERM": "dumb"})
    t.expect("prompt> ")
    yield t
    t.close()


def test_terminal_and_job_control_are_the_commands(there, terminal):
    t = terminal
    t.type("$WEFT exec $CONF -- sh -c 'echo up-$((40+2)); sleep 1000'\n")
    t.expect("up-42")
    # A shell that is about to start a program by vfork does not stop.
    wait_for(lambda: there.a.processes("sleep"), 5, "sleep")
    t.type("\x1a")
    t.expect("Stopped")
    t.type("jobs; echo status-$?\n")
    t.expect(r"Stopped.*\$WEFT exec")
    t.expect("status-0")
    t.type("fg\n")
    t.expect(r"\$WEFT exec")
    t.type("\x03")
    t.expect("prompt> ")
    t.type("echo status-$?\n")
    t.expect("status-130")
    wait_for(lambda: not there.a.processes("weft"), 5, "the end of weft")
    # The network goes on after a stop.
    t.type("$WEFT exec $CONF -- bash --norc --noprofile -i\n")
    t.type("echo inside-$((40+2))\n")
    t.expect("inside-42")
    t.type("sleep $((2000-1))\n")
    wait_for(lambda: there.a.processes("sleep"), 5, "sleep")
    t.type("\x1a")
    t.expect("Stopped")
    t.type("jobs | wc -l; curl -sS http://peer/hello\n")
    t.expect("1\r?\n")
    t.expect("hello from b")
    t.type("kill %1; wait; suspend\n")
    t.expect(r"Stopped.*WEFT exec")
    t.type("fg\n")
    t.type("curl -sS http://peer/hello; exit 7\n")
    t.expect("hello from b")
    t.expect("prompt> ")
    t.type("echo status-$?\n")
    t.expect("status-7")


def test_what_forbids_it_is_named(there):
    # In a user namespace of its own the limit can be taken away; without privileges there, weft needs one more.
    script = 'echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
    r = there.a.run(*as_nobody("unshare", "--user", "--map-root-user", "sh", "-c", script, "sh", binary(), "exec", str(there.conf), "--", "true"),
                    check=False)
    assert r.returncode == 125 and "max_user_namespaces" in r.stderr, r.stderr
