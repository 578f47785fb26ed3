"""Which tasks a caller may see and end: for an operator all, for an agent those below it.

Below an agent are, within a task, all descendants of this task; outside of one, the tasks that this server submitted,
and their descendants.

Law: a task is named by its whole id. A foreign task and a missing one give the same answer.

Touches: threads.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from spoold.client.families import Families
from spoold.client.info import read_content, text_in
from spoold.client.selecting import Located, Selection, find, select
from spoold.protocol.amount import some
from spoold.protocol.errors import BadFile, NotFound
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient

# More generations than any task may have below it: names that point at each other in a circle end there.
GENERATIONS = 128
NAMED = 3


class Reach:
    """The tasks of one caller. Thread-safe."""

    def __init__(self, spool: SpoolClient, own: str | None, *, everything: bool) -> None:
        """own: the task in which the caller runs; everything: the caller is an operator."""
        self._spool = spool
        self._own = own
        self._everything = everything
        self._submitted: dict[str, str] = {}
        self._parents: dict[str, str] = {}
        self._families = Families(spool.store)
        self._looking = threading.Lock()

    def add(self, ids: Iterable[str]) -> None:
        """Remember tasks that this server has submitted."""
        self._submitted.update((key(task_id), task_id) for task_id in ids)

    def find(self, task_id: str) -> Located:
        """Return a task that the caller reaches. Errors: NotFound, OSError."""
        return self.find_all([task_id])[0]

    def find_all(self, ids: Iterable[str]) -> list[Located]:
        """Return tasks that the caller reaches, each once. Errors: NotFound that names the others; OSError."""
        wanted = list(dict.fromkeys(ids))
        with self._spool.reaching():
            found, _wrong = find(self._spool.store, wanted)
            found = [one for one in found if self._holds(one)]
        named = {key(name) for one in found for name in (one.id, one.drop)}
        missing = [task_id for task_id in wanted if key(task_id) not in named]
        if missing:
            where = "in this spool" if self._everything else "among yours, which list_tasks shows"
            raise NotFound(f"no task {some(missing, NAMED)} {where}. Fix: give the whole id of one of them.")
        return found

    def insist(self, tool: str, field: str, ids: Collection[str]) -> None:
        """Check that the caller reaches all of these. Errors: BadFile that names the argument; OSError."""
        if ids:
            try:
                self.find_all(ids)
            except NotFound as error:
                problem, _, mend = str(error).partition(" Fix: ")
                raise BadFile(tool, field, problem, mend) from error

    def mine(self, kind: str = "") -> Iterator[Located]:
        """Yield every task that the caller reaches, archived ones left out. Errors: OSError.

        kind: a type; tasks of others may be left out.
        """
        if self._everything:
            yield from select(self._spool.store, Selection(types=(kind,) if kind else ()))
            return
        with self._looking:
            roots = self._roots()
            below = self._families.below([*roots, *self._top()])
        seen: dict[str, Located] = {key(one.id): one for one in roots}
        for children in below.values():
            seen |= {
                key(one.id): one for one in children if one.state is not State.REJECTED or key(one.id) not in seen
            }
        yield from seen.values()

    def _roots(self) -> list[Located]:
        found, _ = find(self._spool.store, list(self._submitted.values()))
        return found

    def _top(self) -> list[Located]:
        """The caller's own task, whose children are looked for; it is not within reach itself."""
        return [] if self._own is None else [Located(State.CLAIMED, "", self._own)]

    def _holds(self, located: Located) -> bool:
        if self._everything or key(located.id) in self._submitted:
            return True
        own = None if self._own is None else key(self._own)
        if own == key(located.id):
            return False
        above = self._parent(located)
        for _ in range(GENERATIONS):
            if not above:
                return False
            if above == own or above in self._submitted:
                return True
            found, _wrong = find(self._spool.store, [above])
            above = self._parent(found[0]) if found else ""
        return False

    def _parent(self, located: Located) -> str:
        """The key of a task's parent, '' for none. A task's content never changes after its admission."""
        name = key(located.id)
        if name not in self._parents:
            content = read_content(self._spool.store, located)
            if not content or located.state in (State.PENDING, State.REJECTED):
                return key(text_in(content, "parent"))
            self._parents[name] = key(text_in(content, "parent"))
        return self._parents[name]
