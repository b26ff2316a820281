# SPDX-License-Identifier: Apache-2.0
"""Metrics over HTTP, asked for by curl; and the dashboard over them.

    A 10.0.1.1 ---- 10.0.1.2 B"""
from __future__ import annotations

import json
import re
import socket
from pathlib import Path

import pytest

from lab import Lab, binary, keys, pair, wait_for, wait_ping
from lab.device import B4, DEVICE, WEFT, ends

TOP = Path(__file__).resolve().parent.parent.parent
URL = "http://127.0.0.1:9586/metrics"


def start(lab: Lab, *options: str, device: str = "m0"):
    ns = lab.namespace("m")
    file = lab.dir / f"{device}.conf"
    file.touch(mode=0o600)
    file.write_text(f"[Interface]\nPrivateKey = {keys().private}\n\n[Peer]\nPublicKey = {keys().public}\nAllowedIPs = 10.0.0.0/8\n")
    ns.run(binary(), "up", *options, str(file))
    return ns


def curl(ns, *words: str, check: bool = True) -> str:
    return ns.run("curl", "-sS", "--max-time", "10", *words, check=check).stdout


def names(text: str) -> set[str]:
    return set(re.findall(r"^(weft_\w+)[{ ]", text, re.M))


def test_http_serves_what_status_prints(lab):
    wire = pair(lab)
    e = ends(wire.a4, wire.b4)
    e.up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    e.a.down()
    e.a.options = ["--metrics", "9586"]
    e.a.up()
    wait_ping(wire.a, B4)
    served, printed = curl(wire.a, URL), wire.a.out(binary(), "status", "--prometheus", DEVICE)
    shape = lambda text: [re.sub(r" [^ ]+$", "", line) for line in text.strip().splitlines()]  # noqa: E731
    assert shape(served) == shape(printed) and f'weft_device_up{{device="{DEVICE}"}} 1' in served
    head = curl(wire.a, "-I", URL)
    assert "200 OK" in head and "text/plain; version=0.0.4" in head


def test_nothing_listens_without_the_option_and_loopback_alone_with_it(lab):
    ns = start(lab)
    assert ns.out("ss", "-Hlnt") == ""
    ns.run(binary(), "down", "m0")
    ns.run(binary(), "up", "--metrics", "[::1]:9000", str(lab.dir / "m0.conf"))
    assert ns.out("ss", "-Hlnt").split()[3] == "[::1]:9000"
    assert "weft_peers" in curl(ns, "http://[::1]:9000/metrics")
    ns.run(binary(), "down", "m0")
    assert ns.out("ss", "-Hlnt") == ""


@pytest.mark.parametrize("options, word", [(["--metrics", "0.0.0.0:9586"], "--metrics-open"), (["--metrics", "[::]:9586"], "--metrics-open"),
                                           (["--metrics", "localhost"], "PORT"), (["--metrics", "127.0.0.1:0"], "PORT"), (["--metrics-open"], "wants --metrics")])
def test_open_or_wrong_addresses_are_refused(lab, options, word):
    ns = lab.namespace("m")
    r = ns.run(binary(), "run", *options, "m0", check=False)
    assert r.returncode == 2 and word in r.stderr


def test_open_address_is_served_when_that_is_said(lab):
    ns = start(lab, "--metrics", "0.0.0.0:9586", "--metrics-open")
    assert "weft_peers" in curl(ns, "http://127.0.0.2:9586/metrics")


def test_taken_port_is_told_and_leaves_nothing(lab):
    ns = lab.namespace("m")
    with ns.entered():
        taken = socket.create_server(("127.0.0.1", 9586))
    r = ns.run(binary(), "run", "--metrics", "9586", "m0", check=False)
    assert r.returncode == 1 and "127.0.0.1:9586" in r.stderr and "in use" in r.stderr
    assert not ns.has_device("m0")
    taken.close()


def test_other_paths_and_methods_are_refused(lab):
    ns = start(lab, "--metrics", "9586")
    assert "404" in curl(ns, "-o", "/dev/null", "-w", "%{http_code}", "http://127.0.0.1:9586/")
    assert "404" in curl(ns, "-o", "/dev/null", "-w", "%{http_code}", "http://127.0.0.1:9586/metrics/../etc/passwd", "--path-as-is")
    assert "405" in curl(ns, "-o", "/dev/null", "-w", "%{http_code}", "-X", "DELETE", URL)
    assert "405" in curl(ns, "-o", "/dev/null", "-w", "%{http_code}", "-d", "x" * 100000, URL)


def test_idle_connections_are_few_and_end_and_hold_up_nobody_else(lab):
    ns = start(lab, "--metrics", "9586")
    with ns.entered():
        idle = [socket.create_connection(("127.0.0.1", 9586)) for _ in range(40)]
    idle[0].send(b"GET /metrics HT")
    assert json.loads(ns.out(binary(), "status", "--json", "m0"))["peer_count"] == 1, "the control socket answers meanwhile"
    wait_for(lambda: "weft_peers" in curl(ns, URL, check=False), 25, "a connection that has run out of time")
    for s in idle:
        s.close()


def test_answer_is_made_anew_after_a_while(lab):
    ns = start(lab, "--metrics", "9586")
    uptime = lambda: int(re.search(r"^weft_uptime_seconds{.*} (\d+)", curl(ns, URL), re.M)[1])  # noqa: E731
    first = uptime()
    wait_for(lambda: uptime() > first, 5, "a new answer")


def test_memory_without_the_option_has_no_library_of_it(lab):
    ns = start(lab)
    pid = ns.processes("weft")[0]
    assert "microhttpd" not in Path(f"/proc/{pid}/maps").read_text()


def known() -> set[str]:
    return set(re.findall(r'^\t{"(weft_\w+)"', (TOP / "src/ctl/metrics.c").read_text(), re.M))


def test_dashboard_asks_for_metrics_that_exist_alone():
    board = json.loads((TOP / "contrib/grafana/weft.json").read_text())
    exprs = [t["expr"] for p in board["panels"] for t in p.get("targets", [])]
    exprs += [v["definition"] for v in board["templating"]["list"] if v["type"] == "query"]
    assert len(exprs) > 20 and len(known()) > 40
    for expr in exprs:
        used = set(re.findall(r"\bweft_\w+", expr))
        assert used and used <= known(), expr


def test_dashboard_panels_do_not_overlap_and_have_unit_and_title():
    panels = json.loads((TOP / "contrib/grafana/weft.json").read_text())["panels"]
    assert len({p["id"] for p in panels}) == len(panels)
    cells = [(x, y) for p in panels for g in [p["gridPos"]] for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])]
    assert len(set(cells)) == len(cells)
    assert all(p["title"] and (p["type"] == "row" or p["fieldConfig"]["defaults"]["unit"]) for p in panels)
