# SPDX-License-Identifier: Apache-2.0
"""Aligned tables on a terminal or in a file, and one line of progress."""
from __future__ import annotations

import math
import os
import sys
import time


def number(x: float | None) -> str:
    """Three to four figures that count."""
    if x is None or math.isnan(x):
        return "-"
    return f"{x:.0f}" if abs(x) >= 100 else f"{x:.1f}" if abs(x) >= 10 else f"{x:.2f}" if abs(x) >= 0.095 else f"{x:.3f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    """First column to the left, the rest to the right."""
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]
    def line(cells: list[str]) -> str:
        return "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths))).rstrip()
    return "\n".join([line(head), line(["-" * w for w in widths]), *map(line, rows)])


class Progress:
    """One line that is rewritten on a terminal; silent elsewhere."""

    def __init__(self, stream=sys.stderr):
        self.stream, self.is_on = stream, stream.isatty() and os.environ.get("TERM") != "dumb"
        self.t0 = time.monotonic()

    def __call__(self, text: str) -> None:
        if self.is_on:
            s = int(time.monotonic() - self.t0)
            width = os.get_terminal_size(self.stream.fileno()).columns
            self.stream.write("\r" + f"{s // 60}:{s % 60:02} {text}"[:width - 1] + "\x1b[K")
            self.stream.flush()

    def clear(self) -> None:
        if self.is_on:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
