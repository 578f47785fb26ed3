"""A sandbox is tried out: what does not hold is found by a run, and nothing runs where it was found."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.sandbox import bwrap, command_line, launch
from spoold.agents.sandbox.launch import entered, probe
from spoold.agents.sandbox.protected_files import Guarded
from spoold.agents.sandbox.sandbox_policy import NoSandbox, SandboxPolicy, SandboxRun, Wrapped


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize(
    "sandbox",
    [
        SandboxPolicy("bwrap"),
        SandboxPolicy("bwrap", network="host"),
        SandboxPolicy("bwrap", network="proxy", hosts=("api.example.com",)),
        SandboxPolicy("bwrap", nested=True),
    ],
    ids=str,
)
def test_one_that_holds(sandbox: SandboxPolicy) -> None:
    verdict = probe(sandbox)
    assert verdict.ok, verdict.words
    assert verdict.words == f"bwrap holds, network {sandbox.network}"


def weakened(found: Sequence[str]) -> Callable[..., Wrapped]:
    """Bubblewrap without some words of its line."""
    real = bwrap.bwrap_command

    def command(*parts: Any) -> Wrapped:
        wrapped = real(*parts)
        return Wrapped(tuple(word for word in wrapped.argv if word not in found), wrapped.env)

    return command


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize(
    ("lacks", "names"),
    [("--unshare-net", {"network"}), ("--unshare-pid", {"processes"})],
    ids=["network", "processes"],
)
def test_a_wall_that_is_missing_is_found(monkeypatch: pytest.MonkeyPatch, lacks: str, names: set[str]) -> None:
    monkeypatch.setattr(bwrap, "bwrap_command", weakened([lacks]))
    verdict = probe(SandboxPolicy("bwrap"))
    assert not verdict.ok
    assert set(verdict.failed) == names
    assert "fix: " in verdict.words


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize(
    ("more", "names"),
    [
        (lambda top: ["--bind", top, top], {"outside", "spool", "hooks"}),
        (lambda top: ["--bind", f"{top}/ws", f"{top}/ws"], {"hooks"}),
        (lambda top: ["--ro-bind", f"{top}/home", f"{top}/home"], {"home"}),
    ],
    ids=["all is shown", "git is not held", "home is read only"],
)
def test_a_place_that_is_wrong_is_found(
    monkeypatch: pytest.MonkeyPatch, more: Callable[[str], list[str]], names: set[str]
) -> None:
    real = bwrap.bwrap_command

    def command(sandbox: SandboxPolicy, scene: SandboxRun, *parts: Any) -> Wrapped:
        wrapped = real(sandbox, scene, *parts)
        at = wrapped.argv.index("--chdir") - 2  # before / is closed
        add = more(scene.workspace.removesuffix("/ws"))
        return Wrapped((*wrapped.argv[:at], *add, *wrapped.argv[at:]), wrapped.env)

    monkeypatch.setattr(bwrap, "bwrap_command", command)
    assert set(probe(SandboxPolicy("bwrap")).failed) == names


@pytest.mark.usefixtures("bubblewrap")
def test_a_repository_that_is_not_held_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "guarded", lambda workspace, whose: Guarded())
    assert set(probe(SandboxPolicy("bwrap")).failed) == {"hooks", "settings"}


@pytest.mark.usefixtures("bubblewrap")
def test_one_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        bwrap, "bwrap_command", lambda *parts: Wrapped(("sh", "-c", "echo forbidden >&2; exit 1"), {})
    )
    verdict = probe(SandboxPolicy("bwrap"))
    assert verdict.failed == ("start",)
    assert "does not start: forbidden; fix: " in verdict.words


def test_one_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "wrap", lambda *parts: Wrapped(("sleep", "60"), {"PATH": "/usr/bin:/bin"}))
    monkeypatch.setattr(launch, "WITHIN_S", 0.2)
    assert probe(SandboxPolicy("bwrap")).failed == ("start",)


def test_a_program_that_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda *words, **more: None)
    for sandbox, package in ((SandboxPolicy("bwrap"), "bubblewrap"), (SandboxPolicy("podman", image="i"), "podman")):
        verdict = probe(sandbox)
        assert not verdict.ok
        assert f"install the package {package}" in verdict.words
        with (
            pytest.raises(NoSandbox, match="the task was not started"),
            entered(sandbox, SandboxRun(str(tmp_path), str(tmp_path))),
        ):
            pytest.fail("nobody may be in there")


def test_without_a_sandbox_there_is_none() -> None:
    assert "the agent may do what its worker's user may" in probe(SandboxPolicy()).words
    scene = SandboxRun("/w", "/h", {"PATH": "/bin"})
    assert command_line.wrap(SandboxPolicy(), ["a", "b"], scene) == Wrapped(
        ("a", "b"), {"PATH": "/bin", "HOME": "/h"}
    )


def test_a_proxy_needs_its_way_out(tmp_path: Path) -> None:
    with pytest.raises(NoSandbox, match="do not agree"):
        command_line.wrap(
            SandboxPolicy("bwrap", network="proxy", hosts=("a.b",)), ["a"], SandboxRun(str(tmp_path), str(tmp_path))
        )
