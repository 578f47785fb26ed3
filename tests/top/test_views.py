"""Every view opens on a small and on a large terminal, goes deeper and back, and cuts nothing silently."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from textual import events

from spoold.client.read.questions import Question
from spoold.faces.top.views import DIGITS, VIEWS
from tests.support.view import AT, PretendedView, cards
from tests.top.pilot import LARGE, SMALL, opened, run

# What each view shows of the pretended spool, beside its name.
SHOWS = {
    "overview": ("NODES", "QUEUE", "RUNNING", "FAILED", "WAITING", "BATCHES", "ALERTS", "ASKS"),
    "tasks": ("job-000000", "► claimed", "✗ failed", "60"),
    "running": ("job-000010", "12k", "$0.42", "34s", "reading files"),
    "failed": ("job-000003", "EXIT_NONZERO", "5 EXIT_NONZERO, 1 TIMEOUT"),
    "waiting": ("limit gpu is at its max", "6"),
    "batches": ("batch-0", "35/50"),
    "nodes": ("node-0", "draining", "3/4", "1.5/8", "12G/16G"),
    "queue": ("review", "<15m", "12 tasks waiting or ready"),
    "asks": ("job-000002", "Deploy it?", "yes, no"),
    "alerts": ("nothing has ended for 20 minutes", "2 GiB left"),
    "limits": ("gpu", "2/2", "closed until 2027-01-15T09:00:00Z", "paused"),
    "budgets": ("team", "12.5", "6.5"),
    "locks": ("job-000002 behind job-000000", "write src/**", "1 held, 2 tasks waiting"),
    "events": ("07:59:19", "STARTED", "job-000019"),
    "help": ("KEYS", "filter"),
    "task job-000003": ("✗ failed", "2 of 3 failures, 0 of 2 crashes", "WHY", "ATTEMPTS 2"),
    "log job-000000": ("line 59", "60 lines, followed"),
    "history job-000003": ("started on node-2", "2.0 s"),
    "batch batch-1": ("7 of 10 tasks ended, 70 %", "TASKS 10", "└─ ◇ ready  job-000051"),
}


def pretended() -> PretendedView:
    view = PretendedView()
    view.logged["job-000000"] = b"".join(b"line %d\n" % number for number in range(60))
    view.asked = (Question("job-000002", "Deploy it?", ("yes", "no"), AT, "", None, "q-1", "ops@desk"),)
    return view


def test_every_view_is_opened() -> None:
    assert {name.partition(" ")[0] for name in SHOWS} == {*VIEWS, "task", "log", "history", "batch"}


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x60"])
@pytest.mark.parametrize("view", SHOWS)
def test_a_view_shows_what_it_is_for(view: str, size: tuple[int, int]) -> None:
    async def test() -> None:
        async with opened(view, size=size, view=pretended()) as seen:
            await seen.shows(*SHOWS[view])
            lines = seen.text.split("\n")
            assert len(lines) == size[1]
            assert max(map(cell_len, lines)) <= size[0]
            assert "s-7f3a" in lines[0]

    run(test)


def test_one_goes_deeper_and_back_to_where_one_was() -> None:
    async def test() -> None:
        async with opened("failed", view=pretended()) as seen:
            await seen.press("j", "j", "enter")
            await seen.shows("task job-000023", "WHY")
            await seen.press("h")
            await seen.shows("history of job-000023", "started on node-2")
            await seen.press("escape")
            await seen.shows("WHY")
            await seen.press("escape")
            await seen.shows("›job-000023", "EXIT_NONZERO")
            await seen.press("escape")
            await seen.shows("NODES", "QUEUE")

    run(test)


def test_a_task_leads_to_those_around_it() -> None:
    async def test() -> None:
        async with opened("task job-000003", size=LARGE, view=pretended()) as seen:
            await seen.shows("NEEDED BY 1")
            while "job-000002" not in text_at_cursor(seen.app.main):
                await seen.press("j")
            await seen.press("enter")
            await seen.shows("task job-000003 › task job-000002")

    run(test)


def text_at_cursor(sheet: object) -> str:
    row = sheet.row()  # type: ignore[attr-defined]
    return "" if row is None else "".join(word.text for word in row.line)


@pytest.mark.parametrize(
    ("view", "shows"),
    [("queue", "type:review state:pending,waiting,ready"), ("nodes", "worker:node-0 state:claimed"),
     ("waiting", "state:waiting type:build"), ("batches", "batch batch-0"), ("asks", "task job-000002")],
)  # fmt: skip
def test_each_list_leads_to_what_it_counts(view: str, shows: str) -> None:
    async def test() -> None:
        async with opened(view, view=pretended()) as seen:
            await seen.press("enter")
            await seen.shows(shows)

    run(test)


def test_digits_open_views_and_help_names_all() -> None:
    async def test() -> None:
        async with opened(size=LARGE, view=pretended()) as seen:
            for number, name in enumerate(DIGITS):
                await seen.press(str((number + 1) % 10))
                await seen.until(lambda name=name: seen.app.page.name == name)  # type: ignore[misc]
            await seen.press("question_mark")
            await seen.shows("KEYS")
            await seen.press("G")
            await seen.shows(":budgets", "► claimed", "history of a task")

    run(test)


def test_a_filter_leaves_what_it_says_and_esc_takes_it_back() -> None:
    async def test() -> None:
        async with opened("tasks", view=pretended()) as seen:
            await seen.type("slash", "state:running batch:batch-1")
            await seen.shows("tasks /state:running batch:batch-1", "1 of 60", "job-000050")
            await seen.shows_no("job-000010")
            await seen.press("escape")
            await seen.shows("job-000049", "›job-000050")
            await seen.shows_no("/state")

    run(test)


def test_other_lists_are_filtered_by_words() -> None:
    async def test() -> None:
        async with opened("nodes", view=pretended()) as seen:
            await seen.type("slash", "node-3")
            await seen.shows("1 of 4", "node-3")
            await seen.shows_no("node-1 ")

    run(test)


def test_a_command_line_knows_views_their_beginnings_and_what_is_none() -> None:
    async def test() -> None:
        async with opened(view=pretended()) as seen:
            await seen.type("colon", "bud")
            await seen.shows("budgets", "team")
            await seen.type("colon", "tasks type:build")
            await seen.shows("tasks /type:build", "20 of 60")
            await seen.type("colon", "task job-000001")
            await seen.shows("task job-000001")
            await seen.type("colon", "task")
            await seen.shows("`:task` needs ID")
            await seen.type("colon", "nonsense")
            await seen.shows("no view or action is called 'nonsense'")
            await seen.press("colon")
            await seen.press(*"nod", "tab", "enter")
            await seen.shows("1.5/8")

    run(test)


def test_of_a_long_list_only_pages_are_loaded() -> None:
    async def test() -> None:
        view = PretendedView(tasks=cards(100_000))
        async with opened("tasks", view=view) as seen:
            await seen.shows("100,000", "job-000000")
            assert sum(limit for _, _, limit in view.finds) <= 1000
            await seen.press("G")
            await seen.shows("›job-099999")
            await seen.press("k", "k")
            await seen.shows("›job-099997")
            await seen.press("g")
            await seen.shows("›job-000000")
            for _ in range(15):
                await seen.press("ctrl+d")
            await seen.until(lambda: text_at_cursor(seen.app.main).startswith(f"job-{seen.app.main.at:06}"))
            assert sum(limit for _, _, limit in view.finds) <= 10_000

    run(test)


def test_the_order_changes_with_a_key() -> None:
    async def test() -> None:
        async with opened("tasks", view=pretended()) as seen:
            await seen.shows("by last since")
            await seen.press("s", "s")
            await seen.shows("by id")

    run(test)


def test_a_small_terminal_says_what_it_leaves_out() -> None:
    async def test() -> None:
        async with opened(view=pretended()) as seen:
            await seen.shows("NODES 2 of 4", "RUNNING 2 of 6")
        async with opened("tasks", view=pretended()) as seen:
            await seen.shows("no room for worker, prio, age")

    run(test)


def test_a_terminal_of_nearly_nothing_breaks_nothing() -> None:
    async def test() -> None:
        for view in SHOWS:
            async with opened(view, size=(30, 8), view=pretended()) as seen:
                assert max(map(cell_len, seen.text.split("\n"))) <= 30

    run(test)


def test_a_terminal_that_changes_its_size_is_filled_again() -> None:
    async def test() -> None:
        async with opened(size=SMALL, view=pretended()) as seen:
            await seen.pilot.resize_terminal(*LARGE)
            await seen.shows("RUNNING 6", "NODES 4")
            assert seen.app.side.display
            assert (seen.app.side.first, seen.app.main.first) == (0, 0)
            await seen.shows("ALERTS 2")
            await seen.press("tab", "j", "j", "enter")
            await seen.until(lambda: seen.app.page.name == "task")

    run(test)


def test_keys_that_arrive_together_are_those_of_the_line_that_was_opened() -> None:
    async def test() -> None:
        async with opened("overview") as seen:
            for key in (*"2/c34", "enter"):
                name = {"/": "slash"}.get(key, key)
                seen.app.post_message(events.Key(name, key if len(key) == 1 else "\r"))
            await seen.shows("tasks /c34", "0 of 60")
            assert len(seen.app.screen_stack) == 1

    run(test)
