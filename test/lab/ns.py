# SPDX-License-Identifier: Apache-2.0
"""Namespaces that vanish with the program that made them.

A Namespace is a network, mount and process namespace held by one `cat` that waits at the end of
a pipe. When this program ends, for whatever reason, kill -9 included, the pipe closes, `cat`
ends, and the kernel ends every process inside and removes interfaces and mounts. So nothing has
a name that could be left behind, and several labs run at once without clashing.

The mount namespace gives each node its own /run and /var/lib: two daemons may both call their
interface wg0."""
from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Iterator, Sequence

from . import procfs
from .wait import wait_for

CLONE_NEWNET = 0x40000000
PREFIX = "weft-"
_libc = ctypes.CDLL(None, use_errno=True)

# The shell's own number is read before /proc is replaced, so it is the number outside.
# With SIGCHLD ignored, orphans that end inside are reaped by the kernel.
_HOLDER = """
read pid rest </proc/self/stat
mount -t proc proc /proc && mount -t sysfs sysfs /sys &&
mount -t tmpfs -o mode=755 tmpfs /run && mkdir -p /run/netns /run/lock &&
mount -t tmpfs -o mode=755 tmpfs /var/lib &&
{ [ ! -d /etc/wireguard ] || mount -t tmpfs -o mode=700 tmpfs /etc/wireguard; } &&
ip link set lo up && echo "$pid" && exec env --ignore-signal=CHLD cat >/dev/null
"""


class NotRoot(RuntimeError):
    """Namespaces of this kind need root."""


class CommandFailed(AssertionError):
    """A command inside a namespace ended with an error; the text has its output."""


