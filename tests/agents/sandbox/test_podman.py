"""A container of podman holds, is found where it does not, ends with its supervisor, and is in no storage then."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.configuration.profiles import VARIABLE, Profile, expand, read_back
from spoold.agents.process import confinement
from spoold.agents.process.interfaces import Opened
from spoold.agents.process.turns import Scene, run_command
from spoold.agents.sandbox import command_line, containers
from spoold.agents.sandbox.command_line import wrap
from spoold.agents.sandbox.launch import entered, probe
from spoold.agents.sandbox.sandbox_policy import Wrapped
from spoold.protocol.errors import BadFile
from spoold.runner.job import Command, Job
from spoold.runner.job_runner import Runner
from spoold.runner.start_checks import tried
from spoold.worker.handlers.job_preparation import inherited
from spoold.worker.handlers.worker_config import WorkerConfig, load_config
from tests.agents.sandbox.container import IMAGE, Container
from tests.agents.sandbox.stage import Stage


@pytest.fixture
def made(container: Container, monkeypatch: pytest.MonkeyPatch) -> Container:
    """Podman that finds its image."""
    for name, value in container.environ.items():
        monkeypatch.setenv(name, value)
    return container


# What a program does all the time: processes and threads.
THREADS = [
    "/usr/bin/sh",
    "-c",
    "(exit 0) && /usr/bin/python3 -c 'import threading as t; t.Thread(target=print).start()'",
]


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


@pytest.mark.parametrize("stage", ["podman"], indirect=True)
@pytest.mark.parametrize("nested", [False, True])
def test_only_a_nested_one_makes_namespaces(stage: Stage, made: Container, nested: bool) -> None:
    """In a namespace of its own an agent could undo the mounts that hold a repository of others."""
    with entered(replace(made.sandbox, nested=nested), stage.scene(shown=made.shown)) as inside:
        for argv in (["/usr/bin/unshare", "--user", "--mount", "/usr/bin/true"], THREADS):
            wrapped = inside.wrap(argv)
            env = dict(wrapped.env)
            done = subprocess.run(wrapped.argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
            assert (done.returncode == 0) == (nested or argv is THREADS), done.stderr


@pytest.mark.parametrize("stage", ["podman"], indirect=True)
def test_what_is_in_memory_has_a_size(stage: Stage, made: Container) -> None:
    with entered(made.sandbox, stage.scene(shown=made.shown, memory_mb=40)) as inside:
        wrapped = inside.wrap(["/usr/bin/df", "--output=size", "-BM", "/tmp", "/run", "/var/tmp", "/dev/shm"])
        done = subprocess.run(wrapped.argv, env=dict(wrapped.env), capture_output=True, text=True, check=True)
    assert done.stdout.split()[1:] == ["40M"] * 4


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


# Podman's own variables: an attempt, the check of its worker and `spool doctor` have the same.


PROFILE = """
[agents.coder]
cli = "generic"
command = ["sh", "-c", "true"]
sandbox = {{kind = "podman", image = "{image}"}}
{more}
"""


def coder(tmp_path: Path, more: str = "") -> tuple[WorkerConfig, Profile]:
    file = tmp_path / "worker.toml"
    file.write_text(PROFILE.format(image=IMAGE, more=more))
    config = load_config(str(file), expand=partial(expand, warns="none"))
    return config, read_back(config.handlers["coder"].env[VARIABLE])[1]


def test_a_worker_has_podman_read_its_own_settings(made: Container, tmp_path: Path) -> None:
    """Its tasks have none of these variables. `spool doctor` said ok, since podman read those of its shell."""
    config, _ = coder(tmp_path)
    base = inherited(config, os.environ)
    assert not made.environ.keys() & base.keys()
    handler = config.handlers["coder"]
    assert tried(handler.check, {**base, **handler.env}) == (True, "")


def test_doctor_and_worker_start_podman_alike(
    made: Container, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    monkeypatch.setenv("CONTAINER_HOST", "ssh://elsewhere")
    _, profile = coder(tmp_path)
    for name in (*made.environ, "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, "of a task")
    started = command_line.started_with(confinement.read(profile.sandbox, "x").asked())
    assert {name: started[name] for name in made.environ} == made.environ
    assert started["XDG_RUNTIME_DIR"] == "/run/user/7"
    assert "CONTAINER_HOST" not in started
    assert probe(confinement.read(profile.sandbox, "x").asked()).ok, "whatever a task says"


def test_the_file_of_a_worker_counts_more_than_its_environment(made: Container, tmp_path: Path) -> None:
    _, profile = coder(tmp_path, 'env = {CONTAINERS_CONF = "/of/the/profile", TMPDIR = "/t"}')
    started = confinement.read(profile.sandbox, "x").podman
    assert (started["CONTAINERS_CONF"], started["TMPDIR"]) == ("/of/the/profile", "/t")
    assert started["CONTAINERS_STORAGE_CONF"] == made.environ["CONTAINERS_STORAGE_CONF"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"kind": "podman", "image": "i", "podman": {"CONTAINER_HOST": "x"}}, "no variable that podman is started"),
        ({"kind": "bwrap", "podman": {"HOME": "/x"}}, 'the sandbox is "bwrap"'),
    ],
)
def test_what_podman_does_not_take_is_refused(said: dict[str, Any], why: str) -> None:
    with pytest.raises(BadFile, match=why):
        confinement.read(said, "worker.toml")


# What an attempt made outside of its own processes: its containers in podman's storage.


HOLDS = """
import os, subprocess, sys
from spoold.agents.sandbox.launch import entered
from spoold.agents.sandbox.sandbox_policy import SandboxPolicy, SandboxRun
image, work, home, mark = sys.argv[1:]
with entered(SandboxPolicy("podman", image=image), SandboxRun(work, home, shown=("/usr",), attempt="t.1")) as inside:
    wrapped = inside.wrap(["sleep", mark])
    subprocess.run(wrapped.argv, env=wrapped.env, stdin=subprocess.DEVNULL)
