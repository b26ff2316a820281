# SPDX-License-Identifier: Apache-2.0
"""One life of the packages: the tests run in this order, in one root."""
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lab import Lab, keys, wait_for

TOP = Path(__file__).resolve().parent.parent.parent
DEB = Path(os.environ.get("WEFT_DEB", TOP / "build-deb"))
SUITE = "bookworm"
PACKAGES = ("weft", "libweft0", "libweft-dev")
# What dpkg and the linker write about themselves.
BOOKS = re.compile(r"(var/lib/dpkg|var/log|var/cache|etc/ld\.so\.cache|proc|sys|dev|tmp|root)(/|$)")


def deb(package: str) -> Path:
    found = list(DEB.glob(f"{package}_*.deb"))
    assert len(found) == 1, f"{package}: {found}; run make deb"
    return found[0]


def field(package: str, name: str) -> str:
    return subprocess.run(["dpkg-deb", "-f", deb(package), name], check=True, capture_output=True, text=True).stdout.strip()


def files_of(package: str) -> dict[str, str]:
    """Path -> mode, as in "-rwxr-xr-x"."""
    text = subprocess.run(["dpkg-deb", "-c", deb(package)], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in text.splitlines()]
    assert all(row[1] == "root/root" for row in rows)
    return {row[5].removeprefix("."): row[0] for row in rows}


def depends() -> list[str]:
    """Packages of others that ours need."""
    names = {re.match(r"[^ ]+", d.strip())[0] for p in PACKAGES for d in field(p, "Depends").split(",")}
    return sorted(names - set(PACKAGES))


class Root:
    """A Debian system's files, with processes and a network of its own."""

    def __init__(self, lab: Lab):
        self.ns = lab.namespace("root")
        self.at = lab.dir / "root"
        self.at.mkdir()
        subprocess.run(["tar", "-x", "-f", root_tar(), "-C", self.at, "--exclude=./dev/*"], check=True)
        for kind, where in (("proc", "proc"), ("tmpfs", "run"), ("tmpfs", "dev")):
            self.ns.run("mount", "-t", kind, kind, str(self.at / where))
        # The device nodes that a container has; the tunnel's is all that weft wants.
        self.ns.run("sh", "-c", f"cd {self.at}/dev && mkdir net && mknod net/tun c 10 200 && mknod null c 1 3 && mknod urandom c 1 9 && chmod 666 null urandom")
        shutil.copytree(DEB, self.at / "tmp" / "deb", ignore=lambda d, names: [n for n in names if not n.endswith(".deb")])

    def run(self, *argv: str, check: bool = True):
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
        return self.ns.run("chroot", str(self.at), *argv, check=check, timeout=120, env=env)

    def out(self, *argv: str) -> str:
        return self.run(*argv).stdout.strip()

    def files(self) -> set[str]:
        """Everything there is but what BOOKS has."""
        paths = (str(p.relative_to(self.at)) for p in self.at.rglob("*") if not p.is_relative_to(self.at / "proc"))
        return {p for p in paths if not BOOKS.match(p)}

    def status(self, package: str) -> str:
        r = self.run("dpkg-query", "-W", "-f", "${Status} ${Version}", package, check=False)
        return r.stdout.strip()


def root_tar() -> Path:
    """A minimal Debian with what the packages depend on; made once."""
    tar = DEB / "root.tar"
    if not tar.exists():
        part = DEB / "root.part.tar"
        r = subprocess.run(["mmdebstrap", "--variant=minbase", f"--include={','.join(depends())}", SUITE, part], capture_output=True, text=True)
        assert r.returncode == 0, r.stderr[-3000:]
        part.rename(tar)
    return tar


@pytest.fixture(scope="module")
def root():
    if os.geteuid() != 0:
        pytest.fail("needs root: mmdebstrap and namespaces")
    with Lab() as lab:
        yield Root(lab)


@pytest.fixture(scope="module")
def newer(root) -> list[str]:
    """The same packages under a higher version."""
    work = root.at / "tmp" / "newer"
    work.mkdir()
    names = []
    for package in PACKAGES:
        tree = work / package
        subprocess.run(["dpkg-deb", "-R", deb(package), tree], check=True)
        control = tree / "DEBIAN" / "control"
        version = field(package, "Version")
        control.write_text(control.read_text().replace(version, version + "+newer"))
        name = f"/tmp/newer/{package}.deb"
        subprocess.run(["dpkg-deb", "-b", tree, str(root.at) + name], check=True, capture_output=True)
        shutil.rmtree(tree)
        names.append(name)
    return names


