# SPDX-License-Identifier: Apache-2.0
"""What a person sees: status as text, metrics, and the live view.

    A 10.0.1.1 ---- 10.0.1.2 B"""
import os
import re
import signal
import termios

import pytest

from lab import binary, wait_for
from lab.device import B4, DEVICE
from lab.terminal import Terminal

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)")


def parse_metrics(text: str) -> dict[str, tuple[str, dict[str, float]]]:
    """The text format 0.0.4, strictly: name -> type and samples by their labels. Asserts what the format asks for."""
    metrics, seen, name = {}, set(), None
    assert text == "" or text.endswith("\n")
    helped = None
    for line in text.splitlines():
        m = re.fullmatch(rf"# HELP ({NAME}) (.+)", line)
        if m:
            assert m[1] not in metrics, f"{m[1]} comes twice, or in pieces"
            helped = m[1]
            continue
        m = re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge)", line)
        if m:
            name = m[1]
            assert name == helped, f"{name}: HELP of the same name stands above TYPE"
            assert name.endswith("_total") == (m[2] == "counter"), f"{name}: counters and only they end in _total"
            metrics[name] = (m[2], {})
            continue
        m = SAMPLE.fullmatch(line)
        assert m, f"no sample: {line!r}"
        assert m[1] == name, f"{m[1]} stands among the samples of {name}"
        labels = m[2] or ""
        names = re.findall(r'(?:^|,)([a-zA-Z_][a-zA-Z0-9_]*)="', labels)
        assert len(names) == len(set(names)), f"a label comes twice: {line!r}"
        assert (name, labels) not in seen, f"a sample comes twice: {line!r}"
        seen.add((name, labels))
        value = float(m[3])
        assert metrics[name][0] != "counter" or value >= 0
        metrics[name][1][labels] = value
    assert all(samples for _type, samples in metrics.values()), "a metric without samples"
    return metrics


def metrics_of(ns, *argv: str):
    return parse_metrics(ns.run(binary(), "status", "--prometheus", *argv).stdout)


def test_metrics_are_well_formed_and_say_what_status_says(wire, tunnel):
    wire.a.run("ping", "-c", "1", "-W", "1", "-I", DEVICE, "198.51.100.1", check=False)  # no peer has it
    status = tunnel.a.status()
    metrics = metrics_of(wire.a, DEVICE)
    device = f'device="{DEVICE}"'
    peer = f'{device},public_key="{tunnel.b_keys.public}"'
    assert metrics["weft_peers"] == ("gauge", {device: 1})
    assert metrics["weft_device_up"][1] == {device: 1}
    assert metrics["weft_peer_transmit_bytes_total"][1][peer] >= status["peers"][0]["tx_bytes"] > 0
    assert metrics["weft_peer_latest_handshake_seconds"][1][peer] == pytest.approx(status["peers"][0]["latest_handshake_s"], abs=0.01)
    drops = metrics["weft_dropped_total"][1]
    assert {re.search(r'reason="(\w+)"', k)[1] for k in drops} == set(status["drops"])
    assert drops[f'{device},reason="tx_route"'] >= 1
    assert any(f'public_key="{status["device"]["public_key"]}"' in k for k in metrics["weft_device_info"][1])


def test_metrics_of_all_devices_and_of_none(wire, tunnel):
    both = metrics_of(wire.a)
    assert list(both["weft_device_up"][1]) == [f'device="{DEVICE}"']
    tunnel.a.down()
    assert metrics_of(wire.a) == {}


def test_forms_exclude_each_other(wire):
    for argv in (["--json", "--watch"], ["--prometheus", "--json"], ["--watch", "--prometheus", DEVICE]):
        r = wire.a.run(binary(), "status", *argv, check=False)
        assert r.returncode == 2 and argv[0] in r.stderr and argv[1] in r.stderr and not r.stdout


def dropped(t: Terminal) -> int:
    m = re.search(r"(\d+)  tx_route", t.picture())
    return int(m[1]) if m else 0


def test_watch_draws_rates_and_drops_as_they_come(wire, tunnel):
    t = Terminal(wire.a, binary(), "status", "--watch")
    try:
        ping = wire.a.spawn("ping", "-i", "0.05", "-s", "1000", B4)
        lost = wire.a.spawn("ping", "-i", "0.2", "-I", DEVICE, "198.51.100.1")
        wait_for(lambda: re.search(r"out +\d+(\.\d+)? kbit/s  .*\S", t.picture()) and dropped(t) >= 10, 10, "rates and drops")
        picture = t.picture()
        assert picture.startswith(f"{DEVICE}  running") and tunnel.b_keys.public[:8] in picture
        assert all(len(line) <= 80 for line in picture.splitlines()) and len(picture.splitlines()) <= 24
        lost.stop()
        # The kernel's router solicitations are dropped for the same reason, one in seconds.
        wait_for(lambda: dropped(t) < 5, 20, "old drops are no news")
        ping.stop()
        t.resize(20, 40)
        wait_for(lambda: t.picture().count("\n") < 20 and all(len(line) <= 40 for line in t.picture().splitlines()), 5, "a narrow picture")
        assert t.picture().startswith(f"{DEVICE}  running")
    finally:
        t.close()


@pytest.mark.parametrize("how", ["q", "Ctrl-C", "TERM"])
def test_watch_gives_the_terminal_back(wire, tunnel, how):
    t = Terminal(wire.a, binary(), "status", "--watch", DEVICE)
    try:
        wait_for(lambda: "peer" in t.picture(), 10)
        assert termios.tcgetattr(t.slave)[3] & (termios.ICANON | termios.ECHO) == 0
        assert t.read().startswith("\x1b[?1049h")
        if how == "TERM":
            os.kill(wire.a.processes("weft")[-1], signal.SIGTERM)
        else:
            t.type("q" if how == "q" else "\x03")
        wait_for(t.has_ended, 5, "it ends")
        # Ctrl-C also ends what put the program into its namespace, maybe sooner.
        assert t.process.returncode in ((0, -signal.SIGINT) if how == "Ctrl-C" else (0,))
        wait_for(t.is_restored, 5, "the terminal is as it was")
    finally:
        t.close()


def test_watch_follows_a_device_that_goes_and_comes(wire, tunnel):
    t = Terminal(wire.a, binary(), "status", "--watch", DEVICE)
    try:
        wait_for(lambda: "running" in t.picture(), 10)
        tunnel.a.down()
        wait_for(lambda: "does not run" in t.picture(), 10)
        assert t.picture().rstrip().endswith("the device is stopping")
        tunnel.a.ns.run(binary(), "up", str(tunnel.a.file))
        wait_for(lambda: "running" in t.picture(), 10)
    finally:
        t.close()


def test_watch_prints_lines_where_no_terminal_is(wire, tunnel):
    out = wire.a.spawn(binary(), "status", "--watch")
    wait_for(lambda: len(out.output.splitlines()) >= 2, 10)
    out.signal(signal.SIGTERM)
    assert out.wait() == 0
    assert all(re.fullmatch(rf"\d\d:\d\d:\d\d {DEVICE} \S{{8}} in \S+ \S+ out \S+ \S+.*", line) for line in out.output.splitlines())
    assert "\x1b" not in out.output


def test_watch_of_a_name_that_does_not_run_says_so(wire):
    r = wire.a.run(binary(), "status", "--watch", "nosuch", check=False)
    assert r.returncode == 1 and "nosuch: no such device is running" in r.stderr and not r.stdout
