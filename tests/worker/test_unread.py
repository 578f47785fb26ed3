"""What a task leaves in the place of its result or of its progress report counts, or is named.

Method: a generator puts any kind of entry with any content into both places, in a real folder of the worker's, and
lets the attempt end. Nothing outside that folder may be in its record.
"""

from __future__ import annotations

import json
import os
import random
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.protocol.lanes import Lane
from spoold.protocol.names import TaskName
from spoold.protocol.task import Task
from spoold.rules.attempts.reported_figures import COUNTS, figures_in
from spoold.runner.job import Ending
from spoold.store import heartbeats
from spoold.system.host import SystemHost
from spoold.system.scratch import LocalScratch
from spoold.worker.attempts.attempt import Attempt
from spoold.worker.attempts.attempt_output import Output, output_of
from spoold.worker.attempts.reporting import PROGRESS_DEPTH, PROGRESS_MAX, OwnBudget, look
from tests.support.cluster import Cluster
from tests.support.mutations import mutated

SECRET = "somebody else's: 4711"
SOUND: tuple[dict[str, Any], ...] = (
    {"cost_usd": 0.5, "tokens_used": 7},
    {"cost_usd": 3},
    {"tokens_used": 12, "message": "half"},
    {},
)
TEXTS = (b'{"cost_usd": 1e999}', b'{"cost_usd": 5', b"[5]", b'{"text": "\\ud800"}', b"half way", b"null", b" \n", b"")
# What is no regular file, as the sentence about it says.
KINDS = {
    "pipe": "is a pipe, socket or device",
    "socket": "is a pipe, socket or device",
    "folder": "is a directory",
    "full folder": "is a directory",
    "link": "is a symbolic link",
    "link to nothing": "is a symbolic link",
    "link to itself": "is a symbolic link",
    "link to a folder": "is a symbolic link",
    "link to the other": "is a symbolic link",
}


class Place:
    """One attempt's folder, and what the task leaves there."""

    def __init__(self, scratch: LocalScratch, outside: Path, number: int = 1, **task: Any) -> None:
        self.scratch, self.outside = scratch, outside
        self.folder = Path(scratch.open(f"a.{number}"))
        given = Task.model_validate({"command": ["work"], **task})
        self.attempt = Attempt(TaskName(5000, "hw1y7k2m82-1", "a", number), "w1", given, Lane("command"), 0.0)
        self.budget, self.now = OwnBudget(self.scratch), 1000.0

    def put(self, name: str, kind: str, data: bytes = b"") -> None:
        """Put an entry of this kind in the place of a file."""
        path = self.folder / name
        with suppress(OSError):
            path.unlink()
        if path.is_dir():
            path.rename(self.folder / f"{name}.{self.now}")
        if kind == "file":
            path.write_bytes(data)
        elif kind == "pipe":
            os.mkfifo(path)
        elif kind == "socket":
            with socket.socket(socket.AF_UNIX) as there:
                at = os.open(self.folder, os.O_PATH)
                there.bind(f"/proc/self/fd/{at}/{name}")  # the path itself may be too long
                os.close(at)
        elif kind.endswith("folder") and not kind.startswith("link"):
            (path / "in").mkdir(parents=True) if kind.startswith("full") else path.mkdir()
        elif kind != "nothing":
            other = "progress.json" if name == "result.json" else "result.json"
            targets: dict[str, str | Path] = {
                "link": self.outside,
                "link to nothing": "/none/such",
                "link to itself": name,
            }
            path.symlink_to({**targets, "link to a folder": "/", "link to the other": other}[kind])

    def looks(self) -> Any:
        """The worker looks at the budget, as often as it may."""
        self.now += 1
        return self.budget.why_stop(self.attempt, self.now)

    def end(self) -> Output:
        self.attempt.ending = Ending(self.attempt.key, "exited", 0, None, "", 0.0, 1.0, 1.0, stdout="printed")
        return output_of(self.attempt, self.scratch)


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of somebody else; the worker's folders are beside it."""
    (tmp_path / "here").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "here"))
    (tmp_path / "theirs").write_text(json.dumps({"cost_usd": 4711, "text": SECRET}))
    return tmp_path / "theirs"


