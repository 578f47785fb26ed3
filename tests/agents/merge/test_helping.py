"""Conflicts go to agents, a bounded number of times, and then to people; silence leaves the work out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spoold.agents.merge.candidates import Candidate, Conflict, Refused
from spoold.agents.merge.conflicts import Agents, Nobody
from spoold.agents.merge.merge_request import MergeRequest
from spoold.protocol import codec
from spoold.protocol.errors import SpoolError, WaitTimeout
from spoold.protocol.result import Code, Error, Result, Status
from spoold.protocol.task import Task

THEIRS, OURS = "a" * 40, "b" * 40
WORK = Candidate("edit", THEIRS, "refs/spool/edit/1")
CONFLICT = Conflict(WORK, "c" * 40, OURS, THEIRS, ("src/a.py", "b.md"), "CONFLICT (content): in src/a.py")


@dataclass
class Said:
    answer: Any = None
    rejected: bool = False


class Spool:
    """A spool whose tasks end, and whose people answer, as a test says."""

    def __init__(self, ends: list[Any], answers: list[Any] | None = None) -> None:
        self.ends, self.answers = ends, answers or []
        self.tasks: list[dict[str, Any]] = []
        self.asked: list[str] = []

    def submit(self, task: Any = None, /, **fields: Any) -> str:
        codec.check(Task, dict(task), "the task")
        self.tasks.append(dict(task))
        return str(task["id"])

    def wait(self, ids: list[str], timeout: float | None = None) -> dict[str, Result]:
        output = self.ends.pop(0)
        status = Status.SUCCESS if output is not None else Status.FAILURE
        error = None if output is not None else Error(code=Code.EXIT_NONZERO, message="it gave up")
        return {ids[0]: Result(task_id=ids[0], attempt=1, worker_id="w", status=status, output=output, error=error)}

    def ask(self, text: str, choices: tuple[str, ...] = (), *, expires_s: float | None = None) -> str:
        self.asked.append(text)
        return "q1"

    def answer_to(self, question: str, timeout: float | None = None) -> Any:
        answer = self.answers.pop(0) if self.answers else WaitTimeout("nobody")
        if isinstance(answer, SpoolError):
            raise answer
        return answer


def helper(spool: Spool, newest: Candidate | Refused = WORK, **said: Any) -> Agents:
    wanted = MergeRequest.model_validate({"repo": "/r", "tasks": "edit", "agent": "coder", **said})
    return Agents(spool, "m1", wanted, lambda task: newest, lambda text: None)


def output(commit: str) -> dict[str, Any]:
    return {"workspace": {"repo": "/r", "ref": "refs/spool/x/1", "commit": commit}}


def test_an_agent_gets_both_sides_the_base_the_files_and_what_git_said() -> None:
    spool = Spool([output("d" * 40)])
    assert helper(spool).resolve(CONFLICT) == Candidate("edit", "d" * 40, "refs/spool/x/1", 1)
    (task,) = spool.tasks
    assert (task["id"], task["type"]) == ("m1-resolve-1-aaaaaaaa-bbbbbbbb", "coder")
    assert task["input"]["workspace"] == {"repo": "/r", "base": "refs/spool/edit/1"}
    paths = ["src/a.py", "b.md"]
    assert task["input"]["conflict"] == {"base": "c" * 40, "ours": OURS, "theirs": THEIRS, "paths": paths}
    for part in (THEIRS, OURS, "c" * 40, "- src/a.py\n- b.md", "CONFLICT (content): in src/a.py", "origin/main"):
        assert part in task["input"]["prompt"]
    assert spool.asked == []


def test_the_same_conflict_is_the_same_task_and_another_round_is_another() -> None:
    spool = Spool([None, None, None, None])
    helper(spool).resolve(CONFLICT)
    helper(spool).resolve(CONFLICT)
    ids = [task["id"] for task in spool.tasks]
    assert ids[:2] == ids[2:]
    assert len(set(ids)) == 2


def test_after_so_many_rounds_people_are_asked_and_silence_leaves_it_out() -> None:
    spool = Spool([None, {"text": "no reference"}])
    found = helper(spool, rounds=2).resolve(CONFLICT)
    why = f"edit ({THEIRS[:12]}) conflicts with {OURS[:12]} in src/a.py, b.md"
    assert found == Refused("edit", "conflict", why)
    assert spool.asked == [f"Merge into main: {why}. Try again, or leave edit out?"]


def test_told_to_try_again_it_does_so_often_as_before() -> None:
    spool = Spool([None, None, output("d" * 40)], [Said("again"), Said("leave")])
    found = helper(spool, rounds=1).resolve(CONFLICT)
    assert isinstance(found, Refused)
    assert [task["id"][:12] for task in spool.tasks] == ["m1-resolve-1", "m1-resolve-2"]
    assert len(spool.asked) == 2


def test_what_a_person_pushed_meanwhile_counts() -> None:
    newer = Candidate("edit", "e" * 40, "refs/spool/edit/1.2")
    spool = Spool([], [Said("again")])
    assert helper(spool, newer, agent="").resolve(CONFLICT) == newer
    spool = Spool([], [Said("again")])
    found = helper(spool, agent="").resolve(CONFLICT)
    assert isinstance(found, Refused)
    assert found.detail.endswith("nothing newer was pushed, and the merge names no agent")


def test_nobody_is_asked_where_that_is_not_wanted_or_not_possible() -> None:
    spool = Spool([], [SpoolError("only a running task can ask")])
    assert isinstance(helper(spool, rounds=0, ask_s=0).resolve(CONFLICT), Refused)
    assert spool.asked == []
    assert isinstance(helper(spool, rounds=0).resolve(CONFLICT), Refused)
    spool = Spool([], [Said(None, rejected=True)])
    assert isinstance(helper(spool, rounds=0).resolve(CONFLICT), Refused)
    assert isinstance(Nobody().resolve(CONFLICT), Refused)


def test_of_many_protected_paths_a_question_says_where_all_are_named() -> None:
    """An agent may pad the list with harmless ones: no path is left out of what a person can read."""
    spool = Spool([], [Said("leave")])
    helper(spool).allows(WORK, tuple(f"tests/{number:03}.py" for number in range(40)))
    assert "tests/029.py and 10 more (`spool logs m1` names all)" in spool.asked[0]


def test_what_is_protected_needs_a_yes_and_silence_is_none() -> None:
    spool = Spool([], [Said("land"), Said("leave"), Said("land", rejected=True)])
    asked = helper(spool)
    assert [asked.allows(WORK, ("tests/a.py",)) for _ in range(4)] == [True, False, False, False]
    said = f"edit ({THEIRS[:12]}) changes what is protected: tests/a.py. Shall it land, or leave it out?"
    assert spool.asked[0] == f"Merge into main: {said}"
    assert not helper(Spool([], [Said("land")]), ask_s=0).allows(WORK, ("tests/a.py",))
    assert not Nobody().allows(WORK, ("tests/a.py",))
