"""A file with the highest number of its family stops no later one, or the error names that file and the fix.

Generator: of every kind of name in `spool_layout.md` that has numbers, each number in turn gets the highest value
that the grammar allows, the one below it, and the highest after which there is room, while a pool runs. Then
everything that gives a later number is done, over a change of leader.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from spoold.client.context_and_steps import SharedContext, Steps
from spoold.client.spool_client import SpoolClient
from spoold.doctor import report_files
from spoold.master.report.status_report import STRANGE_EVERY_S
from spoold.protocol import layout
from spoold.protocol.doctor_report import Report
from spoold.protocol.errors import BadFile
from spoold.protocol.heartbeat import MountFacts
from spoold.protocol.step import sum_of
from spoold.store import snapshots
from spoold.store.doctor_reports import list_reports
from spoold.store.store import make_directory
from tests.protocol.test_layout_document import PARSERS, TEXT
from tests.support.cluster import Cluster

# Without a number of their own: an ORDER is an age, and its parts are no counts.
OTHERS = {"original", "request", "lane"}
NUMBERED = {kind: parse for kind, parse in PARSERS.items() if kind not in OTHERS}
PLACES = {
    "task": "waiting/type=command,run=command",
    "ended": "results",
    "archived": layout.bucket("build"),
    "log": "logs",
    "entry": "context/b",
    "step": "steps/t",
    "batch": "admitting/1.x1.0",
}
# Where spoold refuses to go on, and says which file and why, until a person has removed it.
REFUSES = {"report", "change", "entry", "step"}
CONTENT = {
    "change": {"settings": {"retry": {"max": 1}}},
    "entry": {"text": "x"},
    "step": {"sum": sum_of(1), "value": 1},
    "snapshot": {"generated_at": "2026-01-01T00:00:00.000Z", "spool_id": "spool", "warnings": ["a lie"]},
    "checkpoint": {"states": {}, "covered": []},
    "beat": {"role": "worker"},
    "task": {"id": "build", "command": ["work"]},
}
ROW = re.compile(r"^\| ([a-z]+) \| (.*?) \| `([^`]+)`.*? \| `([^`]+)` \|$", re.MULTILINE)


ROWS = ROW.findall(TEXT[TEXT.index("\n## Names\n") : TEXT.index("\n## The moves\n")])
GRAMMARS = {kind: grammar for kind, _, grammar, _ in ROWS}


def families() -> list[tuple[str, str, str]]:
    """Kind, directory and example of each name in the table."""
    return [(kind, re.findall(r"`([^`]+?)/`", where)[0], example) for kind, where, _, example in ROWS]


def extremes(kind: str, example: str) -> Iterator[str]:
    """The example with each of its numbers at the highest values that the grammar allows."""
    number = r"(?<![0-9a-z])\d+(?![0-9a-z])" + (r"|(?<=[afcr])\d+(?=[fcrd.])" if "RANK" in GRAMMARS[kind] else "")
    for found in re.finditer(number, example):
        spelled = (
            f"{example[: found.start()]}{10**digits - 1}{example[found.end() :]}" for digits in range(18, 0, -1)
        )
        most = next(10 ** (18 - turn) - 1 for turn, name in enumerate(spelled) if NUMBERED[kind](name) is not None)
        for value in (most, most - 1, *((most - 10**6, 4 * 10**8) if kind in REFUSES else ())):
            name = f"{example[: found.start()]}{value}{example[found.end() :]}"
            if NUMBERED[kind](name) is not None:
                yield name


CASES = [
    (kind, f"{PLACES.get(kind, where)}/{name}")
    for kind, where, example in families()
    if kind not in OTHERS
    for name in extremes(kind, example)
]


def test_every_family_with_a_number_is_played() -> None:
    assert {kind for kind, _, _ in families()} == {*NUMBERED, *OTHERS}
    assert {kind for kind, _ in CASES} == {*NUMBERED}
    assert len(CASES) > 50


def _retries(spool: SpoolClient) -> int:
    return spool.store.settings.retry.max


def _last(steps: Steps) -> object:
    found = steps.last()
    return None if found is None else found[1]


def _plan(context: SharedContext) -> int:
    return int(context.get("plan")[1])


class Pool:
    """A pool that began before the strange file came."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = Cluster("[heartbeat]\ninterval_s = 1\nmisses = 3\n")
        self.made.master("m1")
        self.made.worker("w1", 4)
        self.made.settle()
        self._leaders, self._workers, self._tasks = 1, 1, 0
        for name, value in (("ROOT", "spool"), ("TASK_ID", "t"), ("ATTEMPT", "1")):
            monkeypatch.setenv(f"SPOOL_{name}", value)

    def put(self, kind: str, path: str) -> None:
        """The file that somebody else wrote."""
        directory = path.rpartition("/")[0]
        above = directory.split("/")
        for end in range(1, len(above) + 1):
            with contextlib.suppress(FileExistsError):
                self.made.fs.mkdir("/".join(above[:end]))
        if kind == "door":
            self.made.fs.mkdir(path)
        else:
            self.made.fs.write(path, json.dumps(CONTENT.get(kind, {})).encode(), durable=False)
        if kind == "archived":  # its result, without which it is no success
            number = int(path.split(".")[-4])
            result = {"task_id": "build", "attempt": number, "worker_id": "w", "status": "success"}
            data = json.dumps(result).encode()
            self.made.fs.write(path.replace(".completed.", ".result."), data, durable=False)

    def publish(self, path: str) -> list[str]:
        """Publish two later ones of each family that people and tasks number, each of which must count. Returns the
        files that the errors named.
        """
        refused: list[str] = []

        def tried(act: Callable[[], object], counts: Callable[[], object]) -> None:
            told: BadFile | None = None
            try:
                act()
            except BadFile as error:
                told = error
            if told is None:
                assert counts() == value
                return
            # The file itself; or, once it is gone, what was counted on from it.
            assert told.file == path or (path not in self.made.fs.files() and "cli-" in told.file)
            assert "no room" in told.problem
            assert "rename it to a lower number" in told.mend
            refused.append(told.file)

        for value in (7, 8):
            with SpoolClient("spool", filesystem=self.made.fs, clock=self.made.clock) as spool:
                context, steps = SharedContext(spool, "b"), Steps(spool)
                tried(partial(spool.change_settings, {"retry": {"max": value}}), partial(_retries, spool))
                tried(partial(steps.save, value), partial(_last, steps))
                tried(partial(context.put, "plan", b"%d" % value), partial(_plan, context))
            report = Report(
                at="", node=f"cli-{value}", verdict="not safe", reason="x", mount=MountFacts(fstype=f"fs{value}")
            )
            make_directory(self.made.fs, f"tmp/{report.node}")
            tried(partial(report_files.keep, self.made.fs, report, f"tmp/{report.node}"), self._newest)
        return refused

    def _newest(self) -> int:
        return int(max(list_reports(self.made.fs)).node[-1])

    def works(self) -> None:
        """A task comes in and completes, and the newest report is of the leader."""
        self._tasks += 1
        task = f"new{self._tasks}"
        self.made.submit(f"{task}.json", json.dumps({"id": task, "command": ["work"]}))
        for _ in range(60):
            self.made.advance(1)
            self._replace_gone()
            if f"{task}.1" in str(self.made.running()):
                break
        self.made.finish(task)
        self.made.advance(3)
        assert self.made.state(task) == "completed"

    def reports(self) -> None:
        """The newest report is of the leader."""
        self.made.advance(STRANGE_EVERY_S + 10)
        found = snapshots.latest(self.made.fs)
        assert found is not None
        assert found[1].master.leader in self.made.nodes
        assert "a lie" not in found[1].warnings

    def _replace_gone(self) -> None:
        """Start each node anew that gave its name up, as its daemon does."""
        if not any(name.startswith("m") for name in self.made.nodes):
            self.change_leader()
        if not any(name.startswith("w") for name in self.made.nodes):
            self._workers += 1
            self.made.worker(f"w{self._workers}", 4)

    def change_leader(self) -> None:
        """Another master leads."""
        for name in [name for name in self.made.nodes if name.startswith("m")]:
            self.made.crash(name)
        self._leaders += 1
        self.made.master(f"m{self._leaders}")
        self.made.advance(8)


@pytest.mark.turns
@pytest.mark.parametrize(("kind", "path"), CASES)
def test_it_stops_no_later_one_or_is_named(kind: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names-a: the next change, step, entry or report did not fit, and the error named no file and no fix."""
    pool = Pool(monkeypatch)
    pool.put(kind, path)
    pool.works()
    if path.startswith("status/"):
        pool.reports()
    refused = pool.publish(path)
    assert not refused or kind in REFUSES
    for _ in range(2):
        pool.change_leader()
        pool.works()
    for _ in range(5):
        for file in dict.fromkeys(refused):
            pool.made.fs.unlink(file)  # as the error said
        refused = pool.publish(path) if refused else []
    assert not refused