"""


def stored(made: Container) -> list[str]:
    """What podman keeps of attempts: of each container whose it is. Other tests leave some that are of none."""
    environ = {**os.environ, **made.environ}
    words = ["podman", "ps", "--all", "--filter=label=spoold.attempt"]
    words += ["--format", '{{index .Labels "spoold.attempt"}}']
    return subprocess.run(words, env=environ, capture_output=True, text=True, check=True).stdout.splitlines()


def holding(stage: Stage, runner: Runner, mark: str) -> None:
    """Run a program in a sandbox, in a slot of a worker, until it sleeps."""
    words = (sys.executable, "-c", HOLDS, IMAGE, str(stage.workspace), str(stage.home), mark)
    runner.start(Job("t.1", Command(words), dict(os.environ), str(Path.cwd()), f"{stage.top}/log"))
    stage.wait_for(mark, 1, "sleep")


@pytest.mark.parametrize("stage", ["podman"], indirect=True)
@pytest.mark.parametrize("by", ["check", "attempt"])
def test_what_a_killed_attempt_left_in_the_storage_is_removed(stage: Stage, made: Container, by: str) -> None:
    runner = Runner(1)
    try:
        holding(stage, runner, mark := f"8{stage.victim.pid}97")
        assert stored(made) == ["t.1"]
        assert probe(made.sandbox).ok
        assert stored(made) == ["t.1"], "its process lives"
        runner.stop("t.1", "as with kill -9", 0.0)
        until = time.monotonic() + 30
        while not runner.poll():
            assert time.monotonic() < until, "it does not end"
            runner.wait(0.1)
        stage.wait_for_the_end_of(mark)
    finally:
        runner.close(0.0)
    if by == "check":
        assert probe(made.sandbox).ok
    else:
        with entered(made.sandbox, stage.scene(shown=made.shown)):
            pass
    assert stored(made) == []


@pytest.mark.parametrize("stage", ["podman"], indirect=True)
@pytest.mark.parametrize("how", ["time", "stop"])
def test_a_program_that_is_ended_leaves_no_container(stage: Stage, made: Container, tmp_path: Path, how: str) -> None:
    """Before its work is saved: what takes longer than the grace of its attempt is killed."""
    config = confinement.SandboxConfig(kind="podman", image=IMAGE, show=("/usr",))
    (tmp_path / "work").mkdir()
    environ = {"SPOOL_WORK_DIR": str(tmp_path / "work"), "SPOOL_TASK_ID": "slow", "SPOOL_ATTEMPT": "2"}
    walls, mark, seen = confinement.Confined(config, environ), f"7{stage.victim.pid}96", list[str]()

    def sleeps() -> bool:
        if not seen and stage.marked(mark, "sleep"):
            seen.extend(stored(made))
        return bool(seen)

    with walls.enter(Opened(str(stage.workspace), str(stage.home))):
        stops = sleeps if how == "stop" else lambda: False
        scene = Scene(walls, str(stage.workspace), str(stage.home), {"PATH": "/usr/bin"}, stops, lambda: None)
        assert run_command(["sleep", mark], scene, 5.0 if how == "time" else 60.0).code is None
        assert stored(made) == []
    assert seen == (["slow.2"] if how == "stop" else [])


@pytest.mark.parametrize("stage", ["podman"], indirect=True)
def test_a_container_of_a_person_stays_whatever_its_labels_say(stage: Stage, made: Container) -> None:
    """An image that a person made of a container of ours has its labels, as one may say by hand."""
    environ = {**os.environ, **made.environ}

    def podman(*words: str) -> str:
        return subprocess.run(["podman", *words], env=environ, capture_output=True, text=True, check=True).stdout

    gone = containers.holder("gone").split(":")
    gone[4:6] = ["4194303", "1"]
    labels = ("spoold.holder=", f"spoold.holder={':'.join(gone)}", f"spoold.holder={containers.holder('other')}")
    theirs = [podman("create", f"--label={label}", IMAGE, "/usr/bin/true").strip() for label in labels]
    ours = podman(
        "create", f"--label={labels[1]}", f"--name={containers.new_name(':'.join(gone))}", IMAGE, "true"
    ).strip()
    try:
        with entered(made.sandbox, stage.scene(shown=made.shown)):
            pass
        left = podman("ps", "--all", "--quiet", "--no-trunc").split()
        assert set(theirs) <= set(left)
        assert ours not in left
    finally:
        podman("rm", "--force", "--ignore", *theirs, ours)
