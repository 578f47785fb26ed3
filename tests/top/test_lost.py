"""A share that does not answer: the picture stays, with the reason and its age, and the keys work."""

from __future__ import annotations

import asyncio
import threading

import pytest

from spoold.faces.top.source import OneFlight, aside
from spoold.protocol.errors import Unavailable
from tests.support.view import NOW, PretendedView
from tests.top.pilot import LARGE, SMALL, opened, run

PROBLEM = "/mnt/spool: Stale file handle. Is the share mounted?"


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x60"])
def test_the_last_picture_stays_with_the_reason_and_its_age(size: tuple[int, int]) -> None:
    async def test() -> None:
        async with opened("tasks", size=size) as seen:
            seen.view.problem, seen.view.as_of = PROBLEM, NOW - 40
            await seen.shows("! What you see is 40s old.", "Stale file handle", "job-000000")
            await seen.press("j", "j")
            await seen.shows("›job-000002")
            await seen.press("3")
            await seen.shows("reading files")
            seen.view.problem, seen.view.as_of = "", NOW
            await seen.shows_no("Stale file handle")

    run(test)


def test_a_page_that_cannot_be_read_says_so_and_esc_leads_away() -> None:
    async def test() -> None:
        view = PretendedView(silent=True)
        async with opened("tasks", view=view) as seen:
            await seen.press("enter")
            await seen.shows("task job-000000", "Is the share mounted?")
            await seen.press("escape", "l")
            await seen.shows("Is the share mounted?")
            await seen.press("escape")
            await seen.shows("›job-000000")

    run(test)


def test_a_call_that_hangs_keeps_no_key_from_working() -> None:
    over = threading.Event()

    class Hanging(PretendedView):
        def logs(self, task_id: str) -> list[int]:
            over.wait(60)
            return []

    async def test() -> None:
        async with opened("tasks", view=Hanging()) as seen:
            await seen.press("l")
            await seen.shows("reading …")
            await seen.press("escape", "j")
            await seen.shows("›job-000001")
            await seen.press("q")
            await seen.until(lambda: not seen.app.is_running)
        over.set()

    run(test)


def test_before_the_first_look_it_says_that_it_reads() -> None:
    class Empty(PretendedView):
        @property
        def picture(self) -> None:  # type: ignore[override]
            return None

    async def test() -> None:
        for view in ("overview", "nodes", "limits", "budgets", "locks", "failed", "alerts"):
            async with opened(view, view=Empty(tasks=[])) as seen:
                await seen.shows("reading the spool …")

    run(test)


def test_a_view_that_is_not_complete_says_so() -> None:
    async def test() -> None:
        async with opened("tasks", view=PretendedView(complete=False)) as seen:
            await seen.type("slash", "state:failed")
            await seen.shows("6 of 60 so far")

    run(test)


def test_what_is_read_aside_is_returned_or_raised() -> None:
    def fail() -> None:
        raise Unavailable("gone")

    async def test() -> None:
        assert await aside(lambda: 3) == 3
        with pytest.raises(Unavailable):
            await aside(fail)

    run(test)


def test_of_calls_that_come_meanwhile_only_the_last_is_made() -> None:
    async def test() -> None:
        flight, gate, made = OneFlight(), threading.Event(), list[object]()

        def call(number: int) -> int:
            if not number:
                gate.wait(30)
            return number

        first = asyncio.create_task(flight.run(lambda: call(0), made.append))
        while not flight.flying:  # noqa: ASYNC110
            await asyncio.sleep(0)
        for number in (1, 2, 3):
            await flight.run(lambda number=number: call(number), made.append)  # type: ignore[misc]
        gate.set()
        await first
        assert made == [0, 3]

    run(test)
