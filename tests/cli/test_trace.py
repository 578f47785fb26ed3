"""`spool trace export`: into a file, to stdout, to a collector, and what it says where that fails."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from spoold.faces.cli.verbs.trace import names, offer
from spoold.faces.trace_export import address
from spoold.protocol.errors import SpoolError
from tests.cli.command import make
from tests.cli.commands import spool
from tests.cli.test_verbs import end, put
from tests.house.sources import CHECKOUT

TIMES = {"started_at": "2026-01-01T00:00:01Z", "completed_at": "2026-01-01T00:00:05Z"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make(tmp_path / "s")
    end(root, "good", tokens_used=1234, cost_usd=0.5, **TIMES)
    end(root, "bad", "failed", **TIMES)
    claimed = "claimed/w-aaaaa/5000.0000000001-1.runs.a1f0c0.json"
    put(root, claimed, {"id": "runs", "type": "t", "batch": "b2"})
    return root


@contextmanager
def collector(status: int = 200) -> Iterator[tuple[str, list[tuple[str, Any, ExportTraceServiceRequest]]]]:
    """A collector on loopback that keeps what it gets."""
    got: list[tuple[str, Any, ExportTraceServiceRequest]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.path, dict(self.headers), ExportTraceServiceRequest.FromString(body)))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", got
        finally:
            server.shutdown()
            thread.join()


def spans(text: str) -> list[dict[str, Any]]:
    return [
        span
        for line in text.splitlines()
        for by in json.loads(line)["resourceSpans"]
        for scope in by["scopeSpans"]
        for span in scope["spans"]
    ]


def test_lines_go_to_stdout_or_into_a_file(root: Path, tmp_path: Path) -> None:
    plain = spool("trace", "export", "b1", root=root)
    assert plain.code == 0
    assert {span["name"] for span in spans(plain.out)} == {"send t", "wait", "process t", "run"}
    assert plain.err == ""
    file = tmp_path / "out.jsonl"
    saved = spool("trace", "export", "b1", "-o", str(file), root=root)
    assert (saved.out, saved.err) == ("", "8 spans of 2 tasks\n")
    assert file.read_text() == plain.out == spool("trace", "export", "b1", "-o", "-", root=root).out


def test_what_has_not_ended_is_said_to_be_left_out(root: Path) -> None:
    done = spool("trace", "export", root=root)
    assert done.err == "1 attempt that has not ended: left out until then\n"
    assert {span["name"] for span in spans(spool("trace", "export", "runs", root=root).out)} == {"send t"}


def test_a_collector_gets_the_same_spans_as_a_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc")
    written = spans(spool("trace", "export", "b1", root=root).out)
    with collector() as (url, got):
        done = spool("trace", "export", "b1", "--endpoint", url, root=root)
    assert (done.code, done.out, done.err) == (0, "", "8 spans of 2 tasks\n")
    [(path, headers, request)] = got
    assert (path, headers["authorization"]) == ("/v1/traces", "Bearer abc")
    read = {span.span_id.hex(): span for by in request.resource_spans for one in by.scope_spans for span in one.spans}
    assert set(read) == {span["spanId"] for span in written}
    for one in written:
        sent = read[one["spanId"]]
        assert sent.trace_id.hex() == one["traceId"]
        assert sent.parent_span_id.hex() == one.get("parentSpanId", "")
        assert (sent.name, sent.kind) == (one["name"], one["kind"])
        assert str(sent.start_time_unix_nano) == one["startTimeUnixNano"]
        assert str(sent.end_time_unix_nano) == one["endTimeUnixNano"]
        assert (sent.status.code, sent.status.message) == (
            one["status"].get("code", 0),
            one["status"].get("message", ""),
        )
        assert {pair.key for pair in sent.attributes} == {pair["key"] for pair in one["attributes"]}
        assert [link.span_id.hex() for link in sent.links] == [link["spanId"] for link in one.get("links", ())]
    services = {pair.value.string_value for by in request.resource_spans for pair in by.resource.attributes}
    assert services == {"spoold", "s1", "w-aaaaa"}


def test_a_collector_that_refuses_or_is_not_there_is_named(root: Path) -> None:
    with collector(status=400) as (url, got):
        done = spool("trace", "export", "b1", "--endpoint", url, root=root)
    assert (done.code, len(got)) == (69, 1)
    assert f"--endpoint: {url}/v1/traces does not take the spans: " in done.err
    assert "(nothing was taken). Fix: start the collector, or name another one" in done.err
    assert "Traceback" not in done.err
    assert spool("trace", "export", "nothing", "--endpoint", url, root=root).code == 4


def test_a_collector_that_is_away_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    done = spool("trace", "export", "b1", "--endpoint", "http://127.0.0.1:1", root=root)
    assert (done.code, "http://127.0.0.1:1/v1/traces does not take the spans" in done.err) == (69, True)


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://h:4318", "http://h:4318/v1/traces"),
        ("https://h/otlp/", "https://h/otlp/v1/traces"),
        ("http://[::1]:4318/v1/traces", "http://[::1]:4318/v1/traces"),
        ("http://h/v1/traces/?key=1#x", "http://h/v1/traces?key=1"),
    ],
)
def test_an_address_may_be_short(endpoint: str, url: str) -> None:
    assert address(endpoint) == url


@pytest.mark.parametrize(
    "endpoint", ["", "localhost:4318", "ftp://h", "http://", "http://h:x", "http://h:0", "http://["]
)
def test_what_is_no_address_is_refused(root: Path, endpoint: str) -> None:
    with pytest.raises(SpoolError, match="write one as http://localhost:4318"):
        address(endpoint)
    done = spool("trace", "export", "b1", "--endpoint", endpoint, root=root)
    assert (done.code, "is no address of a collector" in done.err) == (2, True)


def test_wrong_words_are_refused(root: Path) -> None:
    done = spool("trace", "import", root=root)
    assert (done.code, "use one of export" in done.err) == (2, True)
    both = spool("trace", "export", "-o", "x", "--endpoint", "http://h", root=root)
    assert (both.code, "-o and --endpoint exclude each other" in both.err) == (2, True)
    assert spool("trace", "export", "nobody", root=root).code == 4
    assert "cannot be written" in spool("trace", "export", "-o", "/nowhere/x", root=root).err


def test_a_shell_is_offered_the_action_and_the_names(root: Path) -> None:
    assert offer("e") == ["export"]
    assert offer("x") == []
    assert callable(names)


def test_without_the_extra_it_names_the_command_that_installs_it(root: Path, tmp_path: Path) -> None:
    words = ["spool", "--spool", str(root), "trace", "export", "--endpoint", "http://localhost:4318"]
    code = (
        "import sys; sys.modules['opentelemetry'] = None;"
        f"sys.argv = {words!r}; from spoold.faces.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert "`spool trace export --endpoint` needs the extra spoold[otel]: " in done.stderr
    assert done.stderr.endswith(f"Fix: {sys.executable} -m pip install 'spoold[otel]'\n")
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    assert project["project"]["name"] == "spoold"
    assert "otel" in project["project"]["optional-dependencies"]


def test_a_file_needs_no_extra(root: Path, tmp_path: Path) -> None:
    words = ["spool", "--spool", str(root), "trace", "export", "b1"]
    code = (
        "import sys; sys.modules['opentelemetry'] = None;"
        f"sys.argv = {words!r}; from spoold.faces.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, len(spans(done.stdout))) == (0, 8)
