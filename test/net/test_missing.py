# SPDX-License-Identifier: Apache-2.0
"""A start where something is missing says what, and what to do about it.

    A 10.0.1.1 ---- 10.0.1.2 B"""
import pytest

from lab import binary, pair, wait_ping
from lab.device import B4, DEVICE, ends, make, WEFT


@pytest.fixture
def wire(lab):
    return pair(lab)


@pytest.fixture
def device(wire, lab):
    """A's file, with a default route."""
    e = ends("", wire.b4)
    e.a_conf.peers[0].allowed = ["0.0.0.0/0", "::/0"]
    folder = lab.dir / "missing"
    folder.mkdir()
    e.file = folder / f"{DEVICE}.conf"
    e.file.touch(mode=0o600)
    e.file.write_text(e.a_conf.quick_text())
    return e


def up(ns, device, *before: str) -> str:
    """What a start that fails has to say."""
    r = ns.run(*before, binary(), "up", str(device.file), check=False)
    assert r.returncode == 1 and not ns.has_device(DEVICE), (r.returncode, r.stderr)
    assert ns.out("find", "/run/weft", "-type", "f", check=False) == ""
    return r.stderr


def test_root_without_the_capability_learns_its_name(wire, device):
    said = up(wire.a, device, "setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin")
    assert "CAP_NET_ADMIN is missing" in said and "--cap-add NET_ADMIN" in said and "as root" not in said, said


def test_missing_device_file_and_one_that_is_no_tun_are_named(wire, device):
    wire.a.run("mount", "-t", "tmpfs", "none", "/dev/net")
    said = up(wire.a, device)
    assert "/dev/net/tun" in said and "modprobe tun" in said and "--device /dev/net/tun" in said, said
    wire.a.run("mknod", "/dev/net/tun", "c", "10", "201")  # a number that no driver has
    said = up(wire.a, device)
    assert "driver is missing" in said and "modprobe tun" in said, said
    wire.a.run("umount", "/dev/net")


def test_read_only_sysctls_are_named_and_do_not_stop_the_start(wire, device):
    wire.a.sysctl(net__ipv4__conf__all__src_valid_mark=0)
    wire.a.run("sh", "-c", "mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys")
    device.b = make(WEFT, wire.b, device.b_conf)
    r = wire.a.run(binary(), "up", str(device.file))
    assert "src_valid_mark" in r.stderr and "read-only" in r.stderr and "--sysctl" in r.stderr, r.stderr
    wait_ping(wire.a, B4)
    wire.a.run(binary(), "down", DEVICE)
    wire.a.run("umount", "/proc/sys")
    wire.a.sysctl(net__ipv4__conf__all__src_valid_mark=1)
    wire.a.run("sh", "-c", "mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys")
    r = wire.a.run(binary(), "up", str(device.file))
    assert "src_valid_mark" not in r.stderr, r.stderr  # it is as wanted
    wire.a.run(binary(), "down", DEVICE)


def test_ipv6_that_is_switched_off_is_named(wire, device):
    wire.a.sysctl(net__ipv6__conf__default__disable_ipv6=1)
    said = up(wire.a, device)
    assert "fd99::1/64" in said and "net.ipv6.conf.default.disable_ipv6=0" in said, said
