# SPDX-License-Identifier: Apache-2.0
"""What wg-quick does around a device: hooks, DNS, firewall, leftovers.

    A 10.0.1.1 ---- 10.0.1.2 B

A has an /etc of its own, which the tests may change."""
import contextlib
import os
import random
import signal
import time

import pytest

from lab import binary, genpsk, keys, pair, wait_for, wait_ping
from lab.device import B4, DEVICE, WEFT, ends

from test_lifecycle import state as network_state

RESOLV = "nameserver 192.0.2.53\nsearch before.example\n"


@pytest.fixture
def wire(lab):
    w = pair(lab)
    w.a.run("sh", "-c", "mkdir /run/etc && cp -a /etc/. /run/etc/ && mount --bind /run/etc /etc && rm -f /etc/resolv.conf && mkdir /run/bin")
    write(w.a, "/etc/resolv.conf", RESOLV)
    return w


def write(ns, path: str, text: str, mode: str = "644") -> None:
    ns.run("sh", "-c", 'cat >"$1" && chmod "$2" "$1"', "sh", path, mode, input=text)


def read(ns, path: str) -> str:
    return ns.run("cat", path, check=False).stdout


def exists(ns, path: str) -> bool:
    return ns.run("test", "-e", path, check=False).returncode == 0


def state(ns) -> str:
    """network_state, and what else `weft up` touches."""
    return "\n".join([network_state(ns), ns.out("ls", "-il", "/etc/resolv.conf"), ns.out("sh", "-c", "ls /etc | grep -i weft; cat /etc/resolv.conf", check=False),
                      ns.out("cat", "/proc/sys/net/ipv4/conf/all/src_valid_mark"), ns.out("find", "/run/weft", "-mindepth", "1", check=False)])


class Quick:
    """A device on A with a file of its own and fake programs in front of PATH."""

    def __init__(self, wire, extra=(), default=False, psk=""):
        self.wire, self.ns = wire, wire.a
        self.e = ends("", wire.b4, psk)
        self.e.up_b(wire.b, WEFT)
        self.conf = self.e.a_conf
        self.conf.extra = list(extra)
        if default:
            self.conf.peers[0].allowed = ["0.0.0.0/0", "::/0"]
        self.file = f"/etc/{DEVICE}.conf"
        self.env = {"PATH": f"/run/bin:{os.environ['PATH']}"}
        self.save()

    def save(self):
        write(self.ns, self.file, self.conf.quick_text(), "600")

    def run(self, *words, rc=0, **kw):
        r = self.ns.run(binary(), *words, check=False, env=self.env, **kw)
        assert r.returncode == rc, (words, r.returncode, r.stdout, r.stderr)
        return r.stderr

    def up(self, rc=0):
        return self.run("up", self.file, rc=rc)

    def down(self, rc=0):
        return self.run("down", self.file, rc=rc)

    def kill(self):
        """All of it, also what is forked meanwhile."""
        while pids := self.ns.processes("weft"):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def fake(ns, name: str, body: str = "") -> None:
    """A program that notes how it was called, and what it read."""
    write(ns, f"/run/bin/{name}", f'#!/bin/sh\n{{ echo "{name} $*"; [ "$1" != -a ] || cat; }} >>/run/calls\n{body}\n', "755")


# --- DNS ---

def test_resolv_conf_is_written_and_comes_back_as_the_very_file(wire):
    q = Quick(wire, ["DNS = 10.99.0.2, fd99::2, corp.example, lab.example"])
    before = state(wire.a)
    q.up()
    text = read(wire.a, "/etc/resolv.conf")
    assert "nameserver 10.99.0.2\nnameserver fd99::2\nsearch corp.example lab.example\n" in text and "192.0.2.53" not in text
    assert wire.a.out("stat", "-c", "%a", "/etc/resolv.conf") == "644"
    q.down()
    assert state(wire.a) == before


def test_resolv_conf_that_is_a_symbolic_link_comes_back_as_one(wire):
    wire.a.run("sh", "-c", "mkdir /run/net && mv /etc/resolv.conf /run/net/ && ln -s ../run/net/resolv.conf /etc/resolv.conf")
    q = Quick(wire, ["DNS = 10.99.0.2"])
    before = state(wire.a)
    q.up()
    assert "10.99.0.2" in read(wire.a, "/etc/resolv.conf") and read(wire.a, "/run/net/resolv.conf") == RESOLV
    q.down()
    assert state(wire.a) == before and wire.a.out("readlink", "/etc/resolv.conf") == "../run/net/resolv.conf"


