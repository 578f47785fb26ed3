"""A worker on battery, one whose machine goes to sleep, and one that keeps its machine awake."""

import json
from pathlib import Path
from typing import Any

import pytest

from spoold.client.read.explanation import explain
from spoold.protocol.errors import BadFile
from spoold.store import heartbeats
from spoold.store.store import open_store
from spoold.system.hardware import Battery
from spoold.system.host import FakeHost
from spoold.worker.handlers.worker_config import load_config
from tests.support.cluster import Cluster, Node

ON_BATTERY, ON_MAINS = Battery(plugged=False, percent=60), Battery(plugged=True, percent=60)


def cluster(**config: Any) -> tuple[Cluster, Node]:
    """A leader and a worker of two slots, which runs task a; b is ready once somebody steps."""
    made = Cluster()
    made.master("m1")
    node = made.worker("w1", 2, config=config)
    made.settle()
    submit(made, "a")
    made.settle()
    assert made.state("a") == "claimed"
    return made, node


def submit(made: Cluster, name: str) -> None:
    made.submit(f"{name}.json", json.dumps({"id": name, "command": ["work"]}))


class Lock:
    """An inhibitor that counts."""

    def __init__(self, trouble: str | None = None) -> None:
        self.held = False
        self.taken = 0
        self.trouble = trouble

    def hold(self) -> None:
        self.taken += not self.held
        self.held = True

    def release(self) -> None:
        self.held = False


def awake_by(lock: Lock, **config: Any) -> tuple[Cluster, Node]:
    made, node = cluster(**config)
    node.worker._standing._inhibitor = lock
    made.step("w1")
    return made, node


def test_by_default_a_battery_is_as_good_as_mains() -> None:
    made, node = cluster()
    node.host.machine.battery = ON_BATTERY
    submit(made, "b")
    made.advance(120)
    assert (made.state("a"), made.state("b")) == ("claimed", "claimed")
    assert node.worker.notes == ()


def test_on_battery_it_finishes_what_runs_and_takes_nothing_new() -> None:
    made, node = cluster(laptop={"run_on_battery": "finish"})
    node.host.machine.battery = ON_BATTERY
    made.advance(6)
    submit(made, "b")
    made.advance(300)
    assert (made.state("a"), made.state("b")) == ("claimed", "ready")
    assert heartbeats.read_all(made.fs)["w1"].notes == (
        'on battery at 60 %: nothing new is started (run_on_battery = "finish")',
    )
    node.host.machine.battery = ON_MAINS
    made.advance(6)
    assert made.state("b") == "claimed"
    made.advance(6)
    assert heartbeats.read_all(made.fs)["w1"].notes == ()


@pytest.mark.parametrize(
    ("laptop", "battery"),
    [
        ({"run_on_battery": False}, ON_BATTERY),
        ({"min_battery_percent": 20}, Battery(plugged=False, percent=19)),
    ],
)
def test_on_battery_it_hands_back_after_the_grace_at_no_charge(laptop: dict[str, Any], battery: Battery) -> None:
    made, node = cluster(laptop=laptop, drain_grace_s=30)
    node.host.machine.battery = battery
    made.advance(30)
    assert made.state("a") == "claimed"
    made.advance(8)
    token = made.find("a")
    assert (token.state, token.name.attempt) == ("ready", 2)
    assert ".a2f0c0." in token.path
    result = json.loads(made.fs.read("results/a.1.w1.json"))
    assert (result["status"], "on battery" in result["error"]["message"]) == ("handed_back", True)
    assert "w1" in made.nodes, "it does not leave: the plug may come back"


def test_a_plug_that_comes_back_within_the_grace_costs_nothing() -> None:
    made, node = cluster(laptop={"run_on_battery": False}, drain_grace_s=30)
    for battery in (ON_BATTERY, ON_MAINS, ON_BATTERY, ON_MAINS):
        node.host.machine.battery = battery
        made.advance(20)
    assert (made.state("a"), made.find("a").name.attempt) == ("claimed", 1)


def test_a_sleep_that_is_announced_again_has_the_grace_it_had() -> None:
    made, node = cluster(laptop={"sleep_grace_s": 5})
    for _ in range(4):
        node.worker.fall_asleep()
        made.advance(2)
    assert (made.state("a"), node.worker.asleep) == ("ready", True)


def test_it_beats_asleep_only_when_nothing_runs() -> None:
    made, node = cluster(laptop={"sleep_grace_s": 5})
    said: list[tuple[str, int]] = []
    node.worker.fall_asleep()
    for _ in range(12):
        made.advance(1)
        said.append((heartbeats.read_all(made.fs)["w1"].status, len(made.fs.list("claimed/w1"))))
    assert ("draining", 1) in said
    assert {held for status, held in said if status == "asleep"} == {0}
    node.worker.wake_up()
    made.settle()
    assert made.state("a") == "claimed"
    made.advance(4)
    assert heartbeats.read_all(made.fs)["w1"].status == "working"


