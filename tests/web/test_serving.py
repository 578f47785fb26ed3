"""Goal: `spool web` as people start it: on loopback or a private socket, bounded, and live."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spoold.faces.web import http_server
from spoold.protocol.errors import SpoolError
from tests.cli.command import leader, make
from tests.cli.commands import spool, start
from tests.cli.test_verbs import end
from tests.e2e.pool import wait_for


class Served:
    """A server of its own process, and a browser that was let in."""

    def __init__(self, root: Path, *words: str) -> None:
        self.process = start("web", *words, root=root, stdin=subprocess.DEVNULL)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().decode().strip()
        found = re.fullmatch(
            r"http://(spool-[a-z2-7]{20}\.localhost|127\.0\.0\.1)(?::(\d+))?(/enter\?token=[\w-]+)", self.url
        )
        assert found is not None, self.url
        self.name, self.port, self.enter = found[1], int(found[2] or 0), found[3]
        self.cookie = ""

    @property
    def host(self) -> str:
        return f"{self.name}:{self.port}"

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)

    def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = self.connect()
        try:
            connection.request(method, path, headers={"Host": self.host, "Cookie": self.cookie, **headers})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def let_in(self) -> None:
        status, headers, _ = self.get(self.enter)
        assert status == 303
        self.cookie = headers["set-cookie"].partition(";")[0]


@contextlib.contextmanager
def served(root: Path, *words: str) -> Iterator[Served]:
    found = Served(root, *words)
    try:
        yield found
    finally:
        found.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            found.process.communicate(timeout=20)
        with contextlib.suppress(ProcessLookupError):
            found.process.kill()
        found.process.communicate()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make(tmp_path / "s")
    end(root, "good")
    return root


def test_a_browser_comes_in_once_and_hears_what_changes(root: Path) -> None:
    master = leader(root)
    before = sorted(str(path) for path in root.rglob("*"))
    with served(root) as server:
        assert server.get("/")[0] == 401
        server.let_in()
        assert server.get(server.enter)[0] == 303  # its cookie knows it already
        status, headers, body = server.get("/")
        assert (status, b"<h1>Overview</h1>" in body) == (200, True)
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert "server" not in headers
        for path in re.findall(rb'(?:href|src)="(/static/[^"]+)"', body):
            assert server.get(path.decode())[0] == 200
        assert server.get("/", method="HEAD")[2] == b""
        for other in ("evil.example", f"127.0.0.1:{server.port}", f"localhost:{server.port}", server.name):
            assert server.get("/", Host=other)[0] == 421
        stream = server.connect()
        stream.request("GET", "/updates", headers={"Host": server.host, "Cookie": server.cookie})
        answer = stream.getresponse()
        assert answer.getheader("content-type") == "text/event-stream"
        first = int(answer.readline().removeprefix(b"data: "))
        assert answer.readline() == b"\n"
        assert sorted(str(path) for path in root.rglob("*")) == before  # so far it has only looked
        assert spool("submit", "--id", "new", "--", "true", root=root).code == 0
        line = b":"
        while not line.startswith(b"data: "):
            master.step()
            line = answer.readline()
        assert int(line.removeprefix(b"data: ")) > first
        stream.close()
        assert server.process.poll() is None
    assert server.process.returncode == 0


def test_a_socket_is_open_to_this_user_alone_and_is_taken_away(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "web.sock"
    with served(root, "--socket", str(path)) as server:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(20)
            one.connect(str(path))
            one.sendall(
                f"GET {server.enter} HTTP/1.1\r\nHost: {server.name}:8000\r\nConnection: close\r\n\r\n".encode()
            )
            assert one.recv(100).startswith(b"HTTP/1.1 303")
        with pytest.raises(SpoolError, match="another server listens"):
            http_server.listen_at(str(path))
    assert not path.exists()
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(path))
    http_server.listen_at(str(path)).listening[0].close()
    path.unlink()
    path.write_text("mine")
    with pytest.raises(SpoolError, match="is no socket of yours"):
        http_server.listen_at(str(path))


def test_a_client_that_says_nothing_is_left(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert http_server.REQUEST_S <= 15
    with served(root) as server, socket.create_connection(("127.0.0.1", server.port), timeout=40) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        assert slow.recv(1000) == b""


def test_other_addresses_are_refused_unless_said_twice(root: Path) -> None:
    for words, said in (
        (("--host", "192.0.2.1"), "is not loopback: everyone on the way could read the pages and the cookie"),
        (("--host", "0.0.0.0", "--unencrypted"), "is every address"),
        (("--host", "nowhere"), "is no IP address"),
        (("--socket", "/tmp/x", "--port", "1"), "--socket excludes --port"),
    ):
        done = spool("web", *words, root=root)
        assert (done.code, said in done.err) == (2, True), done.err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = spool("web", "--port", str(taken.getsockname()[1]), root=root)
        assert (done.code, "--port 0 takes any that is free" in done.err) == (2, True)


def test_without_the_extra_the_fix_is_said(root: Path) -> None:
    code = "import sys; sys.modules['starlette'] = None; from spoold.faces.cli import main; main()"
    environment = {**os.environ, "SPOOL_DIR": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", code, "web"], capture_output=True, text=True, env=environment, check=False, timeout=60
    )
    assert done.returncode == 2
    assert "`spool web` needs the extra spoold[web]: " in done.stderr
    assert "-m pip install 'spoold[web]'" in done.stderr


def test_a_short_command_loads_none_of_it() -> None:
    code = "import sys; from spoold.faces.cli.app import build; build(['status']); print([m for m in sys.modules if "
    code += "m.partition('.')[0] in ('starlette', 'uvicorn', 'jinja2') or m.startswith('spoold.faces.web')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_a_new_url_is_printed_for_each_enter(root: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    process = start("web", root=root, stdin=theirs, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        os.write(ours, b"\n")
        second = process.stdout.readline()
        assert first.startswith(b"http://spool-")
        assert second.partition(b"token=")[0] == first.partition(b"token=")[0]
        assert second != first
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        os.close(ours)
        os.close(theirs)


def test_the_server_ends_with_open_streams(root: Path) -> None:
    with served(root) as server:
        server.let_in()
        streams = [server.connect() for _ in range(5)]
        for one in streams:
            one.request("GET", "/updates", headers={"Host": server.host, "Cookie": server.cookie})
            assert one.getresponse().status == 200
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: server.process.poll() is not None, "it ends")
        assert server.process.stderr is not None
        assert server.process.stderr.read() == b""
        for one in streams:
            one.close()


def test_an_address_that_was_given_is_the_name(root: Path) -> None:
    with served(root, "--host", "127.0.0.1") as server:
        server.let_in()
        assert server.get("/")[0] == 200


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
def test_nobody_else_can_listen_where_browsers_look_first(root: Path) -> None:
    with served(root) as server, socket.create_connection(("::1", server.port), timeout=20) as one:
        one.sendall(f"GET {server.enter} HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
        assert one.recv(100).startswith(b"HTTP/1.1 303")
    with socket.socket(socket.AF_INET6) as taken:
        taken.bind(("::1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = spool("web", "--port", str(port), root=root)
        assert (done.code, f"[::1]:{port} cannot be used" in done.err) == (2, True), done.err


def test_strangers_cannot_lock_out_who_was_let_in(root: Path) -> None:
    with served(root) as server, contextlib.ExitStack() as crowd:
        server.let_in()
        where = ("127.0.0.1", server.port)
        silent = [crowd.enter_context(socket.create_connection(where, timeout=20)) for _ in range(400)]
        silent[0].settimeout(http_server.REQUEST_S / 2)
        with contextlib.suppress(ConnectionResetError):
            assert silent[0].recv(1) == b""  # at once, and not since it said nothing in time
        assert server.get("/")[0] == 200
        descriptors = Path(f"/proc/{server.process.pid}/fd")
        wait_for(lambda: len(list(descriptors.iterdir())) < 64 + 64, "the oldest are closed")
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: server.process.poll() is not None, "it ends")
        assert server.process.stderr is not None
        assert server.process.stderr.read() == b""
