"""What others write reaches the terminal as text: no escape, no markup, no bytes of its own."""

from __future__ import annotations

import pytest

from spoold.client.read.questions import Question
from spoold.client.view import Card
from tests.support.view import NOW, PretendedView
from tests.top.pilot import LARGE, SMALL, opened, run

EVIL = "\x1b]52;c;aGk=\x07\x1b[2J\x9b31m[red]x[/red]\u202egpj\r\n\x00"
LOG = b"\x1b]0;owned\x07first\n\x1b[31mred\x1b[0m [bold]no[/bold]\n\x1bPq#0\x1b\\dcs\n\xff\xfe raw\nover\rwritten\n"


def hostile() -> PretendedView:
    tasks = [Card("job-1", "claimed", EVIL, EVIL, 0, 1, 0, 0, EVIL, "", NOW, NOW, EVIL)]
    tasks.append(Card("job-2", "failed", EVIL, EVIL, 0, 1, 0, 0, EVIL, "", NOW, NOW, EVIL))
    view = PretendedView(tasks=tasks, progress={"message": EVIL, EVIL: EVIL}, problem=f"the share: {EVIL}")
    view.logged["job-1"] = LOG
    view.asked = (Question("job-1", EVIL, (EVIL,), EVIL, EVIL, 1, EVIL, EVIL),)
    return view


VIEWS = ["overview", "tasks", "tasks text", "running", "failed", "waiting", "batches", "queue", "asks", "alerts"]
VIEWS += ["task job-1", "task job-2", "log job-1", f"batch {EVIL}", "history job-1"]


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x60"])
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.split("\x1b")[0])
def test_no_view_lets_an_escape_pass(view: str, size: tuple[int, int]) -> None:
    async def test() -> None:
        async with opened(view, size=size, view=hostile()) as seen:
            await seen.pilot.pause()
            for strip in seen.app.screen._compositor.render_strips():
                assert strip.text.isprintable(), strip.text
                assert "\u202e" not in strip.text

    run(test)


def test_a_log_keeps_its_colours_and_nothing_else() -> None:
    async def test() -> None:
        async with opened("log job-1", view=hostile()) as seen:
            await seen.shows("first", "red [bold]no[/bold]", "dcs", "raw", "written")
            await seen.shows_no("owned")
            strips = seen.app.screen._compositor.render_strips()
            styles = {segment.text.strip(): segment.style for strip in strips for segment in strip}
            red, plain = styles["red"], styles["first"]
            assert red is not None
            assert plain is not None
            assert red.color != plain.color

    run(test)


def test_a_question_is_asked_in_plain_text() -> None:
    async def test() -> None:
        async with opened("asks", view=hostile(), size=LARGE) as seen:
            await seen.press("a")
            await seen.shows("Answer job-1?", "[red]x[/red]", "\\x1b]52")

    run(test)
