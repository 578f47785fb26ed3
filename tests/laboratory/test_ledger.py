"""The judge of the matrix sees what is wrong: each test takes a sound story and breaks one thing in it."""

from dataclasses import replace

import pytest

from tools.laboratory.matrix.ledger import Ledger, Token, judge, tokens
from tools.laboratory.matrix.trace import Execution, overlap_s, parse_trace

ONE = Execution("one", 1, "laptop1-aaaa", "laptop1", (10.0, 10.5), True)
TWO = Execution("two", 1, "laptop2-bbbb", "laptop2", (11.0, 11.5), True)
SOUND = Ledger(
    parents={"one": (), "two": ("one",)},
    files=["spool.json", "completed/one.1.laptop1-aaaa.json", "completed/two.1.laptop2-bbbb.json"],
    results={
        "one.1.laptop1-aaaa.json": ("one", 1, "success"),
        "two.1.laptop2-bbbb.json": ("two", 1, "success"),
    },
    commits=[("one", 1, "laptop1-aaaa"), ("two", 1, "laptop2-bbbb")],
    executions=[ONE, TWO],
)
WAITING = "waiting/type=command,run=command/5000.hff58yhhc0-3.two.a2f0c1r900d.json"
CLAIMED = "claimed/laptop3-cccc/5000.hff58yhhc0-3.two.a1f0c0d.json"


def problems(ledger: Ledger) -> str:
    return "\n".join(judge(ledger).problems)


def test_a_sound_story_has_nothing_wrong_with_it() -> None:
    verdict = judge(SOUND)
    assert not verdict.problems
    assert (verdict.tasks, verdict.lost, verdict.doubled, verdict.rerun, verdict.fenced) == (2, 0, 0, 0, 0)


def test_every_place_of_a_token_is_read() -> None:
    assert tokens([
        WAITING, CLAIMED, "returned/5000.hff58yhhc0-3.two.a2f0c1.laptop3-cccc.json",
        "failed/two.3.m-laptop1-dddd.json", "results/two.3.laptop1-aaaa.json",
        "archive/0d/two.3.laptop1-aaaa.completed.json", "archive/0d/two.3.laptop1-aaaa.result.json",
    ]) == [
        Token("waiting", "two", 2), Token("claimed", "two", 1), Token("returned", "two", 2),
        Token("failed", "two", 3, "m-laptop1-dddd"), Token("archive", "two", 3, "laptop1-aaaa"),
    ]  # fmt: skip


def test_a_lost_task_is_counted() -> None:
    verdict = judge(replace(SOUND, files=SOUND.files[:-1]))
    assert verdict.lost == 1
    assert "two is lost" in verdict.problems[0]


@pytest.mark.parametrize("more", [WAITING, CLAIMED, "completed/two.2.laptop3-cccc.json"])
def test_a_task_with_two_files_is_doubled(more: str) -> None:
    verdict = judge(replace(SOUND, files=[*SOUND.files, more]))
    assert verdict.doubled == 1
    assert "two is doubled" in verdict.problems[0]


def test_a_task_that_was_committed_twice_is_doubled_though_one_file_is_left() -> None:
    twice = replace(SOUND, commits=[*SOUND.commits, ("two", 2, "laptop3-cccc")])
    assert judge(twice).doubled == 1
    assert "two was committed 2 times" in problems(twice)
    # A server that lost its power may have forgotten the first commit; the files alone decide then.
    assert not judge(replace(twice, undone=True)).problems


@pytest.mark.parametrize("instead", [WAITING, CLAIMED, "failed/two.3.m-laptop1-dddd.json"])
def test_a_task_that_did_not_complete_is_wrong(instead: str) -> None:
    assert "two did not complete" in problems(replace(SOUND, files=[*SOUND.files[:-1], instead]))


@pytest.mark.parametrize("told", [None, ("two", 1, "worker_died"), ("one", 1, "success")])
def test_a_commit_without_its_result_is_wrong(told: tuple[str, int, str] | None) -> None:
    results = dict(SOUND.results)
    del results["two.1.laptop2-bbbb.json"]
    if told is not None:
        results["two.1.laptop2-bbbb.json"] = told
    assert "two has no sound result" in problems(replace(SOUND, results=results))


def test_a_commit_that_no_laptop_saw_end_is_wrong_unless_that_laptop_lost_its_memory() -> None:
    unseen = replace(SOUND, executions=[ONE, replace(TWO, ended=False)])
    assert "no laptop saw attempt 1 of it end" in problems(unseen)
    assert not problems(replace(unseen, blind=frozenset({"laptop2"})))


def test_one_attempt_that_is_started_twice_is_wrong() -> None:
    again = replace(TWO, seen=(20.0, 21.0))
    assert "attempt 1 of two was started 2 times" in problems(replace(SOUND, executions=[ONE, TWO, again]))


def test_a_task_that_starts_before_what_it_waits_for_is_wrong() -> None:
    early = replace(TWO, seen=(10.0, 11.5))
    assert "two started before one had ended" in problems(replace(SOUND, executions=[ONE, early]))


