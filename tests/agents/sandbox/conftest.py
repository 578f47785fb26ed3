"""A stage for a test, once as this user and, where this user is root, once as one without any rights."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.agents.sandbox.stage import NOBODY, Stage, prepared_for_bwrap, runs_with_system_python


@pytest.fixture(scope="session")
def bubblewrap() -> None:
    """Bubblewrap, and what the scripts need."""
    if reason := prepared_for_bwrap():
        pytest.skip(reason)
    if not runs_with_system_python():
        pytest.skip("the scripts need /usr/bin/python3")


@pytest.fixture(params=["own", "nobody"])
def stage(request: pytest.FixtureRequest, bubblewrap: None) -> Iterator[Stage]:
    if request.param == "nobody" and os.geteuid() != 0:
        pytest.skip("only root can run as another user")
    stage = Stage(NOBODY if request.param == "nobody" else os.geteuid())
    yield stage
    stage.close()
