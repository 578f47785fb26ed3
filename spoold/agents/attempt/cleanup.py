"""Saves and removes workspaces that nobody uses any more, beside an attempt: what another one left takes none of its
time.

    python -P -m spoold.agents.attempt.cleanup REPO DIR

It stands apart from `own_workspace`, its one user: it is the program of a process of its own.

Law: it is ended with the attempt, at any point; the next one goes on. The secrets that it looks for in what others
left are those of the attempt beside which it runs: a profile's are the same for each of its tasks.

Touches: processes, the environment.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from itertools import islice

from spoold.agents.configuration.redactor import scanning
from spoold.agents.workspace.attempt_workspace import collect
from spoold.agents.workspace.workspace_layout import Places, read_record

NICE = 10


class Tidying:
    """One such process; none where no other workspace of the repository is there."""

    def __init__(self, where: Places, repo: str) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        mine = (folder for folder in where.folders() if _may_be_of(folder, repo))
        if len(list(islice(mine, 2))) > 1:  # a machine may keep thousands, and the agent waits for this
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, repo, where.top],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def end(self) -> None:
        """End it, with all that it has started. Errors: none."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


def _may_be_of(folder: str, repo: str) -> bool:
    try:
        record = read_record(folder)
    except OSError:
        return True
    return record is None or record.config.repo == repo


def main(repo: str, top: str) -> int:
    """Do so for one repository; returns the exit code."""
    os.nice(NICE)
    with suppress(OSError):  # anyone who looks at them, as `spool workspace gc` does, is told what stays
        collect(Places(top), repo=repo, scanner=scanning())
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
