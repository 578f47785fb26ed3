"""The server over HTTP: without the token, from a page or for another host it answers nothing but a refusal."""

from __future__ import annotations

import http.client
import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from spoold.faces.mcp import http_transport
from spoold.protocol.errors import SpoolError
from tests.e2e.pool import PATIENCE_S, Pool
from tests.mcp.calling import Served, over_http

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


def post(served: Served, headers: dict[str, str], body: bytes | None = None, method: str = "POST") -> tuple[int, str]:
    """Send one request with exactly these headers beside the usual ones; returns its status and its text."""
    data = json.dumps(HELLO).encode() if body is None else body
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE_S)
    connection.putrequest(method, "/mcp", skip_host=True, skip_accept_encoding=True)
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    for name, value in {**usual, "Host": f"127.0.0.1:{served.port}", **headers}.items():
        if value:
            connection.putheader(name, value)
    connection.putheader("Content-Length", str(len(data)))
    connection.endheaders(data)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def bearer(served: Served) -> dict[str, str]:
    """The header that lets a request through."""
    return {"Authorization": f"Bearer {served.token}"}


def test_with_the_token_it_answers(served: Served) -> None:
    status, text = post(served, bearer(served))
    assert (status, '"serverInfo"' in text) == (200, True)


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Basic {token}",
        "{token}",
        "Bearer {token}x",
        "Bearer {short}",
        "Bearer é",
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_without_the_token_nothing_is_answered(served: Served, authorization: str, method: str) -> None:
    given = authorization.format(token=served.token, short=served.token[:-1])
    status, text = post(served, {"Authorization": given}, method=method)
    assert status == 401
    assert "the token is missing or wrong. Fix: " in json.loads(text)["error"]
    assert served.token[:-1] not in text


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.nip.io:{port}"]
)
def test_another_host_is_refused(served: Served, host: str) -> None:
    status, text = post(served, {**bearer(served), "Host": host.format(port=served.port)})
    assert (status, "the Host is not this machine" in text) == (421, True)


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:{port}", "null"])
def test_a_page_is_refused_even_with_the_token(served: Served, origin: str) -> None:
    status, text = post(served, {**bearer(served), "Origin": origin.format(port=served.port)})
    assert (status, "web pages are refused" in text) == (403, True)


def test_two_tokens_are_no_token(served: Served) -> None:
    lines = [
        "POST /mcp HTTP/1.1",
        f"Host: 127.0.0.1:{served.port}",
        "Authorization: Bearer x",
        f"Authorization: Bearer {served.token}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        "Connection: close",
        f"Content-Length: {len(json.dumps(HELLO))}",
        "",
        json.dumps(HELLO),
    ]
    with socket.create_connection(("127.0.0.1", served.port), PATIENCE_S) as connection:
        connection.sendall("\r\n".join(lines).encode())
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"a header is there twice" in answer


def test_a_body_that_is_too_large_is_refused(served: Served) -> None:
    status, _ = post(served, bearer(served), b" " * (9 << 20))
    assert status == 413


def test_it_listens_on_loopback_alone(served: Served) -> None:
    table = Path("/proc/net/tcp").read_text().splitlines()[1:]
    listening = [line.split()[1] for line in table if line.split()[3] == "0A"]
    port = f"{served.port:04X}"
    assert [address for address in listening if address.endswith(f":{port}")] == [f"0100007F:{port}"]


def test_callers_with_the_token_share_what_they_submitted(served: Served) -> None:
    with over_http(served) as one:
        task = one.call("run_background", command="echo shared")["taskId"]
    with over_http(served) as two:
        assert two.call("wait_tasks", taskIds=[task])["done"]


def test_a_client_of_an_earlier_version_is_served(served: Served) -> None:
    with over_http(served, mode="legacy") as caller:
        task = caller.call("run_background", command="echo early")["taskId"]
        assert caller.call("wait_tasks", taskIds=[task])["done"]
        assert caller.progress[-1][2] == "1 of 1 have ended"
        assert caller.call("get_task_result", taskId=task)["output"] == "early\n"


def test_a_port_that_is_taken_is_named(pool: Pool, served: Served) -> None:
    port = str(served.port)
    done = pool.run("mcp", "--http", "--port", port, "--token-file", str(served.token_file))
    assert (done.returncode, f"127.0.0.1:{port} cannot be used" in done.stderr) == (2, True)


def test_the_token_is_made_once_and_only_its_owner_may_read_it(pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "state" / "spoold" / "mcp.token"
    assert http_transport.token_file({"XDG_STATE_HOME": str(tmp_path / "state")}) == str(path)
    assert http_transport.token_file({"HOME": "/h"}) == "/h/.local/state/spoold/mcp.token"
    made = http_transport.read_or_make(str(path))
    assert len(made) >= http_transport.LENGTH
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert http_transport.read_or_make(str(path)) == made
    path.chmod(0o640)
    with pytest.raises(SpoolError, match=r"others may read the token\. Fix: chmod 600"):
        http_transport.read_or_make(str(path))
    done = pool.run("mcp", "--http", "--port", "0", "--token-file", str(path))
    assert (done.returncode, "chmod 600" in done.stderr) == (2, True)
    path.chmod(0o600)
    path.write_text("short\n")
    with pytest.raises(SpoolError, match="holds no token"):
        http_transport.read_or_make(str(path))
    path.unlink()
    path.symlink_to("elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        http_transport.read_or_make(str(path))


def test_it_ends_with_a_signal_and_leaves_the_spool_clean(pool: Pool) -> None:
    before = set(os.listdir(pool.root / "tmp"))
    words = [sys.executable, "-m", "spoold", "mcp", "--http", "--port", "0", "--token-file", str(pool.path("t2"))]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=pool.env)
    assert process.stdout is not None
    url = process.stdout.readline().decode().strip()
    with over_http(Served(url, pool.path("t2"), process.pid)) as caller:
        task = caller.call("run_background", command="sleep 600")["taskId"]
    process.terminate()
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, b"Traceback" in errors) == (0, False)
    assert f"the token is in {pool.path('t2')}".encode() in errors
    own = {name for name in os.listdir(pool.root / "tmp") if name.startswith("cli-")} - before
    assert own == set()
    pool.cli("cancel", task)
