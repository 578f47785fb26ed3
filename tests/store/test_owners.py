"""Whose answer counts: not that of the user as whom tasks run, where files tell users apart."""

from dataclasses import replace

import pytest

from spoold.store.approval_answers import may_answer
from spoold.system.filesystem import Stat
from spoold.system.memory_filesystem import MemoryFileSystem
from tests.master.test_holds import cluster, drop, events, request

ADA, BOB, SERVICE = 1000, 1001, 990
REQUEST, TOKEN, CLAIMS = "control/approve.t.1.json", "waiting/type=t/t.json", "claimed/w-1"


@pytest.fixture
def owned(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The owners of paths that begin so; of all others nothing is known."""
    before = MemoryFileSystem.stat
    owners: dict[str, int] = {}

    def stat(self: MemoryFileSystem, path: str) -> Stat:
        found = next((owner for begin, owner in owners.items() if path.startswith(begin)), None)
        return replace(before(self, path), owner=found)

    monkeypatch.setattr(MemoryFileSystem, "stat", stat)
    return owners


@pytest.mark.parametrize(
    ("marker", "token", "worker", "asker", "may"),
    [
        (ADA, ADA, ADA, ADA, True),  # one user for all: nothing can be told apart
        (ADA, BOB, SERVICE, ADA, True),
        (ADA, BOB, SERVICE, BOB, True),  # who submits may approve
        (ADA, ADA, SERVICE, SERVICE, False),
        (SERVICE, ADA, SERVICE, SERVICE, False),
        (SERVICE, SERVICE, SERVICE, ADA, True),
        (ADA, SERVICE, SERVICE, SERVICE, False),  # a task that submitted another one
        (None, None, None, None, True),
    ],
)
def test_who_may_answer(
    owned: dict[str, int], marker: int | None, token: int | None, worker: int | None, asker: int | None, may: bool
) -> None:
    made = cluster(worker=False)
    made.fs.make_dirs(CLAIMS)
    made.fs.make_dirs("waiting/type=t")
    for path in (REQUEST, TOKEN):
        made.fs.write(path, b"{}", durable=False)
    owners = {"spool.json": marker, TOKEN: token, CLAIMS: worker, REQUEST: asker}
    owned |= {path: owner for path, owner in owners.items() if owner is not None}
    assert may_answer(made.fs, REQUEST, TOKEN) is may
    if (marker, worker) == (SERVICE, SERVICE) or marker is None:
        assert may_answer(made.fs, REQUEST, None), "of a task that is not known nothing can be said"
    assert may_answer(made.fs, REQUEST, "waiting/type=t/gone.json") is (may or (marker, worker) == (SERVICE, SERVICE))


def test_the_leader_notes_and_removes_an_answer_of_a_workers_user(owned: dict[str, int]) -> None:
    owned |= {"spool.json": ADA, "waiting": ADA, "claimed": SERVICE, "control/approve.t.1": SERVICE, "control": ADA}
    made = cluster()
    drop(made, "t", approval={"ask": "Deploy?"})
    made.settle()
    request(made, "approve", "t", "1")
    made.settle()
    assert made.state("t") == "waiting"
    assert events(made, "IGNORED") == [("IGNORED", "t")]
    assert not any(name.startswith("approve") for name in made.fs.list("control"))
    request(made, "approve", "t", "2")
    made.settle()
    assert made.state("t") == "claimed"


def test_a_worker_does_not_start_for_an_answer_of_its_own_user(owned: dict[str, int]) -> None:
    made = cluster(worker=False)
    drop(made, "t", approval={"ask": "Deploy?"})
    made.settle()
    request(made, "approve", "t", "1")
    made.settle()
    assert made.state("t") == "ready"
    owned |= {"spool.json": ADA, "claimed": SERVICE, "control": SERVICE}
    made.nodes["m1"].frozen = True
    made.worker("w1")
    made.settle()
    assert made.state("t") == "returned"
