# SPDX-License-Identifier: Apache-2.0
"""The Debian packages, in a root of their own."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
