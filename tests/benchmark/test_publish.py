"""What docs/benchmarks.md says of speed is written from one run, between two marks; nothing else is touched."""

import pytest

from tools.benchmark.figure import Figure, Target, losses, summed_up
from tools.benchmark.position import REASONS
from tools.benchmark.publish import BEGIN, END, PAGE, renewed, section

MACHINE = {
    "date": "2026-01-31",
    "cpu": "Fast One",
    "cpus": 2,
    "memory_gib": 24,
    "places": ["ext4"],
    "python": "3.11",
    "commands": ["tools/bench call --full"],
}

RATIO = {"ours": "spoold", "theirs": "huey", "tier": "call", "place": "ext4", "backlog": 10_000}


def rate(label: str, backlog: int, *samples: float, lost: int = 0) -> Figure:
    key = {"label": label, "tier": "call", "place": "ext4", "backlog": backlog, "fsync": False}
    return Figure("call", f"{label} {backlog}", "tasks/s", samples, more={"lost": lost, "doubled": 0}, key=key)


def test_only_what_stands_between_the_marks_is_renewed() -> None:
    page = f"before\n{BEGIN} -->\nold\n{END}\nafter\n"
    assert renewed(page, "new") == f"before\n{BEGIN} -->\nnew\n{END}\nafter\n"
    assert renewed(renewed(page, "new"), "new") == renewed(page, "new")


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="has no section"):
        renewed("nothing", "new")


def test_our_page_has_a_place_for_it() -> None:
    assert renewed(PAGE.read_text(), "new")


def test_the_section_has_a_row_for_each_contender_and_each_target() -> None:
    figures = [
        rate("spoold", 1000, 5000.0, 6000.0),
        rate("spoold", 10_000, 5500.0),
        rate("huey", 1000, 3881.0),
        rate("jug", 10_000),
        rate("huey", 10_000, 300.0),
        Figure("call", "ext4 10k: spoold / huey", "×", (18.0, 19.0), Target(10), key=RATIO),
        Figure("idle", "the master", "% core", (7.0,), Target(5, most=True)),
    ]
    said = section(MACHINE, figures)
    assert "`tools/bench call --full` on 2026-01-31: 2 cores (Fast One), 24 GiB, ext4" in said
    assert "| spoold | 5,500 | 5,500 |" in said
    assert "| huey | 3,880 | 300 (18.5×) |" in said
    assert "| jug | – | missing |" in said
    assert "| call: ext4 10k: spoold / huey | ≥ 10 | 18.5 × | 18 – 19 | holds |" in said
    assert "| idle: the master | < 5 | 7 % core | 7 – 7 | **missed** |" in said
    assert "![Tasks a second against the backlog](../tools/benchmark/growth.svg)" in said
    assert "<details markdown><summary>2 figures" in said
    assert said.endswith("Lost 0, doubled 0 in all rows of spoold.")


def test_the_section_says_how_we_stand_beside_each_peer_and_why() -> None:
    def beside(theirs: str, backlog: int, *samples: float) -> Figure:
        return Figure("call", "", "×", samples, key={**RATIO, "theirs": theirs, "backlog": backlog})

    figures = [
        beside("jug", 1000, 0.95),
        beside("jug", 10_000, 0.7),
        beside("jug, fsync", 1000, 1.5),
        beside("huey", 1000, 2),
    ]
    said = section(MACHINE, figures)
    stands = "call: **level** (ext4 1k); call: **behind** (ext4 10k); call: **ahead** (ext4 1k, fsync)"
    assert f"| jug | {stands} | {REASONS['jug']} |" in said
    assert f"| huey | call: **ahead** (ext4 1k) | {REASONS['huey']} |" in said


def test_the_section_says_where_a_tasks_time_goes() -> None:
    more = {"master CPU ms": 0.0712, "worker CPU ms": 0.14, "helpers CPU ms": 0.1, "programs CPU ms": 0.0}
    key = {"label": "spoold", "tier": "call", "place": "ext4", "backlog": 1000}
    figures = [
        Figure("call", "", "tasks/s", (1.0,), more=more, key=key),
        Figure("costs", "a callable: system calls of the master for each task", "calls", (9.5,), note="openat 2"),
    ]
    said = section(MACHINE, figures)
    assert "| call: spoold; ext4 | 0.0712 + 0.14 + 0.1 + 0 |" in said
    assert "| a callable: system calls of the master for each task | 9.5 | openat 2 |" in said


def test_losses_of_all_rows_are_summed_up_once() -> None:
    figures = summed_up([rate("spoold", 1000, 1.0, lost=2), rate("spoold, fsync", 1000, 1.0, lost=1)])
    assert [(figure.value, figure.holds) for figure in figures[2:]] == [(3, False), (0, True)]
    assert summed_up(figures) == figures


def test_only_our_own_losses_are_ours() -> None:
    assert losses([rate("spoold, fsync", 1000, 1.0, lost=2), rate("huey", 1000, 1.0, lost=9)], "lost") == 2