@pytest.fixture
def scratch(outside: Path) -> Iterator[LocalScratch]:
    made = LocalScratch("w1", str(outside), SystemHost())
    yield made
    made.remove()


def entry(chance: random.Random, seed: int) -> tuple[str, bytes]:
    """The kind and the content of what a task leaves."""
    kind = chance.choice(("file", "file", "file", "nothing", *KINDS))
    sound = json.dumps(chance.choice(SOUND)).encode()
    large = b'{"text": "' + b"x" * PROGRESS_MAX + b'", "cost_usd": 0.1}'
    return kind, chance.choice((sound, sound, mutated(seed, sound), chance.choice(TEXTS), large))


def read(data: bytes, depth: int) -> Any:
    """The value, or else the error."""
    try:
        return codec.load(data.strip(), "a file", depth=depth)
    except BadFile as error:
        return error


@pytest.mark.parametrize("part", range(4))
def test_all_that_is_left_in_either_place_counts_or_is_named(part: int, scratch: LocalScratch, outside: Path) -> None:
    """A link, a pipe or a directory in place of a result was dropped in silence, and so was a report of no JSON."""
    for seed in range(part, 400, 4):
        chance = random.Random(seed)
        budget = chance.choice(({}, {"cost_usd": 2}, {"tokens": 10}, {"task_s": 5}))
        budgeted = bool(budget.keys() & {"cost_usd", "tokens"})
        place, known = Place(scratch, outside, seed + 1, budget=budget), dict[str, Any]()
        try:
            for turn in range(chance.randrange(4)):
                kind, data = entry(chance, 10 * seed + turn)
                place.put("progress.json", kind, data)
                stop = place.looks() if chance.random() < 0.8 else None
                named = look(place.attempt, place.scratch).problem
                value = read(data[:PROGRESS_MAX], PROGRESS_DEPTH) if kind == "file" else None
                if isinstance(value, dict):
                    said = figures_in(value)
                    known = value | {of: known[of] for of in COUNTS if of in known and getattr(said, of) is None}
                    assert named is None, seed
                elif kind in KINDS:
                    assert named is not None, (seed, kind)
                    assert named.problem.startswith(KINDS[kind]), (seed, kind)
                elif kind == "file" and data.strip() and (budgeted or data.strip().startswith(b"{")):
                    assert named is not None, (seed, data)
                else:
                    assert named is None, (seed, kind, data)
                last = figures_in(known)
                over = any((getattr(last, count) or 0) > budget.get(of, 1e12) for count, of in COUNTED)
                assert stop is None or over, (seed, data)
                assert place.looks() is None or over, "it is stopped by what it said last, and by nothing else"
            kind, data = entry(chance, 10 * seed + 9)
            place.put("result.json", kind, data)
            _judge_end(place, (kind, data), known)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


COUNTED = (("cost_usd", "cost_usd"), ("tokens_used", "tokens"))


def _judge_end(place: Place, left: tuple[str, bytes], known: dict[str, Any]) -> None:
    kind, data = left
    named, output = look(place.attempt, place.scratch).problem, place.end()
    problem = output.problem or ""
    assert SECRET not in repr(output)
    assert named is None or named.problem in problem
    value = read(data, codec.DEPTH_MAX) if kind == "file" and data.strip() else None
    if kind in KINDS:
        assert problem.startswith(f"SPOOL_RESULT_FILE: {KINDS[kind]}, and only a regular file is read.")
    elif isinstance(value, BadFile):
        assert "SPOOL_RESULT_FILE: " in problem
        assert output.format == "text"
    elif kind == "file" and data.strip():
        assert codec.same_content(output.value, value)
    if kind != "file" or not data.strip():
        assert output.value == "printed"
    own = figures_in(value)
    told = ("tokens and cost are not known", "of tokens and cost still counts")
    lacks = any(getattr(own, name) is None for name in COUNTS)
    assert any(words in problem for words in told) == (named is not None and lacks)
    for name in COUNTS:
        mine = getattr(own, name)
        assert getattr(output.figures, name) == (getattr(figures_in(known), name) if mine is None else mine)


