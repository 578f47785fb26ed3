"""Tasks whose place is in doubt: they seem to have left it, and were seen at no other.

Law: a task is not gone before several listings in a row have shown it nowhere; `relisting` decides that. Until then
its id stays taken and it counts for every limit that it may use.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Missing:
    """keys: of those tasks; vanished: how many were gone in the end; doubts: listings in a row that did not show a
    task, by key.
    """

    keys: set[str] = field(default_factory=set)
    vanished: int = 0
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

    def believe(self, task_key: str) -> None:
        """Count the task as gone."""
        self.found(task_key)
        self.vanished += 1

    def found(self, task_key: str) -> None:
        """Note that the task was found after all."""
        self.keys.discard(task_key)
        self.doubts.pop(task_key, None)
