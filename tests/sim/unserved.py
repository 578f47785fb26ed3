"""The world `unserved`: tasks that no worker, or only one, can run, and that share a limit and a lock.

Law: a task that no worker awake can run keeps no units from others. That takes no law of its own: a person cancels
such tasks only when all others have ended, and all have to end.
"""

from __future__ import annotations

from typing import Any

from tests.sim.workload import SETTINGS, Client

TASKS = 18
SCARCE = (
    SETTINGS
    + b"""
[limits.scarce]
max = 1
"""
)
# The machine whose worker has a label that some tasks require; no worker has the other. It lacks no program, or its
# worker would leave such a task alone for longer than a story lasts.
RARE = frozenset({"w2"})
LABELS: dict[str, tuple[str, ...]] = {"any": (), "rare": ("rare",), "nobody": ("nowhere",)}
KINDS = ("any", "any", "rare", "nobody")
LOOK_S = 5.0


class UnservedClient(Client):
    """Submits tasks that share something, of which some can run nowhere, and cancels those at the end."""

    def live(self) -> None:
        """Submit everything."""
        draw = self._weather.draw
        names = [f"{KINDS[int(draw('kind', number) * len(KINDS))]}-{number}" for number in range(TASKS)]
        for name in names:
            if draw("pause", name) < 0.3:
                self._scheduler.sleep(3.0 * draw("between", name))
            self._submit([_task(name, draw("shares", name))])
        self.done = True
        stuck = [name for name in names if name.startswith("nobody")]
        while not all(map(self._ended, (name for name in names if name not in stuck))):
            self._scheduler.sleep(LOOK_S)
        while not all(map(self._ended, stuck)):
            for name in stuck:
                self._cancel(name)
            self._scheduler.sleep(LOOK_S)


def _task(name: str, what: float) -> dict[str, Any]:
    """A task that uses the limit, or locks a file, or both."""
    task: dict[str, Any] = {"id": name, "type": "wide", "command": ["work"], "dependencies": [], "max_retries": 2}
    if labels := LABELS[name.partition("-")[0]]:
        task["requires"] = {"labels": labels}
    if what < 0.7:
        task["uses"] = ["scarce"]
    if what > 0.4:
        task["locks"] = {"write": ["src/file"]}
    return task
