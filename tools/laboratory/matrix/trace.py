"""What commands wrote of themselves on the laptops, and when two of them ran one task at the same time. Pure.

Law: times are the host's monotonic seconds. Each guest counts from its own boot; the lab knows the difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

# A command writes each half second. One that was silent for longer was frozen, with its laptop, and did not run.
SILENT_S = 2.0


@dataclass(frozen=True, slots=True)
class Execution:
    """One start of a command. seen: when it wrote, the first when it started; ended: whether it came to its end."""

    id: str
    attempt: int
    worker: str
    laptop: str
    seen: tuple[float, ...]
    ended: bool

    @property
    def name(self) -> tuple[str, int, str]:
        """Which attempt this is a start of."""
        return self.id, self.attempt, self.worker

    @property
    def began(self) -> float:
        """When it started."""
        return self.seen[0]

    @property
    def last(self) -> float:
        """When it was last seen to live: it ended then, or was killed within half a second."""
        return self.seen[-1]

    def spans(self) -> list[tuple[float, float]]:
        """When it ran: from first to last sign of life, without the gaps."""
        spans = [(self.seen[0], self.seen[0])]
        for moment in self.seen[1:]:
            if moment - spans[-1][1] <= SILENT_S:
                spans[-1] = (spans[-1][0], moment)
            else:
                spans.append((moment, moment))
        return spans


def parse_trace(text: str, laptop: str, ahead_s: float) -> list[Execution]:
    """The executions of a laptop's trace; ahead_s: the host's clock less the laptop's. A torn line is passed over."""
    running: dict[tuple[str, int, str], tuple[list[float], bool]] = {}
    done: list[Execution] = []
    for line in text.splitlines():
        words = line.split()
        if len(words) != 5:
            continue
        kind, up, task, attempt, worker = words
        name, moment = (task, int(attempt), worker), float(up) + ahead_s
        if kind == "start" and name in running:
            seen, ended = running.pop(name)
            done.append(Execution(*name, laptop, tuple(seen), ended))
        seen, ended = running.get(name, ([], False))
        running[name] = ([*seen, moment], ended or kind == "end")
    done += [Execution(*name, laptop, tuple(seen), ended) for name, (seen, ended) in running.items()]
    return sorted(done, key=lambda execution: execution.began)


def overlap_s(executions: Iterable[Execution]) -> dict[str, float]:
    """Per task that ran twice at the same time: for how many seconds."""
    by_id: dict[str, list[Execution]] = {}
    for execution in executions:
        by_id.setdefault(execution.id, []).append(execution)
    found: dict[str, float] = {}
    for task, starts in by_id.items():
        for one, other in combinations(starts, 2):
            both = sum(
                max(0.0, min(ends, others_end) - max(begins, others_begin))
                for begins, ends in one.spans()
                for others_begin, others_end in other.spans()
            )
            if both > 0:
                found[task] = found.get(task, 0.0) + both
    return found
