"""Which tasks wait for which.

Ids are compared by their key (see `names.key`); callers pass keys.

Law: an edge child → parent exists from the child's admission, whether or not the parent is known yet, so that tasks
may arrive in any order. The edge goes when its child no longer waits, and not before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Graph:
    """Children by parent and parents by child, both only for tasks that still wait."""

    def __init__(self) -> None:
        self._parents: dict[str, frozenset[str]] = {}
        self._children: dict[str, set[str]] = {}
        self._open: dict[str, set[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._parents)

    def __contains__(self, child: str) -> bool:
        return child in self._parents

    def add(self, child: str, parents: Iterable[str]) -> None:
        """The child waits for these parents; all of them count as open until `settle` says otherwise."""
        self._parents[child] = frozenset(parents)
        self._open[child] = set(self._parents[child])
        for parent in self._parents[child]:
            self._children.setdefault(parent, set()).add(child)

    def remove(self, child: str) -> None:
        """The child no longer waits, for whatever reason."""
        self._open.pop(child, None)
        for parent in self._parents.pop(child, frozenset()):
            siblings = self._children[parent]
            siblings.discard(child)
            if not siblings:
                del self._children[parent]

    def children(self, parent: str) -> list[str]:
        """The tasks that wait for the parent, in a settled order."""
        return sorted(self._children.get(parent, ()))

    def settle_all(self, child: str, parents: Iterable[str]) -> None:
        """Note that these of the child's parents need not be waited for."""
        self._open[child].difference_update(parents)

    def has_children(self, parent: str) -> bool:
        """Whether any task waits for the parent."""
        return parent in self._children

    def behind(self, parent: str) -> set[str]:
        """Every task that waits for the parent, however long the way."""
        return self._reach(parent, self._children)

    def settle(self, child: str, parent: str, *, ended: bool) -> bool:
        """Note that one of the child's parents has ended, or is open again; True while any of them is open."""
        (self._open[child].discard if ended else self._open[child].add)(parent)
        return bool(self._open[child])

    def knot(self, start: str) -> list[str]:
        """Every task on some cycle through `start`, in a settled order."""
        return sorted(self._reach(start, self._parents) & self._reach(start, self._children))

    @staticmethod
    def _reach(start: str, edges: Mapping[str, Iterable[str]]) -> set[str]:
        reached: set[str] = set()
        front = {start}
        while front:
            front = {after for node in front for after in edges.get(node, ())} - reached
            reached |= front
        return reached

    def cycle(self, start: str) -> list[str]:
        """The members of a cycle through `start`, in order of dependency, or [].

        Asked when `start` is added: a new cycle must go through it, and can only do so if a task already waits for
        it; a chain that arrives in order therefore costs nothing here.
        """
        if start not in self._children:
            return []
        came: dict[str, str] = {}
        stack = [start]
        while stack:
            node = stack.pop()
            for parent in sorted(self._parents.get(node, ())):
                if parent == start:
                    return self._path(came, start, node)
                if parent not in came and parent in self._parents:
                    came[parent] = node
                    stack.append(parent)
        return []

    @staticmethod
    def _path(came: dict[str, str], start: str, node: str) -> list[str]:
        path = [node]
        while path[-1] != start:
            path.append(came[path[-1]])
        return path[::-1]
