"""The recipes of docs/develop/recipes.md work as they are written.

Method: what a recipe says is done, with nothing but the names that it uses, and a real leader and a real worker then
do what was promised. No file of the package is touched.
"""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from threading import Event, Thread
from types import ModuleType

import pytest
import rich
from typer.testing import CliRunner

from spoold.client.read.explanation import explain
from spoold.client.read.long_listing import describe
from spoold.client.spool_client import SpoolClient
from spoold.faces.cli.app import build
from spoold.protocol import lifecycle
from spoold.protocol.errors import LawBroken
from spoold.rules.answers.task_facts import Explanation
from spoold.rules.gates import registry
from spoold.rules.gates.facts import Conditions, Facts, Held, Known, TypeFacts
from spoold.rules.gates.gate import PASS, TaskGate, Tasks, TypeGate, Verdict, Wait, Wake
from spoold.runner.job import Command, Ending, Job
from spoold.store.store import open_store
from spoold.store.task_location import locate
from spoold.system.host import FakeHost
from tests.cli.command import leader, make
from tests.cli.commands import start
from tests.house.sources import CHECKOUT
from tests.protocol import test_layout_document as document
from tests.support.cluster import Cluster

PAGE = "docs/develop/recipes.md"
TEXT = (CHECKOUT / PAGE).read_text(encoding="utf-8")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()
HOUR_S = 3600.0


def recipe(what: str) -> str:
    """The paragraphs of a recipe, up to the next one."""
    _, found, rest = TEXT.partition(f"**{what}.** ")
    assert found, f"{PAGE} has no recipe for {what}"
    return re.split(r"\n\*\*", rest)[0]


def programs(text: str) -> list[str]:
    """The Python programs of a recipe, without the indent of the list that they are in."""
    return [textwrap.dedent(f"   {code}") for code in re.findall(r"```python\n   (.*?)\n   ```", text, re.DOTALL)]


def module_of(source: str) -> ModuleType:
    """The module that a program of a recipe is."""
    module = ModuleType("made_by_the_recipe")
    exec(compile(source, PAGE, "exec"), module.__dict__)
    return module


def gate_of(source: str) -> TaskGate | TypeGate:
    """The one value that the file of a gate ends with."""
    module = module_of(source)
    made = [value for name, value in vars(module).items() if isinstance(value, TaskGate | TypeGate)]
    assert made == [module.GATE]
    return made[0]


@contextmanager
def clocks_at(wall: float) -> Iterator[Cluster]:
    """A cluster with a leader and a worker, and the time of day there."""
    made = Cluster()
    made.clock.set_wall(wall)
    made.master("m1")
    made.worker("w1", 4)
    yield made


def ask(made: Cluster, task: str) -> Explanation:
    """What `spool explain` says."""
    store = open_store(made.fs, made.clock, "asker", "/spool")
    return explain(store, FakeHost("laptop"), made.clock, task, sleep=lambda _: None)


def listed(made: Cluster, task: str) -> str:
    """The reason in `spool ls --long`."""
    store = open_store(made.fs, made.clock, "asker", "/spool")
    [row] = describe(store, [locate(store, task)], "laptop")
    return row.reason


def test_the_gate_of_the_recipe_holds_its_tasks_says_why_and_lets_them_go() -> None:
    [source] = programs(recipe("a gate"))
    gate = gate_of(source)
    with clocks_at(NOON) as made, registry.registered(gate):
        made.submit("b.json", '{"id": "b", "type": "backup", "command": ["work"]}')
        made.submit("other.json", '{"id": "other", "command": ["work"]}')
        made.settle()
        assert (made.state("b"), made.state("other")) == ("waiting", "claimed")
        answer = ask(made, "b")
        assert answer.verdict.startswith("backups start at night: 10 h more, until 2026-03-01T22:00:00Z")
        assert [(reason.gate, reason.change) for reason in answer.reasons] == [
            ("night", "time; or give b another type")
        ]
        assert listed(made, "b") == "backups start at night"
        made.pass_time(10 * HOUR_S)
        made.settle()
        assert made.state("b") == "claimed"
        made.finish("b")
        made.settle()
        assert made.state("b") == "completed"


def test_a_gate_of_one_task_is_added_in_the_same_way() -> None:
    """It opens with a request; the leader asks it again in every step."""

    def gather(known: Known) -> bool:
        return any(request.target == "moon" for request in known.requests)

    def judge(conditions: Conditions, facts: Facts) -> Verdict:
        new = facts.key.startswith("wolf") and facts.more.get("moon")
        return Wait("moon", "wolves wait for the moon") if new else PASS

    def change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
        return "`spool resume moon`"

    gate = TaskGate(
        "moon", "no wolf, or the moon shines", frozenset({Wake.STEP}), change, judge, gather=gather, tasks=Tasks.ALL
    )
    with clocks_at(NOON) as made, registry.registered(gate):
        made.fs.write("control/pause.moon.1.json", b"{}", durable=True)
        for task in ("wolf", "sheep"):
            made.submit(f"{task}.json", f'{{"id": "{task}", "command": ["work"]}}')
        made.settle()
        assert (made.state("wolf"), made.state("sheep")) == ("waiting", "claimed")
        answer = ask(made, "wolf")
        assert answer.verdict == listed(made, "wolf") == "wolves wait for the moon"
        assert [(reason.gate, reason.change) for reason in answer.reasons] == [("moon", "`spool resume moon`")]
        made.stop("m1")
        made.master("m2")
        made.settle()
        assert made.state("wolf") == "waiting", "a new leader gathers before it takes over"
        made.fs.unlink("control/pause.moon.1.json")
        made.settle()
        assert made.state("wolf") == "claimed"


