"""A claimed task before it starts: what it is to get is brought piece by piece, over as many steps as that takes.

Law: a task that is being prepared is an attempt like those that run: it has its claim, a slot and a place in the
worker's beat, and can be cancelled, recalled or late for its deadline. It starts only under the lease under which it
was begun: a claim whose lease was broken is looked at, and renamed, before anything of it begins.
"""

from __future__ import annotations

from collections.abc import Iterator

from spoold.runner.job import Job
from spoold.store.own_time import Slice


class Preparation:
    """One task's. job: what is to start; lease: the number of the lease under which it was begun."""

    def __init__(self, job: Job, bring: Iterator[None], lease: int) -> None:
        """bring: brings one thing after the other. Errors of `go_on`: its own."""
        self.job, self.lease = job, lease
        self._bring = bring

    def go_on(self, time: Slice) -> bool:
        """Bring one thing, and more while there is time; True when all was brought."""
        return all(not time.over for _ in self._bring)
