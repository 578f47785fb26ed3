"""What the figures of several machines mean: only what spoold relies on rules a strategy out."""

from typing import Any

import pytest

from spoold.rules.share.trial_findings import judge_gathering

RACE = {"rounds": 40, "doubled": 0, "nobody": 0, "errors": []}
HEALTHY: dict[str, dict[str, Any]] = {
    "peers": {"machines": 2},
    "freshness": {"rounds": 16, "late": 0, "touched": 0, "worst_s": 0.0},
    "absent": {"seen_by_stat_s": 0.2, "limit_s": 3.0, "seen_after_listing": True},
    "moved": {"stat_still_sees": 0, "open_still_works": 0, "still_listed": 0, "inode_kept": True},
    "read_rename": {"rounds": 6, "refused": 0, "stuck": 0, "errors": [], "longest_s": 0.01},
    "replaced": {"errors": [], "target_there": True},
    "beats": {"beats": 30, "seen": 20, "last_seen": True, "longest_gap_s": 0.4},
    "claims": {"files": 500, "doubled": 0, "lost": 0},
    "handover": {"moves": 300, "overlaps": 0, "miscounted": 0},
    "locks": {"rounds": 30, "overlaps": 0, "starved": 0, "errors": []},
    "same_destination": RACE,
    "noreplace": RACE,
    "exclusive": RACE,
}
BOTH, RENAME, LOCK = ("rename", "lock"), ("rename",), ("lock",)


def test_healthy_machines_are_called_so() -> None:
    assert judge_gathering(HEALTHY) == []


@pytest.mark.parametrize(
    ("probe", "changes", "grade", "against", "words"),
    [
        ("freshness", {"late": 2, "worst_s": 5.0}, "bad", BOTH, "2 of 16 listings"),
        ("freshness", {"late": 2, "touched": 2}, "warning", (), "2 of them until the directory was touched"),
        ("freshness", {"late": 1, "worst_s": 0.1}, "warning", (), "up to 0.1 s"),
        ("absent", {"seen_after_listing": False}, "bad", BOTH, "stays absent"),
        ("absent", {"seen_by_stat_s": 3.0}, "note", (), "3 s or more"),
        ("moved", {"still_listed": 1}, "bad", BOTH, "still listed"),
        ("moved", {"stat_still_sees": 1}, "note", (), "usual on a network"),
        ("moved", {"open_still_works": 1}, "note", (), "usual on a network"),
        ("moved", {"inode_kept": False}, "note", (), "inode"),
        ("read_rename", {"refused": 1, "errors": ["EIO"]}, "warning", (), "(EIO)"),
        ("read_rename", {"refused": 1, "errors": ["EIO"], "stuck": 1}, "bad", BOTH, "not after"),
        ("replaced", {"errors": ["ENOENT"]}, "note", (), "not atomic"),
        ("replaced", {"target_there": False}, "note", (), "not atomic"),
        ("beats", {"last_seen": False}, "bad", BOTH, "only 20 of 30"),
        ("beats", {"longest_gap_s": 4.0}, "warning", (), "for 4.0 s"),
        ("claims", {"doubled": 3}, "bad", RENAME, "3 were won by two"),
        ("claims", {"lost": 1}, "bad", RENAME, "1 by none"),
        ("handover", {"overlaps": 1}, "bad", RENAME, "held it at once 1 time,"),
        ("handover", {"miscounted": 4}, "bad", RENAME, "4 off"),
        ("locks", {"overlaps": 1}, "bad", LOCK, "1 time in 30"),
        ("locks", {"errors": ["ENOLCK"]}, "bad", LOCK, "ENOLCK"),
        ("locks", {"starved": 1}, "bad", LOCK, "never got"),
        ("same_destination", {"doubled": 2}, "note", (), "2 of 40"),
        ("noreplace", {"doubled": 2}, "note", (), "NOREPLACE"),
        ("exclusive", {"doubled": 2}, "note", (), "exclusive creation"),
        ("claims", {"error": "EXDEV"}, "bad", BOTH, "EXDEV"),
    ],
)
def test_a_figure_and_what_it_means(
    probe: str, changes: dict[str, Any], grade: str, against: tuple[str, ...], words: str
) -> None:
    (found,) = judge_gathering({**HEALTHY, probe: {**HEALTHY[probe], **changes}})
    assert (found.probe, found.grade, found.against) == (probe, grade, against)
    assert words in found.problem
    assert found.mend or grade == "note"


def test_what_is_late_and_what_is_moved_are_told_apart() -> None:
    found = judge_gathering({"moved": {**HEALTHY["moved"], "still_listed": 1, "stat_still_sees": 1}})
    assert [remark.grade for remark in found] == ["bad", "note"]
