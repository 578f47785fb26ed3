"""A scope of systemd: tried where systemd runs, and refused where it does not."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from spoold.agents.sandbox import command_line
from spoold.agents.sandbox.launch import entered, probe
from spoold.agents.sandbox.sandbox_policy import NoSandbox, SandboxPolicy, SandboxRun

SCOPE = SandboxPolicy("systemd", memory_mb=200, processes=50)
# As sd_booted(3) finds out.
BOOTED = Path("/run/systemd/system")


@pytest.mark.usefixtures("bubblewrap")
def test_it_holds() -> None:
    if not BOOTED.is_dir():
        pytest.skip(f"left out: systemd does not run on this machine, {BOOTED} is not there")
    if os.geteuid() and "XDG_RUNTIME_DIR" not in os.environ:
        pytest.skip("left out: this user has no session of systemd, XDG_RUNTIME_DIR is not set")
    verdict = probe(SCOPE)
    assert verdict.ok, verdict.words


@pytest.mark.usefixtures("bubblewrap")
def test_the_line_of_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of root's own systemd, to which no user is named; what it needs to be reached stays outside."""
    monkeypatch.setattr(shutil, "which", lambda name, **more: f"/usr/bin/{name}")
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/bus")
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    home.mkdir()
    wrapped = command_line.wrap(SCOPE, ["agent", "-x"], SandboxRun(str(work), str(home)))
    line = "/usr/bin/systemd-run --scope --quiet --collect -p MemoryMax=200M -p MemorySwapMax=0 -p TasksMax=50 --"
    assert wrapped.argv[:12] == (*line.split(), os.path.realpath(sys.executable))
    assert wrapped.argv[16:18] == ("/usr/bin/bwrap", "--unshare-user")
    assert wrapped.argv[-5:] == ("--unsetenv", "DBUS_SESSION_BUS_ADDRESS", "--", "agent", "-x")
    assert wrapped.env["DBUS_SESSION_BUS_ADDRESS"] == "unix:path=/run/bus"


@pytest.mark.usefixtures("bubblewrap")
def test_where_systemd_refuses_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuses = tmp_path / "systemd-run"
    refuses.write_text("#!/bin/sh\necho 'System has not been booted with systemd as init system' >&2\nexit 1\n")
    refuses.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    verdict = probe(SCOPE)
    assert (verdict.ok, verdict.failed) == (False, ("start",))
    assert "systemd does not start: System has not been booted with systemd as init system; fix: " in verdict.words
    with (
        pytest.raises(NoSandbox, match="not safe here"),
        entered(SCOPE, SandboxRun(str(tmp_path), str(tmp_path))),
    ):
        pytest.fail("nobody may be in there")


@pytest.mark.skipif(BOOTED.is_dir(), reason="systemd runs on this machine")
@pytest.mark.usefixtures("bubblewrap")
def test_on_a_machine_without_systemd_nothing_runs() -> None:
    assert not probe(SCOPE).ok