def test_resolv_conf_that_was_not_there_goes_again(wire):
    wire.a.run("rm", "/etc/resolv.conf")
    q = Quick(wire, ["DNS = 10.99.0.2"])
    q.up()
    assert "10.99.0.2" in read(wire.a, "/etc/resolv.conf")
    q.down()
    assert not exists(wire.a, "/etc/resolv.conf") and not exists(wire.a, "/etc/resolv.conf.before-weft")


def test_resolv_conf_that_is_a_mount_of_its_own_is_written_in_place(wire):
    wire.a.run("sh", "-c", "cp /etc/resolv.conf /run/mounted && mount --bind /run/mounted /etc/resolv.conf")
    q = Quick(wire, ["DNS = 10.99.0.2"])
    q.up()
    assert "10.99.0.2" in read(wire.a, "/run/mounted")
    q.down()
    assert read(wire.a, "/run/mounted") == RESOLV and not exists(wire.a, "/etc/resolv.conf.before-weft")


@pytest.mark.parametrize("edit", ["echo nameserver 203.0.113.1 >>/etc/resolv.conf", "echo nameserver 203.0.113.1 >/etc/resolv.conf"])
def test_resolv_conf_that_somebody_changed_is_left_alone(wire, edit):
    q = Quick(wire, ["DNS = 10.99.0.2"])
    q.up()
    wire.a.run("sh", "-c", edit)
    text = read(wire.a, "/etc/resolv.conf")
    q.down()
    assert read(wire.a, "/etc/resolv.conf") == text and read(wire.a, "/etc/resolv.conf.before-weft") == RESOLV


@pytest.mark.parametrize("then", ["down", "up without DNS"])
def test_resolv_conf_comes_back_after_a_crash(wire, then):
    q = Quick(wire, ["DNS = 10.99.0.2"])
    before = state(wire.a)
    q.up()
    q.kill()
    if then == "down":
        assert "was not running" in q.down()
    else:
        q.conf.extra = []
        q.save()
        q.up()
        assert read(wire.a, "/etc/resolv.conf") == RESOLV
        q.down()
    assert state(wire.a) == before


def test_resolvconf_gets_servers_and_domains_and_the_end(wire):
    fake(wire.a, "resolvconf")
    q = Quick(wire, ["DNS = 10.99.0.2, corp.example, fd99::2"])
    before = state(wire.a)
    q.up()
    added = f"resolvconf -a tun.{DEVICE} -m 0 -x\nnameserver 10.99.0.2\nnameserver fd99::2\nsearch corp.example\n"
    assert read(wire.a, "/run/calls") == added
    q.down()
    assert read(wire.a, "/run/calls") == added + f"resolvconf -d tun.{DEVICE} -f\n"
    assert state(wire.a) == before
    q.up()
    q.kill()
    wire.a.run("rm", "/run/calls")
    q.down()
    assert read(wire.a, "/run/calls") == f"resolvconf -d tun.{DEVICE} -f\n" and state(wire.a) == before


def test_resolvconf_that_fails_fails_the_start(wire):
    fake(wire.a, "resolvconf", "exit 3")
    q = Quick(wire, ["DNS = 10.99.0.2"])
    before = state(wire.a)
    assert "resolvconf" in q.up(rc=1)
    assert state(wire.a) == before


def test_resolved_is_asked_first_and_passed_over_when_it_does_not_answer(wire):
    fake(wire.a, "resolvectl")
    fake(wire.a, "resolvconf")
    wire.a.run("mkdir", "-p", "/run/systemd/resolve")
    q = Quick(wire, ["DNS = 10.99.0.2, corp.example"])
    q.up()
    q.down()
    assert read(wire.a, "/run/calls") == (f"resolvectl dns {DEVICE} 10.99.0.2\nresolvectl domain {DEVICE} ~. corp.example\n"
                                          f"resolvectl revert {DEVICE}\n")
    fake(wire.a, "resolvectl", "exit 1")
    wire.a.run("rm", "/run/calls")
    q.up()
    assert f"resolvconf -a tun.{DEVICE}" in read(wire.a, "/run/calls")
    q.down()


def test_dns_follows_a_reload(wire):
    q = Quick(wire, ["DNS = 10.99.0.2"])
    q.up()
    q.conf.extra = ["DNS = 10.99.0.77"]
    q.save()
    q.run("reload", DEVICE)
    assert "10.99.0.77" in read(wire.a, "/etc/resolv.conf") and "10.99.0.2\n" not in read(wire.a, "/etc/resolv.conf")
    q.conf.extra = []
    q.save()
    q.run("reload", DEVICE)
    assert read(wire.a, "/etc/resolv.conf") == RESOLV
    q.down()


