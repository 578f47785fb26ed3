"""What the runner's tests share: jobs with little typing, patient waiting, and finding processes by arguments."""

import itertools
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from spoold.runner import process_tree
from spoold.runner.job import Call, Command, Ending, Job
from spoold.runner.job_runner import Runner

PATIENCE_S = 20.0
_marks = itertools.count(1)


class Bench:
    """A runner, a directory for its outputs, and a mark: a sleep duration that no other test sleeps."""

    def __init__(self, runner: Runner, where: Path) -> None:
        self.runner = runner
        self.where = where
        self.mark = new_mark()
        self._keys = itertools.count(1)

    def job(self, run: Command | Call, **more: Any) -> Job:
        """A job with a new key in the test's directory."""
        key = f"task{next(self._keys)}.1"
        settings: dict[str, Any] = {"env": dict(os.environ), "cwd": str(self.where), **more}
        return Job(key=key, run=run, output_path=str(self.output(key)), **settings)

    def output(self, key: str) -> Path:
        return self.where / f"{key}.log"

    def shell(self, script: str, **more: Any) -> Job:
        """A job that runs a shell script, in which $MARK is this bench's mark."""
        return self.job(Command(("/bin/sh", "-c", f"MARK={self.mark}; {script}")), **more)

    def python(self, script: str, **more: Any) -> Job:
        return self.job(Command((sys.executable, "-c", script)), **more)

    def ended(self, job: Job) -> Ending:
        """Runs the job to its end."""
        self.runner.start(job)
        return self.next()

    def next(self) -> Ending:
        """The next ending; exactly one, since most tests run one job at a time."""
        (ending,) = endings(self.runner, 1)
        return ending

    def marked(self) -> list[int]:
        return marked(self.mark)


def new_mark() -> str:
    """Seconds to sleep that tell this process's sleeps from all others, also of tests at the same time."""
    return f"4{os.getpid():07d}.{next(_marks):04d}"


def endings(runner: Runner, count: int) -> list[Ending]:
    """Waits for this many endings."""
    found: list[Ending] = []
    until = time.monotonic() + PATIENCE_S
    while len(found) < count:
        assert time.monotonic() < until, f"only {found} ended"
        runner.wait(1.0)
        found += runner.poll()
    return found


def eventually(condition: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    """Waits until the condition holds."""
    until = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until, "it never came true"
        time.sleep(0.005)


def marked(mark: str) -> list[int]:
    """The living processes that have the mark as an argument or inside one, without this one."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            arguments = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in arguments:
            found.append(int(name))
    return found


def lives(pid: int) -> bool:
    """Whether the process runs; a zombie that nobody has collected yet does not."""
    seen = process_tree.look(pid)
    return seen is not None and seen.alive


def environment(**more: str) -> Mapping[str, str]:
    """A complete environment with something added."""
    return {**os.environ, **more}
