"""live and kill: a producer that goes on while tasks are drained, and workers that die in the middle.

Law: what counts in these rows is what was lost and what was doubled; the rate is only told beside it. A peer without
commits has doubled what it has run twice; spoold may run a task twice, but commits it once.
"""

from __future__ import annotations

from tools.benchmark.bench import Bench
from tools.benchmark.figure import Figure, Target
from tools.benchmark.race import Entry, Mode, race, rates

ENTRIES = (
    Entry("spoold", "spoold"),
    Entry("spoold, fsync", "spoold", fsync=True),
    Entry("huey", "huey"),
    Entry("celery", "celery"),
)
NAP_S = 0.01
NOTHING = Target(1, most=True)


def live(bench: Bench) -> list[Figure]:
    """One producer submits task by task while two workers drain; counted from its first task to the last commit."""
    figures = []
    for place in bench.places:
        results = race(bench, "live", "call", place, ENTRIES, bench.scale.depths[:1], Mode("live"))
        figures += rates("live", "live", place, ENTRIES, results)
    return figures


def kill(bench: Bench) -> list[Figure]:
    """Tasks of 10 ms; three times a worker is killed with -9 and another one started; with spoold the master, too."""
    figures = []
    for place in bench.places[:1]:
        results = race(
            bench, "kill", "call", place, ENTRIES, bench.scale.depths[:1], Mode("kill", NAP_S, 2, rounds=2)
        )
        for figure in rates("kill", "kill", place, ENTRIES, results):
            figures.append(figure)
            if str(figure.key["label"]).startswith("spoold") and figure.samples:
                figures += [
                    Figure("kill", f"{figure.name}, {what}", "tasks", (figure.more[what],), NOTHING)
                    for what in ("lost", "doubled")
                ]
    return figures