# --- hooks ---

def hooks(note="/run/notes"):
    return [f"{k} = echo {k} {i} %i >>{note}" for k in ("PreUp", "PostUp", "PreDown", "PostDown") for i in (1, 2)]


def test_hooks_run_in_order_with_the_name(wire):
    q = Quick(wire, [*hooks(), "PreUp = ip link show %i >/dev/null 2>&1 && echo early >>/run/notes || true",
                     "PostDown = ip link show %i >/dev/null 2>&1 && echo late >>/run/notes || true"])
    q.up()
    up = [f"{k} {i} {DEVICE}" for k in ("PreUp", "PostUp") for i in (1, 2)]
    down = [f"{k} {i} {DEVICE}" for k in ("PreDown", "PostDown") for i in (1, 2)]
    assert read(wire.a, "/run/notes").splitlines() == up
    q.down()
    assert read(wire.a, "/run/notes").splitlines() == up + down


def test_hooks_may_ask_and_set_the_device_and_use_bash(wire):
    q = Quick(wire, ["PostUp = wg set %i peer $(wg show %i peers) persistent-keepalive 7 && [[ -n $WEFT_INTERFACE ]] && cat <(echo $WEFT_HOOK) >/run/notes",
                     "PreDown = wg show %i persistent-keepalive >>/run/notes"])
    q.up()
    q.down()
    lines = read(wire.a, "/run/notes").splitlines()
    assert lines[0] == "PostUp" and lines[1].endswith("\t7")


def test_output_of_hooks_goes_to_whoever_starts(wire):
    q = Quick(wire, ["PreUp = echo said; echo complained >&2", "PostUp = echo and more"])
    assert q.up() == "said\ncomplained\nand more\n"
    q.down()


@pytest.mark.parametrize("kind", ["PreUp", "PostUp"])
def test_hook_that_fails_takes_all_back_and_is_named(wire, kind):
    q = Quick(wire, ["DNS = 10.99.0.2", f"{kind} = echo first >>/run/notes", f"{kind} = exit 42", f"{kind} = echo third >>/run/notes", "PostDown = echo down >>/run/notes"],
              default=True)
    before = state(wire.a)
    said = q.up(rc=1)
    line = q.conf.quick_text().split("exit 42")[0].count("\n") + 1
    assert f"{q.file}:{line}: {kind} failed with exit status 42" in said
    assert read(wire.a, "/run/notes") == "first\n"
    assert state(wire.a) == before


def test_down_hooks_all_run_though_one_fails(wire):
    q = Quick(wire, ["PreDown = exit 1", "PreDown = echo second >>/run/notes", "PostDown = kill -9 $$", "PostDown = echo fourth >>/run/notes"])
    before = state(wire.a)
    q.up()
    q.down()
    assert read(wire.a, "/run/notes") == "second\nfourth\n" and state(wire.a) == before


def test_start_that_waits_for_a_hook_can_be_called_off(wire):
    q = Quick(wire, ["PostUp = echo $$ >/run/pid; sleep 1000"])
    before = state(wire.a)
    p = wire.a.spawn(binary(), "up", q.file)
    wait_for(lambda: read(wire.a, "/run/pid"), 5, "the hook")
    wait_ping(wire.a, B4)  # packets and handshakes go on
    p.signal(signal.SIGINT)
    p.wait()
    wait_for(lambda: state(wire.a) == before, 5, "all is taken back")
    assert wire.a.processes("sleep") == []


def test_hooks_start_with_plain_signals_and_no_descriptors(wire):
    q = Quick(wire, ["PostUp = ls /proc/self/fd | wc -l >/run/notes; grep -E 'Sig(Blk|Ign)' /proc/self/status >>/run/notes"])
    q.up()
    lines = read(wire.a, "/run/notes").split()
    assert int(lines[0]) <= 4 and lines[2].strip("0") == "", lines
    assert int(lines[4], 16) & ~(3 << 31) == 0, lines  # signals 32 and 33 are the C library's
    q.down()


# --- all together ---

STOCK = ["DNS = 10.99.0.2, corp.example", *hooks()]


def test_stock_file_goes_up_and_down_twenty_times_and_leaves_nothing(wire):
    q = Quick(wire, STOCK, default=True, psk=genpsk())
    before = state(wire.a)
    for i in range(20):
        q.up()
        if i == 0:
            wait_ping(wire.a, B4)
            assert f"weft-{DEVICE}" in wire.a.out("nft", "list", "ruleset")
            assert wire.a.out("cat", "/proc/sys/net/ipv4/conf/all/src_valid_mark") == "1"
        q.down()
        assert state(wire.a) == before, i


