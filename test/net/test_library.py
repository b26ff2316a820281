# SPDX-License-Identifier: Apache-2.0
"""libweft as an installed library: its headers, its symbols, its examples, its document."""
from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from lab.user import NOBODY
from lab.wait import wait_for

TOP = Path(__file__).resolve().parent.parent.parent
HEADERS = sorted((TOP / "include" / "weft").glob("*.h"))
WEFT = TOP / "build" / "weft"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """An installation, as `make install DESTDIR=` lays it out."""
    out = tmp_path_factory.mktemp("install")
    env = {k: v for k, v in os.environ.items() if k not in ("WEFT_BINARY", "PYTHONPATH")}
    subprocess.run(["make", "--no-print-directory", "install", f"DESTDIR={out}"], cwd=TOP, env=env, check=True, capture_output=True)
    out.chmod(0o755)
    return out


def declared():
    return set(re.findall(r"^WEFT_API [^;]*?\b(weft_\w+)\(", "\n".join(h.read_text() for h in HEADERS), re.M))


def find(root, name):
    return next(root.rglob(name))


def pkg_config(root, *args):
    pc = find(root, "weft.pc")
    env = {**os.environ, "PKG_CONFIG_PATH": str(pc.parent), "PKG_CONFIG_SYSROOT_DIR": str(root)}
    return subprocess.run(["pkg-config", *args, "weft"], env=env, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize("header", [h.name for h in HEADERS])
@pytest.mark.parametrize("how", [["cc", "-x", "c", "-std=c11"], ["c++", "-x", "c++", "-std=c++17"], ["clang", "-x", "c", "-std=c11"]])
def test_header_compiles_alone(header, how):
    if not shutil.which(how[0]) and how[0] == "c++":
        pytest.fail("c++ is missing: apt-get install g++")
    r = subprocess.run([*how, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-I", TOP / "include", "-"],
                       input=f"#include <weft/{header}>\n", capture_output=True, text=True)
    assert r.returncode == 0, r.stderr


def test_both_libraries_export_what_the_headers_declare_and_nothing_else(root):
    shared = subprocess.run(["nm", "-D", "--defined-only", find(root, "libweft.so")], check=True, capture_output=True, text=True).stdout
    static = subprocess.run(["nm", "-g", "--defined-only", find(root, "libweft.a")], check=True, capture_output=True, text=True).stdout
    names = {line.split()[2] for line in shared.splitlines()}
    assert "WEFT_0.1" in names
    assert names - {"WEFT_0.1"} == {f"{n}@@WEFT_0.1" for n in declared()}
    assert {line.split()[2] for line in static.splitlines() if len(line.split()) == 3} == declared()
    dynamic = subprocess.run(["readelf", "-d", find(root, "libweft.so")], check=True, capture_output=True, text=True).stdout
    assert re.search(r"SONAME.*\[libweft\.so\.0\]", dynamic)
    assert "jansson" not in dynamic


def test_the_document_shows_the_examples_as_they_are():
    code = re.findall(r"^```c\n(.*?)^```$", (TOP / "docs/embedding.md").read_text(), re.M | re.S)
    for name in ("echo_server.c", "echo_client.c"):
        assert (TOP / "examples" / name).read_text() in code, name


def build_example(root, tmp_path, name, is_static):
    out = tmp_path / f"{name}-{'static' if is_static else 'shared'}"
    flags = pkg_config(root, "--cflags", "--libs")
    if is_static:
        libs = [f for f in pkg_config(root, "--libs", "--static") if f != "-lweft"]
        flags = [*pkg_config(root, "--cflags"), str(find(root, "libweft.a")), *libs]
    else:
        flags += [f"-Wl,-rpath,{find(root, 'libweft.so').parent}"]
    r = subprocess.run(["cc", "-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Werror", "-o", out, TOP / "examples" / f"{name}.c", *flags],
                       capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    return out


def keys():
    private = subprocess.run([WEFT, "genkey"], check=True, capture_output=True, text=True).stdout.strip()
    return private, subprocess.run([WEFT, "pubkey"], input=private, check=True, capture_output=True, text=True).stdout.strip()


def write_files(tmp_path):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    (server_key, server_public), (client_key, client_public) = keys(), keys()
    server, client = tmp_path / "server.conf", tmp_path / "client.conf"
    server.write_text(f"[Interface]\nPrivateKey = {server_key}\nAddress = 10.9.0.1/24, fd09::1/64\nListenPort = {port}\n"
                      f"[Peer]\nPublicKey = {client_public}\nName = client\nAllowedIPs = 10.9.0.2/32, fd09::2/128\n")
    client.write_text(f"[Interface]\nPrivateKey = {client_key}\nAddress = 10.9.0.2/24, fd09::2/64\n"
                      f"[Peer]\nPublicKey = {server_public}\nName = server\nAllowedIPs = 10.9.0.1/32, fd09::1/128\n"
                      f"Endpoint = 127.0.0.1:{port}\n")
    for f in (server, client):
        f.chmod(0o644)
    tmp_path.chmod(0o755)
    for parent in list(tmp_path.parents)[:3]:
        if parent != Path("/tmp") and parent != Path("/"):
            parent.chmod(0o755)
    return server, client, port


def wait_for_port(port):
    """A handshake that nobody takes is repeated after 5 s only."""
    wait_for(lambda: f":{port:04X} " in Path("/proc/net/udp").read_text(), 30, "the server's port")


@pytest.fixture(params=["root", "nobody"])
def user(request):
    """Options of subprocess for who runs it."""
    return {} if request.param == "root" else {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def echo(daemon, argv, **how):
    """What a client says; None as long as nobody listens."""
    r = subprocess.run(argv, capture_output=True, text=True, timeout=60, **how)
    assert daemon.poll() is None, r.stderr
    return r if r.returncode == 0 or "refused" not in r.stderr + r.stdout else None


@pytest.mark.parametrize("is_static", [False, True])
def test_examples_echo_as_any_user(root, tmp_path, user, is_static):
    server, client, port = write_files(tmp_path)
    programs = [build_example(root, tmp_path, n, is_static) for n in ("echo_server", "echo_client")]
    python = {**os.environ, "LD_LIBRARY_PATH": str(find(root, "libweft.so").parent)}
    log = tmp_path / "log"
    with open(log, "w") as out:
        daemon = subprocess.Popen([programs[0], server, "7"], stdout=out, stderr=out, **user)
    try:
        wait_for_port(port)
        for host, argv in (("server", [programs[1]]), ("10.9.0.1", [programs[1]]), ("[fd09::1]", [programs[1]]),
                           ("server", ["/usr/bin/python3", TOP / "examples" / "echo.py"])):
            r = wait_for(lambda: echo(daemon, [*argv, client, f"{host}:7", "hello overlay"], env=python, **user), 20, "an echo")
            assert (r.returncode, r.stdout.strip()) == (0, "hello overlay"), (r.stderr, log.read_text())
        wait_for(lambda: log.read_text().count("client from ") == 4, 5, "four lines of the server")
        assert "client from [fd09::2]:" in log.read_text()
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()


def test_valgrind_finds_nothing_in_the_examples(root, tmp_path):
    """It knows no epoll_pwait2() and no pidfd_open(): the library does without."""
    server, client, port = write_files(tmp_path)
    programs = [build_example(root, tmp_path, n, False) for n in ("echo_server", "echo_client")]
    valgrind = ["valgrind", "--error-exitcode=99", "--leak-check=full", "--errors-for-leak-kinds=definite"]
    log = tmp_path / "log"
    with open(log, "w") as out:
        daemon = subprocess.Popen([*valgrind, programs[0], server, "7"], stdout=out, stderr=out)
    try:
        wait_for_port(port)
        r = wait_for(lambda: echo(daemon, [*valgrind, programs[1], client, "server:7", "hello overlay"]), 60, "an echo")
        assert (r.returncode, r.stdout.strip()) == (0, "hello overlay"), (r.stderr, log.read_text())
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()
    assert "ERROR SUMMARY: 0 errors" in r.stderr
    assert "ERROR SUMMARY: 0 errors" in log.read_text()


def test_example_says_what_is_wrong(root, tmp_path):
    client = build_example(root, tmp_path, "echo_client", False)
    conf = tmp_path / "odd.conf"
    conf.write_text("[Interface]\nPrivateKey = x\n")
    r = subprocess.run([client, conf, "server:7", "x"], capture_output=True, text=True)
    assert r.returncode == 1 and "PrivateKey" in r.stderr
    r = subprocess.run(["/usr/bin/python3", TOP / "examples" / "echo.py", conf, "server:7", "x"], capture_output=True, text=True,
                       env={**os.environ, "LD_LIBRARY_PATH": str(find(root, "libweft.so").parent)})
    assert r.returncode == 1 and "PrivateKey" in r.stderr


@pytest.mark.parametrize("header", HEADERS, ids=lambda h: h.name)
def test_every_declaration_says_who_may_call_it_and_whether_it_blocks(header):
    """A comment stands above it, or above the declarations that it follows without a gap."""
    text = header.read_text()
    for m in re.finditer(r"(/\*(?:(?!\*/).)*\*/)\n((?:WEFT_API [^;]*;\n)+)", text, re.S):
        for word in ("Threads: ", "Blocks: ", "Since: "):
            assert word in m[1], m[2]
    documented = sum(m.count("WEFT_API") for m in re.findall(r"\*/\n((?:WEFT_API [^;]*;\n)+)", text))
    assert documented == len(re.findall(r"^WEFT_API ", text, re.M))