@pytest.mark.skipif(os.getuid() == 0, reason="root may open any file")
def test_a_file_that_its_worker_may_not_open_is_named(scratch: LocalScratch, outside: Path) -> None:
    place = Place(scratch, outside)
    place.put("result.json", "file", b"1")
    (place.folder / "result.json").chmod(0)
    problem = place.end().problem
    assert problem is not None
    assert problem.startswith(
        "SPOOL_RESULT_FILE: cannot be opened (Permission denied), and only a regular file is read."
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b'{"cost_usd": 1e999}', "is not JSON"),
        (b'{"cost_usd": 5', "is not JSON"),
        (b"[5]", "is no JSON object"),
        (b'{"cost_usd": 5, "text": "\\ud800"}', "is not JSON"),
        (b'{"text": "' + b"x" * 5000 + b'", "cost_usd": 5}', "has more than 4,096 bytes"),
        (b"half way", "is not JSON"),
    ],
)
def test_a_report_that_does_not_count_is_named_while_it_runs_and_in_the_record(text: bytes, why: str) -> None:
    """The budget of a task was not held against it, and nothing said so."""
    cluster = Cluster()
    cluster.master("m1")
    worker = cluster.worker("w1")
    cluster.submit("a.json", json.dumps({"id": "a", "command": ["work"], "budget": {"cost_usd": 2}}))
    cluster.settle()
    assert worker.scratch is not None
    worker.scratch.write("a.1", "progress.json", text)
    cluster.advance(6)
    [run] = [run for beat in heartbeats.read_all(cluster.fs).values() for run in beat.running]
    assert run.progress_problem.startswith(f"SPOOL_PROGRESS_FILE: {why}")
    assert "Its tokens and cost are not known." in run.progress_problem
    worker.scratch.write("a.1", "progress.json", b'{"cost_usd": 1.5}')
    cluster.advance(6)
    [run] = [run for beat in heartbeats.read_all(cluster.fs).values() for run in beat.running]
    assert run.progress_problem == ""
    worker.scratch.write("a.1", "progress.json", text)
    cluster.advance(6)
    cluster.finish("a")
    cluster.settle()
    assert cluster.state("a") == "completed"
    record = json.loads(cluster.fs.read("results/a.1.w1.json"))
    assert record["cost_usd"] == 1.5
    assert record["output_problem"].startswith(f"SPOOL_PROGRESS_FILE: {why}")
    assert "What it said last of tokens and cost still counts." in record["output_problem"]


def test_what_was_read_last_stops_a_task_that_then_hides_it() -> None:
    cluster = Cluster()
    cluster.master("m1")
    worker = cluster.worker("w1")
    cluster.submit("a.json", json.dumps({"id": "a", "command": ["work"], "budget": {"cost_usd": 2}}))
    cluster.settle()
    [attempt] = worker.worker.running
    assert worker.scratch is not None
    worker.scratch.write("a.1", "progress.json", b'{"cost_usd": 2.5}')
    look(attempt, worker.scratch)  # as a beat does
    worker.scratch.write("a.1", "progress.json", b"{")
    cluster.advance(3)
    record = json.loads(cluster.fs.read("results/a.1.w1.json"))
    assert (record["error"]["code"], record["cost_usd"]) == ("BUDGET_EXCEEDED", 2.5)


@pytest.mark.parametrize("later", [{"cost_usd": -3}, {"cost_usd": "0.3"}, {"percent": 50}, {"tokens_used": 7}])
def test_a_later_report_that_does_not_say_what_it_cost_takes_nothing_back(later: dict[str, Any]) -> None:
    cluster = Cluster()
    cluster.master("m1")
    worker = cluster.worker("w1")
    cluster.submit("a.json", json.dumps({"id": "a", "command": ["work"]}))
    cluster.settle()
    [attempt] = worker.worker.running
    assert worker.scratch is not None
    worker.scratch.write("a.1", "progress.json", b'{"cost_usd": 0.2}')
    look(attempt, worker.scratch)  # as a beat does
    worker.scratch.write("a.1", "progress.json", json.dumps(later).encode())
    cluster.finish("a")
    cluster.settle()
    record = json.loads(cluster.fs.read("results/a.1.w1.json"))
    assert record["cost_usd"] == 0.2
    assert bool(record.get("output_problem")) is ("cost_usd" in later)