def test_packages_hold_what_make_install_installs(tmp_path):
    build = tmp_path / "build"
    subprocess.run(["meson", "setup", "--buildtype=release", "--prefix=/usr", "--libexecdir=libexec", "-Dtests=false", build, TOP], check=True, capture_output=True)
    plan = json.loads(subprocess.run(["meson", "introspect", "--installed", build], check=True, capture_output=True, text=True).stdout)
    packed = {re.sub(r"\.gz$", "", f) for p in PACKAGES for f in files_of(p)}
    # A folder of the plan is there with what is in it.
    missing = [to for to in plan.values() if to not in packed and to + "/" not in packed]
    assert missing == []


def test_files_have_the_modes_of_their_kind():
    weft = files_of("weft")
    assert weft["/etc/weft/"] == "drwx------", "it is for files with keys"
    assert weft["/usr/bin/weft"] == "-rwxr-xr-x"
    assert not [f for p in PACKAGES for f, mode in files_of(p).items() if "s" in mode.lower() or (mode[8] == "w" and mode[0] != "l")]
    assert weft["/usr/libexec/weft/test/lab/ns.py"] == "-rw-r--r--"


def test_lintian_finds_no_errors():
    changes = list(DEB.glob("weft_*.changes"))
    assert len(changes) == 1
    r = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", changes[0]], capture_output=True, text=True)
    errors = [line for line in r.stdout.splitlines() if line.startswith("E:")]
    assert (r.returncode, errors, r.stderr) == (0, [], "")


def test_install_configures_all_and_the_program_runs(root):
    root.before = root.files()
    root.run("dpkg", "-i", *(f"/tmp/deb/{deb(p).name}" for p in PACKAGES))
    assert all(root.status(p).startswith("install ok installed") for p in PACKAGES)
    assert root.out("weft", "version") == "weft " + field("weft", "Version")
    assert "libweft.so.0" in root.out("/sbin/ldconfig", "-p")
    assert "not found" not in root.out("ldd", "/usr/bin/weft", "/usr/libexec/weft/bench/net/dialer")
    assert root.run("dpkg", "--verify", *PACKAGES).stdout == ""


def test_installed_device_comes_up(root):
    conf = root.at / "etc/weft/pkg0.conf"
    conf.touch(mode=0o600)
    conf.write_text(f"[Interface]\nPrivateKey = {keys().private}\nAddress = 10.7.0.1/24\n\n[Peer]\nPublicKey = {keys().public}\nAllowedIPs = 10.8.0.0/16\n")
    root.run("weft", "up", "pkg0")
    assert json.loads(root.out("weft", "status", "--json", "pkg0"))["device"]["is_up"]
    assert "10.8.0.0/16" in root.ns.ip("route show dev pkg0")


def test_upgrade_leaves_devices_and_configuration_alone(root, newer):
    before = root.ns.processes("weft"), (root.at / "etc/weft/pkg0.conf").read_text()
    assert len(before[0]) == 1
    root.run("dpkg", "-i", *newer)
    assert all(root.status(p).endswith("+newer") for p in PACKAGES)
    assert (root.ns.processes("weft"), (root.at / "etc/weft/pkg0.conf").read_text()) == before
    assert json.loads(root.out("weft", "status", "--json", "pkg0"))["device"]["is_up"]


def test_downgrade_is_possible_too(root):
    root.run("dpkg", "-i", *(f"/tmp/deb/{deb(p).name}" for p in PACKAGES))
    assert root.status("weft").endswith(field("weft", "Version"))
    assert root.ns.has_device("pkg0")


def test_removal_takes_devices_down_and_keeps_configuration(root):
    root.run("dpkg", "-r", *PACKAGES)
    wait_for(lambda: root.ns.processes("weft") == [], 5, "the daemon's end")
    assert not root.ns.has_device("pkg0")
    assert (root.at / "etc/weft/pkg0.conf").exists()
    assert not (root.at / "usr/bin/weft").exists()


def test_purge_keeps_the_owners_files_and_nothing_else(root):
    root.run("dpkg", "-P", *PACKAGES)
    left = root.files() - root.before
    # The folder of the other sockets is wg's, too.
    assert left - {"run/wireguard"} == {"etc/weft", "etc/weft/pkg0.conf"}
    assert root.before - root.files() == set()
    assert all("ok" not in root.status(p) for p in PACKAGES)


def test_purged_packages_install_again_and_vanish_without_a_trace(root):
    (root.at / "etc/weft/pkg0.conf").unlink()
    root.run("dpkg", "-i", *(f"/tmp/deb/{deb(p).name}" for p in PACKAGES))
    assert (root.at / "etc/weft").stat().st_mode & 0o777 == 0o700
    root.run("dpkg", "-P", *PACKAGES)
    assert root.files() - root.before - {"run/wireguard"} == set()
