"""Which task a worker takes next, and what it does when others are faster."""

import errno
import json
from typing import Any

from spoold.store.path_conflicts import NAMED_MOST
from tests.support.cluster import Cluster, Node


def cluster(*tasks: dict[str, Any]) -> Cluster:
    """A leader, and tasks that are ready; no worker yet."""
    made = Cluster()
    made.master("m1")
    for number, task in enumerate(tasks):
        made.submit(f"{number}.json", json.dumps({"id": f"t{number}", "command": ["work"], **task}))
    made.step("m1")
    return made


def runs(node: Node) -> list[str]:
    """The ids of what runs on a worker."""
    return [attempt.name.id for attempt in node.worker.running]


def test_the_most_urgent_first_over_all_lanes_and_the_older_of_equals() -> None:
    made = cluster({"priority": "low"}, {}, {"requires": {"cpus": 1}, "priority": "high"}, {})
    node = made.worker("w1", 3)
    made.step("w1")
    assert runs(node) == ["t2", "t1", "t3"]


def test_only_as_many_as_there_are_slots() -> None:
    made = cluster({}, {}, {})
    node = made.worker("w1", 2)
    made.step("w1")
    made.step("w1")
    assert runs(node) == ["t0", "t1"]
    assert made.state("t2") == "ready"


def test_lanes_that_it_cannot_serve_are_not_even_listed() -> None:
    made = cluster({"requires": {"gpus": 1}}, {"requires": {"labels": ["docker"]}}, {})
    node = made.worker("w1", 4)
    listed: list[str] = []
    for lane in made.fs.list("ready"):
        node.fs.hang("list", f"ready/{lane}", lambda lane=lane: listed.append(lane))  # type: ignore[misc]
    made.step("w1")
    assert listed == ["type=command,run=command"]
    assert runs(node) == ["t2"]


def test_what_has_no_room_just_now_lets_smaller_ones_pass() -> None:
    made = cluster({"requires": {"cpus": 6}}, {"requires": {"cpus": 6}}, {"requires": {"cpus": 2}})
    node = made.worker("w1", 4, cpus=8)
    made.step("w1")
    assert runs(node) == ["t0", "t2"]
    made.finish("t0")
    made.step("w1")
    assert runs(node) == ["t2", "t1"]


def test_who_loses_a_race_takes_another_task() -> None:
    made = cluster({}, {}, {}, {})
    first, second = made.worker("w1"), made.worker("w2")
    made.during("w1", "rename", "claimed/w1/", lambda: made.step("w2"))
    made.step("w1")
    assert runs(second) == ["t0"]
    assert runs(first) == []
    made.step("w1")
    assert len(runs(first)) == 1
    assert runs(first) != ["t0"]
    assert first.worker._claiming.lost == 1


def test_a_crowd_of_losers_spreads_out() -> None:
    made = cluster(*({} for _ in range(40)))
    names = [f"w{number}" for number in range(8)]
    for name in names:
        made.worker(name, 2)

    def race(left: list[str]) -> None:
        """Every one lists before any of the others claims."""
        if not left:
            return
        made.during(left[0], "rename", f"claimed/{left[0]}/", lambda: race(left[1:]))
        made.step(left[0])

    race(names)
    for name in names:
        made.step(name)
    lost = [made.nodes[name].worker._claiming.lost for name in names]
    assert all(len(made.nodes[name].worker.running) == 2 for name in names)
    assert sum(lost) < sum(range(2 * len(names)))  # that is what a queue of losers would cost


def test_after_an_unclear_answer_it_claims_no_more_in_this_step() -> None:
    made = cluster({}, {}, {})
    node = made.worker("w1", 3)
    node.fs.fail("rename", "claimed/w1/", errno.EIO)
    made.step("w1")
    assert runs(node) == []
    made.step("w1")
    assert runs(node) == ["t0", "t1", "t2"]


def test_nothing_is_claimed_without_a_free_slot_or_on_a_full_share() -> None:
    made = cluster({}, {})
    node = made.worker("w1")
    made.step("w1")
    before = node.fs.calls
    node.fs.hang("list", "ready", lambda: (_ for _ in ()).throw(AssertionError("it looked for more")))
    made.step("w1")
    assert node.fs.calls > before
    node.fs.hangs.clear()
    made.fs.write("somebody-elses-file", bytes(1 << 20), durable=False)
    made.fs.capacity = made.fs.usage().total_bytes - made.fs.usage().free_bytes + 4096
    made.finish("t0")
    made.step("w1")
    assert runs(node) == []
    assert any("share is full" in note for note in node.worker.notes)
    made.fs.capacity = None
    made.step("w1")
    assert runs(node) == ["t1"]