class Process:
    """A program running in a namespace, its output in a log file."""

    def __init__(self, ns: Namespace, argv: Sequence[str], log: Path, popen: subprocess.Popen):
        self.ns, self.argv, self.log, self._popen = ns, list(argv), log, popen
        # nsenter stays outside and waits; the program is its child.
        self.pid: int = wait_for(self._find, 5, f"start of {shlex.join(self.argv)}", interval=0.002)

    def _find(self) -> int:
        if self._popen.poll() is not None:
            return -1
        return next(iter(procfs.children(self._popen.pid)), 0)

    @property
    def returncode(self) -> int | None:
        return self._popen.poll()

    @property
    def is_running(self) -> bool:
        return self._popen.poll() is None

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def signal(self, number: int) -> None:
        if self.is_running and self.pid > 0:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def wait(self, timeout: float = 30.0) -> int:
        """Exit status; a signal's number is negative."""
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise CommandFailed(f"{shlex.join(self.argv)} still runs after {timeout:g} s\n{self.output[-3000:]}") from None

    def ends_within(self, timeout: float) -> bool:
        """Waits up to timeout seconds; has it ended?"""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(timeout)
        return not self.is_running

    def stop(self, timeout: float = 5.0) -> int:
        """SIGTERM, then SIGKILL; returns the exit status."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            return self._popen.wait(timeout)

    def cpu_seconds(self) -> float:
        return procfs.cpu_seconds(self.pid)

    def peak_rss_kib(self) -> int:
        return procfs.peak_rss_kib(self.pid)


class Namespace:
    """One machine of a lab. Made by Lab.namespace()."""

    def __init__(self, lab: Lab, name: str):
        self.lab, self.name = lab, name
        self._count = 0
        self._holder = subprocess.Popen(
            ["unshare", "--net", "--mount", "--pid", "--fork", "--propagation", "private", "sh", "-c", _HOLDER],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self._holder.stdout.readline().strip()
        if not line:
            self.close()
            raise RuntimeError(f"cannot make namespaces: {self._holder.stderr.read().strip()}")
        self.pid = int(line)  # seen from outside; 1 inside
        _use_cubic(self)

    def __repr__(self) -> str:
        return f"Namespace({self.name}: nsenter -t {self.pid} -n -m -p)"

    # --- commands ---
    def _argv(self, argv: Sequence[str], cwd: Path | None = None) -> list[str]:
        return ["nsenter", "-t", str(self.pid), "-n", "-m", "-p", f"--wd={cwd or os.getcwd()}", "--", *map(str, argv)]

    def run(self, *argv: str, check: bool = True, timeout: float = 30.0, input: str | None = None,
            env: dict[str, str] | None = None, cwd: Path | None = None) -> subprocess.CompletedProcess:
        """Runs a command to its end. One string is split as a shell would. Output is text."""
        if len(argv) == 1:
            argv = tuple(shlex.split(argv[0]))
        p = subprocess.Popen(self._argv(argv, cwd), stdin=subprocess.PIPE if input is not None else subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                             env=None if env is None else {**os.environ, **env})
        try:
            out, err = p.communicate(input, timeout)
        except BaseException as e:
            for child in procfs.children(p.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            p.kill()
            out, err = p.communicate()
            if isinstance(e, subprocess.TimeoutExpired):
                raise CommandFailed(f"{self.name}: {shlex.join(argv)} still ran after {timeout:g} s\n{out}{err}") from None
            raise
        if check and p.returncode:
            raise CommandFailed(f"{self.name}: {shlex.join(argv)}: exit {p.returncode}\n{out}{err}")
        return subprocess.CompletedProcess(argv, p.returncode, out, err)

    def out(self, *argv: str, **kw) -> str:
        """Standard output of a command, stripped."""
        return self.run(*argv, **kw).stdout.strip()

    def spawn(self, *argv: str, env: dict[str, str] | None = None, log: str | None = None) -> Process:
        """Starts a program that runs on; its output goes to a file of the lab's folder."""
        if len(argv) == 1:
            argv = tuple(shlex.split(argv[0]))
        self._count += 1
        path = self.lab.dir / f"{self.name}-{self._count:02}-{log or Path(argv[0]).name}.log"
        with path.open("wb") as f:
            p = subprocess.Popen(self._argv(argv), stdin=subprocess.DEVNULL, stdout=f, stderr=subprocess.STDOUT,
                                 env=None if env is None else {**os.environ, **env})
        return Process(self, argv, path, p)

    def processes(self, name: str) -> list[int]:
        """Numbers, seen from outside, of the processes in here whose short name is name."""
        mine = os.readlink(f"/proc/{self.pid}/ns/pid")
        found = []
        for entry in os.scandir("/proc"):
            if entry.name.isdigit() and procfs.command(int(entry.name)) == name[:15] and procfs.is_alive(int(entry.name)):
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{entry.name}/ns/pid") == mine:
                        found.append(int(entry.name))
        return sorted(found)

    # --- network ---
    def ip(self, *argv: str) -> str:
        """`ip` with one string or several words."""
        words = shlex.split(argv[0]) if len(argv) == 1 else argv
        return self.run("ip", *words).stdout

    def sysctl(self, **values: object) -> None:
        """Sets knobs; two underscores stand for a dot: net__ipv4__ip_forward=1."""
        for key, value in values.items():
            path = "/proc/sys/" + key.replace("__", "/")
            self.run("sh", "-c", 'echo "$1" >"$2"', "sh", str(value), path)

    def nft(self, rules: str) -> None:
        """Feeds rules to nft."""
        self.run("nft", "-f", "-", input=rules)

    def has_device(self, device: str) -> bool:
        return re.search(rf"^\s*{re.escape(device)}:", Path(f"/proc/{self.pid}/net/dev").read_text(), re.M) is not None

    def counters(self, device: str) -> procfs.DeviceCounters:
        return procfs.device_counters(self.pid, device)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """This thread is inside the network namespace for the while: sockets made then stay there."""
        with open("/proc/thread-self/ns/net") as home, open(f"/proc/{self.pid}/ns/net") as there:
            _setns(there.fileno())
            try:
                yield
            finally:
                _setns(home.fileno())

    def udp_socket(self, address: str = "0.0.0.0", port: int = 0, timeout: float = 2.0) -> socket.socket:
        """A UDP socket in here, bound, its family that of the address."""
        with self.entered():
            s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(timeout)
        s.bind((address, port))
        return s

    def tcp_socket(self, family: int = socket.AF_INET, timeout: float = 10.0) -> socket.socket:
        with self.entered():
            s = socket.socket(family, socket.SOCK_STREAM)
        s.settimeout(timeout)
        return s

    def close(self) -> None:
        """Ends every process inside; the kernel removes the rest."""
        self._holder.stdin.close()
        try:
            self._holder.wait(5)
        except subprocess.TimeoutExpired:
            self._holder.kill()
            self._holder.wait()
        self._holder.stdout.close()


