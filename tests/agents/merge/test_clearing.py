"""References of work that landed go in time; all others stay."""

from __future__ import annotations

import time
from pathlib import Path

from spoold.agents.merge.branch import Branch, clear
from spoold.agents.workspace.mirror import Mirror
from spoold.agents.workspace.workspace_layout import Places
from tests.agents.merge.lanes import land, work
from tests.agents.workspace.repos import Remote


def test_only_what_landed_and_is_old_enough_goes(tmp_path: Path) -> None:
    remote = Remote(tmp_path)
    landed = work(remote, tmp_path, "landed", {"b.txt": "x\n"})
    other = work(remote, tmp_path, "other", {"c.txt": "x\n"})
    land(remote, tmp_path, landed)
    where = Places(str(tmp_path / "merger"), {})
    where.make()
    branch = Branch(Mirror(where, str(remote.path)), "main")
    now = time.time()
    assert clear(branch, 3600, now) == []
    assert clear(branch, 3600, now + 7200) == [landed.ref]
    assert remote.refs() == {other.ref: other.commit}
    assert clear(branch, 3600, now + 7200) == []


def test_a_remote_that_keeps_them_is_no_error(tmp_path: Path) -> None:
    remote = Remote(tmp_path)
    landed = work(remote, tmp_path, "landed", {"b.txt": "x\n"})
    land(remote, tmp_path, landed)
    hook = remote.path / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    branch = Branch(Mirror(Places(str(tmp_path / "merger"), {}), str(remote.path)), "main")
    assert clear(branch, 0, time.time() + 10) == []
    assert list(remote.refs()) == [landed.ref]
