"""Git asks nobody, ends in time, and is run again when a signal for its attempt ended it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from spoold.agents.workspace.git import Git, GitFailed


def test_a_command_that_takes_too_long_is_ended_with_its_helpers(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(GitFailed, match=r"has not ended within 0\.3 s"):
        Git()("-c", f"alias.x=!sleep 60; touch {tmp_path}/late", "x", within_s=0.3)
    assert time.monotonic() - began < 30


def test_what_asks_for_a_password_fails_at_once(tmp_path: Path) -> None:
    done = Git().ask("-c", "credential.helper=", "credential", "fill", given="protocol=https\nhost=example.org\n\n")
    assert done.code == 128
    assert "terminal prompts disabled" in done.errors


def test_a_command_that_the_signal_for_this_attempt_ended_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "git"
    program.write_text(
        f"#!/bin/sh\ntest -e {tmp_path}/once && echo well && exit\ntouch {tmp_path}/once\nkill -TERM $$\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert Git()("status").out == "well\n"


def test_variables_that_lead_git_elsewhere_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.hooksPath=/x'")
    assert Git()("config", "core.hooksPath").out == "/dev/null\n"


def test_without_git_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(GitFailed, match=r"git cannot be started: No such file"):
        Git()("status")
