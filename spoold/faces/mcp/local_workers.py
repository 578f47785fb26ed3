"""The workers that this server starts on its own machine: how many, by which configuration, and their processes.

A pool has no broker that could start a worker elsewhere, and opens no port: a server reaches its own machine only.

Law: the person who starts the server decides how many there may be and what they may run; no call changes that. Their
standard input ends with the server: then each drains. None is ever killed.

Touches: processes, threads, the terminal.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from dataclasses import dataclass

from spoold.client.spool import submission
from spoold.protocol.amount import amount
from spoold.protocol.errors import SpoolError

CREW_MOST = 200
OFF = (
    "this server starts no workers. Fix: a person starts it with `spool mcp --role operator --spawn N "
    "--worker-config FILE`, which lets it start N of them on its own machine."
)


@dataclass(slots=True)
class Hand:
    """One worker that was started here. kind: the type that it takes, '' for all that it can; leaving: it drains."""

    name: str
    kind: str
    process: subprocess.Popen[bytes]
    leaving: bool = False


class Crew:
    """The workers of one server. Thread-safe."""

    def __init__(self, directory: str, most: int = 0, config: str = "") -> None:
        """directory: of the spool; most: how many workers there may be; config: their file."""
        self.most = most
        self._command = [sys.executable, "-m", "spoold", "--spool", directory, "worker", "--until-eof"]
        self._command += ["--config", config]
        self._stem = f"mcp-{submission.suffix()}"
        self._hands: list[Hand] = []
        self._started = 0
        self.changing = threading.Lock()

    def living(self) -> list[Hand]:
        """Return those whose process lives, in the order in which they were started."""
        self._hands = [hand for hand in self._hands if hand.process.poll() is None]
        return list(self._hands)

    def require(self) -> None:
        """Errors: SpoolError where this server starts no workers."""
        if not self.most:
            raise SpoolError(OFF)

    def start(self, count: int, kind: str, slots: int) -> list[Hand]:
        """Start so many more. Errors: SpoolError, with none started, where that would be too many; OSError."""
        self.require()
        here = len(self.living())
        if here + count > self.most:
            raise SpoolError(
                f"{amount(here, 'worker')} of this server {'lives' if here == 1 else 'live'}, and with {count} more "
                f"they would be more than {self.most}. Fix: ask for at most {self.most - here}, or let a person "
                "start the server with a larger --spawn."
            )
        started = [self._start_one(kind, slots) for _ in range(count)]
        self._hands += started
        return started

    def close(self) -> None:
        """Let them drain. They outlive the server for as long as their tasks take."""
        for hand in self.living():
            if hand.process.stdin is not None:
                with contextlib.suppress(OSError):
                    hand.process.stdin.close()

    def _start_one(self, kind: str, slots: int) -> Hand:
        self._started += 1
        name = f"{self._stem}-{self._started}"
        command = [*self._command, "--name", name, "--slots", str(slots), *(("--types", kind) if kind else ())]
        # Over stdio the server's own stdout is the protocol's. Its own session: a Ctrl-C is for the server alone.
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=sys.stderr, start_new_session=True)
        return Hand(name, kind, process)
