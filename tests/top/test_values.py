"""The pure parts: lines, tables, figures, filters, pages of a list, bytes that are sent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from spoold.client.view import Query
from spoold.faces.top import text_layout
from spoold.faces.top.overview_page import shares
from spoold.faces.top.page import query_of, words_of
from spoold.faces.top.task_page import charges
from spoold.faces.top.tasks_page import PAGE, Pager
from spoold.faces.top.text_layout import Cells, Column, Word, clip, table, text_of, width_of, word, wrap
from spoold.faces.top.widgets import changed_to
from spoold.protocol.settings import Settings
from tests.support.view import PretendedView, cards

if TYPE_CHECKING:
    from spoold.client.view import View

TEXT = st.text(max_size=60)


@given(TEXT, st.integers(1, 40), st.integers(0, 6))
def test_a_wrapped_line_fits_and_loses_no_word(text: str, width: int, indent: int) -> None:
    shown = word(text)
    lines = wrap((shown,), width, indent)
    assert all(width_of(line) <= max(width, indent + 4) for line in lines)
    assert "".join("".join(map(text_of, lines)).split()) == "".join(shown.text.split())


@given(TEXT, st.integers(0, 40))
def test_a_clipped_text_fits(text: str, width: int) -> None:
    shown = word(text).text
    assert cell_len(clip(shown, width)) <= width
    assert clip(shown, width) == shown or not width or clip(shown, width).endswith("…")


@given(TEXT)
def test_a_word_is_one_line_and_visible(text: str) -> None:
    assert not [char for char in word(text).text if not char.isprintable() and char != " " and ord(char) < 160]
    assert "\x1b" not in word(text).text


@given(st.lists(st.lists(TEXT, min_size=3, max_size=3), max_size=5), st.integers(4, 120))
def test_a_table_fits_and_counts_what_has_no_room(rows: list[list[str]], width: int) -> None:
    columns = (Column("ONE", 4, 20), Column("TWO", 4, 20, rank=1, right=True), Column("THREE", 10, 60, rank=2))
    laid = table(columns, [Cells([word(cell) for cell in row], str(n)) for n, row in enumerate(rows)], width)
    assert all(width_of(line) <= width for line in (laid.head, *(row.line for row in laid.rows)))
    assert {"ONE", "TWO", "THREE"} - set(laid.hidden) == set(text_of(laid.head).replace("…", " ").split())


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "-"), (-3.0, "0s"), (59.9, "59s"), (60.0, "1m"), (7199.0, "1h"), (86400.0 * 3, "3d")],
)
def test_an_age_has_one_unit(seconds: float | None, shown: str) -> None:
    assert text_layout.age(seconds) == shown


def test_bars_fill_their_width() -> None:
    for used, most in ((0, 4), (1, 400), (3, 4), (4, 4), (9, 4), (1, 0)):
        assert width_of(text_layout.bar(used, most, 10)) == 10
    assert text_of(text_layout.bar(1, 400, 10)).startswith("█")
    for counts in ({}, {"completed": 1}, {"completed": 3, "failed": 1, "waiting": 7}, dict.fromkeys(("failed",), 9)):
        assert width_of(text_layout.stack(counts, 20)) == 20


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (True, ""),
        (0.5, "50 %"),
        (12, "12"),
        ("reading", "reading"),
        ({"message": "reading", "step": "3", "cost_usd": 1, "more": {"a": 1}, "left": 4}, "reading 3 left=4"),
        ([1, 2], "[1, 2]"),
    ],
)
def test_progress_is_a_line(value: object, shown: str) -> None:
    assert text_layout.progress(value).text == shown


def test_numbers_are_short() -> None:
    assert [text_layout.short(number) for number in (None, 950, 1234, 45_678, 3_400_000)] == [
        "",
        "950",
        "1.2k",
        "46k",
        "3.4M",
    ]
    assert text_layout.moment("nonsense") is None
    assert text_layout.moment("2027-01-15T08:00:00") is None


def test_a_filter_is_a_question_and_back() -> None:
    typed = "state:failed,running type:review batch:b worker:w code:OOM_KILLED some words"
    query = query_of(typed)
    assert query == Query(("failed", "claimed"), ("review",), ("b",), ("w",), ("OOM_KILLED",), "some words")
    assert words_of(query) == typed.replace("running", "claimed")
    assert query_of("unknown:x state:").text == "unknown:x state:"


@pytest.mark.parametrize(
    ("sizes", "room", "quotas"),
    [([5, 5], 4, [2, 2]), ([1, 9], 6, [1, 5]), ([3, 3, 3], 2, [1, 1, 1]), ([], 9, []), ([2], 9, [2])],
)
def test_sections_share_the_room(sizes: list[int], room: int, quotas: list[int]) -> None:
    assert shares(sizes, room) == quotas


@given(st.lists(st.integers(0, 1999), max_size=8), st.sampled_from([5, 20, 60]))
def test_a_pager_shows_the_rows_that_are_there(firsts: list[int], lines: int) -> None:
    view = PretendedView(tasks=cards(2000))
    pager = Pager(Query())
    for first in (0, *firsts):
        begin, found = pager.window(cast("View", view), first, lines)
        last = min(2000, first + lines)
        assert begin <= first < last <= begin + len(found)
        assert [card.id for card in found] == [f"job-{n:06}" for n in range(begin, begin + len(found))]
    assert max(limit for _, _, limit in view.finds) == PAGE


def test_a_cursor_that_is_forgotten_is_no_error() -> None:
    view = PretendedView(tasks=cards(2000))
    pager = Pager(Query())
    pager.window(cast("View", view), 0, 500)
    pager._cursors[1] = "of another look"
    begin, found = pager.window(cast("View", view), 300, 20)
    assert [card.id for card in found][:1] == [f"job-{begin:06}"]


def test_of_a_line_only_what_changed_is_sent() -> None:
    def strip(*words: Word) -> Strip:
        return Strip([Segment(each.text, Style(bold=each.style == "bold")) for each in words])

    line = strip(Word("job-1  "), Word("12m", "bold"), Word("  review"))
    assert changed_to(line, strip(Word("job-1  "), Word("13m", "bold"), Word("  review"))) == 9
    assert changed_to(line, strip(Word("job-1  "), Word("12m"), Word("  review"))) == 10
    assert changed_to(line, strip(Word("job-1"))) == line.cell_length


@pytest.mark.parametrize(
    ("task", "spent"),
    [
        ({}, "2 of 3 failures"),
        ({"max_retries": 5}, "2 of 5 failures"),
        ({"max_retries": 5, "retry": {"max": 1}}, "2 of 1 failure"),
        ({"max_retries": "many", "retry": 3}, "2 of 3 failures"),
    ],
)
def test_what_is_spent_of_the_retry_budget(task: dict[str, object], spent: str) -> None:
    info = replace(PretendedView().info("job-000003"), task=task, failures=2, crashes=1)
    assert charges(info, Settings()) == f"{spent}, 1 of 2 crashes"
