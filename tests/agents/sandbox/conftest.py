"""A stage for a test: behind bubblewrap as this user, and where this user is root, as one without any rights; and
where a test asks for it, in a container of podman.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from spoold.agents.sandbox.sandbox_policy import SandboxPolicy
from tests.agents.sandbox.container import PACKAGES, Container
from tests.agents.sandbox.stage import NOBODY, Stage, prepared


@pytest.fixture(scope="session")
def container() -> Iterator[Container]:
    """Podman, and an image for it."""
    if reason := prepared("podman", *PACKAGES):
        pytest.skip(reason)
    made = Container()
    try:
        if reason := made.trouble():
            pytest.skip(reason)
        yield made
    finally:
        made.close()


@pytest.fixture(params=["own", "nobody"])
def stage(request: pytest.FixtureRequest, bubblewrap: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    if request.param == "nobody" and os.geteuid() != 0:
        pytest.skip("only root can run as another user")
    walls, shown = SandboxPolicy("bwrap"), tuple[str, ...]()
    if request.param == "podman":
        container: Container = request.getfixturevalue("container")
        for name, value in container.environ.items():
            monkeypatch.setenv(name, value)
        walls, shown = container.sandbox, container.shown
    stage = Stage(NOBODY if request.param == "nobody" else os.geteuid(), walls, shown)
    yield stage
    stage.close()
