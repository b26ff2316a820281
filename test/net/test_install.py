# SPDX-License-Identifier: Apache-2.0
"""An installed weft finds its own files, wherever it was installed to, and measures itself."""
from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent


def test_installed_bench_net_runs_the_installed_files_and_measures_the_installed_program(tmp_path):
    env = {k: v for k, v in os.environ.items() if k not in ("WEFT_BINARY", "PYTHONPATH")}
    subprocess.run(["make", "--no-print-directory", "install", f"DESTDIR={tmp_path}/root"], cwd=TOP, env=env, check=True, capture_output=True)
    weft = next((tmp_path / "root").rglob("bin/weft"))
    script = next((tmp_path / "root").rglob("bench/net/bench_net.py"))
    used = tmp_path / "used"
    script.write_text(script.read_text().replace("from __future__ import annotations\n",
                      f"from __future__ import annotations\nimport os as _o; open({str(used)!r}, 'w').write(_o.environ['WEFT_BINARY'])\n", 1))
    out = tmp_path / "out.json"
    r = subprocess.run([weft, "bench", "net", "--quick", "--tests", "ping", "--contenders", "veth,weft", "--json", out], env=env,
                       capture_output=True, text=True, timeout=120)
    assert r.returncode == 0, r.stdout + r.stderr
    assert Path(used.read_text()).samefile(weft)
    assert {row["contender"] for row in json.loads(out.read_text())["results"]} >= {"veth", "weft"}


def test_install_puts_all_of_it_under_its_folder(tmp_path):
    r = subprocess.run(["make", "--no-print-directory", "install", f"DESTDIR={tmp_path}/root"], cwd=TOP, capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    root = tmp_path / "root"
    files = [p.relative_to(root).as_posix() for p in root.rglob("*") if not p.is_dir()]
    assert [p.name for p in tmp_path.iterdir()] == ["root"] and files
    wanted = {f"/man{p.suffix[1:]}/{p.name}" for p in (TOP / "man").iterdir()}
    wanted |= {f"/include/weft/{p.name}" for p in (TOP / "include/weft").glob("*.h")}
    wanted |= {"/bin/weft", "/libweft.so", "/libweft.so.0", "/libweft.a", "/pkgconfig/weft.pc", "/bash-completion/completions/weft", "/systemd/system/weft@.service"}
    assert [w for w in wanted if not any(f.endswith(w) for f in files)] == []
    assert not [f for f in files if str(tmp_path) in (root / f).read_text(errors="ignore")], "nothing tells where it was put first"
