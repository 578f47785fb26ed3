"""One server's spool, role and memory: what it submitted, reserved and reported.

Law: all of it is gone when the server ends; within a task the spool remembers whose child a task is. Calls run side
by side, so what they share is only added to. Within a task, of whatever spool, nobody is an operator.

Touches: threads, the clock, the environment.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import anyio

from spoold.client.in_task import LEND_AFTER_S, SlotLoan, adopt_task
from spoold.client.read.selecting import Located, Selection, find, select
from spoold.client.read.task_groups import Families
from spoold.client.read.task_info import read_content, text_in
from spoold.client.spool.connection import caller
from spoold.faces.mcp.local_workers import Crew
from spoold.protocol.amount import some
from spoold.protocol.errors import BadFile, NotFound, SpoolError
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient


# The roles of a caller: `agent` and `operator`.


class Role(StrEnum):
    """An agent reaches the tasks below it; an operator reaches all, answers questions, and stops the pool."""

    AGENT = "agent"
    OPERATOR = "operator"


def role_of(wanted: str, own: str | None, environ: Mapping[str, str] = os.environ) -> Role:
    """Return the role for this process. own: the task in which it runs. Errors: SpoolError."""
    try:
        role = Role(wanted)
    except ValueError:
        raise SpoolError(f"--role: {wanted!r} is no role. Fix: use {' or '.join(Role)}.") from None
    within = own or environ.get("SPOOL_TASK_ID")
    if within and role is Role.OPERATOR:
        raise SpoolError(
            f"--role: this runs within task {within}, and a task cannot be an operator. "
            "Fix: leave --role out, or start it outside of tasks."
        )
    return role


class Session:
    """What the tools work with. own: the task of this spool in which the server runs, None in none."""

    def __init__(
        self, spool: SpoolClient, wanted: str = Role.AGENT, *, spawn: int = 0, worker_config: str = ""
    ) -> None:
        """wanted: a role; spawn: how many workers an operator may start here, by worker_config, a path.

        Errors: SpoolError for a role that this process cannot have, and for a spawn that cannot be.
        """
        self.spool = spool
        self.own = adopt_task(spool.directory)
        self.role = role_of(wanted, self.own)
        self.reach = Reach(spool, self.own, everything=self.role is Role.OPERATOR)
        if spawn and self.role is not Role.OPERATOR:
            raise SpoolError("--spawn: only an operator starts workers. Fix: add --role operator, or leave it out.")
        if spawn and not worker_config:
            raise SpoolError("--spawn: what may its workers run? Fix: add --worker-config FILE.")
        self.crew = Crew(spool.directory, spawn, worker_config)
        self.slot = Slot()
        self.reserved: set[str] = set()
        # A key or a question → its words with its choices, and its name: for a call that asks it again.
        self.asked: dict[str, tuple[tuple[str, ...], str]] = {}
        self.reported: dict[str, Any] = {}

    @property
    def attempt(self) -> int:
        """The attempt of the caller's own task; 0 outside of a task."""
        said = os.environ.get("SPOOL_ATTEMPT", "")
        return int(said) if self.own is not None and said.isdecimal() else 0

    @property
    def progress_file(self) -> str:
        """Where the caller's own task reports its progress; '' outside of a task."""
        return os.environ.get("SPOOL_PROGRESS_FILE", "") if self.own is not None else ""

    @property
    def scope(self) -> str:
        """Within what an idempotency key means one task: the caller's own task, else this user on this machine."""
        return f"task {self.own}" if self.own is not None else f"user {caller()}"


# Which tasks a caller may see and end: for an operator all, for an agent those below it.


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


# The slot of the caller's own task: lent while at least one of its calls waits.


LOOK_EVERY_S = 0.05
Pause = Callable[[float], Awaitable[None]]


class Slot:
    """One task's slot, for all calls of one server; it belongs to the server's event loop."""

    def __init__(self, loan: SlotLoan | None = None) -> None:
        self._loan = SlotLoan() if loan is None else loan
        self._waits = 0

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[Pause]:
        """Wrap a wait. Yields what it pauses with, which lends the slot of a wait that is not over at once."""
        since = time.monotonic()

        async def pause(seconds: float) -> None:
            if time.monotonic() - since >= LEND_AFTER_S:
                self._loan.lend()
            await anyio.sleep(seconds)

        self._waits += 1
        try:
            yield pause
        finally:
            self._waits -= 1
            if not self._waits:
                self._loan.ask_back()

    async def back(self, within_s: float) -> bool:
        """Return whether the task may go on; waits so long (s) for its slot. True while other calls still wait."""
        until = time.monotonic() + within_s
        while not self._waits and not self._loan.is_back():
            if time.monotonic() >= until:
                return False
            await anyio.sleep(LOOK_EVERY_S)
        return True
