"""The judges of hostile agents see what is wrong: each test takes a sound story and breaks one thing in it."""

from __future__ import annotations

from typing import Any

import pytest

from tools.hostility.agents import judging
from tools.hostility.agents.judging import Manifest, Missing

LEFT = Manifest(1, {"a.txt": ["b1", "b2"], "in/b.txt": ["b3"]}, {"c" * 40: ["elsewhere", "commit"]})
THERE = {"b2", "b3", "c" * 40}


def result(status: str = "success", attempt: int = 1, message: str = "", **workspace: object) -> dict[str, Any]:
    error = {"code": "X", "message": message} if message else None
    return {"status": status, "attempt": attempt, "error": error, "output": {"workspace": workspace}}


def saved(present: set[str], *results: dict[str, Any], stays: bool = True, **more: Any) -> str:
    return "\n".join(judging.judge_saved(LEFT, present, results, lambda path: stays, **more))


def test_what_is_all_on_the_remote_is_saved() -> None:
    assert not saved(THERE, result(), stays=False)


@pytest.mark.parametrize("lost", ["b2", "b3", "c" * 40])
def test_a_file_or_a_commit_that_nobody_names_is_lost(lost: str) -> None:
    assert saved(THERE - {lost}, result()).startswith("2: attempt 1 lost 1 of 3")


@pytest.mark.parametrize(
    ("lost", "line"),
    [
        ("b2", "error: open('a.txt'): Permission denied"),
        ("b3", "in: it is a git repository of its own"),
        ("c" * 40, "refs/heads/elsewhere: 1 of its commits are in no other place"),
        ("b2", "and 12 more"),
    ],
)
def test_what_is_named_is_not_lost_as_long_as_it_stays(lost: str, line: str) -> None:
    assert not saved(THERE - {lost}, result(left_out=[line]))
    assert "the only copy" in saved(THERE - {lost}, result(left_out=[line]), stays=False)


def test_another_name_in_left_out_names_nothing() -> None:
    assert saved(THERE - {"b3"}, result(left_out=["inner: it is a git repository of its own"]))


def test_left_out_of_another_attempt_names_nothing() -> None:
    assert saved(THERE - {"b2"}, result(), result(attempt=2, left_out=["a.txt"]))


def test_a_failure_that_says_why_is_an_excuse_and_one_that_does_not_is_none() -> None:
    assert not saved(set(), result("failure", message="the remote takes nothing"))
    assert saved(set(), result("failure"))
    assert saved(set(), result("failure", message="it fails, as it is to", commit="c"))
    assert saved(set(), result("failure", attempt=2, message="the remote takes nothing"))


def test_a_killed_saver_is_no_excuse_where_a_lock_is_what_is_in_the_way() -> None:
    failure = result("failure", message="it was killed")
    assert saved(set(), failure, killed=True)
    assert saved(set(), failure, killed=True, kept="not saved: Another git process seems to be running")
    assert not saved(set(), failure, killed=True, kept="not saved: the disk is full")


@pytest.mark.parametrize(
    ("path", "told", "named"),
    [
        ("new\nline-names-1", "new?line-names-1: unreadable", True),
        ("deep/er/file", "deep/er", True),
        ("deep/er/file", "deeper", False),
        ("\udcff\udcfe", "something else", False),
    ],
)
def test_a_path_is_named_by_itself_or_by_a_folder_that_holds_it(path: str, told: str, named: bool) -> None:
    assert judging.is_named(Missing("", path, (path,)), [told]) is named


def test_a_result_that_says_what_is_not_so() -> None:
    said = [result(ref="refs/spool/x/1", commit="c")]
    assert not list(judging.judge_words(said, {"refs/spool/x/1": "c"}))
    assert list(judging.judge_words(said, {"refs/spool/x/1": "d"}))
    assert list(judging.judge_words(said, {}))


@pytest.mark.parametrize(("waited_s", "fine"), [(1.0, True), (7.9, True), (8.1, False), (None, False)])
def test_the_next_task_begins_within_its_bound(waited_s: float | None, fine: bool) -> None:
    assert (not list(judging.judge_begin("next", waited_s, 1.0, 0.5))) is fine


def test_a_busy_machine_has_more_time() -> None:
    assert not list(judging.judge_begin("next", 10.9, 1.0, 2.0))


def main_of(landings: list[tuple[str, str]], tested: set[str], lost: str = "", failing: str = "") -> list[str]:
    return list(judging.judge_main(landings, tested, lambda old, new: new != lost, lambda one: one == failing))


def test_main_only_goes_on_by_what_was_tested_and_holds() -> None:
    landings = [("a", "b"), ("b", "c")]
    assert not main_of(landings, {"b", "c"})
    assert "no merge says" in main_of(landings, {"b"})[0]
    assert "does not hold it" in main_of(landings, {"b", "c"}, lost="c")[0]
    assert "fails the tests" in main_of(landings, {"b", "c"}, failing="b")[0]


def test_a_merge_that_says_what_did_not_land() -> None:
    merges: list[dict[str, Any]] = [
        {"output": {"landed": [{"task": "x", "commit": "w", "merge": "m"}], "tested": ["m"]}},
        {"output": None},
    ]
    assert judging.tested_of(merges) == {"m"}
    assert not list(judging.judge_merges(merges, {"m"}, {"w", "m"}.__contains__))
    assert list(judging.judge_merges(merges, {"w"}, {"w", "m"}.__contains__))
    assert list(judging.judge_merges(merges, {"m"}, {"m"}.__contains__))
    before: list[dict[str, Any]] = [{"output": {"landed": [{"task": "x", "commit": "w", "merge": None}]}}]
    assert not list(judging.judge_merges(before, {"m"}, {"w", "m"}.__contains__)), "a killed merger had pushed it"
    assert list(judging.judge_merges(before, {"m"}, {"m"}.__contains__))


def test_words_of_canaries_are_a_breach_wherever_they_are() -> None:
    assert not list(judging.judge_words_of_canaries({"a result": []}))
    assert "variable" in next(judging.judge_words_of_canaries({"a result": ["variable"]}))


@pytest.mark.parametrize(
    ("told", "seeds", "seed"),
    [
        ("7.config.git was run", (3, 7), 7),
        ("the port was knocked at: b'POST /7-lfs_address/objects", (3, 7), 7),
        ("secret of the canary was read", (3, 7), None),
        ("secret of the canary was read", (7,), 7),
    ],
)
def test_a_trap_says_whose_it_is(told: str, seeds: tuple[int, ...], seed: int | None) -> None:
    assert judging.seed_of(told, seeds) == seed
