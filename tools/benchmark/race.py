"""Contenders against one another, turn by turn: A B C, A B C, so that a busy minute strikes them all.

Law: rates are compared within a round only, and the median of those ratios is what is quoted.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tools.benchmark.bench import OURS, Bench, tell
from tools.benchmark.figure import Figure, Target, depth, ratios
from tools.benchmark.machine import Place
from tools.benchmark.order import Order, Outcome


@dataclass(frozen=True, slots=True)
class Entry:
    """A contender as it takes part. deepest: the largest backlog that it is given; chunk: its calls per task."""

    label: str
    contender: str
    fsync: bool = False
    deepest: int = 1_000_000
    slots: int | None = None
    chunk: int = 1


@dataclass(frozen=True, slots=True)
class Goal:
    """Of the ratio between two entries at the backlogs from `least` on; most: and up to there."""

    ours: str
    theirs: str
    target: Target | None = None
    least: int = 0
    most: int = 10_000_000


@dataclass(frozen=True, slots=True)
class Mode:
    """What happens meanwhile (see `Order`), how long a task takes (s), how many times the usual backlog it needs.

    rounds: at most so many.
    """

    mode: str = "drain"
    nap_s: float = 0.0
    times: int = 1
    rounds: int = 100


DRAIN = Mode()
Results = dict[tuple[str, int], list[Outcome]]


def race(
    bench: Bench,
    part: str,
    tier: str,
    place: Place,
    entries: Sequence[Entry],
    depths: Sequence[int],
    mode: Mode = DRAIN,
) -> Results:
    """Every entry at every backlog, in turn, as many rounds as that backlog has."""
    results: Results = {}
    rounds = {tasks: min(bench.rounds(place, tasks), mode.rounds) for tasks in depths}
    for turn in range(max(rounds.values())):
        for tasks in depths:
            if turn >= rounds[tasks]:
                continue
            for entry in entries:
                if tasks <= entry.deepest:
                    outcome = bench.run(entry.contender, place, _order(bench, tier, entry, tasks, mode))
                    results.setdefault((entry.label, tasks), []).append(outcome)
                    said = outcome.missing or f"{outcome.rate:,.0f}/s"
                    tell(f"{part} {place.kind} {depth(tasks)} round {turn + 1}: {entry.label} {said}")
    return results


def _order(bench: Bench, tier: str, entry: Entry, tasks: int, mode: Mode) -> Order:
    # A drain may be cut off, since its rate counts all the same; what is lost is only known at the end.
    short = mode.mode == "drain" and entry.contender not in OURS
    bound = bench.scale.peer_bound_s if short else bench.scale.bound_s
    return Order(
        "",
        tier,
        mode.mode,
        tasks * mode.times * entry.chunk,
        bound_s=bound,
        fsync=entry.fsync,
        slots=entry.slots,
        nap_s=mode.nap_s,
        chunk=entry.chunk,
    )


def rates(part: str, tier: str, place: Place, entries: Sequence[Entry], results: Results) -> list[Figure]:
    """A figure for each entry at each backlog, with what was lost, doubled and spent beside it."""
    figures = []
    for (label, tasks), outcomes in sorted(results.items(), key=lambda item: item[0][1]):
        good = [outcome for outcome in outcomes if not outcome.missing]
        entry = next(one for one in entries if one.label == label)
        key = {"label": label, "tier": tier, "place": place.kind, "backlog": tasks, "fsync": entry.fsync}
        name = f"{place.kind} {depth(tasks)}: {label}"
        note = next((f"missing: {outcome.missing}" for outcome in outcomes if outcome.missing), "")
        if not note and any(outcome.done < tasks * entry.chunk and not outcome.lost for outcome in good):
            note = "cut off"
        rate = tuple(outcome.rate for outcome in good)
        figures.append(Figure(part, name, "tasks/s", rate, None, note, beside(good), key))
    return figures


def beside(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Lost and doubled in all rounds together, and medians of the rest."""
    if not outcomes:
        return {}
    more: dict[str, float] = {
        "lost": sum(outcome.lost for outcome in outcomes),
        "doubled": sum(outcome.doubled for outcome in outcomes),
        "fill/s": statistics.median(outcome.fill for outcome in outcomes),
        "done": statistics.median(outcome.done for outcome in outcomes),
    }
    for name in outcomes[0].more:
        more[name] = statistics.median(outcome.more[name] for outcome in outcomes if name in outcome.more)
    return more


def compared(part: str, tier: str, place: Place, goals: Sequence[Goal], results: Results) -> list[Figure]:
    """The ratio of each goal at each backlog that it is meant for."""
    figures = []
    for tasks in sorted({tasks for _, tasks in results}):
        for goal in goals:
            if not goal.least <= tasks <= goal.most:
                continue
            ours, theirs = results.get((goal.ours, tasks), []), results.get((goal.theirs, tasks), [])
            if not ours or not theirs:
                continue
            pairs = [(a, b) for a, b in zip(ours, theirs, strict=False) if not a.missing and not b.missing]
            samples = ratios([a.rate for a, _ in pairs], [b.rate for _, b in pairs])
            name = f"{place.kind} {depth(tasks)}: {goal.ours} / {goal.theirs}"
            note = "" if samples else "missing: one of the two could not be measured"
            key = {"ours": goal.ours, "theirs": goal.theirs, "tier": tier, "place": place.kind, "backlog": tasks}
            figures.append(Figure(part, name, "×", samples, goal.target, note, key=key))
    return figures


def flatness(part: str, place: Place, label: str, results: Results, target: Target) -> list[Figure]:
    """The rate of one entry at each backlog over its rate at the least one."""
    depths = sorted(tasks for name, tasks in results if name == label)
    figures = []
    for tasks in depths[1:]:
        base = [outcome.rate for outcome in results[label, depths[0]] if not outcome.missing]
        samples = ratios([one.rate for one in results[label, tasks] if not one.missing], base)
        wanted = target if tasks >= 100_000 else None
        name = f"{place.kind}: {label} at {depth(tasks)} / at {depth(depths[0])}"
        figures.append(Figure(part, name, "×", samples, wanted))
    return figures
