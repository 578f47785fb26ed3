"""The way out of a sandbox: to the hosts of a list, and nowhere else."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from spoold.agents.sandbox import hosts
from spoold.agents.sandbox.entering import entered
from spoold.agents.sandbox.inside import PORT
from spoold.agents.sandbox.policy import Sandbox
from spoold.agents.sandbox.proxy import Proxy, variables
from tests.agents.sandbox.stage import Stage


@pytest.fixture
def echo() -> Iterator[int]:
    """A server that says back what it heard, once a client has ended; its port on 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def serve() -> None:
            while True:
                try:
                    near, _ = door.accept()
                except OSError:
                    return
                with near:
                    heard = b""
                    while data := near.recv(65536):
                        heard += data
                    near.sendall(heard[::-1])

        threading.Thread(target=serve, daemon=True).start()
        yield door.getsockname()[1]
        door.shutdown(socket.SHUT_RDWR)


def ask(path: str, text: bytes) -> bytes:
    """What the proxy answers to this, up to its end."""
    with socket.socket(socket.AF_UNIX) as near:
        near.settimeout(20)
        near.connect(path)
        near.sendall(text)
        near.shutdown(socket.SHUT_WR)
        answer = b""
        while data := near.recv(65536):
            answer += data
        return answer


def test_it_passes_on_what_its_list_has(echo: int) -> None:
    with Proxy([f"localhost:{echo}"]) as proxy:
        answer = ask(proxy.path, b"CONNECT LocalHost:%d HTTP/1.1\r\nHost: x\r\n\r\nabc" % echo)
        assert answer == b"HTTP/1.1 200 Connection established\r\n\r\ncba"
        assert proxy.refused == ()


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"CONNECT 127.0.0.1:%d HTTP/1.1", b"403"),  # the list has the name, and not the address
        (b"CONNECT localhost:1 HTTP/1.1", b"403"),
        (b"CONNECT metadata.internal:%d HTTP/1.1", b"403"),
        (b"CONNECT [::1]:%d HTTP/1.1", b"403"),
        (b"GET http://localhost:%d/ HTTP/1.1", b"405"),
        (b"CONNECT local host HTTP/1.1", b"403"),
        (b"CONNECT a:b:c HTTP/1.1", b"400"),
        (b"CONNECT \xff:443 HTTP/1.1", b"400"),
    ],
)
def test_it_refuses_everything_else(echo: int, line: bytes, status: bytes) -> None:
    with Proxy([f"localhost:{echo}"]) as proxy:
        answer = ask(proxy.path, (line % echo if b"%d" in line else line) + b"\r\n\r\n")
        assert answer.split()[1] == status


def test_it_says_what_it_refused() -> None:
    with Proxy(["api.example.com"]) as proxy:
        for _ in range(2):
            ask(proxy.path, b"CONNECT evil.example.com:443 HTTP/1.1\r\n\r\n")
        assert proxy.refused == ("evil.example.com:443",)


def test_a_name_that_leads_into_this_network_is_refused(monkeypatch: pytest.MonkeyPatch, echo: int) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", echo))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *words, **more: found)
    with Proxy([f"api.example.com:{echo}"]) as proxy:
        answer = ask(proxy.path, b"CONNECT api.example.com:%d HTTP/1.1\r\n\r\n" % echo)
        assert b"403" in answer
        assert b"private network" in answer
        assert proxy.refused == (f"api.example.com:{echo}",)


def test_a_host_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    with Proxy([f"localhost:{port}"]) as proxy:
        assert b"502" in ask(proxy.path, b"CONNECT localhost:%d HTTP/1.1\r\n\r\n" % port)


def test_an_endless_head_is_cut() -> None:
    with Proxy(["a.example.com"]) as proxy:
        answer = b""
        with suppress(ConnectionError):  # it may be cut before all was sent
            answer = ask(proxy.path, b"CONNECT " + b"a" * 100_000)
        assert answer == b""
        assert b"405" in ask(proxy.path, b"GET / HTTP/1.1\r\n\r\n")


@pytest.mark.parametrize(
    ("entry", "host", "port", "fits"),
    [
        ("api.example.com", "api.example.com", 443, True),
        ("api.example.com", "xapi.example.com", 443, False),
        ("api.example.com", "a.api.example.com", 443, False),
        ("api.example.com", "api.example.com", 22, False),
        ("api.example.com:8443", "api.example.com", 8443, True),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "evilexample.com", 443, False),
        ("10.0.0.7:11434", "10.0.0.7", 11434, True),
        ("[fd00::1]:80", "fd00::1", 80, True),
    ],
)
def test_what_an_entry_stands_for(entry: str, host: str, port: int, fits: bool) -> None:
    assert hosts.entry(entry).fits(host, port) is fits


@pytest.mark.parametrize(
    ("host", "address", "may"),
    [
        ("api.example.com", "93.184.216.34", True),
        ("api.example.com", "10.0.0.1", False),
        ("api.example.com", "169.254.169.254", False),
        ("api.example.com", "::ffff:10.0.0.1", False),
        ("api.example.com", "fe80::1%eth0", False),
        ("localhost", "127.0.0.1", True),
        ("localhost", "93.184.216.34", False),
        ("10.0.0.7", "10.0.0.7", True),
    ],
)
def test_which_addresses_a_name_may_have(host: str, address: str, may: bool) -> None:
    assert hosts.may_connect(host, address) is may


CLIENT = """
import os, socket
for host in ("localhost", "elsewhere.example.com"):
    s = socket.create_connection(("127.0.0.1", int(os.environ["HTTPS_PROXY"].rpartition(":")[2])), 20)
    s.sendall(b"CONNECT %s:%d HTTP/1.1\\r\\n\\r\\n" % (host.encode(), int(os.environ["PORT"])))
    head = s.recv(100)
    s.sendall(b"hello")
    s.shutdown(socket.SHUT_WR)
    print(head.split()[1].decode(), s.recv(100).decode().strip())
s = socket.socket()
print(s.connect_ex(("127.0.0.1", int(os.environ["PORT"]))) != 0)
raise SystemExit(7)
"""


def test_from_within_a_sandbox(stage: Stage, echo: int) -> None:
    if stage.uid != os.geteuid():
        pytest.skip("the program within runs with this Python, which may lie where only this user can read")
    stage.variables["PORT"] = str(echo)
    sandbox = Sandbox("bwrap", network="proxy", hosts=(f"localhost:{echo}",))
    with entered(sandbox, stage.scene()) as inside:
        said = stage.python(CLIENT, sandbox, way_out=inside.scene.way_out)
        assert said.splitlines()[0] == "200 olleh"
        assert said.splitlines()[1].startswith("403")
        assert said.splitlines()[2] == "True"
        assert inside.refused == (f"elsewhere.example.com:{echo}",)
        assert stage.code == 7


def test_programs_find_it() -> None:
    assert variables(PORT)["https_proxy"] == f"http://127.0.0.1:{PORT}"
    assert variables(PORT)["NO_PROXY"] == ""
