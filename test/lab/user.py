# SPDX-License-Identifier: Apache-2.0
"""An ordinary user, whom the kernel lets do nothing of its own."""
from __future__ import annotations

NOBODY = 65534


def as_nobody(*argv: str, can_gain: bool = True) -> list[str]:
    """The command as that user. can_gain: a program with file capabilities, or in a user namespace, may have more."""
    bounds = [] if can_gain else ["--inh-caps=-all", "--bounding-set=-all"]
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *bounds, *argv]
