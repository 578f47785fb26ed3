"""queue, call, process: how many tasks a second, against every peer, at every backlog, with and without fsync.

Of the peers only jug calls fsync; it runs with it, as it comes, and with it taken out. The others are compared with
spoold without. A target stands where the difference is one of structure that a change here could lose; for all other
pairs `position` says how they stand.
"""

from __future__ import annotations

from tools.benchmark.bench import Bench
from tools.benchmark.figure import Figure, Target
from tools.benchmark.race import Entry, Goal, compared, flatness, race, rates

SPOOLD = Entry("spoold", "spoold")
DURABLE = Entry("spoold, fsync", "spoold", fsync=True)
CEILING = Entry("the ceiling", "sketch")
DURABLE_CEILING = Entry("the ceiling, fsync", "sketch", fsync=True)
OWN = (SPOOLD, CEILING, DURABLE, DURABLE_CEILING)
# jug holds every task of its jugfile in each process, and needs minutes to begin with a million.
JUG, DURABLE_JUG = (Entry(f"jug{tail}", "jug", bool(tail), deepest=100_000) for tail in ("", ", fsync"))
CHUNK = 100
CHUNKS = (
    Entry("spoold, map", "executor", chunk=CHUNK),
    Entry("jug, map", "jug", chunk=CHUNK),
    Entry("jug, one by one", "jug"),
)
DEPTH_HOLDS = Target(0.8)


def queue(bench: Bench) -> list[Figure]:
    """Queue only: put in, take out, acknowledge; nothing is run."""
    entries = (*OWN, Entry("huey", "huey"), Entry("kombu", "celery"), Entry("dirq", "dirq"))
    goals = (
        Goal("spoold", "the ceiling"),
        Goal("spoold, fsync", "the ceiling, fsync"),
        Goal("spoold", "huey"),
        Goal("spoold", "kombu"),
        Goal("spoold", "dirq"),
    )
    return _tier(bench, "queue", entries, goals)


def call(bench: Bench) -> list[Figure]:
    """A Python callable in a warm process, end to end with results; two workers each."""
    entries = (*OWN, Entry("huey", "huey"), Entry("celery", "celery"), JUG, DURABLE_JUG)
    goals = (
        Goal("spoold", "the ceiling"),
        Goal("spoold, fsync", "the ceiling, fsync"),
        Goal("spoold", "huey"),
        Goal("spoold", "celery"),
        Goal("spoold", "jug"),
        Goal("spoold, fsync", "jug, fsync"),
    )
    return [*_tier(bench, "call", entries, goals), *_chunks(bench)]


def _chunks(bench: Bench) -> list[Figure]:
    """The same calls, a hundred to a task; the backlog is in tasks, the rate in calls."""
    figures = []
    goals = (Goal("spoold, map", "jug, map", Target(6)), Goal("spoold, map", "jug, one by one"))
    for place in bench.places:
        results = race(bench, "call", "call", place, CHUNKS, bench.scale.depths[:1])
        figures += rates("call", "map", place, CHUNKS, results)
        figures += compared("call", "map", place, goals, results)
    return figures


def process(bench: Bench) -> list[Figure]:
    """One process for each task: `/bin/true`."""
    entries = (SPOOLD, CEILING, DURABLE, Entry("HyperQueue", "hyperqueue"), Entry("nq", "nq"))
    goals = (
        Goal("spoold", "the ceiling"),
        Goal("spoold", "HyperQueue"),
        Goal("spoold", "nq", Target(1.5)),
        Goal("the ceiling", "nq"),
    )
    figures = []
    depths = bench.scale.depths[:1]
    for place in bench.places:
        results = race(bench, "process", "process", place, entries, depths)
        figures += rates("process", "process", place, entries, results)
        figures += compared("process", "process", place, goals, results)
    return figures


def _tier(bench: Bench, tier: str, entries: tuple[Entry, ...], goals: tuple[Goal, ...]) -> list[Figure]:
    figures = []
    for place in bench.places:
        results = race(bench, tier, tier, place, entries, bench.scale.depths)
        figures += rates(tier, tier, place, entries, results)
        figures += compared(tier, tier, place, goals, results)
        figures += flatness(tier, place, "spoold", results, DEPTH_HOLDS)
    return figures
