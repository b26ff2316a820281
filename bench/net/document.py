# SPDX-License-Identifier: Apache-2.0
"""What the programs of this folder share: the JSON document, remarks, and their ends."""
from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable

from lab import NotRoot, binary
from lab.traffic import median

SCHEMA = "weft-bench-1"
BUSY_PERCENT = 5


def machine() -> dict[str, object]:
    cpu = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    return {"cpu": cpu, "cores": os.cpu_count(), "kernel": platform.release(), "system": platform.machine()}


def document(command: str, kind: str, options: dict, rows: list[dict], **more: object) -> dict:
    """The JSON that bench/README.md describes, of `weft bench COMMAND`."""
    return {"schema": SCHEMA, "bench": kind, "command": shlex.join(["weft", "bench", command, *sys.argv[1:]]), "machine": machine(),
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "options": options, "results": rows, **more}


def write(a: argparse.Namespace, doc: dict) -> None:
    """To the files that --json and --html name."""
    if a.json:
        Path(a.json).write_text(json.dumps(doc, indent=1) + "\n")
        print(f"wrote {a.json}")
    if a.html:
        source = Path(a.json) if a.json else Path(a.html).with_suffix(".json")
        source.write_text(json.dumps(doc, indent=1) + "\n")
        subprocess.run([binary(), "bench", "report", str(source), a.html], check=True)
        print(f"wrote {a.html}")


def busy_notes(others: list[float], bench: str = "net") -> list[dict]:
    """A remark when other programs kept the machine busy; others: their percent before each round."""
    busy = median(others)
    if not busy > BUSY_PERCENT:
        return []
    return [{"bench": bench, "text": f"Other programs used {busy:.0f} % of the processors (median before each round): trust ratios, not absolutes."}]


def say_notes(notes: list[dict]) -> None:
    for note in notes:
        print(f"\nNOTE {note['text']}")


def guarded(command: str, run: Callable[[], int]) -> int:
    """Exit status of a program; what a user can mend is told in one line."""
    try:
        return run()
    except (NotRoot, ValueError, FileNotFoundError) as e:
        print(f"weft bench {command}: {e}", file=sys.stderr)
    except KeyboardInterrupt:
        print("\ninterrupted; everything is removed", file=sys.stderr)
        return 130
    return 2
