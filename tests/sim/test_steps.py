"""The law of the step that beats: whatever others left, dropped or asked, no step keeps a beat waiting.

Method: a leader and a worker, each on a clock that every call to the share and every call of a function moves, and
whatever has a size that others decide, in large: kind by kind, and in seeded mixtures. Beats are at most GAP_S apart,
a step has at most OWN_S of its own, makes a bounded number of calls, and everything is done in the end.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest

from spoold.protocol.names import EndedName, TaskName, encode_order
from tests.support.charged import Charged
from tests.support.cluster import Cluster, Node

GAP_S, OWN_S, CALLS = 5.0, 1.0, 600
MANY = 500
ROUNDS_MAX = 5000
SETTINGS = "[retention]\ncompleted_s = 5\nfailed_s = 5\n"


class World:
    """A leader and a worker that are stepped by their clocks: whose is behind is next."""

    def __init__(self, settings: str = "") -> None:
        self.cluster = Cluster(settings, remote=True)
        self.leader = self.cluster.master("m1")
        self.worker = self.cluster.worker("w1", 8)
        self.charged = {node.name: Charged(node) for node in (self.leader, self.worker)}
        self._began = {node.name: node.clock.monotonic() for node in (self.leader, self.worker)}
        self._checks: list[Callable[[], bool]] = []
        self.run(3.0)
        for one in self.charged.values():
            one.costs.clear()

    def until(self, check: Callable[[], bool]) -> None:
        """Demand one more thing to be done in the end."""
        self._checks.append(check)

    def run(self, seconds: float = 0.0) -> None:
        """Go on for so long, and until all that is demanded is done."""
        end = max(map(self._elapsed, self.charged)) + seconds
        for _ in range(ROUNDS_MAX):
            name = min(self.charged, key=self._elapsed)
            if self._elapsed(name) >= end and all(check() for check in self._checks):
                return
            self._step(self.cluster.nodes[name])
        raise AssertionError(f"not done after {ROUNDS_MAX} steps")

    def _step(self, node: Node) -> None:
        step = self.charged[node.name].step()
        now = node.clock.monotonic()
        node.clock.advance(min(max((step.next_due or now + 0.5) - now, 0.05), 0.5))
        behind = min(map(self._elapsed, self.charged)) - (self.cluster.clock.monotonic() - 1000.0)
        self.cluster.clock.advance(max(0.0, behind))
        if node.runner is not None:
            for key in list(node.runner.live):
                if not key.startswith("neighbour"):
                    node.runner.finish(key)

    def _elapsed(self, name: str) -> float:
        return self.cluster.nodes[name].clock.monotonic() - self._began[name]

    def ended(self, *prefixes: str) -> int:
        """How many tasks whose ids begin so have ended, archived ones too."""
        return sum(name.startswith(prefixes) for name in self._ended())

    def _ended(self) -> set[str]:
        paths = [path for path in self.cluster.fs.files() if path.startswith(("completed/", "failed/", "archive/"))]
        names = [path.rpartition("/")[2] for path in paths]
        return {name.partition(".")[0] for name in names if ".result." not in name and not name.endswith(".log")}

    def check(self) -> None:
        """The law."""
        for name, charged in self.charged.items():
            costs = charged.costs
            assert max(charged.gaps) <= GAP_S, f"{name} did not beat for {max(charged.gaps):.1f} s"
            own_s = max(cost.own_s for cost in costs)
            assert own_s <= OWN_S, f"{name} took {own_s:.1f} s of its own in one step"
            assert max(cost.calls for cost in costs) <= CALLS, f"{name}: {max(cost.calls for cost in costs)} calls"


def task(task_id: str, **more: object) -> bytes:
    return json.dumps({"id": task_id, "command": ["work"], **more}).encode()


def put(world: World, path: str, data: bytes) -> None:
    """Put a file there, with its directories, at no cost."""
    parts = path.split("/")[:-1]
    for depth in range(1, len(parts) + 1):
        if parts[depth - 1] not in world.cluster.fs.list("/".join(parts[: depth - 1])):
            world.cluster.fs.mkdir("/".join(parts[:depth]))
    world.cluster.fs.write(path, data, durable=False)


def token(number: int, task_id: str, attempt: int = 1) -> TaskName:
    return TaskName(rank=5000, order=encode_order(1_700_000_000_000_000 + number, 1), id=task_id, attempt=attempt)


def drops(world: World, count: int) -> None:
    for number in range(count):
        put(world, f"pending/drop{number}.json", task(f"drop{number}"))
    world.until(lambda: world.ended("drop") == count)


def foreign_batch(world: World, count: int) -> None:
    put(world, "pending/batch.whole.jsonl", b"".join(task(f"batch{number}") + b"\n" for number in range(count)))
    world.until(lambda: world.ended("batch") == count)


def blank_lines(world: World, count: int) -> None:
    """N9: many blank lines, and one task."""
    put(world, "pending/blank.whole.jsonl", b"\n" * (9000 * count) + task("blank") + b"\n")
    world.until(lambda: world.ended("blank") == 1)


def long_lines(world: World, count: int) -> None:
    fill = "x" * 60_000
    lines = b"".join(task(f"long{number}", input={"text": fill}) + b"\n" for number in range(count // 4))
    put(world, "pending/long.whole.jsonl", lines)
    world.until(lambda: world.ended("long") == count // 4)


def no_tasks(world: World, count: int) -> None:
    for number in range(count):
        put(world, f"pending/bad{number}.json", b'{"id": 7, "nonsense": true}')
    world.until(lambda: not any(name.startswith("bad") for name in world.cluster.fs.list("pending")))


def handed_back(world: World, count: int) -> None:
    for number in range(count):
        put(
            world,
            f"returned/{token(number, f'back{number}', attempt=2).encode_returned('w8')}",
            task(f"back{number}"),
        )
    world.until(lambda: world.ended("back") == count)


def claims_of_the_dead(world: World, count: int) -> None:
    for number in range(count):
        put(world, f"claimed/w9/{token(number, f'dead{number}').encode()}", task(f"dead{number}"))
    world.until(lambda: world.ended("dead") == count)


def late_claims(world: World, count: int) -> None:
    for number in range(count):
        put(world, f"claimed/w1/{token(number, f'late{number}').encode()}", task(f"late{number}"))
    world.until(lambda: world.ended("late") == count)


def children_of_one_that_fails(world: World, count: int) -> None:
    put(world, "completed/other.1.w8.json", task("other"))
    for number in range(count):
        put(world, f"pending/child{number}.json", task(f"child{number}", after=["gone"]))
    put(world, f"failed/{EndedName('gone', 1, 'w8').encode()}", task("gone"))
    world.until(lambda: world.ended("child") == count)


def needs_many(world: World, count: int) -> None:
    """N5: a task that runs after thousands."""
    names = [f"parent{number}" for number in range(count)]
    for name in names:
        ended = EndedName(name, 1, "w8").encode()
        put(world, f"completed/{ended}", task(name))
        put(world, f"results/{ended}", b'{"output": 1}')
    put(world, "pending/join.json", task("join", after=names))
    world.until(lambda: world.ended("join") == 1)


def cancels(world: World, count: int) -> None:
    for number in range(count):
        put(world, f"pending/cancelled{number}.json", task(f"cancelled{number}", not_before="2199-01-01T00:00:00Z"))
        put(world, f"control/cancel.cancelled{number}.u{number}.json", b'{"by": "me"}')
    world.until(lambda: world.ended("cancelled") == count)


def holds(world: World, count: int) -> None:
    for number in range(count):
        put(world, f"control/hold.nobody{number}.u{number}.json", b"{}")
    world.until(lambda: not any(name.startswith("hold.") for name in world.cluster.fs.list("control")))


def retries(world: World, count: int) -> None:
    for number in range(count):
        put(world, f"control/retry.unknown{number}.u{number}.json", b"{}")
    world.until(lambda: not any(name.startswith("retry.") for name in world.cluster.fs.list("control")))


def reports(world: World, count: int) -> None:
    """Of a node that lives, and of one that left nothing else."""
    for number in range(count * 4):
        put(world, f"control/reap.{('w1', 'gone')[number % 2]}.u{number}.json", b"{}")
    world.until(lambda: not any(name.startswith("reap.") for name in world.cluster.fs.list("control")))


def strange_requests(world: World, count: int) -> None:
    for number in range(count * 4):
        put(world, f"control/cancle.strange-{number}.u{number}.json", b"{}")


def reservations(world: World, count: int) -> None:
    for number in range(count):
        put(world, f"control/reserve.+all.r{number}.json", b"{}")
    world.until(lambda: not any(name.startswith("reserve.") for name in world.cluster.fs.list("control")))


def approvals(world: World, count: int) -> None:
    for number in range(count):
        approval = {"ask": "may it?", "expires_s": 5, "on_expire": "reject"}
        put(world, f"pending/asks{number}.json", task(f"asks{number}", approval=approval))
    world.until(lambda: world.ended("asks") >= min(count, 256))


def ended_long_ago(world: World, count: int) -> None:
    for number in range(count):
        ended = EndedName(f"old{number}", 1 + number % 2, "w8")
        put(world, f"completed/{ended.encode()}", task(f"old{number}"))
        put(world, f"results/{ended.encode()}", b"{}")
        put(world, f"logs/{ended.log()}", b"said")
    world.until(lambda: not any(name.startswith("old") for name in world.cluster.fs.list("completed")))


def journals(world: World, count: int) -> None:
    for number in range(count):
        put(world, f"events/w{number}-x.1.jsonl", b"{}\n")
        put(world, f"tmp/c{number}-x/1", b"{}")


def beats(world: World, count: int) -> None:
    for number in range(count):
        put(world, f"heartbeats/n{number}-x.7.json", b"{}")


def snapshots(world: World, count: int) -> None:
    for number in range(count):
        put(world, f"status/0-{number}.json", b"{}")


def prints(world: World, count: int) -> None:
    """A task that prints a lot: all of it is in its log before its end."""
    said = b"x" * (count * 100_000)
    put(world, "pending/neighbour-prints.json", task("neighbour-prints"))
    runner, scratch = world.worker.runner, world.worker.scratch
    assert runner is not None
    assert scratch is not None
    live, finish, write = runner.live, runner.finish, scratch.write

    def done() -> bool:
        if (key := "neighbour-prints.1") in live:
            write(key, "output", said)
            finish(key, tail="", stdout="", output_bytes=len(said))
        return world.ended("neighbour-prints") == 1

    world.until(done)


KINDS: tuple[Callable[[World, int], None], ...] = (
    drops,
    foreign_batch,
    blank_lines,
    long_lines,
    no_tasks,
    handed_back,
    claims_of_the_dead,
    late_claims,
    children_of_one_that_fails,
    needs_many,
    cancels,
    holds,
    retries,
    reports,
    strange_requests,
    reservations,
    approvals,
    ended_long_ago,
    journals,
    beats,
    snapshots,
    prints,
)


@pytest.mark.turns
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_kind_of_thing_keeps_a_beat_waiting(kind: Callable[[World, int], None]) -> None:
    world = World(SETTINGS if kind is ended_long_ago else "")
    kind(world, MANY)
    world.run(70.0 if kind in (journals, beats) else 5.0)
    world.check()


@pytest.mark.parametrize("seed", range(3))
def test_no_mixture_keeps_a_beat_waiting(seed: int) -> None:
    chance = random.Random(seed)
    world = World()
    world.cluster.submit("neighbour.json", task("neighbour"))
    world.run(5.0)
    for kind in chance.sample([kind for kind in KINDS if kind not in (beats, late_claims)], 4):
        kind(world, chance.randint(50, 200))
    world.run(20.0)
    world.check()
    assert list(world.worker.runner.live if world.worker.runner else ()) == ["neighbour.1"], (
        "it runs on, as attempt 1"
    )
