"""A person puts an older copy of the spool's directory back, while its nodes run, sleep and die.

What happened after the copy was made is forgotten: tasks that were submitted later are lost, and what had ended may
run again. Law: within the restored history all else holds. Nothing hangs, each task in it ends once, unless it
comes after a lost one, and fsck finds no error. Epochs of the forgotten time are led in once more, also after the
leader of such an epoch, which did not know yet, has made its door again or published a snapshot. Doors bear their
leader's name, and snapshots are reports and no state. A result that was forgotten between being written and its
commit, in one step, is missing, and fsck says so: spool_layout.md promises no more.
"""

from __future__ import annotations

import math
from typing import Any

from spoold.protocol.admission_names import parse_door
from spoold.protocol.names import EndedName, TaskName, key, parse_lease, parse_snapshot
from spoold.system.memory_filesystem import MemoryFileSystem
from tests.sim.conduct import AMAZED_S, Conduct
from tests.sim.laws import Laws
from tests.sim.universe import Universe

# When (s) the copy is made at the latest, and for how long it lies there at most.
COPIED_S, KEPT_S = 12.0, 12.0


class RestoredConduct(Conduct):
    """Who may do what, where a leader of the forgotten time may have slept when that went, and wakes later."""

    @property
    def amazed(self) -> bool:
        return self.scheduler.now < self.forgot_at + 2 * AMAZED_S


class RestoredLaws(Laws):
    """The laws, where much was forgotten. led: the highest epoch of that; results: those that were there before."""

    led = -1
    results: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.conduct = RestoredConduct(self.scheduler, self.server, self.by_lock)

    def renamed(self, src: str, dst: str, replaced: bool) -> None:
        snapshot = parse_snapshot(dst.removeprefix("status/")) if dst.startswith("status/") else None
        super().renamed(src, dst, replaced and not (snapshot is not None and snapshot.epoch <= self.led))

    def made(self, path: str) -> None:
        door = parse_door(path.removeprefix("admitting/")) if path.startswith("admitting/") else None
        if door is not None and door.epoch <= self.led:
            self.conduct.forget_leaders()
        super().made(path)

    def _committed(self, name: TaskName | EndedName, src: str, dst: str) -> None:
        state, _, file = dst.partition("/")
        result, process = f"results/{file}", self.scheduler.current
        node = self.conduct.machines.get(process.name) if process is not None else None
        began = node.step_began if node is not None else -math.inf  # what was under way, the server does by itself
        lost = file in self.results and not self.server.exists(result)
        if lost and began < self.conduct.forgot_at:
            self.excused |= {dst, result}
            self.counts[state] += 1
        else:
            super()._committed(name, src, dst)


class RestoredUniverse(Universe):
    """Once, the tree goes back to an earlier moment."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.weather.blows["restored"] = 1.0
        self._struck = False

    def _strike(self, kind: str, number: int) -> None:
        if kind != "restored":
            super()._strike(kind, number)
            return
        if self._struck:
            return
        self._struck = True
        self.scheduler.sleep(COPIED_S * self.weather.draw("copied", number))
        copy = self.server.fs.snapshot()
        self.scheduler.sleep(1.0 + (KEPT_S - 1.0) * self.weather.draw("kept", number))
        if not self.weather.fair:
            self._restore(copy)

    def _restore(self, copy: MemoryFileSystem) -> None:
        self.weather.tell("restored: the tree is that of an earlier moment")
        assert isinstance(self.laws, RestoredLaws)
        self.laws.results = frozenset(self.server.fs.list("results"))
        self.laws.led = max(token.epoch for name in self.server.fs.list("master") if (token := parse_lease(name)))
        self.server.put_back(copy)
        self.laws.conduct.forgot_at = self.scheduler.now
        self.laws.conduct.forget_leaders()
        for task in [task for task in self.laws.asked if task not in self.laws.tokens]:
            del self.laws.asked[task]
        self.client.cuts += 1  # what it is told of now speaks of the forgotten time
        if self.client.through:
            self.scheduler.spawn("client again", self.client.see_through)

    def _over(self) -> bool:
        """What comes after a lost task waits for ever, unless somebody submits that again."""
        asked, known = self.laws.asked, -1
        while self._struck and known != len(asked):
            known = len(asked)
            for task in [task for task, one in asked.items() if not asked.keys() >= {*map(key, one.parents)}]:
                del asked[task]
        return super()._over()
