"""How the tasks of a limit follow after one has tried its quota: few at first, then ever more.

Law: a pure function of the time since then. Limits of different names differ a little, so that pools which share an
account do not all come at once.
"""

from __future__ import annotations

from spoold.rules.attempts.retry import spread

# As many may start as have started since, and as many again after each RAMP_S, give or take JITTER as a fraction.
# There is no bound after RAMP_END_S.
RAMP_S, RAMP_END_S, JITTER = 0.5, 4.0, 0.3


def ramp(limit: str, elapsed_s: float) -> tuple[int, float]:
    """How many may have started so long (s) after the trial, and in how long (s) there may be more."""
    every_s = RAMP_S * (1 + JITTER * spread(limit))
    doublings = int(elapsed_s // every_s)
    return 2 << doublings, (doublings + 1) * every_s - elapsed_s
