"""What the figures of one machine mean: each that matters is found, and healthy ones are not."""

from typing import Any

import pytest

from spoold.rules.share.trial_findings import judge_machine

HEALTHY: dict[str, dict[str, Any]] = {
    "marker": {"present": True, "spool_id": "s", "claim": "rename"},
    "mount": {"known": True},
    "space": {"free_mb": 5000, "free_inodes": None},
    "access": {"denied": [], "uid": 7, "owner": 7, "file_mode": "0664", "dir_mode": "0775", "umask": "0002"},
    "names": {"lost": [], "case_sensitive": True, "unicode": True},
    "rename": {
        "over": "done",
        "into": "done",
        "directory": "done",
        "over_directory": "EISDIR",
        "noreplace": "EEXIST",
    },
    "crossing": {"pairs": 9, "failed": []},
    "exclusive": {"file": True, "directory": True},
    "durability": {"file": "done", "directory": "EINVAL"},
    "locks": {"flock": "excludes", "ofd": "excludes"},
    "clock": {"offset_s": -3.0, "mtime_step_ns": 4_000_000},
    "hints": {"works": False, "reason": "x"},
    "race": {"files": 20, "doubled": 0, "lost": 0},
    "pace": {"list": {"p50_ms": 1.0, "p99_ms": 3.0, "max_ms": 900.0}},
}


def test_a_healthy_machine_is_called_so() -> None:
    assert judge_machine(HEALTHY) == []


@pytest.mark.parametrize(
    ("probe", "changes", "grade", "against", "words"),
    [
        ("marker", {"present": False}, "note", (), "no spool yet"),
        ("space", {"free_mb": 3}, "warning", (), "only 3 MiB"),
        ("space", {"free_mb": 900, "total_mb": 100_000}, "warning", (), "is full by the defaults of [disk]; with"),
        ("space", {"free_mb": None, "total_mb": 0}, "note", (), "does not say its size"),
        ("space", {"free_inodes": 3}, "warning", (), "only 3 more files"),
        ("access", {"denied": ["ready", "claimed"]}, "bad", ("rename", "lock"), "cannot write to ready, claimed"),
        ("access", {"owner": 65534}, "note", (), "belong to user 65534, not to 7"),
        ("access", {"file_mode": "0600"}, "note", (), "for one user only"),
        ("access", {"dir_mode": "0755"}, "note", (), "umask 0002"),
        ("names", {"lost": ["a,b"]}, "bad", ("rename", "lock"), "come back changed, or not at all: a,b"),
        ("names", {"case_sensitive": False}, "note", (), "case alone"),
        ("names", {"unicode": False}, "note", (), "ASCII"),
        ("rename", {"into": "EXDEV"}, "bad", ("rename", "lock"), "(EXDEV)"),
        ("rename", {"over": "EEXIST"}, "note", (), "over another gives EEXIST"),
        ("rename", {"directory": "EXDEV"}, "note", (), "a directory gives EXDEV"),
        ("crossing", {"failed": ["a→b: EXDEV"]}, "bad", ("rename", "lock"), "1 of 9 renames"),
        ("exclusive", {"directory": False}, "bad", ("rename", "lock"), "made twice"),
        ("exclusive", {"file": False}, "note", (), "O_EXCL"),
        ("durability", {"file": "EIO"}, "warning", (), "fsync gives EIO"),
        ("locks", {"flock": "ENOLCK"}, "bad", ("lock",), "flock gives ENOLCK"),
        ("locks", {"flock": "no answer"}, "bad", ("lock",), "flock gives no answer"),
        ("locks", {"flock": "granted twice"}, "bad", ("lock",), "granted twice at once"),
        ("clock", {"offset_s": -7200.0}, "warning", (), "7200 s apart"),
        ("race", {"doubled": 1}, "bad", ("rename",), "1 were won twice"),
        ("race", {"lost": 2}, "bad", ("rename",), "2 by no thread"),
        ("pace", {"read": {"p50_ms": 800.0}, "write": {"p50_ms": 900.0}}, "warning", (), "write takes 900 ms"),
        ("names", {"error": "EIO (x)"}, "bad", ("rename", "lock"), "ended with EIO"),
    ],
)
def test_a_figure_and_what_it_means(
    probe: str, changes: dict[str, Any], grade: str, against: tuple[str, ...], words: str
) -> None:
    (found,) = judge_machine({**HEALTHY, probe: {**HEALTHY[probe], **changes}})
    assert (found.probe, found.grade, found.against) == (probe, grade, against)
    assert words in found.problem
    assert found.mend or grade == "note"


def test_a_share_that_does_not_answer_is_told_from_one_that_refuses() -> None:
    (hung,) = judge_machine({"list": {"error": "no answer", "hung": True}})
    assert "when the server is back" in hung.mend


def test_a_server_that_gives_no_lock_may_only_have_started_just_now() -> None:
    (remark,) = judge_machine({"locks": {"flock": "no answer", "ofd": "no answer"}})
    assert "try again" in remark.mend
