"""Other worlds than the swarm's own: spools that claim by lock, and shares that need it.

Law: a world is what is replaced in the simulator while it runs, and nothing of the product is.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tests.sim import machine, universe, weather, workload
from tests.sim.unfit import Credulous, NamesLost, TwoWinners
from tests.sim.universe import Outcome, simulate

Change = tuple[Any, str, Any]

_BY_LOCK: tuple[Change, ...] = ((universe, "CLAIM", "lock"),)
_UNFIT: tuple[Change, ...] = (
    (universe, "Server", TwoWinners),
    (machine, "Mount", Credulous),
    (workload, "Mount", Credulous),
)
_FORGETFUL: tuple[Change, ...] = (
    (universe, "Server", NamesLost),
    (weather, "BLOWS", {**weather.BLOWS, "power": 6.0}),
)
WORLDS: dict[str, tuple[Change, ...]] = {
    "fit": (),
    "forgetful": _FORGETFUL,
    "lock": _BY_LOCK,
    "two-winners": _UNFIT,
    "two-winners-lock": (*_UNFIT, *_BY_LOCK),
}


@contextmanager
def world(name: str) -> Iterator[None]:
    """Inside, every universe that is made is of that kind."""
    with ExitStack() as stack:
        for owner, what, other in WORLDS[name]:
            stack.callback(setattr, owner, what, getattr(owner, what))
            setattr(owner, what, other)
        yield


def simulate_in(name: str, seed: int, suppressed: Container[str] = frozenset()) -> Outcome:
    """One seed of that world; the faults named in `suppressed` are left out."""
    with world(name):
        return simulate(seed, suppressed)
