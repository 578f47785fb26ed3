"""The program of a story: it saves steps, shares an entry, fails once, and finds again what it was told is kept."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from unittest.mock import patch

from spoold.client.context_and_steps import SharedContext, Steps
from spoold.client.spool_client import SpoolClient
from spoold.protocol.context_entry import parse_entry
from tests.sim.conduct import Broken
from tests.support.faults import Crashed

if TYPE_CHECKING:
    from tests.sim.stories import Play

BATCH, TASK, STEPS = "x", "a", 3


def saves_and_shares(play: Play) -> None:
    """Each attempt of a goes on from the last step. One whose program dies has failed, and so has the first."""
    open_ = play.cluster.where(TASK) in ("waiting", "ready", "claimed", "returned")
    if open_ and play.kept.get("entry", 0) > max(_versions(play), default=0):
        raise Broken(f"shelf: version {play.kept['entry']} was acknowledged, and {_versions(play)} are there")
    for node in [*play.cluster.nodes.values()]:
        if node.runner is None:
            continue
        for attempt in [key for key in node.runner.live if key.startswith(f"{TASK}.")]:
            if not play.once(f"works {node.name} {attempt}", when=True):
                continue
            number = int(attempt.rpartition(".")[2])
            try:
                _work(play, f"p-{node.name}-{number}", number)
            except Crashed:
                node.runner.finish(attempt, exit_code=1)
            else:
                node.runner.finish(attempt, exit_code=int(number == 1))


def _versions(play: Play) -> list[int]:
    directory = f"context/{BATCH}"
    names = play.cluster.fs.list(directory) if BATCH in play.cluster.fs.list("context") else []
    return [name.number for name in map(parse_entry, names) if name is not None]


def _work(play: Play, who: str, number: int) -> None:
    with SpoolClient("/spool", filesystem=play.cluster.mount(who), clock=play.cluster.clock) as spool:
        environ = {"SPOOL_ROOT": "/spool", "SPOOL_TASK_ID": TASK, "SPOOL_ATTEMPT": str(number)}
        with patch.dict(os.environ, environ):
            steps = Steps(spool)
        found = steps.last()
        done = 0 if found is None else found[1]
        if done < play.kept.get("step", 0):
            raise Broken(f"steps: attempt {number} goes on from {done}, and {play.kept['step']} was acknowledged")
        for value in range(done + 1, STEPS + 1):
            steps.save(value)
            play.kept["step"] = value
        context = SharedContext(spool, BATCH)
        play.kept["entry"] = context.put("plan", f"attempt {number}".encode()).version
        seen, data = context.get("plan")
        if (seen.version, data) != (play.kept["entry"], f"attempt {number}".encode()):
            raise Broken(f"shelf: attempt {number} reads {data!r} in version {seen.version}")
