"""`timeout = "auto"`: by how long attempts of the type took, as the leader knows it, over a change of leader too."""

from __future__ import annotations

import json

from spoold.store import snapshots
from spoold.worker.attempts import starting
from tests.support.cluster import Cluster

SETTINGS = '[heartbeat]\ninterval_s = 1\nmisses = 3\n[types.nap]\ntimeout = "auto"\n'


def submit(made: Cluster, task_id: str, **fields: object) -> None:
    made.submit(f"{task_id}.json", json.dumps({"id": task_id, "type": "nap", "command": ["work"], **fields}))


def limit(made: Cluster, task_id: str) -> float | None:
    """The timeout that the attempt got which runs."""
    runner = made.nodes["w1"].runner
    assert runner is not None
    return runner.live[f"{task_id}.1"].job.timeout_s


def test_auto_is_the_default_until_enough_is_known_and_then_follows_what_was_measured() -> None:
    made = Cluster(SETTINGS)
    made.master("m1")
    made.worker("w1")
    made.settle()
    for number in range(6):
        submit(made, f"t{number}")
        made.settle()
        expected = 1800 if number < 5 else 1.5 * 4
        assert limit(made, f"t{number}") == expected
        made.advance(4)
        made.finish(f"t{number}")
        made.advance(starting.UNKNOWN_S + 1)
    submit(made, "own", timeout=7)
    made.settle()
    assert limit(made, "own") == 7
    made.finish("own", exit_code=1)
    made.advance(5)
    made.crash("m1")
    made.stop("w1")
    made.master("m2")
    made.advance(10)
    found = snapshots.latest(made.fs)
    assert found is not None
    assert found[0].epoch == 2
    assert found[1].durations["nap"].n == 6, "the worker that said so has gone, and the leader that heard it"
    assert found[1].durations["nap"].mean_s == 4
