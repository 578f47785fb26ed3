"""A call answers in time and in words, whatever happens behind it; here the server is in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from spoold.client.spool_client import SpoolClient
from spoold.faces.mcp import server
from spoold.faces.mcp.pool import GET_STATUS
from spoold.faces.mcp.session import Session
from spoold.faces.mcp.tool import WAIT_MOST_MS, bounded_s
from spoold.faces.mcp.waits import SLOT_WITHIN_S
from spoold.protocol.errors import Unavailable
from tests.cli.commands import spool


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """A session on a spool that nobody leads."""
    assert spool("init", str(tmp_path / "s")).code == 0
    with SpoolClient(tmp_path / "s") as client:
        yield Session(client)


def told(session: Session, monkeypatch: pytest.MonkeyPatch, call: Any) -> str:
    """The words with which a tool is refused whose function is `call`."""
    monkeypatch.setattr(server, "tool_for", lambda role, name: replace(GET_STATUS, call=call))

    async def ask() -> Any:
        async with Client(server.serve(session)) as client:
            return await client.call_tool("get_status", {})

    found = anyio.run(ask)
    assert found.is_error
    return str(found.content[0].text)


def test_a_spool_that_hangs_holds_no_call(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CALL_MOST_S", 0.2)
    over = threading.Event()
    try:
        assert "has not answered within" in told(session, monkeypatch, lambda *_: over.wait(30))
    finally:
        over.set()


def test_a_bug_shows_nothing_of_itself(
    session: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("/home/me/secret")

    words = told(session, monkeypatch, broken)
    assert words == "this is a bug in spoold; please report it. The server's stderr has the details."
    assert "/home/me/secret" in caplog.text


def test_a_share_that_is_away_is_said(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise Unavailable("the share is away. Is it mounted?")

    assert told(session, monkeypatch, away) == "the share is away. Is it mounted?"


def test_a_wait_and_the_way_back_of_its_slot_fit_into_a_call() -> None:
    assert bounded_s(10**9) == WAIT_MOST_MS / 1000 == 45
    assert bounded_s(45_000) + SLOT_WITHIN_S < server.CALL_MOST_S < 50
    assert bounded_s(200) == 0.2


def test_without_a_leader_the_pool_is_shown_all_the_same(session: Session) -> None:
    async def ask() -> Any:
        async with Client(server.serve(session)) as client:
            return await client.call_tool("get_status", {})

    found = anyio.run(ask).structured_content
    assert (found["orchestrator_running"], found["leader"]) == (False, "")
