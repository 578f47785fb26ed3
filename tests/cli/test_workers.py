"""Goal: `spool workers` shows every node that beats, and calls the silent ones dead."""

from __future__ import annotations

from pathlib import Path

from spoold.protocol.heartbeat import Capabilities
from spoold.store.own_heartbeat import Presence
from spoold.system.host import SystemHost
from tests.cli.command import leader, make, opened, spool, told


def test_a_spool_without_nodes_says_how_to_start_them(tmp_path: Path) -> None:
    directory = make(tmp_path / "s")
    result = spool(directory, "workers")
    assert result.exit_code == 0
    assert "no workers" in result.stdout
    assert "no masters" in result.stdout
    assert told(directory, "workers") == {"workers": [], "masters": []}


def test_workers_and_masters(tmp_path: Path) -> None:
    directory = make(tmp_path / "s")
    leader(directory)
    can = Capabilities(cpus=4, mem_mb=2048, labels=("gpu",))
    presence = Presence(opened(directory, "w-0001"), SystemHost(), "worker")
    presence.beat(0, "draining", slots=3, capabilities=can, mem_available_mb=1024)
    answer = told(directory, "workers")
    assert [(node["worker"], node["state"], node["slots"]) for node in answer["workers"]] == [
        ("w-0001", "draining", 3)
    ]
    assert [(post["node"], post["state"]) for post in answer["masters"]] == [("m-0001", "leader")]
    lines = [line.split() for line in spool(directory, "workers").stdout.splitlines()]
    assert lines[0][:4] == ["WORKER", "HOST", "STATE", "SLOTS"]
    assert lines[1][0] == "w-0001"
    assert lines[1][2:] == ["draining", "0/3", "4", "1.0/2.0G", "0.00", "gpu", "-"]
    assert lines[-1][0::2] == ["m-0001", "leader"]
