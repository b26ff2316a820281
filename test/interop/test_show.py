# SPDX-License-Identifier: Apache-2.0
"""`weft show` prints what `wg show` prints, of a weft device and of a wireguard-go device; keys
made by one are understood by the other.

    A 10.0.1.1 ---- 10.0.1.2 B"""
import pytest

from lab import Conf, PeerConf, genpsk, keys, pair, wait_ping
from lab.device import B4, GO, WEFT, ends
from lab.weft import Run, binary

FIELDS = ["public-key", "private-key", "listen-port", "fwmark", "peers", "preshared-keys", "endpoints", "allowed-ips",
          "latest-handshakes", "transfer", "persistent-keepalive", "dump"]


@pytest.fixture
def filled(lab):
    """A device with peers of every sort, without traffic."""
    wire = pair(lab)
    run = Run(wire.a, "wg0")
    peers = [PeerConf(keys().public, ["10.1.0.0/16", "fd01::/48"], "192.0.2.1:1000", genpsk(), 25),
             PeerConf(keys().public, [], "[2001:db8::1]:2000"),
             PeerConf(keys().public, ["10.2.0.0/16"])]
    run.setconf(Conf(keys().private, peers, 1234, fwmark=0x77))
    return wire, run


@pytest.mark.parametrize("field", FIELDS)
def test_field_is_as_wg_prints_it(filled, field):
    wire, _ = filled
    assert wire.a.out(binary(), "show", "wg0", field) == wire.a.out("wg", "show", "wg0", field)
    if field != "endpoints":  # there wg leaves the name out from the second peer on
        assert wire.a.out(binary(), "show", "all", field) == wire.a.out("wg", "show", "all", field)


def test_text_for_people_is_as_wg_prints_it_and_hides_keys(filled):
    wire, run = filled
    shown = wire.a.out(binary(), "show", "wg0")
    assert shown == wire.a.out("wg", "show", "wg0")
    d = run.dump()
    assert d.private not in shown and all(not p.psk or p.psk not in shown for p in d.peers.values())
    assert wire.a.out(binary(), "show", "interfaces") == "wg0"


def test_scope_of_an_endpoint_is_shown_as_an_interface_name(filled):
    wire, run = filled
    peer = next(iter(run.dump().peers))
    wire.a.run("wg", "set", "wg0", "peer", peer, "endpoint", "[fe80::5%lo]:99")
    for field in ("endpoints", "dump"):
        shown = wire.a.out(binary(), "show", "wg0", field)
        assert "[fe80::5%lo]:99" in shown
        assert shown == wire.a.out("wg", "show", "wg0", field)


def test_status_holds_no_secret(filled):
    wire, run = filled
    d = run.dump()
    secrets = [d.private, *(p.psk for p in d.peers.values() if p.psk)]
    for text in (wire.a.out(binary(), "status", "wg0"), wire.a.out(binary(), "status", "--json", "wg0")):
        assert d.public in text
        assert not any(s in text for s in secrets)


@pytest.mark.parametrize("kind", [WEFT, GO])
def test_session_and_traffic_are_shown(lab, kind):
    wire = pair(lab)
    e = ends("", wire.b4).up(wire.a, kind, wire.b, WEFT)
    wait_ping(wire.a, B4)
    # The same numbers from both, between which nothing is sent but by chance.
    for _ in range(5):
        before, shown, after = (wire.a.out(*w, "show", "wg0", "dump") for w in (["wg"], [binary()], ["wg"]))
        if before == after:
            break
    assert shown == before
    pretty = wire.a.out(binary(), "show", "wg0")
    assert "latest handshake: " in pretty and " received, " in pretty
    assert e.a_sees().rx > 0


def test_keys_are_those_of_wg(lab):
    ns = pair(lab).a
    private = ns.out(binary(), "genkey")
    psk = ns.out(binary(), "genpsk")
    assert len(private) == len(psk) == 44 and private != ns.out(binary(), "genkey")
    for key in (private, psk, ns.out("wg", "genkey")):
        file = lab.dir / "key"
        file.write_text(f"  {key}\n\n")
        ours = ns.out("sh", "-c", f"{binary()} pubkey < {file}")
        assert ours == ns.out("sh", "-c", f"echo {key} | wg pubkey")
    for wrong in ("", "x", key[:-1], key + "=", key + " " + key):
        file.write_text(wrong)
        assert ns.run("sh", "-c", f"{binary()} pubkey < {file}", check=False).returncode == 1


def test_private_key_in_a_public_file_is_warned_of(lab):
    ns = pair(lab).a
    for mask, warns in (("022", True), ("077", False)):
        r = ns.run("sh", "-c", f"umask {mask}; {binary()} genkey > {lab.dir}/k{mask}")
        assert ("warning" in r.stderr) == warns


def test_device_that_is_not_there_is_said_so(lab):
    ns = pair(lab).a
    for command in ("show", "status", "down"):
        r = ns.run(binary(), command, "wg7", check=False)
        assert r.returncode == 1 and "wg7" in r.stderr
    assert ns.run(binary(), "show", "wg7", "nonsense", check=False).returncode == 2
