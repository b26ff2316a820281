# SPDX-License-Identifier: Apache-2.0
"""weft with wireguard-go, both ways round."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from background import slow_cases  # noqa: E402,F401
from lab.fixtures import lab, pytest_runtest_makereport, tunnel, wire  # noqa: E402,F401
