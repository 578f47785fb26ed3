"""What a master says of itself, in one line, as its service manager shows it."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from spoold.daemon.master_actor import MasterActor
from spoold.daemon.progress_watch import Pulse
from spoold.master.state import leadership
from spoold.store.initialise import initialise
from spoold.store.mover import Fate, Moved
from spoold.system.clock import SystemClock
from spoold.system.posix import PosixFileSystem


def test_a_standby_says_who_leads_or_that_nobody_can(tmp_path: Path) -> None:
    initialise(PosixFileSystem(tmp_path), SystemClock(), "test", str(tmp_path))
    (tmp_path / "spool.toml").write_text("[heartbeat]\ninterval_s = 0.05\nmisses = 2\n")
    [token] = (tmp_path / "master").iterdir()
    token = token.rename(tmp_path / "master" / "1.m-other-1.0")
    actor = MasterActor(str(tmp_path), "desk", Pulse())
    said = actor.describe
    try:
        me, _, words = said().partition(" ")
        assert words == "stands by; no node leads"
        actor.step()
        assert said() == f"{me} stands by; m-other-1 leads"
        token.unlink()
        actor.step()
        assert said() == f"{me} stands by; no node leads", "for a moment no name of the token may be seen"
        until = time.monotonic() + 30
        while "no token" not in said() and time.monotonic() < until:
            time.sleep(0.02)
            actor.step()
        assert said() == f"{me} stands by; master/ has no token, so no master can lead"
    finally:
        actor.close()


def test_a_leader_whose_renewal_is_in_doubt_does_not_stand_by_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    initialise(PosixFileSystem(tmp_path), SystemClock(), "test", str(tmp_path))
    (tmp_path / "spool.toml").write_text("[heartbeat]\ninterval_s = 0.05\nmisses = 2\n")
    actor = MasterActor(str(tmp_path), "desk", Pulse())
    try:
        actor.step()
        me, _, words = actor.describe().partition(" ")
        assert words == "leads epoch 1"
        time.sleep(0.06)
        monkeypatch.setattr(leadership, "mover", SimpleNamespace(move=lambda *_: Moved(Fate.UNKNOWN)))
        actor.step()
        assert actor.describe() == f"{me} cannot see whether it still leads epoch 1; it moves nothing until it can"
    finally:
        actor.close()


def test_a_leader_whose_door_is_shut_reports_no_trouble_with_the_share(tmp_path: Path) -> None:
    initialise(PosixFileSystem(tmp_path), SystemClock(), "test", str(tmp_path))
    (tmp_path / "spool.toml").write_text("[heartbeat]\ninterval_s = 0.05\nmisses = 2\n")
    actor = MasterActor(str(tmp_path), "desk", Pulse())
    try:
        actor.step()
        [door] = (tmp_path / "admitting").iterdir()
        door.rmdir()
        [token] = (tmp_path / "master").iterdir()
        token.rename(tmp_path / "master" / "2.m-other-1.0")
        (tmp_path / "admitting" / "2.m-other-1.1").mkdir()
        (tmp_path / "pending" / "a.json").write_text('{"id": "a", "command": ["true"]}')
        actor.step()
        assert actor.describe().endswith("stands by; m-other-1 leads")
    finally:
        actor.close()
