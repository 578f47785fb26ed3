"""The world `classes`: tasks of a class with slots of its own, of one that borrows, and of none; and their laws.

Laws: of all slots no more are given away than there are; a class that may not borrow has no more than its share; one
that borrows leaves to another what that wants and has reserved.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from spoold.protocol.names import TaskName, key, parse_beat, parse_task
from tests.sim.conduct import Broken
from tests.sim.laws import Laws
from tests.sim.limited import KNOWN_S
from tests.sim.machine import SLOTS
from tests.sim.workload import SETTINGS, Client

TASKS = 26
RESERVED = 2
# For so long (s) a leader may count a worker that has left: it looks later, and an answer of the server may be late.
COUNTED_S = 8.0
OF_CLASSES = (
    SETTINGS
    + f"""
[classes.critical]
slots = {RESERVED}
[classes.spare]
slots = 0
borrow = true
""".encode()
)
KINDS = ("critical", "spare", "spare", "default")


def class_of(task_id: str) -> str:
    """The class of a task, by its id."""
    return task_id.partition("-")[0]


class ClassClient(Client):
    """Submits tasks of classes."""

    def live(self) -> None:
        """Submit everything."""
        draw = self._weather.draw
        names: list[str] = []
        for number in range(TASKS):
            name = f"{KINDS[int(draw('class', number) * len(KINDS))]}-{number}"
            if draw("pause", name) < 0.3:
                self._scheduler.sleep(3.0 * draw("between", name))
            task: dict[str, Any] = {"id": name, "type": "wide", "command": ["work"], "max_retries": 2}
            task["dependencies"] = [p for p in names[-4:] if draw("needs", name, p) < 0.08]
            if class_of(name) != "default":
                task["class"] = class_of(name)
            self._submit([task])
            names.append(name)
            if draw("cancel", name) < 0.05:
                self._cancel(name)
        self.done = True


@dataclass(slots=True)
class ClassLaws(Laws):
    """The laws about classes, besides all others. lived: how many workers had a heartbeat, and since when."""

    waits_since: dict[str, tuple[TaskName, float]] = field(default_factory=dict)
    lived: deque[tuple[float, int]] = field(default_factory=deque)
    leads: tuple[str, float] = ("", 0.0)

    def renamed(self, src: str, dst: str, replaced: bool) -> None:
        """After every rename."""
        Laws.renamed(self, src, dst, replaced)
        now, target = self.scheduler.now, dst.partition("/")[0]
        if self.conduct.holder != self.leads[0]:
            self.leads = (self.conduct.holder, now)
        if "heartbeats" in (target, src.partition("/")[0]):
            self._count_workers()
        name = parse_task(dst.rpartition("/")[2])
        if name is None:
            return
        if target == "waiting":
            self.waits_since[key(name.id)] = (name, now)
        elif target == "ready":
            self.waits_since.pop(key(name.id), None)
            if key(name.id) not in self.conduct.strangers and not self.conduct.amazed:
                self._fair(name)

    def removed(self, path: str) -> None:
        """After every unlink."""
        Laws.removed(self, path)
        if path.startswith("heartbeats/"):
            self._count_workers()

    def rebuilt(self) -> None:
        """After a power cut: of what it undid nobody knows."""
        Laws.rebuilt(self)
        self._count_workers()
        if self.server.rolls_back:
            self.waits_since.clear()

    def _count_workers(self) -> None:
        beats = [beat for beat in map(parse_beat, self.server.fs.list("heartbeats")) if beat is not None]
        workers = {beat.node for beat in beats if beat.node.startswith("w")}
        self.lived.append((self.scheduler.now, len(workers)))
        while len(self.lived) > 1 and self.lived[1][0] < self.scheduler.now - COUNTED_S:
            self.lived.popleft()

    def _fair(self, name: TaskName) -> None:
        """After a leader gave a task a slot."""
        slots = SLOTS * max((count for _, count in self.lived), default=0)
        strangers = self.conduct.strangers
        held = [k for k, at in self.tokens.items() if at.startswith(("ready/", "claimed/")) and k not in strangers]
        used, mine = Counter(map(class_of, held)), class_of(name.id)
        # What is left for tasks without a class may be nothing: then they borrow.
        left = max(0, slots - RESERVED)
        share = {"critical": RESERVED, "default": left or slots, "spare": slots}[mine]
        if used[mine] > share:
            raise Broken(f"class: {name.id} is made ready as one of {used[mine]}, and {mine} has {share} of {slots}")
        if used.total() > slots:
            raise Broken(f"class: {name.id} is made ready, and {dict(used)} use more than {slots} slots")
        borrows = mine == "spare" or (mine == "default" and not left)
        wanted = RESERVED - used["critical"] if borrows and self._critical_waits() else 0
        if used.total() + wanted > slots:
            raise Broken(f"class: {name.id} borrows what critical wants: {dict(used)} of {slots} slots")

    def _critical_waits(self) -> bool:
        """Whether a task of this class has waited for long for nothing but a slot, and its leader knows."""
        now = self.scheduler.now
        if now - self.leads[1] < KNOWN_S:
            return False
        return any(
            class_of(task_key) == "critical"
            and now - since > KNOWN_S
            and self.tokens.get(task_key, "").startswith("waiting/")
            and not (name.conditional or name.delay_ms)
            for task_key, (name, since) in self.waits_since.items()
        )
