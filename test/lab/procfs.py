# SPDX-License-Identifier: Apache-2.0
"""What /proc says of processes, interfaces and the whole machine."""
from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_HAS_CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children").exists()  # CONFIG_PROC_CHILDREN


def children(pid: int) -> list[int]:
    """Direct children of a process."""
    if not _HAS_CHILDREN:
        return _children_by_stat(pid)
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    except (FileNotFoundError, ProcessLookupError):
        pass  # it ends
    return found


def _children_by_stat(pid: int) -> list[int]:
    """For kernels without that file."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                stat = Path(entry.path, "stat").read_text()
            except OSError:
                continue
            if int(stat.rpartition(")")[2].split()[1]) == pid:
                found.append(int(entry.name))
    return found


def command(pid: int) -> str:
    """The kernel's short name of a process; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def is_alive(pid: int) -> bool:
    """Is the process there and not a zombie?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and the children that it has waited for; 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(f) for f in fields[11:15]) / TICKS_PER_S


def _status_kib(pid: int, key: str) -> int:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


def rss_kib(pid: int) -> int:
    """Resident memory now; 0 when the process is gone."""
    return _status_kib(pid, "VmRSS")


def peak_rss_kib(pid: int) -> int:
    """Highest resident memory since the start (VmHWM); 0 when the process is gone."""
    return _status_kib(pid, "VmHWM")


def thread_count(pid: int) -> int:
    return _status_kib(pid, "Threads")


def machine_cpu_seconds() -> float:
    """Busy time of all processors together since boot."""
    user, nice, system, _idle, _iowait, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:])
    return (user + nice + system + irq + softirq) / TICKS_PER_S


@dataclass(frozen=True)
class DeviceCounters:
    """One line of /proc/net/dev."""

    rx_bytes: int
    rx_packets: int
    tx_bytes: int
    tx_packets: int


def device_counters(pid: int, device: str) -> DeviceCounters:
    """Counters of an interface in the network namespace of a process; zeros when there is no such interface."""
    for line in Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]:
        name, _, rest = line.partition(":")
        if name.strip() == device:
            n = list(map(int, rest.split()))
            return DeviceCounters(n[0], n[1], n[8], n[9])
    return DeviceCounters(0, 0, 0, 0)


def is_listening(pid: int, port: int) -> bool:
    """Does a TCP socket listen on the port in the network namespace of a process?"""
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                return True
    return False


def has_connection(pid: int, port: int) -> bool:
    """Is a TCP connection at the port, in the network namespace of a process, not closed on this side?"""
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] in ("01", "08") and int(fields[1].rpartition(":")[2], 16) == port:  # ESTABLISHED, CLOSE_WAIT
                return True
    return False


def is_bound_udp(pid: int, port: int) -> bool:
    """Is a UDP socket bound to the port in the network namespace of a process?"""
    for table in ("udp", "udp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            if int(line.split()[1].rpartition(":")[2], 16) == port:
                return True
    return False
