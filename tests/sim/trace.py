"""What happened in a run, for people: who did what, when, what became of it, and which fault came in between.

Law: it listens and changes nothing, so the run that it tells is the run that failed. What is told is what truly
happened at the server; a fault between two lines says what the caller was told instead.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Container
from typing import Any

from tests.sim import universe as played
from tests.sim.laws import token_at
from tests.sim.universe import Outcome, Universe

# A drop of a client bears the time and the id; what else lies in pending/ says nothing in its name.
_DROP = re.compile(r"[0-9a-z]{10}\.([\w-]+)\.json$")
LOOKS = ("list", "stat", "usage", "sync", "flush")


def tell(seed: int, suppressed: Container[str] = frozenset()) -> tuple[Outcome, list[str]]:
    """One seed once more, and its story: all faults, and what concerns the tasks that the broken law speaks of."""
    universe = played.Universe(seed, suppressed)  # that of the world, which may have another
    ear = _Ear(universe)
    outcome = universe.run()
    ids = _concerned(outcome.broken or "", {asked.id for asked in universe.laws.asked.values()})
    for run in universe.executions:
        ear.add(run.begin, run.worker, f"RUNS {run.task}, attempt {run.attempt}", run.task)
        if run.end is not None:
            ear.add(run.end, run.worker, f"STOPS {run.task}, attempt {run.attempt}", run.task)
    return outcome, ear.lines(ids)


def _concerned(broken: str, known: set[str]) -> set[str]:
    """The tasks that are named in what went wrong; all of them if none is."""
    # A law that lists the whole tree names every task: what it speaks of comes first.
    head = broken.partition(";")[0]
    return {id_ for id_ in known if re.search(rf"(?<![\w-]){re.escape(id_)}(?![\w-])", head)} or known


class _Ear:
    """Hears calls and faults; keeps what a reader may want. about: the task a line is of, None if it is of all."""

    def __init__(self, universe: Universe) -> None:
        self._universe = universe
        self._heard: list[tuple[float, str, str, str | None]] = []
        universe.server.heard = self._call
        universe.weather.heard = self._fault

    def add(self, moment: float, who: str, what: str, about: str | None) -> None:
        """Note a line."""
        self._heard.append((moment, who, what, about))

    def lines(self, ids: set[str]) -> list[str]:
        """What concerns these tasks, in order of time."""
        chosen = [heard for heard in self._heard if heard[3] is None or heard[3] in ids]
        return [f"{moment:9.3f} s  {who:10}  {what}" for moment, who, what, _ in sorted(chosen, key=lambda h: h[0])]

    def _fault(self, text: str) -> None:
        self._now("", f"FAULT {text}", None)

    def _call(self, verb: str, args: tuple[object, ...], error: BaseException | None) -> None:
        if verb == "append" and error is None and str(args[0]).startswith("events/"):
            self._events(args[1])
        elif verb not in LOOKS and verb != "append" and not (verb == "read" and error is None):
            paths = [arg for arg in args if isinstance(arg, str)]
            about = next(filter(None, map(_task_of, paths)), None)
            if about is not None:
                self._now(self._who(), f"{verb} {' → '.join(paths)}{_fate(error)}", about)

    def _events(self, data: object) -> None:
        assert isinstance(data, bytes)
        for line in filter(None, data.splitlines()):  # an empty one ends what may have been cut short before
            event: dict[str, Any] = json.loads(line)
            if "task" in event or event["event"] in ("LEADER_ELECTED", "WORKER_DIED"):
                said = json.dumps(event["detail"]) if event.get("detail") else ""
                attempt = f", attempt {event['attempt']}" if "attempt" in event else ""
                about = event.get("task")
                self._now(event["writer"], f"EVENT {event['event']} {about or ''}{attempt} {said}".rstrip(), about)

    def _who(self) -> str:
        process = self._universe.scheduler.current
        return process.name if process is not None else "-"

    def _now(self, who: str, what: str, about: str | None) -> None:
        self.add(self._universe.scheduler.now, who, what, about)


def _task_of(path: str) -> str | None:
    """The task a path is of."""
    name = token_at(path)
    if name is not None:
        return name.id
    room, _, file = path.partition("/")
    if room in ("results", "logs"):
        return file.partition(".")[0]
    drop = _DROP.match(file) if room == "pending" else None
    return drop[1] if drop else None


def _fate(error: BaseException | None) -> str:
    if error is None:
        return ""
    if isinstance(error, OSError) and error.errno is not None:
        return f"  ✗ {errno.errorcode.get(error.errno, error.errno)}"
    return f"  ✗ {error}"
