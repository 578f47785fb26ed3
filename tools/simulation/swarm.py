"""Many seeds over many processes, with a bar for people and lines for logs.

Law: a seed that was begun is finished and counted, whatever the time says; no more seeds wait than processes can
take, so that the end of the time is the end of the run.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tests.sim.universe import Outcome
from tests.sim.worlds import simulate_in

LINE_EVERY_S = 15.0


@dataclass(slots=True)
class Swarm:
    """What many seeds came to. real_s: how long that took; faults: how often, by kind and by kind of share."""

    seeds: int = 0
    real_s: float = 0.0
    simulated_s: float = 0.0
    turns: int = 0
    moves: int = 0
    commits: int = 0
    fenced: int = 0
    flavours: Counter[str] = field(default_factory=Counter)
    faults: Counter[tuple[str, str]] = field(default_factory=Counter)
    violations: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count a seed."""
        self.seeds += 1
        self.simulated_s += outcome.simulated_s
        self.turns += outcome.turns
        self.moves += outcome.moves
        self.commits += outcome.commits
        self.fenced += outcome.fenced
        self.flavours[outcome.flavour] += 1
        self.faults.update((name.partition(" ")[0] + _blow(name), outcome.flavour) for name in outcome.struck)
        if outcome.broken is not None:
            self.violations.append(outcome)


def swarm(
    console: Console, seeds: range, time_s: float | None, jobs: int, log: str | None, world: str = "fit"
) -> Swarm:
    """Simulate these seeds, beginning none after `time_s` real seconds; Ctrl-C ends it early.

    world: in which, one of worlds.WORLDS; log: a file to which each outcome is added as a line of JSON.
    Errors: OSError of the log.
    """
    result = Swarm()
    began = time.monotonic()
    with open(log, "a", encoding="utf-8") if log else nullcontext() as file, _Shown(console, len(seeds)) as shown:
        try:
            for outcome in _outcomes(seeds, None if time_s is None else began + time_s, jobs, world):
                result.add(outcome)
                result.real_s = time.monotonic() - began
                shown.show(result)
                if file is not None:
                    file.write(json.dumps(asdict(outcome)) + "\n")
        except KeyboardInterrupt:
            console.print("interrupted: what was done so far")
    return result


def _outcomes(seeds: range, until: float | None, jobs: int, world: str) -> Iterator[Outcome]:
    waiting: set[Future[Outcome]] = set()
    left = iter(seeds)
    # A fresh interpreter for each process: a fork would copy the thread that draws the bar.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        while True:
            while len(waiting) < 2 * jobs and (until is None or time.monotonic() < until):
                seed = next(left, None)
                if seed is None:
                    break
                waiting.add(pool.submit(simulate_in, world, seed))
            if not waiting:
                return
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()


class _Shown:
    """How far it is: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._total = total
        self._line_at = time.monotonic() + LINE_EVERY_S
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("seeds", total=total)

    def __enter__(self) -> _Shown:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, result: Swarm) -> None:
        """One more seed is done."""
        count = len(result.violations)
        self._bar.update(self._task, completed=result.seeds, description=f"seeds, {count} violations")
        if not self._console.is_terminal and time.monotonic() >= self._line_at:
            self._line_at += LINE_EVERY_S
            self._console.print(
                f"{result.seeds} of {self._total} seeds, {count} violations, {result.real_s:.0f} s", soft_wrap=True
            )


def _blow(name: str) -> str:
    """Blows strike machines and the server; other faults strike single calls. Some kinds come as both."""
    return " (server)" if name.startswith(("full blow", "power blow")) else ""
