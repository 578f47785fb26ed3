"""A container of podman holds, is found where it does not, and ends with its supervisor."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from spoold.agents.sandbox import command_line
from spoold.agents.sandbox.command_line import wrap
from spoold.agents.sandbox.launch import probe
from spoold.agents.sandbox.sandbox_policy import Wrapped
from spoold.runner.job import Command, Job
from spoold.runner.job_runner import Runner
from tests.agents.sandbox.container import Container
from tests.agents.sandbox.stage import Stage


@pytest.fixture
def made(container: Container, monkeypatch: pytest.MonkeyPatch) -> Container:
    """Podman that finds its image."""
    for name, value in container.environ.items():
        monkeypatch.setenv(name, value)
    return container


def test_it_holds(made: Container) -> None:
    verdict = probe(made.sandbox)
    assert verdict.ok, verdict.words
    assert verdict.words == "podman holds, network none"


def test_a_wall_that_is_missing_is_found(made: Container, monkeypatch: pytest.MonkeyPatch) -> None:
    real = command_line.podman_command

    def command(*parts: Any) -> Wrapped:
        wrapped = real(*parts)
        argv = [word.replace("--network=none", "--network=host") for word in wrapped.argv]
        return replace(wrapped, argv=tuple(word for word in argv if word != "--pid=private"))

    monkeypatch.setattr(command_line, "podman_command", command)
    assert probe(made.sandbox).failed == ("network",)


def test_an_image_that_is_missing_is_said(made: Container) -> None:
    verdict = probe(replace(made.sandbox, image="localhost/no-such:1"))
    assert verdict.failed == ("start",)
    assert "podman does not start: Error: " in verdict.words
    assert "no-such" in verdict.words


@pytest.mark.parametrize("stage", ["podman"], indirect=True)
def test_it_ends_with_its_supervisor(stage: Stage) -> None:
    """Podman leaves a container to a process of its own. That is a child of the supervisor then, and ends with it."""
    mark = f"9{stage.victim.pid}98"
    scene = stage.scene(shown=Container.shown)
    wrapped = wrap(stage.walls, ["sh", "-c", f"setsid sleep {mark} & sleep {mark}"], scene)
    runner = Runner(1)
    try:
        runner.start(Job("t.1", Command(wrapped.argv), dict(wrapped.env), "/", f"{stage.top}/log"))
        stage.wait_for(mark, 2, "sleep")
        runner.stop("t.1", "it is told to", 0.0)
        until = time.monotonic() + 30
        while not (ended := runner.poll()):
            assert time.monotonic() < until, "it does not end"
            runner.wait(0.1)
        assert [ending.kind for ending in ended] == ["stopped"]
        stage.wait_for_the_end_of(mark)
    finally:
        runner.close(0.0)
