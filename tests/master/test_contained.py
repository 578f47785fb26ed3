"""A fault of spoold belongs to the input that caused it: nodes live, and all other tasks end as ever.

Two generators find what is not contained. One plays a story, notes each file that a node reads, and plays it again
for each, with nodes that cannot handle that file. The other does the same with each function of `rules` and of the
models that is called with something of one task. A new stage, part or reader is met by both without being named.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from types import CodeType, FrameType
from typing import Any

import pytest

from spoold.master import master
from spoold.master.stages import STAGES, Stage
from spoold.protocol.names import key, parse_ended, parse_returned, parse_task
from spoold.protocol.settings_change import ChangeName
from tests.support.cluster import Cluster, Node
from tests.support.injected import KINDS, Injected, Recursion

SETTINGS = """
[limits.one]
max = 1
[budgets.purse]
per = "total"
cost_usd = 100
[retry]
backoff_s = 0.0
"""
CHANGE = f"settings/{ChangeName(1, 'x').encode()}"
GOOD = ("good-1", "good-2", "good-3")


def identity(path: str) -> str:
    """What a file is, whatever its name is by then: a task is one wherever it is, a node whatever its beat."""
    room, _, rest = path.partition("/")
    name = rest.rpartition("/")[2]
    returned, ended = parse_returned(name), parse_ended(name)
    task = parse_task(name) or (returned[0] if returned else None)
    if room in ("waiting", "ready", "claimed", "admitting") and task is not None:
        return f"task {key(task.id)}"
    if room == "returned" and returned is not None:
        return f"task {key(returned[0].id)}"
    if room in ("completed", "failed") and ended is not None:
        return f"task {key(ended.id)}"
    if room in ("heartbeats", "status", "master"):
        return f"{room} {name.split('.')[0].rpartition('-')[0]}"
    return path


@dataclass
class Story:
    """One story of one master and one worker. read: the identities of what they read; poison: raises for some."""

    poison: Callable[[str], None] = lambda _: None
    each_step: Callable[[], Any] = lambda: None
    read: dict[str, None] = field(default_factory=dict)
    cluster: Cluster = field(init=False)

    def play(self) -> None:
        """Play it to the end."""
        self.cluster = made = Cluster(SETTINGS)
        self._watch(made.master("m1"))
        self._watch(made.worker("w1", slots=8))
        self._drop("bad", type="bad", meta={"who": "bad"})
        self._drop("good-1")
        self._drop("good-2", after=["good-1"], uses={"one": 1})
        lines = [{"id": "good-3", "command": ["x"]}, {"id": "good-4", "command": ["x"], "after_any": ["bad"]}]
        made.submit("more.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        self._drop("bad-2", after_failed=["bad"], locks={"write": ["bad"]})
        made.fs.write(CHANGE, b'{"settings": {"ready": {"window": 50}}}', durable=True)
        self._go_on(8)
        made.fs.write("control/hold.good-1.x.json", b'{"reason": "bad"}', durable=False)
        made.fs.write("control/pause.bad.x.json", b'{"reason": "bad"}', durable=False)
        made.fs.write("control/cancel.bad-2.x.json", b'{"reason": "bad"}', durable=False)
        self._go_on(3)
        for request in ("hold.good-1.x", "pause.bad.x"):
            made.fs.files()
            if f"control/{request}.json" in made.fs.files("control"):
                made.fs.unlink(f"control/{request}.json")
        self._end("bad", exit_code=1)
        self._go_on(40)

    def _drop(self, name: str, **more: Any) -> None:
        self.cluster.submit(f"{name}.json", json.dumps({"id": name, "command": ["x"], "max_retries": 1, **more}))

    def _end(self, task: str, **ending: Any) -> None:
        for node in self.cluster.nodes.values():
            for job in [job for job in (node.runner.live if node.runner else ()) if job.startswith(f"{task}.")]:
                assert node.runner is not None
                assert node.scratch is not None
                node.scratch.write(job, "progress.json", b'{"done": "bad"}')
                node.scratch.write(job, "result.json", b'{"cost_usd": 1, "said": "bad"}')
                node.scratch.write(job, "output", b"bad")
                node.runner.finish(job, **ending)

    def _go_on(self, rounds: int) -> None:
        for _ in range(rounds):
            for task in (*GOOD, "good-4"):
                self._end(task)
            self._end("bad", exit_code=1)
            self.each_step()
            self.cluster.advance(1.0)

    def _watch(self, node: Node) -> None:
        real = node.fs.read

        def read(path: str, limit: int | None = None, *, offset: int = 0) -> bytes:
            data = real(path, limit, offset=offset)
            self.read[identity(path)] = None
            self.poison(identity(path))
            return data

        node.fs.read = read  # type: ignore[method-assign]

    def check(self, innocent: tuple[str, ...], what: str) -> None:
        """Nodes live, and these tasks have completed. Errors: AssertionError."""
        assert set(self.cluster.nodes) == {"m1", "w1"}, f"{what}: {self.cluster.gone}"
        for task in innocent:
            assert self.cluster.state(task) == "completed", f"{what}: {task} is {self.cluster.state(task)}"


def _never_ours(what: str) -> bool:
    """A node's own configuration is no input of others."""
    return what in ("spool.json", "spool.toml")


