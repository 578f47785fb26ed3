"""One job, several calls of one function: in order, in one process, up to the first that fails."""

from pathlib import Path
from typing import Any

import pytest

from spoold.protocol import codec
from spoold.runner.job import Call, Ending
from spoold.runner.pyhost import VALUE_MAX
from tests.runner.processes import Bench

SOURCE = """
import os, sys
from pathlib import Path
from subprocess import getoutput

def note(path, number):
    with open(path, "a") as file: file.write(f"{number}\\n")
    if number < 0: raise ValueError(f"no {number}")
    return number
def pid(*args): return os.getpid()
def leave(code): sys.exit(code)
def quotes(count): return "x" * count
def deep(levels):
    value = 1
    for _ in range(levels): value = [value]
    return value
def split(path):
    if os.fork() == 0: return "child"
    os.wait()
    return note(path, 1)
"""


@pytest.fixture(autouse=True)
def functions(bench: Bench) -> None:
    (bench.where / "functions.py").write_text(SOURCE)


def ended(bench: Bench, name: str, *calls: list[Any], allow: tuple[str, ...] | None = None, **more: Any) -> Ending:
    target = Call(f"functions:{name}", path=(str(bench.where),), allow=allow, table="[python]", calls=calls)
    return bench.ended(bench.job(target, **more))


def noted(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_the_value_is_the_list_of_what_the_calls_returned(bench: Bench) -> None:
    path = bench.where / "ran"
    ending = ended(bench, "note", *([str(path), number] for number in range(5)))
    assert (ending.kind, ending.exit_code, ending.value) == ("exited", 0, [0, 1, 2, 3, 4])
    assert noted(path) == [0, 1, 2, 3, 4]
    assert len(set(ended(bench, "pid", [], [1], [1, 2]).value)) == 1  # type: ignore[call-overload]


def test_the_first_call_that_fails_ends_it_and_what_was_returned_before_is_kept(bench: Bench) -> None:
    path = bench.where / "ran"
    ending = ended(bench, "note", *([str(path), number] for number in (1, 2, -3, 4)))
    assert (ending.kind, ending.exit_code, ending.value) == ("exited", 1, [1, 2])
    assert ending.message == "call 3 of 4: ValueError: no -3"
    assert "in note" in ending.tail
    assert "pyhost" not in ending.tail
    assert noted(path) == [1, 2, -3]


@pytest.mark.parametrize(("codes", "exit_code", "value"), [((0, None), 0, [None, None]), ((0, 3, 0), 3, [None])])
def test_sys_exit_ends_it_unless_all_is_well(
    bench: Bench, codes: tuple[int | None, ...], exit_code: int, value: list[None]
) -> None:
    ending = ended(bench, "leave", *([code] for code in codes))
    assert (ending.exit_code, ending.value) == (exit_code, value)


def test_more_than_a_task_may_return_names_the_fix(bench: Bench) -> None:
    ending = ended(bench, "quotes", *([VALUE_MAX // 4] for _ in range(5)))
    assert ending.exit_code == 1
    assert ending.message.startswith("call 4 of 5: the calls so far returned ")
    assert f"at most {VALUE_MAX:,} are kept of a task: give it fewer calls (a smaller chunksize)" in ending.message
    assert [len(text) for text in ending.value] == [VALUE_MAX // 4] * 3  # type: ignore[attr-defined]


def test_a_result_says_all_that_they_may_return(bench: Bench) -> None:
    ending = ended(bench, "deep", [198], [199])
    assert "call 2 of 2: TypeError: the call returned a list" in ending.message
    assert "deeper than 199 levels" in ending.message
    assert codec.load(codec.dump({"output": ending.value}), "result") == {"output": ending.value}


def test_a_call_that_forks_leaves_the_other_calls_to_the_original(bench: Bench) -> None:
    path = bench.where / "ran"
    assert ended(bench, "split", [str(path)], [str(path)]).value == [1, 1]
    assert noted(path) == [1, 1]


def test_a_timeout_is_for_all_of_them_together(bench: Bench) -> None:
    (bench.where / "naps.py").write_text("import time\ndef nap(seconds): time.sleep(seconds)\n")
    target = Call("naps:nap", path=(str(bench.where),), calls=([0.2],) * 50)
    assert bench.ended(bench.job(target, timeout_s=0.5, grace_s=0.1)).kind == "timeout"


def test_what_is_called_again_and_again_is_judged_as_for_a_single_call(bench: Bench) -> None:
    """Many calls are no way past the worker's list: it is the called function's own module that counts."""
    path = bench.where / "ran"
    ending = ended(bench, "getoutput", [f"touch {path}"], [f"touch {path}"], allow=("functions",))
    assert (ending.kind, ending.exit_code) == ("refused", None)
    assert "functions:getoutput runs subprocess, which is no module that this worker allows" in ending.message
    assert not path.exists()
    assert ended(bench, "note", [str(path), 7], allow=("functions",)).value == [7]
