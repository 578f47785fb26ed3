"""What keeps a worker with free slots from taking more, and when it leaves for want of work."""

import json
from dataclasses import replace

import pytest

from spoold.store import snapshots
from spoold.system.filesystem import Usage
from spoold.system.host import Load
from spoold.worker.handlers.worker_config import WorkerConfig
from tests.support.cluster import Cluster

TASK = '{"id": "t", "command": ["work"]}'


def cluster(**config: object) -> Cluster:
    """A leader, one ready task, and a worker w1 with 8 cpus that has just come."""
    made = Cluster()
    made.master("m1")
    made.submit("t.json", TASK)
    made.step("m1")
    made.worker("w1", config=config)
    return made


def test_a_busy_machine_takes_nothing_until_its_load_is_down() -> None:
    made = cluster(max_load=0.5)
    machine = made.nodes["w1"].host.machine
    machine.load = Load(load1=4.1, mem_available_mb=8192, disk_free_mb=1)
    made.advance(8)
    assert made.state("t") == "ready"
    assert any("max_load" in note for note in made.nodes["w1"].worker.notes)
    machine.load = replace(machine.load, load1=4.0)
    made.settle()
    assert made.state("t") == "claimed"
    assert not made.nodes["w1"].worker.notes


def test_a_machine_short_of_memory_takes_nothing() -> None:
    made = cluster(min_free_mb="1G")
    machine = made.nodes["w1"].host.machine
    machine.load = Load(load1=0, mem_available_mb=1023, disk_free_mb=1)
    made.settle()
    assert made.state("t") == "ready"
    machine.load = replace(machine.load, mem_available_mb=1024)
    made.settle()
    assert made.state("t") == "claimed"


def test_an_unknown_figure_stops_nothing_and_is_left_out_of_the_beat() -> None:
    """N6: no load, no free memory and no free disk can be read."""
    made = cluster(max_load=0.5, min_free_mb="1G")
    made.nodes["w1"].host.machine.load = Load(None, None, None)
    made.settle()
    assert made.state("t") == "claimed"
    made.advance(20)
    (said,) = (json.loads(data) for path, data in made.fs.files("heartbeats").items() if "/w1" in path)
    assert said["beat"] > 0
    assert not {"load", "disk_free_mb", "mem_available_mb"} & said.keys()


def test_a_share_without_inodes_takes_nothing_however_much_space_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    made = cluster()
    with monkeypatch.context() as patch:
        patch.setattr(made.fs, "usage", lambda: Usage(total_bytes=1 << 40, free_bytes=1 << 40, free_inodes=0))
        made.settle()
        assert made.state("t") == "ready"
        assert made.nodes["w1"].worker.notes == ("the share is out of inodes: nothing new is started",)
        made.advance(6)
        found = snapshots.latest(made.fs)
        assert found is not None
        assert any(line.startswith("the share is out of inodes: 0 inodes") for line in found[1].warnings)
    made.settle()
    assert made.state("t") == "claimed"


def test_an_idle_worker_leaves_and_one_that_works_does_not() -> None:
    made = cluster(idle_timeout_s=30)
    made.settle()
    made.advance(60)
    assert "w1" in made.nodes, "it has been working all the time"
    runner = made.nodes["w1"].runner
    assert runner is not None
    runner.finish("t.1")
    made.advance(29)
    assert "w1" in made.nodes
    made.advance(3)
    assert "w1" not in made.nodes
    assert made.fs.list("claimed") == []


def test_by_default_nothing_of_this_holds() -> None:
    config = WorkerConfig()
    assert (config.max_load, config.min_free_mb, config.idle_timeout_s) == (None, 0, None)
