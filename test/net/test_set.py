# SPDX-License-Identifier: Apache-2.0
"""Loss recovery and cipher as a person sets them, in files and while the device runs.

    A 10.0.1.1 ---- 10.0.1.2 B, or A --- R --- B where R loses packets"""
import re

from lab import binary, keys, loss, peer, routed, wait_agreed, wait_for, wait_ping
from lab.device import B4, DEVICE, GO, WEFT, ends

DEFAULT = {"extensions": True, "fec": "auto", "fec_delay_ms": 20, "cipher": "auto"}


def weft_set(ns, *argv: str, rc: int = 0) -> str:
    r = ns.run(binary(), "set", *argv, check=False)
    assert r.returncode == rc and not r.stdout, (argv, r.returncode, r.stdout, r.stderr)
    return r.stderr


def test_file_sets_policies_and_the_interface_those_of_the_rest(wire):
    e = ends("", wire.b4)
    e.a_conf.extra = ["Fec = 25%", "Cipher = ChaCha20Poly1305"]
    e.a_conf.peers[0].extra = ["FecDelay = 50", "Cipher = auto"]
    e.b_conf.extra = ["Extensions = off"]
    e.up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    a, b = peer(e.a), peer(e.b)
    assert a["policy"] == {"extensions": True, "fec": "25%", "fec_delay_ms": 50, "cipher": "auto"}
    assert b["policy"] == {**DEFAULT, "extensions": False}
    assert b["extensions"]["state"] == "off" and b["fec"]["why"] == "not_agreed"
    assert peer(e.a)["extensions"]["state"] in ("asking", "stock")


