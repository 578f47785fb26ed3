"""Tasks whose place is in doubt: they seem to have left it, and were seen at no other.

Law: a task is not gone before several listings in a row have shown it nowhere; `relisting` decides that. Until then
its id stays taken and it counts for every limit that it may use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from spoold.protocol.amount import amount, some

# So many vanished tasks are remembered, and so many named.
REMEMBERED, NAMED = 1000, 3


@dataclass(slots=True)
class Missing:
    """keys: of those tasks; vanished: how many were gone in the end; gone: the last of these, by key, with their last
    place and the time (monotonic, s); doubts: listings in a row that did not show a task, by key.
    """

    keys: set[str] = field(default_factory=set)
    vanished: int = 0
    gone: dict[str, tuple[str, float]] = field(default_factory=dict)
    doubts: dict[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.keys)

    def miss(self, *keys: str) -> None:
        """Note tasks that have left their place and were seen at no other."""
        self.keys.update(keys)

    def nowhere(self, task_key: str) -> int:
        """Count one more listing that does not show the task; return how many there were in a row."""
        self.doubts[task_key] = self.doubts.get(task_key, 0) + 1
        return self.doubts[task_key]

    def believe(self, task_key: str, path: str, now: float) -> None:
        """Count the task as gone. path: where it was last; now: monotonic, s."""
        self.found(task_key)
        self.vanished += 1
        self.gone[task_key] = (path, now)
        if len(self.gone) > REMEMBERED:
            del self.gone[next(iter(self.gone))]

    def warnings(self, since: float, known: Callable[[str], bool]) -> list[str]:
        """Return the warning for people about tasks that vanished.

        since: those that vanished earlier (monotonic, s) are forgotten. known: whether a task has this key now.
        """
        self.gone = {task: (path, at) for task, (path, at) in self.gone.items() if at >= since and not known(task)}
        if not self.gone:
            return []
        were = some([f"{task} (it was {path})" for task, (path, _) in self.gone.items()], NAMED)
        said = f"{amount(len(self.gone), 'task')} vanished, since another program removed the file: {were}"
        return [f"{said}. Submit them again; `spool history ID` tells what is known of one"]

    def found(self, task_key: str) -> None:
        """Note that the task was found after all."""
        self.keys.discard(task_key)
        self.doubts.pop(task_key, None)
