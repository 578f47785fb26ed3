"""Whatever ends a loop is known by its error, so that a service manager starts the process again."""

from __future__ import annotations

from typing import Any, cast

import pytest

from spoold.daemon.loop import Actor, Beat, Loop
from spoold.daemon.nap import Nap
from spoold.daemon.pulse import Pulse
from spoold.protocol.settings import PollSettings
from spoold.system.clock import ManualClock

STEP, CLOSE = RuntimeError("in a step"), RuntimeError("on leaving")


class Broken:
    """An actor that raises in its step, or is done, and raises when it is closed."""

    def __init__(self, step: Exception | None) -> None:
        self._step = step

    def step(self) -> Beat:
        if self._step is not None:
            raise self._step
        return Beat(busy=False, next_due=None, done=True)

    def close(self) -> None:
        raise CLOSE

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


@pytest.mark.parametrize(("step", "told"), [(None, CLOSE), (STEP, STEP)])
def test_an_actor_that_cannot_close_is_an_error_and_the_first_one_is_told(
    step: Exception | None, told: Exception
) -> None:
    loop = Loop(lambda: cast(Actor, Broken(step)), PollSettings(), Pulse(), lambda: False, Nap(ManualClock()))
    loop.run()
    assert (loop.over, loop.error) == (True, told)