def test_set_changes_a_running_peer_and_only_what_is_named(wire):
    e = ends("", wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    key = e.b_keys.public
    assert peer(e.a)["policy"] == DEFAULT
    weft_set(wire.a, DEVICE, "peer", key, "fec", "30", "fec-delay", "5")
    weft_set(wire.a, DEVICE, "peer", key, "cipher", "chacha20poly1305")
    assert peer(e.a)["policy"] == {"extensions": True, "fec": "30%", "fec_delay_ms": 5, "cipher": "chacha20poly1305"}
    weft_set(wire.a, DEVICE, "peer", key, "fec", "auto", "fec-delay", "20", "cipher", "auto")
    assert peer(e.a)["policy"] == DEFAULT
    wait_ping(wire.a, B4, 2)


def test_bad_input_is_explained_and_changes_nothing(wire):
    e = ends("", wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    key, other = e.b_keys.public, keys().public
    first = ["peer", key, "fec", "off"]
    cases = [
        ([], 2, "NAME"), ([DEVICE], 2, "peer"), ([DEVICE, "peer"], 2, "public key"), ([DEVICE, "peer", key[:-1], "fec", "off"], 2, "44"),
        ([DEVICE, "peer", key], 2, "nothing to set"), ([DEVICE, "key", key], 2, "where key stands"),
        ([DEVICE, *first, "fec"], 2, "wants a value"), ([DEVICE, *first, "fek", "off"], 2, "fec, fec-delay, cipher, extensions"),
        ([DEVICE, "peer", key, "cipher", "auto", "fec", "on"], 2, "off, auto or"), ([DEVICE, *first, "fec-delay", "0"], 2, "1 to 1000"),
        ([DEVICE, *first, "fec-delay", "-5"], 2, "1 to 1000"), ([DEVICE, *first, "fec-delay", "20ms"], 2, "1 to 1000"),
        ([DEVICE, *first, "cipher", "aes"], 2, "aes-256-gcm"), ([DEVICE, *first, "extensions", "yes"], 2, "on or off"),
        ([DEVICE, "--fec", "off"], 2, "--fec"), (["--json", DEVICE], 2, "--json"),
        (["nosuch", *first], 1, "nosuch: no such device is running"), (["a/b", *first], 1, "a/b: no such device"),
        ([DEVICE, *first, "peer", other, "fec", "off"], 1, f"{DEVICE}: no peer has the public key {other}"),
        ([DEVICE, *first, "peer", key, "fec", "auto"], 1, "twice"),
    ]
    for argv, rc, word in cases:
        text = weft_set(wire.a, *argv, rc=rc)
        assert word in text and text.count("\n") == 1, (argv, text)
        assert peer(e.a)["policy"] == DEFAULT, argv
    # What --help shows can be pasted.
    example = re.search(r"^Example: weft (set .*)$", wire.a.out(binary(), "set", "--help"), re.M)[1].split()
    text = weft_set(wire.a, *example[1:], rc=1)
    assert "home: no such device is running" in text


def test_cipher_and_extensions_change_in_a_running_session(wire):
    e = ends("", wire.b4)
    e.a_conf.extra = e.b_conf.extra = ["Cipher = aes-256-gcm"]
    e.up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    wait_agreed(e.a, e.b)
    wait_for(lambda: (peer(e.a)["cipher"], peer(e.b)["cipher"]) == ("aes-256-gcm", "aes-256-gcm"), 10, "both send in AES")
    wait_ping(wire.a, B4, 2)
    # Back to the first cipher needs nobody's consent.
    weft_set(wire.a, DEVICE, "peer", e.b_keys.public, "cipher", "chacha20poly1305")
    assert peer(e.a)["cipher"] == "chacha20poly1305"
    assert "; cipher chacha20poly1305" in wire.a.out(binary(), "status", DEVICE)
    wait_ping(wire.a, B4, 2)
    weft_set(wire.b, DEVICE, "peer", e.a_keys.public, "extensions", "off")
    assert peer(e.b)["extensions"]["state"] == "off" and peer(e.b)["cipher"] == "chacha20poly1305"
    wait_ping(wire.a, B4, 2)
    # The other side hears of it by a session of its own, and again when all is back.
    wait_for(lambda: peer(e.a)["extensions"]["state"] != "agreed", 8, "A has heard")
    weft_set(wire.a, DEVICE, "peer", e.b_keys.public, "cipher", "auto")
    weft_set(wire.b, DEVICE, "peer", e.a_keys.public, "extensions", "on", "cipher", "aes-256-gcm")
    wait_agreed(e.a, e.b)
    wait_ping(wire.a, B4, 2)


def test_stock_peer_is_told_from_a_weft_peer(wire):
    e = ends("", wire.b4).up(wire.a, WEFT, wire.b, GO)
    wait_ping(wire.a, B4)
    wait_for(lambda: peer(e.a)["extensions"]["state"] == "stock", 30, "it never answers")
    assert "plain WireGuard" in wire.a.out(binary(), "status", DEVICE)
    assert peer(e.a)["cipher"] == "chacha20poly1305"


def flood(ns, count: int) -> None:
    """Pings as fast as they are answered: a loss is waited for only 10 ms."""
    ns.run("ping", "-n", "-q", "-c", str(count), "-i", "0.001", "-s", "400", B4, check=False, timeout=60)


def test_recovery_is_told_by_status_metrics_and_watch(lab):
    wire = routed(lab)
    e = ends("", wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    wait_agreed(e.a, e.b)
    text = wire.a.out(binary(), "status", DEVICE)
    assert re.search(r"extensions agreed with \S+; cipher \S+", text) and "auto within 20 ms: " in text
    assert peer(e.a)["fec"]["why"] == "clean"
    loss(wire.r, 10)
    flood(wire.a, 3000)
    f = peer(e.a)["fec"]
    assert 0.03 < f["loss"] < 0.25 and f["why"] != "clean" and f["overhead"] > 0
    assert f["peer_recovered_ahead"] + f["peer_recovered_answer"] > 0 and f["feedback_rx"] > 0
    rx = f["rx"]
    assert rx["lost"] > 0 and rx["recovered_ahead"] + rx["recovered_answer"] > rx["given_up"]
    text = wire.a.out(binary(), "status", DEVICE)
    assert re.search(r"sent +loss \d+\.\d % in runs of \d\.\d, residual .*, overhead \d+.*, recovered [\d,]+ ahead \+ [\d,]+ on request", text), text
    assert re.search(r"received +loss \d+\.\d % in runs of \d\.\d, .*held ", text), text
    metrics = wire.a.out(binary(), "status", "--prometheus", DEVICE)
    assert re.search(r'^weft_peer_fec_loss_ratio\{device="wg0",public_key="[^"]+"\} 0\.\d+$', metrics, re.M), metrics
    assert re.search(r'^weft_peer_fec_receive_recovered_total\{.*,kind="(ahead|answer)"\} [1-9]\d*$', metrics, re.M)
    weft_set(wire.a, DEVICE, "peer", e.b_keys.public, "fec", "off")
    wait_for(lambda: peer(e.a)["fec"]["why"] == "off" and "rx" not in peer(e.a)["fec"], 5, "it is off")
    # It is told as soon as the peers have agreed again, through 10 % of loss.
    wait_for(lambda: "recovery   loss recovery is off by configuration" in wire.a.out(binary(), "status", DEVICE), 15, "it is told")
    wait_ping(wire.a, B4, 5)
