"""How attempts end: exit codes and what they cost, time-outs, memory caps, and what is left behind (nothing)."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from tests.e2e.pool import Pool, processes, wait_for


def test_exit_75_is_tried_again_without_charge(shared: Pool) -> None:
    shared.submit("later", ["sh", "-c", "[ $SPOOL_ATTEMPT = 4 ] || exit 75"], max_retries=1)
    assert shared.finish("later")["attempt"] == 4
    assert shared.json("show", "later")["state"] == "completed", "three of them, with one retry to spend"
    codes = [result["error"]["code"] for result in shared.results("later")[:-1]]
    assert codes == ["TRY_LATER"] * 3


@pytest.mark.parametrize("code", [64, 65, 77, 78])
def test_an_exit_code_that_says_never_fails_at_once(shared: Pool, code: int) -> None:
    result = shared.finish(shared.submit(f"never-{code}", ["sh", "-c", f"exit {code}"]))
    assert (result["attempt"], result["exit_code"], result["error"]["code"]) == (1, code, "EXIT_NONZERO")


def test_exit_1_is_tried_again_with_growing_delays_until_the_retries_are_spent(shared: Pool) -> None:
    retry = {"max": 3, "backoff_s": 0.3, "factor": 2, "jitter": 0.25}
    result = shared.finish(shared.submit("stubborn", ["sh", "-c", "echo $SPOOL_ATTEMPT; exit 1"], retry=retry))
    assert (result["attempt"], result["error"]["code"], result["error"]["cause"]) == (
        4,
        "MAX_RETRIES",
        "EXIT_NONZERO",
    )
    assert result["exit_code"] == 1
    attempts = shared.results("stubborn")
    assert [entry["attempt"] for entry in attempts] == [1, 2, 3, 4]
    ended = [datetime.fromisoformat(entry["completed_at"]) for entry in attempts]
    began = [datetime.fromisoformat(entry["started_at"]) for entry in attempts]
    rests = [(later - earlier).total_seconds() for earlier, later in zip(ended, began[1:], strict=False)]
    for rest, least in zip(rests, (0.3 * 0.75, 0.6 * 0.75, 1.2 * 0.75), strict=True):
        assert rest >= least
    assert shared.cli("logs", "stubborn", "--attempt", "2") == "2\n"


def test_a_timeout_ends_a_tree_that_ignores_sigterm_and_forks_twice(shared: Pool) -> None:
    sleep = f"sleep 61.{shared.mark}"
    script = (
        f"trap '' TERM; (trap '' TERM; setsid sh -c 'trap \"\" TERM; {sleep}; {sleep}' & {sleep}; :) & {sleep}; :"
    )
    shared.submit("deaf", ["sh", "-c", script], timeout=1, retry={"max": 0})
    wait_for(lambda: len(processes(f"61.{shared.mark}")) >= 3, "the tree is up")
    result = shared.finish("deaf")
    assert (result["status"], result["error"]["code"]) == ("timeout", "TIMEOUT")
    assert result["duration_s"] >= 1
    wait_for(lambda: not processes(f"61.{shared.mark}"), "the tree is gone", 2)


def test_what_a_task_left_in_the_background_ends_with_it(shared: Pool) -> None:
    result = shared.finish(shared.submit("litter", ["sh", "-c", f"setsid sleep 62.{shared.mark} & exit 0"]))
    assert result["status"] == "success"
    wait_for(lambda: not processes(f"62.{shared.mark}"), "nothing of it is left", 2)


def test_memory_above_the_cap_is_oom_killed(shared: Pool) -> None:
    grow = "import time; held = bytearray(300 << 20); time.sleep(30)"
    shared.submit("hungry", ["python3", "-c", grow], requires={"mem_mb": 100}, retry={"max": 0})
    result = shared.finish("hungry")
    assert result["error"]["code"] == "OOM_KILLED"
    assert result["duration_s"] < 20


def test_a_program_that_is_nowhere_is_told_as_such(shared: Pool) -> None:
    result = shared.finish(shared.submit("nowhere", ["no-such-program-7"], retry={"max": 0}))
    assert (result["error"]["code"], result["exit_code"]) == ("SPAWN_FAILED", 127)


def test_a_folder_that_is_not_there_is_told_as_such(shared: Pool) -> None:
    result = shared.finish(shared.submit("homeless", ["true"], cwd="/no/such/folder", retry={"max": 0}))
    assert result["error"]["code"] == "SPAWN_FAILED"
    assert "/no/such/folder" in result["error"]["message"]


def test_a_deadline_that_is_over_fails_the_task(shared: Pool) -> None:
    result = shared.finish(shared.submit("too-late", ["true"], deadline="2020-01-01T00:00:00Z"))
    assert result["error"]["code"] == "DEADLINE"


def test_words_of_every_kind_arrive_as_they_were_sent(shared: Pool) -> None:
    words = ["ünïcödé", "two words", "", "-n", "$HOME `id` \\ \" '", "line\nbreak", "x" * 100_000]
    script = "import os, sys, json; print(json.dumps([sys.argv[1:], os.environ['ODD'], len(sys.stdin.read())]))"
    odd = "ä = \n\"'"
    shared.submit("words", ["python3", "-c", script, *words[:-1]], env={"ODD": odd}, stdin="é" * 500_000)
    output = shared.finish("words")["output"]
    assert json.loads(output) == [words[:-1], odd, 500_000]
    shared.submit("long-word", ["python3", "-c", "import sys; print(len(sys.argv[1]))", words[-1]])
    assert shared.finish("long-word")["output"] == "100000\n"


def test_an_argument_that_no_system_takes_fails_with_a_reason(shared: Pool) -> None:
    result = shared.finish(shared.submit("endless", ["true", "x" * 1_000_000], retry={"max": 0}))
    assert result["error"]["code"] == "INVALID_TASK"
    assert "too long" in result["error"]["message"].lower()


def test_output_that_is_no_text_and_has_no_end_of_line_is_kept(shared: Pool) -> None:
    shared.submit("raw", ["sh", "-c", "printf 'a\\377\\000b'"])
    assert shared.finish("raw")["status"] == "success"
    assert (shared.root / "logs" / shared.finish("raw")["log"]).read_bytes() == b"a\xff\x00b"
