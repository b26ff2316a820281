# SPDX-License-Identifier: Apache-2.0
"""pytest fixtures and hooks that test/net and test/interop share; their conftest.py imports them."""
from __future__ import annotations

from typing import Iterator

import pytest

from .device import B4, WEFT, Ends, ends
from .ns import Lab
from .topo import Pair, pair, wait_ping

_LABS = pytest.StashKey[list]()


@pytest.fixture
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A lab of the test's own, whose logs are part of the report when the test fails."""
    with Lab() as made:
        request.node.stash.setdefault(_LABS, []).append(made)
        yield made


@pytest.fixture
def wire(lab: Lab) -> Pair:
    """A 10.0.1.1 ---- 10.0.1.2 B"""
    return pair(lab)


@pytest.fixture
def tunnel(wire: Pair) -> Ends:
    """weft in A and in B; A has called."""
    e = ends("", wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    return e


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for made in item.stash.get(_LABS, []):
            if made.dir.exists():
                report.sections.append(("logs of the lab", made.logs()))
