"""A peer that cannot be installed is told of with the reason, and costs nobody else."""

from pathlib import Path

import pytest

from tools.benchmark.peers import PINS, PROGRAMS, Peers


def test_every_version_is_pinned() -> None:
    assert all("==" in pin for pins in PINS.values() for pin in pins)


def test_without_an_installer_programs_are_missing_and_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "no-python"))
    (tmp_path / "no-python").write_text("#!/bin/sh\necho no such module: venv >&2\nexit 1\n")
    (tmp_path / "no-python").chmod(0o755)
    peers = Peers(tmp_path / "home" / "peers")
    peers.install()
    assert peers.missing.keys() == {*PINS, *PROGRAMS}
    assert "no such module: venv" in peers.missing["huey"]
    assert "no apt-get" in peers.missing["nq"]