def test_what_was_taken_from_a_worker_is_counted_and_is_not_wrong() -> None:
    stopped = Execution("two", 1, "laptop3-cccc", "laptop3", (10.6, 10.8), False)
    second = replace(TWO, attempt=2)
    story = replace(
        SOUND,
        files=[*SOUND.files[:-1], "completed/two.2.laptop2-bbbb.json"],
        results={
            "one.1.laptop1-aaaa.json": ("one", 1, "success"),
            "two.1.m-laptop1-dddd.json": ("two", 1, "worker_died"),
            "two.2.laptop2-bbbb.json": ("two", 2, "success"),
        },
        commits=[("one", 1, "laptop1-aaaa"), ("two", 2, "laptop2-bbbb")],
        executions=[ONE, stopped, second],
    )
    verdict = judge(story)
    assert not verdict.problems
    assert (verdict.rerun, verdict.fenced, verdict.late) == (1, 1, 0)
    late = judge(replace(story, executions=[ONE, replace(stopped, ended=True), second]))
    assert late.late == 1


def test_two_of_one_task_at_the_same_time_are_wrong() -> None:
    other = Execution("two", 2, "laptop3-cccc", "laptop3", (10.6, 11.2, 12.6), False)
    both = replace(SOUND, executions=[ONE, TWO, other])
    assert judge(both).overlap_s == pytest.approx(0.5)
    assert "two ran twice at once for 0.5 s" in problems(both)
    assert not judge(both, overlap_allowed_s=1.0).problems


def test_a_command_that_was_frozen_did_not_run_meanwhile() -> None:
    slept = Execution("two", 1, "laptop3-cccc", "laptop3", (1.0, 1.5, 30.0), False)
    assert overlap_s([slept, TWO]) == {}
    awake = replace(slept, seen=(10.0, 11.0, 12.0))
    assert overlap_s([awake, TWO]) == {"two": pytest.approx(0.5)}


def test_a_trace_is_read_line_by_line_on_the_clock_of_the_host() -> None:
    text = "start 5.00 one 1 laptop1-aaaa\nalive 5.50 one 1 laptop1-aaaa\nstart 5.60 two 2 laptop1-aaaa\nend 6.00 one"
    whole = parse_trace(f"{text} 1 laptop1-aaaa\n", "laptop1", 100)
    assert whole == [
        Execution("one", 1, "laptop1-aaaa", "laptop1", (105.0, 105.5, 106.0), True),
        Execution("two", 2, "laptop1-aaaa", "laptop1", (105.6,), False),
    ]
    # The power may fail in the middle of a line.
    assert not parse_trace(text, "laptop1", 100)[0].ended


def test_a_second_start_of_one_attempt_is_an_execution_of_its_own() -> None:
    text = "start 1 one 1 w-a\nend 2 one 1 w-a\nstart 3 one 1 w-a\n"
    assert [(one.seen, one.ended) for one in parse_trace(text, "w", 0)] == [((1.0, 2.0), True), ((3.0,), False)]


def test_where_nothing_may_be_broken_off_a_second_attempt_is_wrong() -> None:
    again = replace(
        SOUND,
        files=["completed/one.1.laptop1-aaaa.json", "completed/two.2.laptop2-bbbb.json"],
        results={**SOUND.results, "two.2.laptop2-bbbb.json": ("two", 2, "success")},
        commits=[("one", 1, "laptop1-aaaa"), ("two", 2, "laptop2-bbbb")],
        executions=[ONE, TWO, replace(TWO, attempt=2, seen=(12.0, 12.5))],
    )
    assert not judge(again).problems
    assert judge(again, unbroken=True).problems == ["two ended as attempt 2"]


MADE = "completed/twin-0a1b2c3d.1.laptop1-aaaa.json"
STEMS = replace(
    SOUND,
    stems={"twin": 1},
    files=[*SOUND.files, MADE],
    results={**SOUND.results, "twin-0a1b2c3d.1.laptop1-aaaa.json": ("twin-0a1b2c3d", 1, "success")},
    commits=[*SOUND.commits, ("twin-0a1b2c3d", 1, "laptop1-aaaa")],
    executions=[*SOUND.executions, Execution("twin-0a1b2c3d", 1, "laptop1-aaaa", "laptop1", (12.0, 12.5), True)],
)


def test_a_drop_without_an_id_is_counted_by_what_it_was_called() -> None:
    verdict = judge(STEMS)
    assert not verdict.problems
    assert verdict.tasks == 3


def test_a_lost_drop_without_an_id_is_counted() -> None:
    verdict = judge(replace(STEMS, stems={"twin": 3}))
    assert verdict.lost == 2
    assert "3 drops called twin became 1 tasks" in problems(replace(STEMS, stems={"twin": 3}))


def test_a_drop_without_an_id_that_ran_twice_is_counted() -> None:
    again = replace(STEMS, files=[*STEMS.files, MADE.replace("0a1b2c3d", "0a1b2c3e")])
    assert judge(again).doubled == 1


def test_a_drop_without_an_id_that_did_not_complete_is_a_problem() -> None:
    failed = [path.replace("completed/twin", "failed/twin") for path in STEMS.files]
    assert "twin-0a1b2c3d did not complete once: failed" in problems(replace(STEMS, files=failed))


def test_a_drop_that_was_wrong_on_purpose_stands_in_rejected_with_its_reason() -> None:
    wrong = replace(SOUND, refused=frozenset({"typo.json"}))
    both = ["rejected/typo.json", "rejected/typo.json.reason.json"]
    assert not judge(wrong).problems
    assert not judge(replace(wrong, files=[*SOUND.files, *both])).problems
    assert "stands there without a reason" in problems(replace(wrong, files=[*SOUND.files, both[0]]))
    assert "left over: rejected/typo.json" in problems(replace(SOUND, files=[*SOUND.files, *both]))
