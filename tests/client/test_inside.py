"""A client inside a task: its children, and its slot."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from spoold.client.in_task import LEND_AFTER_S, born, check_wait, lending, task_of
from spoold.client.spool_client import SpoolClient
from spoold.protocol.errors import SpoolError
from spoold.system.clock import ManualClock
from spoold.system.slot_loans import LocalLoans
from tests.client.cluster import Cluster

NO_SLEEP = list[float]().append


def environ(where: Path, **content: object) -> dict[str, str]:
    """The variables of the task t, which has this content."""
    file = where / "task.json"
    file.write_text(json.dumps(content))
    return {"SPOOL_TASK_ID": "t", "SPOOL_ROOT": "/mnt/spool", "SPOOL_TASK_FILE": str(file)}


def test_a_task_that_is_submitted_in_a_task_is_its_child(tmp_path: Path) -> None:
    more = {"class": "critical", "budgets": ["usd"], "uses": ["api"]}
    here = environ(tmp_path, batch="nightly", priority="high", env={"A": "1"}, **more)
    made = born({"type": "x"}, "/mnt/spool", here)
    inherited = {"batch": "nightly", "priority": "high", "class": "critical", "budgets": ["usd"], "uses": {"api": 1}}
    assert made == {"type": "x", **inherited, "parent": "t", "depth": 1}


def test_what_a_child_says_itself_counts(tmp_path: Path) -> None:
    here = environ(tmp_path, batch="nightly", depth=2, parent="s")
    assert born({"type": "x", "batch": None, "priority": 3}, "/mnt/spool", here) == {
        "type": "x",
        "batch": None,
        "priority": 3,
        "parent": "t",
        "depth": 3,
    }
    for own in ({"parent": "other"}, {"parent": None}):
        assert born(own, "/mnt/spool", here) == own


@pytest.mark.parametrize(
    ("own", "made"),
    [
        ({}, {"api": 2, "db": 1}),
        ({"uses": None}, {"api": 2, "db": 1}),
        ({"uses": ["API"]}, {"API": 1, "db": 1}),
        ({"uses": {"gpu": 3}}, {"api": 2, "db": 1, "gpu": 3}),
        ({"uses": []}, []),
        ({"uses": {}}, {}),
        ({"uses": "wrong"}, "wrong"),
        ({"uses": [1]}, [1]),
    ],
)
def test_of_each_limit_a_child_has_its_own_units_or_those_of_its_parent(
    tmp_path: Path, own: dict[str, object], made: object
) -> None:
    here = environ(tmp_path, uses={"api": 2, "db": 1})
    assert born(own, "/mnt/spool", here)["uses"] == made
    nothing: tuple[object, ...] = ([], "wrong", None)
    for above in nothing:
        assert born(own, "/mnt/spool", environ(tmp_path, uses=above)).get("uses") == own.get("uses")


def test_a_task_whose_parent_says_no_depth_is_two_deep(tmp_path: Path) -> None:
    assert born({}, "/mnt/spool", environ(tmp_path, parent="s"))["depth"] == 2
    assert born({}, "/mnt/spool", environ(tmp_path, depth="x", parent="s"))["depth"] == 1


def test_without_its_own_file_a_task_knows_its_id_alone(tmp_path: Path) -> None:
    here = environ(tmp_path)
    for text in ("[1]", "{"):
        (tmp_path / "task.json").write_text(text)
        assert born({}, "/mnt/spool", here) == {"parent": "t", "depth": 1}
    (tmp_path / "task.json").unlink()
    assert born({}, "/mnt/spool", here) == {"parent": "t", "depth": 1}


def test_only_tasks_of_this_spool_are_parents(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    here = {"SPOOL_TASK_ID": "t", "SPOOL_ROOT": str(tmp_path)}
    assert task_of(f"{tmp_path}/link", here) == "t"
    assert task_of("/elsewhere", here) is None
    assert task_of(str(tmp_path), {"SPOOL_ROOT": str(tmp_path)}) is None
    assert born({"a": 1}, "/elsewhere", here) == {"a": 1}


def test_the_client_submits_children(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, text in environ(tmp_path, batch="b").items():
        monkeypatch.setenv(name, text)
    monkeypatch.setenv("SPOOL_ROOT", os.path.abspath("spool"))
    cluster = Cluster()
    client = SpoolClient("spool", filesystem=cluster.fs, clock=cluster.clock)
    one = client.submit(command=["true"])
    many = client.submit_many([{"command": ["true"]}, {"command": ["true"], "parent": None}])
    cluster.steps(cluster.master())
    said = [client.show(task_id).task for task_id in (one, *many)]
    assert [(task.get("parent"), task.get("depth"), task.get("batch")) for task in said] == [
        ("t", 1, "b"),
        ("t", 1, "b"),
        (None, None, None),
    ]


def test_a_wait_lends_the_slot_when_it_lasts_and_takes_it_back(tmp_path: Path) -> None:
    loans, clock = LocalLoans(str(tmp_path)), ManualClock()
    here = {"SPOOL_TASK_ID": "t", "SPOOL_ATTEMPT": "2", "SPOOL_SLOT_DIR": str(tmp_path)}
    with lending(clock.monotonic, NO_SLEEP, here) as pause:
        pause(0)
        assert loans.look() == [], "a short wait lends nothing"
        clock.advance(LEND_AFTER_S)
        pause(0)
        (loan,) = loans.look()
        assert (loan.attempt, loan.back) == ("t.2", False)
        loans.settle(loan)
    with pytest.raises(ValueError, match="ended"):
        _fail(clock, here, ValueError("ended"), loans)
    assert os.listdir(tmp_path) == []


def _fail(clock: ManualClock, here: dict[str, str], error: BaseException, loans: LocalLoans | None = None) -> None:
    """Lend the slot, then fail; the worker gives it back at once."""
    with lending(clock.monotonic, NO_SLEEP, here) as pause:
        clock.advance(LEND_AFTER_S)
        pause(0)
        if loans is not None:
            loans.settle(*loans.look())
        raise error


def test_a_process_that_is_interrupted_does_not_wait_for_its_slot(tmp_path: Path) -> None:
    clock = ManualClock()
    here = {"SPOOL_TASK_ID": "t", "SPOOL_SLOT_DIR": str(tmp_path)}
    with pytest.raises(KeyboardInterrupt):
        _fail(clock, here, KeyboardInterrupt())
    assert os.listdir(tmp_path) == []


def test_a_task_does_not_wait_for_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPOOL_TASK_ID", "t")
    monkeypatch.setenv("SPOOL_ROOT", str(tmp_path))
    check_wait(["t"], "/elsewhere")
    check_wait(["s"], str(tmp_path))
    with pytest.raises(SpoolError, match="task t cannot wait for itself"):
        check_wait(["s", "T"], str(tmp_path))


def test_outside_of_tasks_nothing_is_lent() -> None:
    with lending(ManualClock().monotonic, NO_SLEEP, {}) as pause:
        pause(0)
