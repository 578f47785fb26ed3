"""A handler runs at most as many tasks on a worker as its owner says, and says why it takes no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from spoold.protocol.lanes import Lane
from spoold.worker.attempts.worker_limits import Crowding
from spoold.worker.handlers.availability import lacking
from spoold.worker.handlers.handler import Handler
from spoold.worker.handlers.worker_config import load_config

CODER, REVIEW = Lane("coder", "handler"), Lane("review", "handler")


def test_only_so_many_tasks_of_a_handler_run_here() -> None:
    crowding = Crowding({"coder": 2})
    crowding.take(CODER)
    assert crowding.lets(CODER)
    assert not crowding.shuns()
    crowding.take(CODER)
    assert not crowding.lets(CODER)
    assert crowding.lets(REVIEW), "another type is not bounded"
    assert crowding.lets(Lane("coder", "command")), "nor is a raw command of that type"
    crowding.take(Lane("coder", "command"))
    assert crowding.shuns() == {
        "coder": "it runs 2 tasks of this type, as many as it may (max_concurrent of its handler)"
    }
    crowding.begin()
    assert (crowding.lets(CODER), crowding.shuns()) == (True, {})


def test_what_runs_beside_a_late_claim_counts() -> None:
    crowding = Crowding({"coder": 2})
    assert crowding.full(CODER, [CODER, REVIEW, CODER])
    assert not crowding.full(CODER, [CODER, REVIEW, Lane("coder", "command")])
    assert not crowding.full(REVIEW, [REVIEW] * 9)


def test_the_bound_is_in_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "w.toml"
    file.write_text('[handlers.Coder]\ncommand = ["x"]\nmax_concurrent = 2\n[handlers.b]\ncommand = ["x"]\n')
    assert load_config(str(file)).crowds == {"coder": 2}


@pytest.mark.parametrize(
    ("needs", "why"), [(("sh",), None), (("sh", "no-such-agent"), "it lacks the program no-such-agent")]
)
def test_a_program_that_a_handler_needs_is_looked_for(needs: tuple[str, ...], why: str | None) -> None:
    found = lacking(Handler(command=("/bin/sh",), needs=needs), {"PATH": "/usr/bin:/bin"})
    assert (found is None) == (why is None)
    assert why is None or (found is not None and found.startswith(why))
