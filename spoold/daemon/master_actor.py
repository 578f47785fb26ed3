"""A master for the loop: with hints, and its own node id.

Law: a master resigns before the machine sleeps, does nothing during the sleep, and comes back as a new node.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from spoold.daemon.loop import ASLEEP, StepResult, open_spool
from spoold.daemon.node_ids import node_id
from spoold.daemon.progress_watch import Pulse
from spoold.master.master import Master
from spoold.protocol import layout
from spoold.rules.cluster.election import MISSING
from spoold.store.initialise import restore
from spoold.system.hints import Hints
from spoold.system.host import SystemHost, succeed
from spoold.system.wakeup import Bell, readable

log = logging.getLogger("spoold")


class MasterActor:
    """A master with its hints."""

    _WATCHED = (layout.PENDING, layout.RETURNED, layout.COMPLETED, layout.FAILED, layout.CONTROL, layout.MASTER)

    def __init__(self, root: str, name: str | None, pulse: Pulse) -> None:
        self._make: Callable[[], Master] = lambda: _master(root, name, pulse)
        self._master: Master | None = self._make()
        self._bell = Bell()
        self.hints = Hints(root)
        self._leaving = False
        self._led = False
        self._rest_s = 0.0

    def step(self) -> StepResult:
        if self._leaving:
            return StepResult(busy=False, next_due=None, done=True)
        self._rest_s = 0.0
        if self._master is None:
            return StepResult(busy=False, next_due=None)
        self.hints.clear()
        self.hints.watch(self._WATCHED)
        step = self._master.step()
        self._rest_s = step.rest_s
        if step.leading != self._led:
            self._led = step.leading
            log.info("%s", self.describe())
        return StepResult(step.busy, step.next_due)

    def wait(self, timeout_s: float) -> None:
        rest_s = min(self._rest_s, timeout_s)
        if not readable(rest_s, self._bell.fileno()):
            readable(timeout_s - rest_s, self._bell.fileno(), self.hints.fileno())
        self._bell.hush()

    def wake(self) -> None:
        self._bell.ring()

    def leave(self, hurry: bool) -> None:
        del hurry  # a master has nothing to finish
        self._leaving = True

    def rest(self, resting: bool) -> None:
        """Resign before a sleep, since all would wait for a sleeping leader's lease; return later as a new node."""
        if resting and self._master is not None:
            self._master.close()
            self._master, self._led = None, False
        elif not resting and self._master is None:
            self._master = self._make()

    @property
    def resting(self) -> bool:
        return self._master is None

    def close(self) -> None:
        self.hints.close()
        if self._master is not None:
            self._master.close()
        self._bell.close()

    @property
    def idle(self) -> bool:
        return True

    @property
    def trouble(self) -> str | None:
        """A share that is full; any other error of the share fails the whole step."""
        desk = self._master.desk if self._master is not None else None
        return desk.health.shortage if desk is not None else None

    def describe(self) -> str:
        if self._master is None:
            return ASLEEP
        me, leadership = self._master.store.writer, self._master.leadership
        if self._master.leading:
            return f"{me} leads epoch {leadership.epoch}"
        if leadership.missing:
            return f"{me} stands by; {MISSING}"
        if leadership.holder == me:
            return f"{me} cannot see whether it still leads epoch {leadership.epoch}; it moves nothing until it can"
        return f"{me} stands by; {leadership.holder or 'no node'} leads"


def _master(root: str, name: str | None, pulse: Pulse) -> Master:
    store = open_spool(root, node_id(name, "m"), pulse)
    restore(store.fs)
    store.open_tmp()
    return Master(store, SystemHost(), left=succeed(store.writer))
