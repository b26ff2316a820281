# SPDX-License-Identifier: Apache-2.0
"""weft check and weft fmt over test/corpus: 136 files with their outcomes, places and meaning (its README)."""
import json
import subprocess
from pathlib import Path

import pytest

from lab import binary
from lab.wg import genkey

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
GOOD = sorted([*CORPUS.glob("files/accept/*"), *CORPUS.glob("files/warn/*")])


def weft(*words, **kw) -> subprocess.CompletedProcess:
    return subprocess.run([binary(), *map(str, words)], capture_output=True, text=True, errors="replace", timeout=30, **kw)


def test_check_finds_every_fault_at_its_place_and_reads_every_value():
    env = {"CHECK": f"{binary()} check --json {{file}}", "PATH": "/usr/bin:/bin"}
    r = subprocess.run(["/usr/bin/python3", CORPUS / "check.py", CORPUS / "files", "--columns", "--parsed", "--strict", f"{binary()} check --strict {{file}}"],
                       env=env, capture_output=True, text=True, timeout=120)
    assert r.returncode == 0, r.stdout[-4000:] + r.stderr


def meaning(path: Path) -> dict:
    r = weft("check", "--json", path)
    assert r.returncode == 0, r.stderr
    o = json.loads(r.stdout)
    return {"interface": o["interface"], "peers": o["peers"]}


@pytest.mark.parametrize("file", GOOD, ids=[f"{p.parent.name}/{p.name}" for p in GOOD])
def test_fmt_keeps_the_meaning_and_says_the_same_twice(file, tmp_path):
    path = tmp_path / file.name
    path.write_bytes(file.read_bytes())
    path.chmod(0o640)
    before = meaning(path)
    assert weft("fmt", path).returncode == 0
    once = path.read_bytes()
    assert meaning(path) == before and path.stat().st_mode & 0o777 == 0o640
    assert weft("fmt", "--check", path).returncode == 0
    assert subprocess.run([binary(), "fmt", "-"], input=once, capture_output=True, timeout=30).stdout == once
    assert once.count(b"#") >= file.read_bytes().count(b"\n#"), "comments stay"


def test_fmt_check_names_files_and_changes_none(tmp_path):
    path = tmp_path / "a.conf"
    path.write_text("[interface]\nlistenport=1\n")
    r = weft("fmt", "--check", path)
    assert r.returncode == 1 and r.stdout == f"{path}\n" and path.read_text() == "[interface]\nlistenport=1\n"


def test_fmt_leaves_a_file_with_faults_alone(tmp_path):
    path = tmp_path / "a.conf"
    path.write_text("[interface]\nlistenport=1\nMUT = 3\n")
    r = weft("fmt", path)
    assert r.returncode == 1 and "a.conf:3:1" in r.stderr and "MTU" in r.stderr and "listenport" in path.read_text()


def test_several_files_give_several_objects_and_the_worst_status(tmp_path):
    good, bad = tmp_path / "good.conf", tmp_path / "bad.conf"
    good.write_text(f"[Interface]\nPrivateKey = {genkey()}\n")
    bad.write_text("[Interface]\nAdress = 10.0.0.1/24\n")
    r = weft("check", "--json", good, bad)
    objects = [json.loads(line) for line in r.stdout.splitlines()]
    assert r.returncode == 1 and [len(o["messages"]) for o in objects] == [0, 1]
    assert objects[1]["messages"][0]["line"] == 2 and "did you mean Address?" in objects[1]["messages"][0]["message"]


@pytest.mark.parametrize("key", ["Fec", "FecDelay", "Cipher", "Extensions", "Workers", "Offload", "Aead"])
def test_empty_value_of_our_own_keys_is_an_error(key, tmp_path):
    path = tmp_path / "a.conf"
    path.write_text(f"[Interface]\n{key} =\n")
    r = weft("check", path)
    assert r.returncode == 1 and f"a.conf:2:{len(key) + 3}" in r.stderr and key in r.stderr, r.stderr


def test_check_hides_secret_keys_of_the_file_in_hooks_and_shows_others(tmp_path):
    own, psk, other = genkey(), genkey(), genkey()
    path = tmp_path / "a.conf"
    path.write_text(f"[Interface]\nPrivateKey = {own}\nPostUp = wg set %i private-key <(echo {own}) peer {other} preshared-key <(echo {psk})\n"
                    f"[Peer]\nPublicKey = {genkey()}\nPresharedKey = {psk}\n")
    r = weft("check", "--json", path)
    hook = json.loads(r.stdout)["interface"]["post_up"][0]
    assert own not in r.stdout and psk not in r.stdout and hook.startswith("wg set %i private-key <(echo ***") and other in hook


def test_a_file_whose_name_is_not_utf8_gives_an_object(tmp_path):
    path = bytes(tmp_path) + b"/\xff.conf"
    with open(path, "w") as f:
        f.write(f"[Interface]\nPrivateKey = {genkey()}\n")
    r = subprocess.run([binary(), "check", "--json", path], capture_output=True, timeout=30)
    assert json.loads(r.stdout)["file"].endswith("/?.conf") and r.returncode == 1, "the name is no interface's"


@pytest.mark.parametrize("command", ["check", "fmt", "up"])
def test_the_place_of_a_fault_is_told_whatever_the_length_of_the_path(command, tmp_path):
    folder = tmp_path / ("d" * 200) / ("e" * 200) / ("f" * 200)
    folder.mkdir(parents=True)
    path = folder / "a.conf"
    path.write_text("[Interface]\nAdress = 10.0.0.1/24\n")
    r = weft(command, path)
    assert r.returncode == 1 and "a.conf:2:1: error: Adress: is an unknown key; did you mean Address?" in r.stderr, r.stderr
