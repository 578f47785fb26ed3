"""Goal: connections of `spool web` are bounded in number and in time, and their trouble does not flood a terminal."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from spoold.faces.web import http_server


def test_there_are_few_downloads_at_once() -> None:
    async def play() -> None:
        begun, go = asyncio.Event(), asyncio.Event()

        async def slow(scope: Any, receive: Any, send: Any) -> None:
            begun.set()
            await go.wait()

        said = list[Any]()

        async def hear() -> Any:
            return {"type": "http.disconnect"}

        async def keep(message: Any) -> None:
            said.append(message)

        few = http_server.Few(slow, 1)
        first = asyncio.create_task(few({"type": "http"}, hear, keep))
        await begun.wait()
        await few({"type": "http"}, hear, keep)
        assert said[0]["status"] == 503
        go.set()
        await first
        said.clear()
        await few({"type": "http"}, hear, keep)
        assert not said

    asyncio.run(play())


def test_an_answer_that_nobody_reads_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REQUEST_S", 0.05)

    begun, ended = asyncio.Event(), asyncio.Event()

    async def much(scope: Any, receive: Any, send: Any) -> None:
        begun.set()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(200):
            await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})
        ended.set()

    async def play() -> None:
        crowd, state = http_server.Crowd(lambda cookies: False), ServerState()
        config = uvicorn.Config(much, log_level="error")
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: http_server.Bounded(config, state, {}, crowd=crowd), "127.0.0.1", 0)
        with socket.create_connection(server.sockets[0].getsockname()) as one:
            one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            async with asyncio.timeout(20):
                await begun.wait()
                await ended.wait()
            assert not crowd.strangers
        server.close()

    asyncio.run(play())


def test_the_terminal_hears_once_that_descriptors_are_out() -> None:
    calm = http_server.Calm(clock=lambda: 5.0)
    error = OSError(24, "Too many open files")
    records = [
        logging.LogRecord(
            "asyncio", 40, "", 0, "socket.accept() out of system resource\nsocket: x", (), (OSError, error, None)
        )
        for _ in range(3)
    ]
    assert [calm.filter(record) for record in records] == [True, False, False]
    assert (records[0].getMessage().count("\n"), records[0].exc_info) == (0, None)
    cut_off = logging.LogRecord("uvicorn.error", 40, "", 0, "x", (), (None, asyncio.CancelledError(), None))  # type: ignore[arg-type]
    assert not calm.filter(cut_off)