def test_a_task_whose_old_attempt_still_ends_here_is_left_for_later() -> None:
    """Somebody removed the task and submitted it again, while its processes were still being killed."""
    made = cluster({})
    node = made.worker("w1", 2)
    made.step("w1")
    assert node.runner is not None
    stop, node.runner.stop = node.runner.stop, lambda *_: None  # type: ignore[method-assign]
    made.fs.unlink(made.find("t0").path)
    made.witness.forget("t0")
    made.step("w1")
    made.advance(6)
    made.submit("again.json", '{"id": "t0", "command": ["again"]}')
    made.settle()
    assert made.state("t0") == "ready"
    node.runner.stop = stop  # type: ignore[method-assign]
    node.runner.stop("t0.1", "killed at last", 0)
    made.settle()
    assert made.state("t0") == "claimed"
    assert [attempt.fenced for attempt in node.worker.running] == [False]


def test_on_a_share_a_crowd_begins_at_different_places_and_never_below_the_most_urgent() -> None:
    made = Cluster(remote=True)
    made.master("m1")
    names = [f"w{number}" for number in range(4)]
    for name in names:
        made.worker(name, slots=1)
    for number in range(8):
        made.submit(f"urgent{number}.json", '{"command": ["work"], "priority": 5}')
        made.submit(f"other{number}.json", '{"command": ["work"]}')
    for _ in range(20):
        made.pass_time(0.1)
        made.step("m1")
    firsts = {
        made.nodes[name].worker._claiming._begin(made.nodes[name].worker._claiming.offers({})) for name in names
    }
    assert len(firsts) > 1
    assert max(firsts) < 8


def test_what_lets_nobody_claim_it_is_told_and_passed_over() -> None:
    made = cluster({}, {}, {})
    node = made.worker("w1", 2)
    (path,) = [path for path in made.fs.files("ready") if ".t0." in path]
    node.fs.fail("rename", path, errno.EPERM, times=1000)
    made.step("w1")
    assert runs(node) == ["t1", "t2"]
    assert node.worker.notes == ("task t0 cannot be claimed: Operation not permitted",)
    made.finish("t1")
    node.fs.faults.clear()
    made.advance(2)
    assert sorted(runs(node)) == ["t0", "t2"]
    made.advance(2)
    assert not node.worker.notes


def test_directories_in_a_lane_are_told_with_the_fix_and_so_many_of_them() -> None:
    made = cluster({})
    node = made.worker("w1", 2)
    (path,) = made.fs.files("ready")
    planted = [path.replace(".t0.", f".planted{number:02}.") for number in range(NAMED_MOST + 2)]
    for name in planted:
        made.fs.mkdir(name)
        made.fs.shut.add(made.fs.stat(name).inode)
    made.step("w1")
    assert runs(node) == ["t0"]
    made.advance(2)
    *told, more = node.worker.notes
    assert len(told) == NAMED_MOST
    assert all(
        f"its owner (or root) removes it, or runs `chmod g+rwx {name}`" in " ".join(told) for name in planted[:5]
    )
    assert more == "tasks that cannot be claimed, and that are not named here: 2"


def test_a_claim_whose_reply_was_lost_is_looked_for_in_its_own_directory_alone() -> None:
    made = cluster({}, {})
    node = made.worker("w1", 1)
    looked: list[str] = []
    node.fs.fail("rename", "claimed/w1/", errno.EIO, "done")
    look = node.fs.list

    def listed(path: str) -> list[str]:
        looked.append(path)
        return look(path)

    node.fs.list = listed  # type: ignore[method-assign]
    made.step("w1")
    assert runs(node) == []
    assert made.state("t0") == "claimed"
    looked.clear()
    made.step("w1")
    assert runs(node) == ["t0"], "and no other task has its slot"
    assert [path for path in looked if path.startswith(("claimed", "ready"))] == ["claimed/w1"]