def test_the_word_is_out_at_once_and_not_with_the_next_beat() -> None:
    made, node = cluster(laptop={"sleep_grace_s": 0})
    node.worker.fall_asleep()
    for _ in range(6):
        due = node.worker.step().next_due
        if not node.worker.running and not node.worker.asleep:
            assert due is not None
            assert due <= node.clock.monotonic()
    assert heartbeats.read_all(made.fs)["w1"].status == "asleep"


def test_a_drained_worker_leaves_also_when_its_machine_goes_to_sleep() -> None:
    made, node = cluster()
    node.worker.fall_asleep()
    node.worker.drain(0)
    made.advance(3)
    assert "w1" not in made.nodes
    assert made.fs.list("claimed") == []


@pytest.mark.parametrize("target", ["w1", "+all"])
def test_a_drain_that_is_taken_back_in_time_costs_nothing(target: str) -> None:
    made, node = cluster(drain_grace_s=30)
    made.fs.write(f"control/drain.{target}.1.json", b"{}", durable=False)
    made.advance(20)
    assert heartbeats.read_all(made.fs)["w1"].status == "draining"
    made.fs.write(f"control/undrain.{target}.2.json", b"{}", durable=False)
    made.advance(20)
    assert (made.state("a"), made.find("a").name.attempt) == ("claimed", 1)
    assert node.worker.running
    submit(made, "b")
    made.finish("a")
    made.settle()
    assert made.state("b") == "claimed"


def test_a_drain_that_was_not_asked_for_in_control_is_for_good() -> None:
    made, node = cluster(drain_grace_s=30)
    made.fs.write("control/drain.w1.1.json", b"{}", durable=False)
    made.advance(2)
    node.worker.drain(10)
    made.fs.write("control/undrain.w1.2.json", b"{}", durable=False)
    made.advance(20)
    assert made.gone["w1"] == "left"


def test_the_machine_is_kept_awake_exactly_while_tasks_run_or_ran_a_moment_ago() -> None:
    lock = Lock()
    made, _ = awake_by(lock)
    assert lock.held
    made.finish("a")
    made.advance(5)
    assert lock.held
    submit(made, "b")
    made.advance(5)
    made.finish("b")
    made.advance(12)
    assert (lock.held, lock.taken) == (False, 1)


@pytest.mark.parametrize("how", ["fall_asleep", "close"])
def test_it_lets_go_at_once_when_the_machine_sleeps_anyway_or_it_leaves(how: str) -> None:
    lock = Lock()
    made, node = awake_by(lock)
    made.finish("a")
    getattr(node.worker, how)()
    if how == "fall_asleep":
        made.step("w1")
    assert not lock.held


def test_a_refusal_is_a_note_and_no_error() -> None:
    made, node = awake_by(Lock("sleep cannot be inhibited: systemd-inhibit: Access denied"))
    made.advance(5)
    assert node.worker.notes == ("sleep cannot be inhibited: systemd-inhibit: Access denied",)
    assert made.state("a") == "claimed"


@pytest.mark.parametrize("said", ["true", "false", '"finish"'])
def test_the_policy_is_one_of_three(said: str, tmp_path: Path) -> None:
    file = tmp_path / "worker.toml"
    file.write_text(f"[laptop]\nrun_on_battery = {said}\n")
    assert load_config(str(file)).laptop.run_on_battery == json.loads(said)


@pytest.mark.parametrize("said", ['"yes"', "0.5", '"hand back"'])
def test_another_policy_is_refused_with_the_three(said: str, tmp_path: Path) -> None:
    file = tmp_path / "worker.toml"
    file.write_text(f"[laptop]\nrun_on_battery = {said}\n")
    with pytest.raises(BadFile, match=r'laptop\.run_on_battery: not a policy.*use true, "finish" or false'):
        load_config(str(file))


def test_a_task_that_waits_for_a_plug_says_so() -> None:
    made, node = cluster(laptop={"run_on_battery": "finish"})
    node.host.machine.battery = ON_BATTERY
    made.advance(6)
    submit(made, "b")
    made.advance(6)
    store = open_store(made.fs, made.clock, "asker", "/spool")
    answer = explain(store, FakeHost("desk"), made.clock, "b", sleep=lambda _: None)
    assert answer.reasons[0].gate == "notes"
    assert "on battery at 60 %: nothing new is started" in answer.verdict
