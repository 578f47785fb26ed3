"""The table says everything that a figure is, and what is missing most of all."""

from tools.benchmark.figure import Figure, Target
from tools.benchmark.table import lines, row, verdict

HELD = Figure("call", "spoold", "tasks/s", (5000.0, 4000.0, 6000.0), Target(1000), more={"lost": 0, "CPU": 1.5})
GONE = Figure("call", "jug", "tasks/s", (), Target(5), "missing: no network")


def test_a_row_has_median_spread_target_and_losses() -> None:
    expected = ("spoold", "5,000", "tasks/s", "4,000 – 6,000", "≥ 1,000 holds", "lost 0; CPU 1.5")
    assert row(HELD) == expected


def test_a_comparison_says_how_we_stand() -> None:
    ratio = Figure("process", "spoold / nq", "×", (1.2, 1.3), Target(1.5), key={"ours": "spoold", "theirs": "nq"})
    assert row(ratio) == ("spoold / nq", "1.25", "×", "1.2 – 1.3", "≥ 1.5 MISSED", "ahead")


def test_what_is_missing_says_why() -> None:
    assert row(GONE) == ("jug", "–", "tasks/s", "", "≥ 5", "missing: no network")


def test_each_part_has_its_own_table() -> None:
    said = list(lines([HELD, GONE, Figure("idle", "nothing", "% core", (0.5,))]))
    assert [line for line in said if line and not line.startswith(" ")] == ["call", "idle"]
    assert len({line.index("tasks/s") for line in said if "tasks/s" in line}) == 1, "columns stand under one another"


def test_the_last_line_counts_the_targets() -> None:
    assert verdict([HELD, GONE, Figure("idle", "nothing", "% core", (0.5,))]) == "1 of 2 targets hold"