def test_whatever_file_cannot_be_handled_nodes_live_and_all_other_tasks_end() -> None:
    """The law for the kind of N2, N7 and N8, where one input ended each node that met it."""
    first = Story()
    first.play()
    first.check((*GOOD, "good-4"), "nothing")
    targets = [what for what in first.read if not _never_ours(what)]
    assert {what.split("/")[0].split(" ")[0] for what in targets} >= {
        "pending", "task", "heartbeats", "control", "results", "settings",
    }  # fmt: skip
    for number, target in enumerate(targets):
        error = KINDS[number % len(KINDS)]

        def poison(what: str, target: str = target, error: type[Injected] = error) -> None:
            if what == target:
                raise error("injected")

        story = Story(poison)
        story.play()
        faults = [fault for node in story.cluster.nodes.values() for fault in node.actor.store.faults.aside]
        story.check(_innocent(target), f"{error.__name__} of {target}")
        assert faults, f"{error.__name__} of {target} is told of nowhere"


def _innocent(target: str) -> tuple[str, ...]:
    """The tasks that a fault of this input may not touch, with those that wait for them."""
    if target in ("task good-1", "pending/good-1.json"):
        return ("good-3",)
    if target.rpartition("/")[2].startswith("more.") or ".more-" in target:
        return ("good-1", "good-2")
    if target == "pending/bad.json":
        return GOOD  # the fourth waits for it
    return tuple(task for task in (*GOOD, "good-4") if task not in target)


# Where content is judged: rules, and what makes values of files. Names are what an input is called, and no input.
_JUDGING = ("spoold/rules/", "spoold/protocol/codec", "spoold/protocol/task", "spoold/protocol/result")
_GRAMMAR = ("/entry/references.py:", "/scheduling/waiting_task.py:Entry.", "/protocol/result.py:EndedAttempt.")


def _concerns(frame: FrameType, task: str) -> bool:
    """Whether a function was called with this task, or with something that names it."""
    said = (task, key(task))
    for value in [frame.f_locals.get(name) for name in frame.f_code.co_varnames[: frame.f_code.co_argcount]]:
        if value in said if isinstance(value, str) else getattr(value, "id", None) in said:
            return True
        if isinstance(value, bytes) and f'"id": "{task}"'.encode() in value.replace(b'":"', b'": "'):
            return True
        name = getattr(value, "name", None)
        if getattr(name, "id", None) in said or getattr(value, "task_key", None) in said:
            return True
    return False


@dataclass
class Profile:
    """Sees each call of a judging function that concerns one task. target: the function that fails; None for none."""

    task: str
    target: str | None = None
    error: type[Injected] = Recursion
    seen: dict[str, None] = field(default_factory=dict)
    _meant: dict[CodeType, str] = field(default_factory=dict)

    def arm(self) -> None:
        """Look at every call from here on. Python disarms it with each exception that it raises."""
        sys.setprofile(self._look)

    def _look(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        name = self._meant.get(frame.f_code)
        if name is None:
            path = frame.f_code.co_filename.partition("/spoold/")[2]
            called = f"/{path}:{frame.f_code.co_qualname}"
            judges = f"spoold{called}".startswith(_JUDGING) and not any(part in called for part in _GRAMMAR)
            name = called[1:] if judges else ""
            self._meant[frame.f_code] = name
        if not name or (self.target not in (None, name)) or not _concerns(frame, self.task):
            return
        self.seen[name] = None
        if name == self.target:
            raise self.error("injected")


@contextmanager
def profiled(profile: Profile) -> Iterator[None]:
    before = sys.getprofile()
    profile.arm()
    try:
        yield
    finally:
        sys.setprofile(before)


def test_whatever_function_cannot_handle_a_task_nodes_live_and_all_other_tasks_end() -> None:
    """Each step calls it once more with the task that it cannot handle."""
    look = Profile("bad")
    with profiled(look):
        Story(each_step=look.arm).play()
    assert len(look.seen) > 20
    for number, target in enumerate(look.seen):
        profile = Profile("bad", target, KINDS[number % len(KINDS)])
        story = Story(each_step=profile.arm)
        with profiled(profile):
            story.play()
        story.check(GOOD, f"{profile.error.__name__} in {target}")


def test_a_stage_that_fails_and_names_no_input_rests_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for failing in STAGES:
        walked: list[str] = []
        _play_with(monkeypatch, failing, walked)


def _play_with(monkeypatch: pytest.MonkeyPatch, failing: Stage, walked: list[str]) -> None:
    def run(stage: Stage, desk: Any, duties: Any) -> None:
        walked.append(stage.name)
        if stage.name == failing.name:
            raise Recursion("injected")
        stage.run(desk, duties)

    made = Cluster()
    made.master("m1")
    made.settle()
    broken = [replace(stage, run=partial(run, stage)) for stage in STAGES]
    monkeypatch.setattr(master, "STAGES", tuple(broken))
    names = [stage.name for stage in STAGES]
    made.pass_time(1.0)
    if failing.vital:
        with pytest.raises(Recursion):
            made.nodes["m1"].actor.step()
        assert walked == names[: names.index(failing.name) + 1]
        assert made.nodes["m1"].master.desk is None  # nothing that it remembers is used again
    else:
        made.nodes["m1"].actor.step()
        assert walked == names
        walked.clear()
        made.pass_time(1.0)
        made.nodes["m1"].actor.step()
        assert walked == [name for name in names if name != failing.name]
        notes = made.nodes["m1"].actor.store.faults.notes
        assert [note.partition(" made")[0] for note in notes] == [f"stage {failing.name}"]
    monkeypatch.setattr(master, "STAGES", STAGES)
    made.pass_time(1.0)
    made.nodes["m1"].actor.step()
    made.submit("after.json", '{"id": "after", "command": ["x"]}')
    made.advance(8.0)
    assert made.state("after") == "ready"