def test_the_recipe_names_what_a_gate_has() -> None:
    text = recipe("a gate")
    known = {field.name for kind in (TaskGate, TypeGate) for field in fields(kind)}
    said = {word for word in re.findall(r"`(\w+)`", text) if word.islower()}
    assert said <= known
    assert {"judge", "wakes", "change", "detail", "gather", "asks", "group", "tasks"} <= said


def test_the_document_must_tell_of_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    [source] = programs(recipe("a gate"))
    gate = gate_of(source)
    with registry.registered(gate):
        with pytest.raises(AssertionError, match="does not say: the task is no backup"):
            document.test_every_gate_is_told()
        last = "| `limit` |"
        row = f"| `{gate.name}` | {gate.document} |\n"
        monkeypatch.setattr(document, "TEXT", document.TEXT.replace(last, row + last, 1))
        document.test_every_gate_is_told()


def test_the_move_of_the_recipe_is_refused_until_the_table_has_it_and_then_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [source] = programs(recipe("a move"))
    move = module_of(source).MOVE
    made = Cluster()
    store = open_store(made.fs, made.clock, "m1", "/spool")
    made.fs.make_dirs("ready/lane")
    made.fs.write("ready/lane/t", b"{}", durable=True)
    with pytest.raises(LawBroken, match="no line of the lifecycle table"):
        store.move(move.mover, move.event, "ready/lane/t", "returned/t")
    assert made.fs.list("ready/lane") == ["t"]
    monkeypatch.setattr(lifecycle, "_LINES", lifecycle._LINES | {(move.mover, move.event, move.source, move.target)})
    assert store.move(move.mover, move.event, "ready/lane/t", "returned/t")
    assert made.fs.list("returned") == ["t"]
    monkeypatch.setattr(document, "MOVES", (*lifecycle.MOVES, move))
    with pytest.raises(AssertionError):
        document.test_the_table_of_moves_is_the_table_of_moves()


def test_the_executor_of_the_recipe_runs_a_command_in_its_own_way_and_ends_it(tmp_path: Path) -> None:
    [source] = programs(recipe("an executor"))
    executor = module_of(source).Polite(1, where="")
    try:
        for key, argv in (("asks", ("nice",)), ("sleeps", ("sleep", "600"))):
            output = tmp_path / key
            run = Command(argv)
            executor.start(Job(key, run, {"PATH": os.environ["PATH"]}, str(tmp_path), str(output), timeout_s=0.5))
            ended: list[Ending] = []
            while not ended:
                executor.wait(1.0)
                ended = executor.poll()
            assert ended[0].kind == ("exited" if key == "asks" else "timeout")
        assert (tmp_path / "asks").read_text() == "19\n"
    finally:
        executor.close(0.0)


def test_the_verb_of_the_recipe_answers(tmp_path: Path) -> None:
    [source] = programs(recipe("a verb"))
    directory = make(tmp_path / "s")
    master = leader(directory)
    app = build(["status"])
    module_of(source).register(app)
    for words, said in ((["beat"], "m-0001\n"), (["beat", "--json"], '{"leader": "m-0001"}')):
        done = CliRunner().invoke(app, ["--spool", str(directory), *words])
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout) == json.loads(said) if "--json" in words else done.stdout == said
    master.close()


def test_a_gate_and_a_face_are_added_without_touching_another_file(tmp_path: Path) -> None:
    """The face of the recipe shows, live, why a task waits for a gate that this test brings, until the gate opens."""
    [source] = programs(recipe("a face"))
    face = module_of(source)
    code = [line for line in source.splitlines() if line.strip() and not line.strip().startswith('"""')]
    assert len(code) <= 30
    assert set(re.findall(r"^from (spoold\S*)", source, re.MULTILINE)) == {"spoold"}
    shown, shines = StringIO(), Event()

    def judge(kind: str, facts: TypeFacts) -> Verdict:
        return PASS if kind != "wolf" or shines.is_set() else Wait("moon", "wolves wait for the moon")

    gate = TypeGate("moon", "no wolf, or the moon shines", frozenset({Wake.STEP}), lambda *_: "wait", judge)
    directory = make(tmp_path / "s")
    with registry.registered(gate), SpoolClient(directory) as spool, screen(shown):
        for kind in ("sheep", "wolf"):
            spool.submit({"id": kind, "type": kind, "command": ["true"]})
        over = Event()
        lead = Thread(target=lead_until, args=(directory, over, shown, shines))
        with start("worker", "--allow-command", "--slots", "1", root=directory) as worker:
            lead.start()
            try:
                face.main(str(directory))
            finally:
                over.set()
                lead.join()
                worker.terminate()
    assert "wolves wait for the moon" in shown.getvalue()
    assert "2 completed" in shown.getvalue()


def lead_until(directory: Path, over: Event, shown: StringIO, shines: Event) -> None:
    """Lead the spool from this process, which knows the gate; it opens once the face has said why it is shut."""
    master = leader(directory)
    while not over.wait(0.05):
        master.step()
        if "wolves wait" in shown.getvalue():
            shines.set()
    master.close()


@contextmanager
def screen(shown: StringIO) -> Iterator[None]:
    """What rich shows on a terminal goes there."""
    rich.reconfigure(file=shown, force_terminal=True, width=160)
    try:
        yield
    finally:
        rich.reconfigure()


@pytest.mark.parametrize("what", ["a gate", "a move", "an executor", "a face", "a verb"])
def test_the_rooms_that_a_recipe_names_are_there(what: str) -> None:
    paths = re.findall(r"`((?:spoold|tests)/[\w/.]+)`", recipe(what))
    assert paths
    for path in paths:
        assert (CHECKOUT / path).exists(), path
