"""The cluster of the demonstration: a spool in a scratch folder, a master, and workers that play the laptops.

Everything is done with the `spool` command, as a person would. Law: whatever happens to the demonstration, nothing
that it started outlives it. Touches: the scratch folder, processes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

LAPTOPS = ("lap1", "lap2", "lap3")
SLOTS = 2
BEAT_S, MISSES = 1.0, 3
SETTINGS = f"""# Written by tools/demo: a dead laptop is noticed sooner than by default.
[heartbeat]
interval_s = {BEAT_S:g}
misses = {MISSES}
"""
SPOOL = (sys.executable, "-P", "-m", "spoold")
ALL_GONE_S = 2.0
LEAVE_S = 10.0


class Trouble(Exception):
    """The cluster does not do what it should; says what was seen."""


def laptop_of(node: str | None) -> str:
    """The name that a worker was started with: its id without what makes it unique."""
    return (node or "").rpartition("-")[0]


class Cluster:
    """A master and its laptops, in a scratch folder of their own."""

    def __init__(self, settings: str = SETTINGS) -> None:
        self.settings, self.slots, self.all_gone_s = settings, SLOTS, ALL_GONE_S
        self.scratch = Path(tempfile.mkdtemp(prefix="spoold-demo-")).resolve()
        self.root = self.scratch / "spool"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._killed: set[str] = set()

    def start(self) -> None:
        """Make the spool and start everybody. Errors: Trouble."""
        self.spool("init", str(self.root))
        (self.root / "spool.toml").write_text(self.settings)
        (self.scratch / "tmp").mkdir()
        self._spawn("master", "master", "--name", "desk")
        for name in LAPTOPS:
            self._spawn(name, "worker", "--name", name, "--slots", str(self.slots), *self.worker_options(name))

    def worker_options(self, laptop: str) -> tuple[str, ...]:
        """With what else a worker is started."""
        return ("--allow-command",)

    def environment(self, name: str) -> dict[str, str]:
        """The environment of a process: of a machine, or of a command (name '')."""
        return {**os.environ, "TMPDIR": str(self.scratch / "tmp")}

    def spool(
        self, *arguments: str, check: bool = True, within_s: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a `spool` command to its end. Errors: Trouble when it fails, unless that is an answer too, and when it
        takes too long.
        """
        try:
            done = subprocess.run(
                self._command(arguments),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                env=self.environment(""),
                timeout=within_s,
            )
        except subprocess.TimeoutExpired as late:
            raise Trouble(f"spool {arguments[0]} has not ended within {within_s:g} s: {late.output!r}") from None
        if check and done.returncode:
            raise Trouble(f"spool {' '.join(arguments)} ended with status {done.returncode}: {done.stdout.strip()}")
        return done

    def check_alive(self) -> None:
        """Errors: Trouble that shows what a process said last, if one has ended that should not have."""
        for name, process in self._processes.items():
            if name not in self._killed and process.poll() is not None:
                raise Trouble(
                    f"{name} ended with status {process.returncode}; it said last:\n{self._last_words(name)}"
                )

    def kill(self, laptop: str) -> tuple[int, float]:
        """Kill a worker and its process group with SIGKILL, which they cannot notice, and watch what becomes of all
        that it had started.

        Returns how many processes those were, and after how many seconds none was left. Errors: Trouble.
        """
        process = self._processes[laptop]
        started = _descendants(process)
        self._killed.add(laptop)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        after_s = _await_end(started, self.all_gone_s)
        if after_s is None:
            raise Trouble(
                f"{self.all_gone_s:g} s after kill -9 of {laptop}, something that it had started still lives"
            )
        return len(started), after_s

    def stop(self, within_s: float = LEAVE_S) -> dict[str, int]:
        """Let everybody leave, laptops first; whoever does not within so many seconds is killed.

        Returns the exit status of each process; a negative one names the signal that ended it.
        """
        started = [child for process in self._processes.values() for child in _descendants(process)]
        for names in (LAPTOPS, ("master",)):
            present = [process for name, process in self._processes.items() if name in names]
            for process in present:
                process.terminate()
            until = time.monotonic() + within_s
            for process in present:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, until - time.monotonic()))
                if process.poll() is None:
                    process.kill()
                    process.wait()
                if process.stdin is not None:
                    process.stdin.close()
        _await_end(started, self.all_gone_s)  # before the scratch folder goes, in which they may be writing
        return {name: process.returncode for name, process in self._processes.items() if name not in self._killed}

    def remove(self) -> None:
        """Remove the scratch folder with all that is in it."""
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _spawn(self, name: str, *arguments: str) -> None:
        """Start a process in a session of its own: Ctrl-C is for us, and we see to everybody.

        Should we be killed ourselves, its standard input ends, and --until-eof lets it leave.
        """
        with self._log(name).open("wb") as log:
            self._processes[name] = subprocess.Popen(
                self._command((*arguments, "--until-eof")),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.scratch,
                env=self.environment(name),
                start_new_session=True,
            )

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        return [*SPOOL, "--spool", str(self.root), *arguments]

    def _log(self, name: str) -> Path:
        return self.scratch / f"{name}.log"

    def _last_words(self, name: str) -> str:
        return self._log(name).read_text(errors="replace")[-2000:].strip() or "(nothing)"


def _descendants(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """All that a process has started, and what that has started; nothing of one that has ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        if process.poll() is None:
            return psutil.Process(process.pid).children(recursive=True)
    return []


def _await_end(processes: list[psutil.Process], within_s: float) -> float | None:
    """After how many seconds all of them had ended; None when some live on for too long."""
    began = time.monotonic()
    while any(map(_lives, processes)):
        if time.monotonic() - began > within_s:
            return None
        time.sleep(0.01)
    return time.monotonic() - began


def _lives(process: psutil.Process) -> bool:
    """Whether a process is there and no zombie, which only waits to be buried."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
