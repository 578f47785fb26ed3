"""No test of agents reads or writes what this machine's user has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.sandbox.stage import prepared, runs_with_system_python


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither settings of git, nor the cache, nor a spool from outside."""
    for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "SPOOL_ROOT", "SPOOL_DIR", "SPOOL_TASK_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture(scope="session")
def bubblewrap() -> None:
    """Bubblewrap, and what the scripts need."""
    if reason := prepared("bwrap", "bubblewrap"):
        pytest.skip(reason)
    if not runs_with_system_python():
        pytest.skip("the scripts need /usr/bin/python3")
