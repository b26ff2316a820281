# SPDX-License-Identifier: Apache-2.0
"""The manual tells all that the program has, and nothing that it has not."""
from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from lab import binary

TOP = Path(__file__).resolve().parent.parent.parent
PAGES = sorted((TOP / "man").glob("*.[1-8]"))
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*[a-z]|-[A-Za-z])(?![\w-])")


def plain(path: Path) -> str:
    """The source of a page as text: escapes of hyphens and fonts undone, comments gone."""
    text = re.sub(r"^\.\\\".*$", "", path.read_text(), flags=re.M)
    return re.sub(r"\\f.", "", text.replace(r"\-", "-"))


def help_of(*words: str) -> str:
    r = subprocess.run([binary(), *words, "--help"], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    return r.stdout


def commands() -> list[str]:
    found = re.findall(r"^  ([a-z]+) +\S", help_of(), re.M)
    assert len(found) >= 16
    return found


def helped(text: str) -> set[str]:
    """Options that a --help declares: at the begin of a line, behind another one, or in a usage line."""
    options = set()
    for line in text.splitlines():
        m = re.match(r"\s+(-\S.*)", line)
        if m:  # up to the column of explanations
            options |= set(OPTION.findall(re.split(r"  |(?<=[A-Z]) (?=[a-z])", m[1])[0]))
        elif re.match("usage:|       weft ", line, re.I):
            options |= set(OPTION.findall(line))
    return options


def tagged(text: str) -> set[str]:
    """Options that a page declares: those of the lines that tag a paragraph."""
    options = set()
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if i and re.match(r"\.T[PQ]", lines[i - 1]):
            options |= set(OPTION.findall(line.replace('"', " ")))
    return options


def page_of(command: str) -> Path | None:
    return next(iter((TOP / "man").glob(f"weft-{command}.[1-8]")), None)


def sections(page: Path, macro: str) -> dict[str, str]:
    """Heading -> text."""
    parts = re.split(rf"^\.{macro} (.*)$", plain(page), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def summary(command: str) -> str:
    """What weft(8) has on a command."""
    found = [re.split(r"^\.SH ", v, flags=re.M)[0] for k, v in sections(TOP / "man" / "weft.8", "SS").items() if k.split()[1] == command]
    assert len(found) == 1, f"weft(8) has {len(found)} parts on {command}"
    return found[0]


def test_every_command_is_in_the_manual_and_the_reverse():
    told = [k.split()[1] for k in sections(TOP / "man" / "weft.8", "SS")]
    assert told and sorted(told) == sorted(commands())


@pytest.mark.parametrize("command", [c for c in commands() if c != "bench"])
def test_every_option_is_in_the_manual_and_the_reverse(command):
    page = page_of(command)
    told = tagged(plain(page) if page else summary(command))
    known = helped(help_of(command)) | {"--help"}
    assert known - told == set(), f"{command}: not in the manual"
    assert told - known == set(), f"{command}: not in --help"


@pytest.mark.parametrize("words, part", [(["bench"], "OPTIONS"), (["bench", "net"], "OPTIONS OF NET"), (["bench", "loss"], "OPTIONS OF LOSS"), (["bench", "dial"], "OPTIONS OF DIAL"),
                                         (["bench", "control"], "OPTIONS OF CONTROL")])
def test_every_option_of_the_benches_is_in_the_manual_and_the_reverse(words, part):
    assert helped(help_of(*words)) == tagged(sections(TOP / "man" / "weft-bench.8", "SH")[part])


def test_every_bench_is_in_the_manual_and_the_reverse():
    listed = subprocess.run([binary(), "bench", "--list"], capture_output=True, text=True, check=True).stdout
    told = re.findall(r"^\.TP\n\.B (\S+)", sections(TOP / "man" / "weft-bench.8", "SH")["BENCHES"], re.M)
    assert told == [line.split()[0] for line in listed.splitlines()]


def keys_of_the_reader() -> dict[str, set[str]]:
    """Key -> the sections it may stand in."""
    source = (TOP / "src" / "wire" / "conf_key.c").read_text()
    rows = re.findall(r'{"(\w+)", CONF_KEY_\w+, CONF_SECTION_(\w+),\s*([^}]*)}', source)
    assert len(rows) >= 25
    return {name: {section, *(["INTERFACE"] if "CONF_TRAIT_DEFAULT" in traits else [])} for name, section, traits in rows}


def test_every_configuration_key_is_in_the_manual_and_the_reverse():
    told = {}
    for section, text in sections(TOP / "man" / "weft.conf.5", "SH").items():
        for key in re.findall(r'^\.BR "(\w+) = "', text, re.M):
            told.setdefault(key, set()).add(section)
            assert re.search(rf'"{key} = ".*?(default|Every \[Peer\] has one)', text, re.S | re.I), f"{key}: no default is told"
    known = keys_of_the_reader()
    assert sorted(told) == sorted(known)
    for key, found in told.items():
        assert found <= known[key], key
    shared = [k for k, v in known.items() if len(v) == 2]
    sentence = re.search(r"^(\w+(?:, \w+)* and \w+) may stand here", plain(TOP / "man" / "weft.conf.5"), re.M)
    assert sentence and sorted(re.split(", | and ", sentence[1])) == sorted(shared)


def examples() -> list[str]:
    blocks = re.findall(r"^\.nf\n(.*?)^\.fi", plain(TOP / "man" / "weft.conf.5"), re.M | re.S)
    found = [b for b in blocks if "[Interface]" in b]
    assert len(found) >= 3
    return found


@pytest.mark.parametrize("number", range(len(examples())))
def test_examples_of_the_manual_are_right(number, tmp_path):
    path = tmp_path / "example.conf"
    path.write_text(examples()[number])
    r = subprocess.run([binary(), "check", "--strict", path], capture_output=True, text=True)
    assert (r.returncode, r.stderr) == (0, "")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_pages_have_no_faults_of_form(page):
    r = subprocess.run(["mandoc", "-Tlint", "-Wwarning", page], capture_output=True, text=True)
    assert (r.returncode, r.stdout + r.stderr) == (0, "")


def test_every_page_is_named_by_the_first_and_names_it():
    for page in PAGES:
        also = re.findall(r"(weft[\w.-]*) \((\d)\)", sections(page, "SH")["SEE ALSO"])
        if page.name == "weft.8":
            assert {p.stem for p in PAGES} - {page.stem} - {name for name, _ in also} == set()
        else:
            assert ("weft", "8") in also, page.name