def test_default_route_works_with_a_strict_reverse_path_filter(wire):
    wire.a.sysctl(net__ipv4__conf__all__rp_filter=1, net__ipv4__conf__eth0__rp_filter=1)
    q = Quick(wire, default=True)
    q.up()
    wait_ping(wire.a, B4)
    q.down()


def test_killed_at_any_time_it_starts_again_and_down_leaves_nothing(wire):
    """20 times in a row, at a time drawn between the first moment and shortly after the start."""
    seed = 20
    draw = random.Random(seed)
    q = Quick(wire, STOCK, default=True, psk=genpsk())
    before = state(wire.a)
    t0 = time.monotonic()
    q.up()
    took = time.monotonic() - t0
    q.down()
    for i in range(20):
        p = wire.a.spawn(binary(), "up", q.file)
        time.sleep(draw.random() * took * 1.2)
        q.kill()
        p.wait()
        if i % 4 == 3:
            wire.a.run(binary(), "down", q.file, check=False)
            with contextlib.suppress(AssertionError):
                wait_for(lambda: state(wire.a) == before, 3)
            assert state(wire.a) == before, f"seed {seed}, round {i}"
    q.up()
    wait_ping(wire.a, B4)
    q.down()
    assert state(wire.a) == before, f"seed {seed}"


