"""The process that waits for the one that touches the share, but not for ever.

Law: nothing here touches the share: on a hard mount whose server is away every call blocks, and not even SIGKILL ends
it. A child that is silent for too long is killed and left to the kernel. May touch: its own child processes.

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
from typing import Any

from spoold.doctor.child import Order
from spoold.doctor.records import compose
from spoold.protocol import codec
from spoold.protocol.errors import BadName, Unavailable, WaitTimeout, legible
from spoold.protocol.report import Report
from spoold.store.store import stamp
from spoold.system.host import this_host

SILENT_S = 30.0
TIDY_S = 10.0

Say = Callable[[str], None]


def examine(order: Order, say: Say = lambda text: None, *, silent_s: float = SILENT_S) -> Report:
    """Make the trials in a child process and return the report. say gets lines for the person who waits.

    silent_s: after so long without a returned call, the report says that the share does not answer.
    Errors: WaitTimeout when too few machines came, Unavailable when there is nothing to examine, BadName for a path
    that no report could hold.
    """
    if order.directory != legible(order.directory):
        where = legible(order.directory)
        raise BadName(f"{where} is not UTF-8, as configurations and reports must be. Fix: rename the directory.")
    command = [sys.executable, "-m", "spoold.doctor.child", order.encode()]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
    try:
        return _Following(order, child, say, silent_s).follow()
    except BaseException:
        _end(child)
        raise
    finally:
        assert child.stdout is not None
        child.stdout.close()


class _Following:
    """The lines of the child so far."""

    def __init__(self, order: Order, child: subprocess.Popen[bytes], say: Say, silent_s: float) -> None:
        self._order = order
        self._child = child
        self._say = say
        self._silent_s = silent_s
        self._measured: dict[str, dict[str, Any]] = {}
        self._begun = "start"
        self._buffer = b""

    def follow(self) -> Report:
        assert self._child.stdout is not None
        pipe = self._child.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while selector.select(self._silent_s):
                data = os.read(pipe, 1 << 16)
                if not data:
                    raise Unavailable(
                        f"the doctor's own process ended with {self._child.wait()}; the reason is above"
                    )
                *lines, self._buffer = (self._buffer + data).split(b"\n")
                for line in lines:
                    report = self._hear(codec.load_object(line, "the doctor's own process"))
                    if report is not None:
                        self._child.wait()
                        return report
        return self._hung()

    def _hear(self, line: dict[str, Any]) -> Report | None:
        if "begin" in line:
            self._begun = line["begin"]
        elif "figures" in line:
            name, figures = line["figures"]
            self._measured[name] = figures
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
        error = f"no answer: the share has not answered for {self._silent_s:g} s, at {self._begun}"
        measured = {**self._measured, self._begun: {"error": error, "hung": True}}
        here = this_host()
        host = {"hostname": here.hostname, "boot_id": here.boot_id}
        people = {self._order.node: {"host": host, "measured": measured}}
        at = stamp(time.time())
        return compose(self._order.node, self._order.directory, measured, {}, people, at=at, quick=self._order.quick)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Let the child clean up; kill one that does not end, since it may hang in the kernel."""
    child.terminate()
    with suppress(subprocess.TimeoutExpired):
        child.wait(TIDY_S)
        return
    child.kill()