def _setns(fd: int) -> None:
    if _libc.setns(fd, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


_cubic_lock = threading.Lock()


def _use_cubic(ns: Namespace) -> None:
    """Results are comparable with one congestion control only; BBR, some machines' default, hides loss.

    A namespace may choose only what the machine allows to everybody, so where CUBIC is not on
    that list it is added. That is the one thing a lab changes outside its namespaces."""
    key = "net__ipv4__tcp_congestion_control"
    try:
        ns.sysctl(**{key: "cubic"})
    except CommandFailed:
        allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
        with _cubic_lock:
            names = allowed.read_text().split()
            if "cubic" not in names:
                allowed.write_text(" ".join([*names, "cubic"]))
        ns.sysctl(**{key: "cubic"})


def need_root() -> None:
    if os.geteuid() != 0:
        raise NotRoot("network namespaces need root: run this again with sudo")


class Lab:
    """Owns namespaces and a folder for logs and files; `with Lab() as lab:` removes all at its end.

    SIGTERM ends the program through the same clean-up when handle_signals is set, for programs;
    SIGINT arrives as KeyboardInterrupt anyway. After kill -9 only the folder stays, and the next
    lab removes it."""

    def __init__(self, handle_signals: bool = False, keep_logs: bool = False):
        need_root()
        self._sweep()
        self.dir = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        self.namespaces: list[Namespace] = []
        self._stack = contextlib.ExitStack()
        self._handle_signals, self._keep_logs = handle_signals, keep_logs

    @staticmethod
    def _sweep() -> None:
        """Removes folders of programs that no longer run."""
        for folder in Path(tempfile.gettempdir()).glob(PREFIX + "*-*"):
            m = re.fullmatch(PREFIX + r"(\d+)-\w+", folder.name)
            if m and not Path(f"/proc/{m[1]}").exists():
                shutil.rmtree(folder, ignore_errors=True)

    def __enter__(self) -> Lab:
        if self._handle_signals:
            # Who starts a program in the background of a script hands on SIGINT ignored.
            self._stack.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
            for number in (signal.SIGTERM, signal.SIGHUP):
                self._stack.callback(signal.signal, number, signal.signal(number, lambda n, _frame: sys.exit(128 + n)))
        return self

    def __exit__(self, kind: type | None, *_rest: object) -> None:
        try:
            self._stack.close()
        finally:
            for ns in reversed(self.namespaces):
                ns.close()
            if not (self._keep_logs and kind):
                shutil.rmtree(self.dir, ignore_errors=True)

    def on_exit(self, call, *args) -> None:
        """Calls at the end, in reverse order, before the namespaces go."""
        self._stack.callback(call, *args)

    def namespace(self, name: str) -> Namespace:
        ns = Namespace(self, name)
        self.namespaces.append(ns)
        return ns

    def veth(self, a: Namespace, a_device: str, a_addresses: Sequence[str], b: Namespace, b_device: str,
             b_addresses: Sequence[str], mtu: int = 1500) -> None:
        """Joins two namespaces by a veth pair with addresses (with prefix lengths); both ends are up."""
        subprocess.run(["ip", "link", "add", "name", a_device, "mtu", str(mtu), "netns", str(a.pid), "type", "veth",
                        "peer", "name", b_device, "mtu", str(mtu), "netns", str(b.pid)], check=True)
        for ns, device, addresses in ((a, a_device, a_addresses), (b, b_device, b_addresses)):
            lines = [f"address add {x} dev {device}" + (" nodad" if ":" in x else "") for x in addresses]
            ns.run("ip", "-batch", "-", input="\n".join([*lines, f"link set dev {device} up", ""]))

    def logs(self, tail: int = 3000) -> str:
        """The ends of all logs, for a failed test."""
        parts = [f"--- {p.name}\n{p.read_text(errors='replace')[-tail:]}" for p in sorted(self.dir.glob("*.log"))]
        return "\n".join(parts)
