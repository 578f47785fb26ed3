"""Goal: a stream says each new version once, and ends; however many there are, one waits for all."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, cast

import pytest
from starlette.requests import Request

from spoold.client.view import View, Watch
from spoold.faces.web import updates
from spoold.faces.web.updates import Updates


class Views:
    """A view of which only the version counts, and its watch; counts who waits."""

    def __init__(self) -> None:
        self.version, self.waits = 1, 0
        self._news = threading.Condition()

    def wait(self, version: int, timeout_s: float) -> int:
        self.waits += 1
        with self._news:
            self._news.wait_for(lambda: self.version != version, timeout_s)
        return self.version

    def rise(self) -> None:
        with self._news:
            self.version += 1
            self._news.notify_all()


def made(views: Views, **more: float) -> Updates:
    return Updates(cast(View, views), cast(Watch, views), **more)


async def take(lines: Any, number: int) -> list[bytes]:
    return [await asyncio.wait_for(anext(lines), 20) for _ in range(number)]


def test_each_version_is_said_once_to_all() -> None:
    """N37: also the first that comes after a stream has begun, and before the loop has done anything else."""

    async def play() -> None:
        views = Views()
        told = made(views, every_s=0)
        async with told.living():
            streams = [told.lines() for _ in range(20)]
            for one in streams:
                assert await anext(one) == b"data: 1\n\n"
            views.rise()
            for one in streams:
                assert await take(one, 1) == [b"data: 2\n\n"]
            assert views.waits <= 4  # one waits for all

    asyncio.run(play())


def test_a_silent_stream_says_that_it_is_there_and_ends_with_the_server() -> None:
    async def play() -> None:
        told = made(Views(), beat_s=0.01)
        async with told.living():
            lines = told.lines()
            assert await take(lines, 3) == [b"data: 1\n\n", b": here\n\n", b": here\n\n"]
        assert [line async for line in lines] in ([], [b": here\n\n"])

    asyncio.run(play())


def test_the_number_of_streams_is_bounded_and_one_that_is_not_read_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "STREAMS_MOST", 1)
    monkeypatch.setattr(updates, "SEND_S", 0.05)

    async def play() -> None:
        told = made(Views())
        request = Request({"type": "http", "headers": []})
        stuck, begun = asyncio.Event(), asyncio.Event()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                begun.set()
                await stuck.wait()  # its reader reads nothing

        async def receive() -> Any:
            await stuck.wait()

        first, second = told.endpoint(request), told.endpoint(request)  # both asked before either is counted
        first_ends = asyncio.create_task(first({"type": "http"}, receive, send))
        await begun.wait()
        refused = list[Any]()

        async def keep(message: Any) -> None:
            refused.append(message)

        await second({"type": "http"}, receive, keep)
        assert refused[0]["status"] == 503
        await asyncio.wait_for(first_ends, 20)
        assert told.streams == 0

    asyncio.run(play())


def test_a_stream_ends_when_its_reader_leaves() -> None:
    async def play() -> None:
        told, sent, said = made(Views()), list[Any](), asyncio.Event()

        async def send(message: Any) -> None:
            sent.append(message)
            if len(sent) == 2:
                said.set()

        async def receive() -> Any:
            await said.wait()
            return {"type": "http.disconnect"}

        answer = told.endpoint(Request({"type": "http", "headers": []}))
        await asyncio.wait_for(answer({"type": "http"}, receive, send), 20)
        assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
        assert told.streams == 0

    asyncio.run(play())
