# SPDX-License-Identifier: Apache-2.0
"""Waiting for conditions instead of sleeping for a guessed time."""
from __future__ import annotations

import threading
import time
from typing import Callable, TypeVar

T = TypeVar("T")


class WaitTimeout(AssertionError):
    """A condition did not come true in time."""


def wait_for(condition: Callable[[], T], timeout: float = 5.0, what: str = "", interval: float = 0.01) -> T:
    """Calls condition until it returns something true, and returns that.

    interval is the pause between two calls. The last call is made after the deadline, so that a
    starved machine does not turn a true condition into a failure."""
    deadline = time.monotonic() + timeout
    pause = threading.Event()
    while True:
        late = time.monotonic() >= deadline
        value = condition()
        if value:
            return value
        if late:
            raise WaitTimeout(f"not within {timeout:g} s: {what or condition}")
        pause.wait(interval)


def stays(condition: Callable[[], bool], duration: float, what: str = "", interval: float = 0.02) -> None:
    """Fails when condition becomes false within duration seconds: for claims that nothing happens."""
    deadline = time.monotonic() + duration
    pause = threading.Event()
    while time.monotonic() < deadline:
        if not condition():
            raise AssertionError(f"did not stay true for {duration:g} s: {what or condition}")
        pause.wait(interval)
