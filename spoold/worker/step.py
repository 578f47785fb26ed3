"""The result of one step of a worker, for its loop.

Law: values only. The next step may come earlier than it is due; a later one only delays work. A worker leaves only
when it holds no attempt.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkerStep:
    """Whether anything changed, when (monotonic, s) the next is due, and whether to leave."""

    busy: bool
    next_due: float | None
    done: bool = False
