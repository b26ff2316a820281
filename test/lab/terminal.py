# SPDX-License-Identifier: Apache-2.0
"""A terminal, and the program that runs on it."""
from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios

from .ns import Namespace
from .wait import wait_for


class Terminal:
    """24 rows and 80 columns at first, and what is seen there. The program is its session's leader."""

    def __init__(self, ns: Namespace, *argv: str, env: dict[str, str] | None = None):
        self._master, self.slave = pty.openpty()  # the slave is kept open: its settings are looked at afterwards
        self.resize(24, 80)
        self._before = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(ns._argv(argv), stdin=self.slave, stdout=self.slave, stderr=self.slave, preexec_fn=self._own,
                                        env={**os.environ, "LC_ALL": "C.UTF-8", **(env or {})})
        self.text = ""

    def _own(self) -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, wait: float = 0) -> str:
        """All that was shown, less what expect() has met; waits for something new so many seconds at most."""
        while select.select([self._master], [], [], wait)[0]:
            self.text += os.read(self._master, 65536).decode(errors="replace")
            wait = 0
        return self.text

    def expect(self, what: str, timeout: float = 10) -> re.Match:
        """Reads until the pattern has come; what is behind it stays."""
        try:
            m = wait_for(lambda: re.search(what, self.read(0.05)), timeout, what)
        except AssertionError:
            raise AssertionError(f"no {what} within {timeout:g} s on the terminal, which shows {self.text!r}") from None
        self.text = self.text[m.end():]
        return m

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def picture(self) -> str:
        """The last whole one, without colours."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", self.read().rpartition("\x1b[H")[2])

    def has_ended(self) -> bool:
        self.read()
        return self.process.poll() is not None

    def is_restored(self) -> bool:
        return termios.tcgetattr(self.slave) == self._before and self.read().endswith("\x1b[?25h\x1b[?1049l")

    def close(self) -> None:
        """Hangs up; whatever runs there has to end by that."""
        os.close(self.slave)
        os.close(self._master)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"{self.process.args} outlives its terminal") from None
