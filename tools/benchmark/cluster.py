"""The cluster that is measured: default settings, one master, three workers, in a scratch folder.

Everything is done with the `spool` command. Law: nothing that it started outlives it. Touches: the scratch folder,
processes.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

SPOOL = (sys.executable, "-P", "-m", "spoold")
WORKERS = ("lap1", "lap2", "lap3")
READY_WITHIN_S = 30.0
LEAVE_WITHIN_S = 15.0


class Trouble(Exception):
    """The cluster does not do what it should; says what was seen."""


class Cluster:
    """A spool with a master and three workers behind it, while the `with` lasts."""

    def __init__(self, parent: str | None) -> None:
        self.scratch = Path(tempfile.mkdtemp(prefix="spoold-bench-", dir=parent)).resolve()
        self.root = self.scratch / "spool"
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Cluster:
        try:
            self.spool("init", str(self.root))
            self._spawn("master")
            for name in WORKERS:
                self._spawn("worker", "--name", name, "--allow-command")
            self._await_all()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._end()

    def spool(self, *arguments: str) -> str:
        """Run a `spool` command to its end; returns what it printed. Errors: Trouble."""
        done = subprocess.run(self._command(*arguments), stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode:
            raise Trouble(f"spool {' '.join(arguments)}: status {done.returncode}: {done.stderr.decode().strip()}")
        return done.stdout.decode()

    def cpu_s(self) -> float:
        """Seconds of CPU that the master and the workers have used, with all that they started."""
        used = 0.0
        for process in self.processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                top = psutil.Process(process.pid)
                for one in (top, *top.children(recursive=True)):
                    times = one.cpu_times()
                    used += times.user + times.system
        return used

    def status(self) -> dict[str, Any]:
        """What `spool status --json` says. Errors: Trouble."""
        found: dict[str, Any] = json.loads(self.spool("status", "--json"))
        return found

    def _spawn(self, *arguments: str) -> None:
        # Should we be killed ourselves, their standard input ends, and --until-eof lets them leave.
        command = [*self._command(*arguments), "--until-eof"]
        log = (self.scratch / f"{len(self.processes)}.log").open("wb")
        with log:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=self.scratch, start_new_session=True
            )
        self.processes.append(process)

    def _command(self, *arguments: str) -> list[str]:
        return [*SPOOL, "--spool", str(self.root), *arguments]

    def _await_all(self) -> None:
        until = time.monotonic() + READY_WITHIN_S
        while True:
            status = self.status()
            if status["master"]["leader"] and status["workers"]["alive"] == len(WORKERS):
                return
            if time.monotonic() > until:
                raise Trouble(f"no leader and {len(WORKERS)} workers within {READY_WITHIN_S:g} s: {status}")
            time.sleep(0.2)

    def _end(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        until = time.monotonic() + LEAVE_WITHIN_S
        for process in self.processes:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdin is not None:
                process.stdin.close()
        shutil.rmtree(self.scratch, ignore_errors=True)
