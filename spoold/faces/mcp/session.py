"""One server's spool, role and memory: what it submitted, reserved and reported.

Law: all of it is gone when the server ends; within a task the spool remembers whose child a task is. Calls run side
by side, so what they share is only added to.

Touches: the environment.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from spoold.client.ancestors import adopt_task
from spoold.client.connection import caller
from spoold.faces.mcp.crew import Crew
from spoold.faces.mcp.reach import Reach
from spoold.faces.mcp.roles import Role, role_of
from spoold.faces.mcp.slot import Slot
from spoold.protocol.errors import SpoolError

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient


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
