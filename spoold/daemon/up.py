"""`spool up`: a master and workers as children of one process, for one machine and for trials.

A child that dies is started again, unless a file that it reads is wrong: the next one would read the same. Ctrl-C
drains all of them, a second Ctrl-C hands back their running tasks.

Law: each child drains when its standard input ends, so none outlives this process, however it ends. The workers end
before the master, so that a leader still takes the tasks that they hand back.

Touches: processes, the clock, the environment.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field

from spoold.daemon.daemon_log import configure
from spoold.daemon.signals import Signals, at_eof
from spoold.runner.process_tree import conceal

log = logging.getLogger("spoold")

AGAIN_AFTER_S = 1.0
EXIT_MISCONFIGURED = 2  # the exit status of `spool master` and `spool worker` after they named a wrong file
LOOK_S = 0.2


@dataclass(slots=True)
class Child:
    """One child: its command, and its process while there is one. hopeless: it is not started again."""

    label: str
    command: list[str]
    process: subprocess.Popen[bytes] | None = None
    ended_at: float = field(default=-1e9)
    hopeless: bool = False

    def start(self) -> None:
        """Start it; its standard input stays open for as long as this process lives."""
        # Its own session: Ctrl-C at a terminal must reach this process only, which signals its children.
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, start_new_session=True)

    def signal(self, number: int) -> None:
        """Send it a signal, if it lives."""
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)


def up(
    root: str,
    *,
    workers: int = 1,
    slots: int | None = None,
    allow_command: bool = False,
    name: str | None = None,
    config: str | None = None,
    until_eof: bool = False,
) -> int:
    """Run a master and workers until a signal; returns the exit status."""
    configure()
    conceal()  # its environment is that of its children, and their tasks must not read it here either
    base = [sys.executable, "-m", "spoold", "--spool", root]
    options = [*(("--slots", str(slots)) if slots else ()), *(("--allow-command",) if allow_command else ())]
    options += ["--config", config] if config else []
    stem = name or os.uname().nodename.partition(".")[0].lower()
    children = [Child("master", [*base, "master", "--name", stem, "--until-eof"])]
    for number in range(1, workers + 1):
        label = f"{stem}-{number}" if workers > 1 else stem
        children.append(Child(label, [*base, "worker", "--name", label, *options, "--until-eof"]))
    return _Family(children).run(until_eof)


class _Family:
    """The children: started, restarted and ended together."""

    def __init__(self, children: list[Child]) -> None:
        self._children = children
        self._signals = Signals()

    def run(self, until_eof: bool) -> int:
        self._signals.catch()
        if until_eof:
            at_eof(lambda: self._signals.receive(signal.SIGTERM))
        told = 0
        while not self._signals.numbers and self._lacking() is None:
            for child in self._children:
                self._tend(child)
            self._signals.wait(LOOK_S)
            for number in self._signals.naps[told:]:
                told += 1
                for child in self._children:
                    child.signal(number)
        lacking = self._lacking()
        if lacking is not None:
            log.error("no %s can start as it is configured; fix that, then run `spool up` again", lacking)
        # A program that holds our standard input presses no keys.
        log.info("draining%s", "" if until_eof else "; Ctrl-C again hands back running tasks")
        self._leave()
        return 0 if lacking is None else EXIT_MISCONFIGURED

    def _lacking(self) -> str | None:
        """Return the role, master or worker, that no child can fill any more; None if both can."""
        groups = {"master": self._children[:1], "worker": self._children[1:]}
        return next((role for role, group in groups.items() if group and all(c.hopeless for c in group)), None)

    def _tend(self, child: Child) -> None:
        """Start a child that does not run, except after a clean end (a drain)."""
        now = time.monotonic()
        if child.process is None:
            if now - child.ended_at >= AGAIN_AFTER_S:
                self._start(child, now)
            return
        status = child.process.poll()
        if status is None or status == 0 or child.hopeless:
            return
        if status == EXIT_MISCONFIGURED:
            child.hopeless = True
            log.error("%s ended with status 2, for the reason above: it is not started again", child.label)
            return
        log.warning("%s ended with status %d; it is started again", child.label, status)
        child.process, child.ended_at = None, now

    def _start(self, child: Child, now: float) -> None:
        """Start a child; without memory or processes for it, log that and try again later."""
        try:
            child.start()
        except OSError as error:
            log.warning("%s cannot be started: %s; it is tried again", child.label, error)
            child.ended_at = now

    def _leave(self) -> None:
        """End the workers first, so that a leader still takes the tasks that they hand back."""
        workers, masters = self._children[1:], self._children[:1]
        told = 0
        for group in (workers, masters):
            for child in group:
                child.signal(signal.SIGTERM)
            while any(child.process is not None and child.process.poll() is None for child in group):
                if len(self._signals.numbers) > 1 + told:
                    told = len(self._signals.numbers) - 1
                    for child in self._children:
                        child.signal(signal.SIGTERM)
                time.sleep(LOOK_S / 4)
