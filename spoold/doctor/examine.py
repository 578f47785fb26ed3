"""The process that waits for the one that touches the share, but not for ever.

Law: nothing here touches the share: on a hard mount whose server is away every call blocks, and not even SIGKILL ends
it. A child that is silent for too long is killed and left to the kernel. A share that answers, but slowly, is not
waited for longer than the bounds of a trial, and of all together. The report then names the trial that did not end.

Touches: files, processes, the clock.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from spoold.doctor.report_files import compose
from spoold.doctor.trial_process import Order
from spoold.protocol import codec
from spoold.protocol.doctor_report import Report
from spoold.protocol.errors import BadName, Unavailable, WaitTimeout, legible
from spoold.store.store import stamp
from spoold.system.host import this_host

SILENT_S = 30.0
TIDY_S = 10.0
# Of one trial, and of all: 100 s with 500 files, beside the time that a person lets the others come in.
TRIAL_S, EXAMINED_S, ALL_S, FILE_S = 45.0, 75.0, 90.0, 0.02
COMING_S = 45.0

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds. silent: without a returned call; trial, all: as measured by this process.

    The time in which the others may come is the person's own and counts for none of the others.
    """

    silent: float
    trial: float
    all: float
    peers: float
    examined: float
    claims: float

    def of(self, trial: str) -> float:
        """Return how long a trial may take."""
        return {"peers": self.peers, "examined": self.examined, "claims": self.claims}.get(trial, self.trial)


def bounds_of(order: Order) -> Bounds:
    """Return the bounds of an examination."""
    racing_s = FILE_S * order.files
    return Bounds(SILENT_S, TRIAL_S, ALL_S + racing_s, order.wait_s + COMING_S, EXAMINED_S, TRIAL_S + racing_s)


def examine(order: Order, say: Say = lambda text: None, *, bounds: Bounds | None = None) -> Report:
    """Make the trials in a child process and return the report. say gets lines for the person who waits.

    A report always comes: one on a share that does not answer, or on a trial that did not end, says so.
    Errors: WaitTimeout when too few machines came, Unavailable when there is nothing to examine, BadName for a path
    that no report could hold.
    """
    if order.directory != legible(order.directory):
        where = legible(order.directory)
        raise BadName(f"{where} is not UTF-8, as configurations and reports must be. Fix: rename the directory.")
    command = [sys.executable, "-m", "spoold.doctor.trial_process", order.encode()]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
    try:
        return _Following(order, child, say, bounds or bounds_of(order)).follow()
    except BaseException:
        _end(child)
        raise
    finally:
        assert child.stdout is not None
        child.stdout.close()


class _Following:
    """The lines of the child so far."""

    def __init__(self, order: Order, child: subprocess.Popen[bytes], say: Say, bounds: Bounds) -> None:
        here = this_host()
        self._order = order
        self._child = child
        self._say = say
        self._bounds = bounds
        self._found: dict[bool, dict[str, dict[str, Any]]] = {False: {}, True: {}}  # of several machines: True
        me = {"host": {"hostname": here.hostname, "boot_id": here.boot_id}, "measured": self._found[False]}
        self._people: dict[str, dict[str, Any]] = {order.node: me}
        self._missed: list[str] = []
        self._begun, self._together = "start", False
        self._begun_at = time.monotonic()
        self._over_at = self._begun_at + bounds.all
        self._buffer = b""

    def follow(self) -> Report:
        assert self._child.stdout is not None
        pipe = self._child.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while (left_s := self._left_s()) > 0:
                if not selector.select(min(left_s, self._bounds.silent)):
                    if left_s <= self._bounds.silent:
                        break
                    return self._hung()
                data = os.read(pipe, 1 << 16)
                if not data:
                    raise Unavailable(
                        f"the doctor's own process ended with {self._child.wait()}; the reason is above"
                    )
                *lines, self._buffer = (self._buffer + data).split(b"\n")
                for line in lines:
                    report = self._hear(codec.load_object(line, "the doctor's own process"))
                    if report is not None:
                        _tidied(self._child)
                        return report
        return self._late()

    def _left_s(self) -> float:
        """How much of the bounds is left, for this trial and for all."""
        trial_s = self._begun_at + self._bounds.of(self._begun) - time.monotonic()
        return trial_s if self._begun == "peers" else min(trial_s, self._over_at - time.monotonic())

    def _hear(self, line: dict[str, Any]) -> Report | None:
        if "begin" in line:
            now = time.monotonic()
            if self._begun == "peers":
                self._over_at += now - self._begun_at
            self._begun, self._together, self._begun_at = line["begin"], bool(line.get("together")), now
        elif "figures" in line:
            name, figures = line["figures"]
            self._found[bool(line.get("together"))][name] = figures
        elif "people" in line:
            self._people, self._missed = line["people"], line["missed"]
        elif "say" in line:
            self._say(line["say"])
        elif "failed" in line:
            self._child.wait()
            raise WaitTimeout(line["failed"]) if line["timeout"] else Unavailable(line["failed"])
        return Report.model_validate(line["report"]) if "report" in line else None

    def _hung(self) -> Report:
        """The report on a share that does not answer, from what had been measured before."""
        self._child.kill()
        deadline = time.monotonic() + 1
        while self._child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        error = f"no answer: the share has not answered for {self._bounds.silent:g} s, at {self._begun}"
        return self._report({"error": error, "hung": True})

    def _late(self) -> Report:
        """The report on a share that answers too slowly for a trial, or for all of them."""
        _end(self._child)
        of_all = self._begun != "peers" and time.monotonic() >= self._over_at
        one_s, all_s = self._bounds.of(self._begun), self._bounds.all
        bound = f"{all_s:g} s, with all trials before it" if of_all else f"{one_s:g} s"
        error = f"a timeout: {self._begun} was not over within {bound}, though the share answers"
        return self._report({"error": error, "late": True})

    def _report(self, end: dict[str, Any]) -> Report:
        order, at = self._order, stamp(time.time())
        self._found[self._together][self._begun] = end
        found = self._found[False], self._found[True], self._people
        return compose(order.node, order.directory, *found, at=at, quick=order.quick, missed=self._missed)


def _tidied(child: subprocess.Popen[bytes]) -> None:
    """Let the child finish its clean-up; what it does not manage in time is left to a later run."""
    with suppress(subprocess.TimeoutExpired):
        child.wait(TIDY_S)
        return
    child.kill()


def _end(child: subprocess.Popen[bytes]) -> None:
    """Let the child clean up; kill one that does not end, since it may hang in the kernel."""
    child.terminate()
    with suppress(subprocess.TimeoutExpired):
        child.wait(TIDY_S)
        return
    child.kill()