def killed_at(q, call, nth, *words):
    """A weft of which that call, and with it the process, fails; then all others are killed, too."""
    p = q.ns.spawn("strace", "-f", "-o", "/run/trace", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={nth}", binary(), *words)
    wait_for(lambda: not p.is_running or "KILL" in read(q.ns, "/run/trace"), 10, "the call")
    q.kill()
    p.wait()
    assert "+++ killed by SIGKILL +++" in read(q.ns, "/run/trace")


@pytest.mark.parametrize("then", ["down", "up"])
@pytest.mark.parametrize("call,nth", [("rename", 1), ("rename", 2), ("linkat", 1), ("openat", 30), ("ioctl", 4), ("sendto", 12), ("mkdir", 2)])
def test_killed_between_two_steps_leaves_nothing_that_the_next_does_not_remove(wire, call, nth, then):
    q = Quick(wire, STOCK, default=True)
    before = state(wire.a)
    killed_at(q, call, nth, "up", q.file)
    if then == "up":
        q.up()
        q.down()
    else:
        wire.a.run(binary(), "down", q.file, check=False)
    with contextlib.suppress(AssertionError):
        wait_for(lambda: state(wire.a) == before, 3)
    assert state(wire.a) == before


@pytest.mark.parametrize("call,nth,is_written", [("rename", 1, False), ("ftruncate", 4, True)])
def test_killed_while_it_writes_a_mounted_resolv_conf_it_brings_back_the_old_one(wire, call, nth, is_written):
    old = RESOLV + "# long\n" * 100
    write(wire.a, "/run/mounted", old)
    wire.a.run("mount", "--bind", "/run/mounted", "/etc/resolv.conf")
    q = Quick(wire, ["DNS = 10.99.0.2"])
    before = state(wire.a)
    killed_at(q, call, nth, "up", q.file)
    assert ("10.99.0.2" in read(wire.a, "/etc/resolv.conf")) == is_written
    q.down()
    assert read(wire.a, "/run/mounted") == old and state(wire.a) == before


def test_killed_while_it_saves_it_leaves_the_file_and_no_other(wire):
    q = Quick(wire, ["SaveConfig = true"])
    q.up()
    wire.a.run("wg", "set", DEVICE, "listen-port", "51999")
    text, before = read(wire.a, q.file), wire.a.out("ls", "/etc")
    folder = wire.a.out("mktemp", "-d", "/etc/wg0.conf.weft-XXXXXX")  # not ours: a folder
    write(wire.a, q.file + ".weft-abcdef", "half")
    q.kill()
    q.down()
    assert read(wire.a, q.file) == text and wire.a.out("ls", "/etc").split() == sorted([*before.split(), folder.rpartition("/")[2]])


def test_two_starts_at_once_give_one_device(wire):
    q = Quick(wire, ["PreUp = touch /run/in; until test -e /run/go; do sleep 0.05; done; echo once >>/run/notes"])
    p = wire.a.spawn(binary(), "up", q.file)
    wait_for(lambda: exists(wire.a, "/run/in"), 10, "the first start's hook")
    assert "is up already" in q.up(rc=1)
    write(wire.a, "/run/go", "")
    assert p.wait() == 0 and read(wire.a, "/run/notes") == "once\n"
    q.down()


def test_interface_of_another_program_is_left_alone(wire):
    wire.a.ip(f"link add {DEVICE} type veth peer name other")
    before = state(wire.a)
    q = Quick(wire, hooks())
    assert f"there is an interface {DEVICE} already" in q.up(rc=1)
    assert state(wire.a) == before and read(wire.a, "/run/notes") == ""


# --- SaveConfig ---

def test_save_config_keeps_what_a_person_wrote_and_takes_what_wg_has_set(wire):
    q = Quick(wire, ["SaveConfig = true # mine", "# a comment"])
    text = q.conf.quick_text().replace("[Peer]\n", "# Bob, in the cellar\n[Peer]\n")
    write(wire.a, q.file, text, "644")
    q.up()
    q.down()
    assert read(wire.a, q.file) == text, "nothing was different"
    q.up()
    other = keys()
    wire.a.run("wg", "set", DEVICE, "peer", other.public, "allowed-ips", "10.77.0.0/24,10.78.0.0/24", "persistent-keepalive", "9", "endpoint", "192.0.2.9:77")
    wire.a.run("wg", "set", DEVICE, "listen-port", "51999")
    q.down()
    saved = read(wire.a, q.file)
    assert saved == text.replace("51820", "51999", 1) + (f"\n[Peer]\nPublicKey = {other.public}\nAllowedIPs = 10.77.0.0/24, 10.78.0.0/24\n"
                                                        "Endpoint = 192.0.2.9:77\nPersistentKeepalive = 9\n")
    assert wire.a.out("stat", "-c", "%a", q.file) == "600"
    q.up()
    wire.a.run("wg", "set", DEVICE, "listen-port", "51820", "peer", other.public, "remove")
    q.down()
    assert read(wire.a, q.file).rstrip("\n") == text.rstrip("\n")


def test_file_that_changed_since_the_start_is_never_overwritten(wire):
    q = Quick(wire, ["SaveConfig = true"])
    q.up()
    wire.a.run("wg", "set", DEVICE, "listen-port", "51999")
    text = q.conf.quick_text() + "# by hand\n"
    write(wire.a, q.file, text, "600")
    assert "was changed since" in q.run("save", DEVICE, rc=1)
    q.down()
    assert read(wire.a, q.file) == text
    assert read(wire.a, q.file + ".weft-save") == text.replace("51820", "51999", 1)


def test_saved_by_hand_through_a_symbolic_link(wire):
    q = Quick(wire)
    wire.a.run("sh", "-c", f"mkdir /etc/real && mv {q.file} /etc/real/x && ln -s real/x {q.file}")
    q.up()
    wire.a.run("wg", "set", DEVICE, "listen-port", "51999")
    for _ in range(2):
        q.run("save", DEVICE)
        assert "ListenPort = 51999" in read(wire.a, "/etc/real/x") and wire.a.out("readlink", q.file) == "real/x"
    q.down()


def test_mark_of_a_default_route_and_a_port_of_the_kernel_are_not_saved(wire):
    q = Quick(wire, ["SaveConfig = true"], default=True)
    q.conf.port = 0
    q.save()
    text = read(wire.a, q.file)
    q.up()
    wait_ping(wire.a, B4)
    q.down()
    assert read(wire.a, q.file) == text


@pytest.mark.parametrize("first", [0, 1])
def test_two_default_routes_leave_src_valid_mark_as_it_was(wire, first):
    before = state(wire.a)
    files = []
    for i in range(2):
        e = ends("", wire.b4)
        e.a_conf.peers[0].allowed, e.a_conf.port, e.a_conf.addresses = ["0.0.0.0/0"], 6000 + i, [f"10.88.{i}.1/24"]
        e.a_conf.extra = [f"DNS = 10.88.{i}.53"]
        files.append(f"/etc/two{i}.conf")
        write(wire.a, files[-1], e.a_conf.quick_text(), "600")
        wire.a.run(binary(), "up", files[-1])
    assert read(wire.a, "/etc/resolv.conf").index("10.88.1.53") < read(wire.a, "/etc/resolv.conf").index("10.88.0.53")
    wire.a.run(binary(), "down", files[first])
    assert wire.a.out("cat", "/proc/sys/net/ipv4/conf/all/src_valid_mark") == "1"
    assert f"10.88.{1 - first}.53" in read(wire.a, "/etc/resolv.conf") and f"10.88.{first}.53" not in read(wire.a, "/etc/resolv.conf")
    wire.a.run(binary(), "down", files[1 - first])
    assert state(wire.a) == before
