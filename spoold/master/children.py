"""The children of each task, as far as this leader has admitted them: the bounds of `[children]` hold over them.

Law: no counter is kept anywhere, and a task without a parent costs nothing here. A child is known by its id, so the
same drop counts once. What a leader before has admitted is not known: the bound on children counts anew with each
leader, and the depth is what the child itself says, or one more than what this leader knows of its parent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from spoold.protocol.errors import BadFile
from spoold.protocol.names import key
from spoold.protocol.settings import ChildrenSettings
from spoold.rules.entry.admission import Admit, Reject, too_deep, too_many

# So many parents are remembered; the one that had its last child first is forgotten first.
PARENTS = 10_000


@dataclass(slots=True)
class Children:
    """The admitted children, by the keys of their parents; each with its depth."""

    _of: dict[str, dict[str, int]] = field(default_factory=dict)
    _depth: dict[str, int] = field(default_factory=dict)

    def refuses(self, drop: str, born: Iterable[tuple[str, str, int]], bounds: ChildrenSettings) -> BadFile | None:
        """Return why these children may not be admitted together; else count them, and return None.

        born: of each the key of its id, its parent's id, and its depth as it says itself.
        """
        new: dict[str, dict[str, int]] = {}
        for child, parent, said in born:
            depth = max(said, self._depth.get(key(parent), 0) + 1)
            if depth > bounds.max_depth:
                return too_deep(drop, depth, bounds.max_depth)
            known, siblings = self._of.get(key(parent), {}), new.setdefault(key(parent), {})
            if child not in known:
                siblings[child] = depth
            if len(known) + len(siblings) > bounds.max_per_task:
                return too_many(drop, parent, bounds.max_per_task)
        for parent, siblings in new.items():
            self._of[parent] = self._of.pop(parent, {}) | siblings
            self._depth |= siblings
        while len(self._of) > PARENTS:
            for child in self._of.pop(next(iter(self._of))):
                self._depth.pop(child, None)
        return None

    def judge(self, drop: str, admit: Admit, bounds: ChildrenSettings) -> Admit | Reject:
        """Return the verdict on a task that has a parent."""
        assert admit.task.parent is not None
        refused = self.refuses(drop, [(key(admit.name.id), admit.task.parent, admit.task.level)], bounds)
        return admit if refused is None else Reject(refused)
