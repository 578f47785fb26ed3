"""The log of a task: followed, searched, of several attempts, and a window of a long one."""

from __future__ import annotations

from spoold.client.view import LogPart
from spoold.faces.top.log_page import WINDOW
from tests.support.view import PretendedView
from tests.top.pilot import opened, run

TASK = "job-000000"


def logging(data: bytes) -> PretendedView:
    view = PretendedView()
    view.logged[TASK] = data
    return view


def numbered(begin: int, end: int) -> bytes:
    return b"".join(b"line %06d\n" % number for number in range(begin, end))


def test_the_end_is_followed_until_one_looks_up() -> None:
    async def test() -> None:
        async with opened(f"log {TASK}", view=logging(numbered(0, 50))) as seen:
            await seen.shows("›line 000049", "50 lines, followed")
            seen.view.logged[TASK] += numbered(50, 60)
            await seen.shows("›line 000059", "60 lines")
            await seen.press("k", "k")
            await seen.shows("not followed", "›line 000057")
            seen.view.logged[TASK] += numbered(60, 70)
            await seen.shows("70 lines", "›line 000057")
            await seen.press("G")
            await seen.shows("›line 000069", ", followed")

    run(test)


def test_words_are_found_and_counted() -> None:
    async def test() -> None:
        view = logging(numbered(0, 30) + b"Traceback: it broke\n" + numbered(30, 100))
        async with opened(f"log {TASK}", view=view) as seen:
            await seen.type("slash", "LINE 00004")
            await seen.shows("match 1 of 10", "›line 000040")
            await seen.press("n")
            await seen.shows("match 2 of 10", "›line 000041")
            await seen.press("N", "N")
            await seen.shows("match 10 of 10", "›line 000049")
            await seen.press("E")
            await seen.shows("›Traceback: it broke")

    run(test)


def test_of_a_long_log_a_window_is_held_and_the_title_says_which() -> None:
    async def test() -> None:
        data = numbered(0, 100_000)
        async with opened(f"log {TASK}", view=logging(data)) as seen:
            await seen.shows("›line 099999", "of 1.2M")
            await seen.press("less_than_sign")
            await seen.shows("not followed")
            await seen.press("less_than_sign")
            await seen.until(lambda: len(seen.app.page._data) == WINDOW)  # type: ignore[attr-defined]
            for _ in range(20):
                await seen.press("less_than_sign")
            await seen.press("g")
            await seen.shows("›line 000000", "bytes 0–262k of 1.2M")

    run(test)


def test_attempts_are_turned() -> None:
    class Twice(PretendedView):
        def logs(self, task_id: str) -> list[int]:
            return [1, 2]

        def log(self, task_id: str, *, attempt: int | None = None, offset: int = 0, most: int = 65536) -> LogPart:
            data = f"of attempt {attempt}\n".encode()
            begin = 0 if offset < 0 else min(offset, len(data))
            return LogPart(attempt or 2, "node-1", begin, len(data), len(data), data[begin:], ended=True)

    async def test() -> None:
        async with opened(f"log {TASK}", view=Twice()) as seen:
            await seen.shows("of attempt 2", "attempt 2 (2 of 2), 1 line, ended")
            await seen.press("left_square_bracket")
            await seen.shows("of attempt 1", "attempt 1 (1 of 2)")
            await seen.press("left_square_bracket", "right_square_bracket")
            await seen.shows("of attempt 2")

    run(test)


def test_a_task_without_a_log_says_so() -> None:
    async def test() -> None:
        async with opened(f"log {TASK}") as seen:
            await seen.shows("this task has written nothing yet")
            seen.view.logged[TASK] = b"now\n"
            await seen.shows("›now")

    run(test)


def test_long_lines_are_wrapped_and_not_cut() -> None:
    async def test() -> None:
        async with opened(f"log {TASK}", view=logging(b"x" * 200 + b"END\n")) as seen:
            await seen.shows("xEND", "3 lines")

    run(test)
