"""`spool agent` and `spool agents`: names that no worker has, and what workers say of their profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from spoold.protocol.heartbeat import Capabilities
from spoold.store.own_heartbeat import Presence
from spoold.system.host import SystemHost
from tests.cli.command import leader, make, opened
from tests.cli.commands import spool

ABOUT = {"agent": "qwen", "version": "0.15.10", "recorded": "qwen 0.24.4, played", "takes": ""}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SPOOL_TASK_ID", raising=False)
    return make(tmp_path / "s")


def worker(root: Path, **about: dict[str, str]) -> None:
    can = Capabilities(cpus=4, mem_mb=2048, handlers=tuple(about), about=about)
    Presence(opened(root, "w-0001"), SystemHost(), "worker").beat(0, "working", slots=3, capabilities=can)


def test_a_name_that_nothing_knows_is_refused_and_can_be_submitted_anyway(root: Path) -> None:
    """G31: `spool agent nosuch` said nothing, and its task waited for ever."""
    worker(root, coder=ABOUT, reviewer=ABOUT)
    done = spool("agent", "codre", "Fix it.", root=root)
    assert (done.code, done.out, list((root / "pending").iterdir())) == (2, "", [])
    assert "AGENT: no live worker has the agent 'codre'. Fix: did you mean 'coder'? --anyway submits it" in done.err
    assert "use one of coder, reviewer. --anyway" in spool("agent", "nosuch", "Fix it.", root=root).err
    done = spool("agent", "nosuch", "Fix it.", "--anyway", root=root)
    assert done.code == 0
    assert "warning: no live worker has the agent 'nosuch'. The task waits for one: use one of coder" in done.err
    done = spool("agent", "Coder", "Fix it.", root=root)
    assert (done.code, "warning" in done.err) == (0, False)


def test_a_name_that_is_known_waits_for_its_worker_and_says_so(root: Path) -> None:
    """G31: a laptop that sleeps is no mistake of the one who submits."""
    done = spool("agent", "coder", "Fix it.", root=root)
    assert done.code == 0
    assert "one that has just started needs some seconds; else start one whose file has [agents.coder]." in done.err
    worker(root, reviewer=ABOUT)
    (root / "spool.toml").write_text("[types.coder]\nmax_concurrent = 3\n")
    done = spool("agent", "coder", "Fix it.", root=root)
    assert done.code == 0
    assert "warning: no live worker has the agent 'coder'. The task waits for one: use one of reviewer." in done.err
    leader(root)
    assert spool("agent", "elsewhere", "Fix it.", root=root).code == 2


def test_an_untested_version_and_a_sandbox_without_a_way_out_are_told(root: Path) -> None:
    """G26, G37."""
    words = "claude asks its model over the network, and the sandbox bwrap has none; fix: add hosts"
    worker(root, coder=ABOUT, other=ABOUT | {"agent": "claude", "version": "2.1.400", "warning": words})
    told = " ".join(spool("agents", root=root).out.split())
    assert "coder on w-0001: qwen 0.15.10 is older than 0.24.4, of which its output is known" in told
    assert f"other on w-0001: {words}" in told
    assert told.count("is older than") == 1
