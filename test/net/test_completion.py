# SPDX-License-Identifier: Apache-2.0
"""bash completes weft's commands, options, devices and configurations."""
from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from lab import binary
from test_manual import commands, help_of, helped

TOP = Path(__file__).resolve().parent.parent.parent
DRIVE = """
source "$1"; _weft_run=$2/run _weft_etc="$2/etc $2/none"; shift 2
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_weft
[[ ${#COMPREPLY[@]} = 0 ]] || printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def complete(tmp_path):
    for name in ("run", "etc"):
        (tmp_path / name).mkdir()
    for name in ("home", "office"):
        s = socket.socket(socket.AF_UNIX)
        s.bind(str(tmp_path / "run" / f"{name}.sock"))
        s.close()
    (tmp_path / "run" / "no-socket.sock").touch()
    (tmp_path / "etc" / "barge.conf").touch()
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "own.conf").touch()
    (tmp_path / "here" / "other.txt").touch()

    def run(*words: str) -> set[str]:
        r = subprocess.run(["bash", "--norc", "-c", DRIVE, "-", TOP / "packaging" / "completions" / "weft", tmp_path, binary(), *words],
                           capture_output=True, text=True, cwd=tmp_path / "here")
        assert (r.returncode, r.stderr) == (0, "")
        return set(r.stdout.split())
    return run


def test_first_word_is_a_command(complete):
    assert complete("") == {*commands(), "--help", "--version"}
    assert complete("gen") == {"genkey", "genpsk"}


@pytest.mark.parametrize("command", commands())
def test_dash_gives_every_option_of_the_command(complete, command):
    assert complete(command, "-") == helped(help_of(command))


def test_options_of_benches_are_their_own(complete):
    assert complete("bench", "loss", "--re") == {"--recovery"}
    assert complete("bench", "net", "--idl") == {"--idle"}


def test_running_devices_are_known_by_their_sockets(complete):
    assert complete("status", "") == {"home", "office"}
    assert complete("down", "of") == {"office"}
    assert complete("set", "") == {"home", "office"}
    assert complete("show", "") == {"all", "interfaces", "home", "office"}


def test_configurations_are_names_of_the_folders_and_files_at_hand(complete):
    assert complete("up", "") == {"barge", "own.conf"}
    assert complete("forward", "b") == {"barge"}
    assert complete("check", "") == {"own.conf"}


def test_values_follow_their_options(complete):
    assert complete("up", "--aead", "") == {"auto", "libcrypto", "ipsec-mb"}
    assert complete("run", "--log", "i") == {"info"}
    assert complete("set", "home", "peer", "KEY", "cipher", "a") == {"auto", "aes-256-gcm"}
    assert complete("set", "home", "") == {"peer"}
    assert complete("bench", "cr") == {"crypto"}
    assert complete("bench", "--json", "ot") == {"other.txt"}
    assert complete("status", "--json", "h") == {"home"}
