"""Two leaders, two workers, two tasks, at a moment when it matters who acts first.

In every opening both leaders believe that they lead: m1 was frozen in the middle of a step, after it had made sure of
its token; m2 has just taken the token over. Both workers have a free slot. Either m2 has read the tree and begins to
look again, as m1 does, or it has read nothing yet; in the second case it has so many more calls to make that fewer
preemptions are tried. A command that was started ends at once. Time stands still for all but m2, as on machines that
were suspended, so that no beat is due that has nothing to do with what is tried here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from spoold.protocol.request import Verb
from spoold.store import control
from spoold.store.store import open_store
from tests.sim.conduct import Broken
from tests.sim.interleaving import Interleaving
from tests.sim.laws import Asked
from tests.sim.watched import WatchedCluster

SETTINGS = """
[heartbeat]
interval_s = 10
misses = 2
[retry]
backoff_s = 0
jitter = 0
[drop]
grace_s = 1
"""
ROUNDS_MAX = 60
REST_ROUNDS = 4
STEPS = {"m1": 1, "m2": 1, "w1": 1, "w2": 1}
# Long enough for m2 to lose patience after three looks, too short for its own beat to be due again by then (s).
LOOK_S = 9.9
Ends = dict[str, str]
Freeze = Callable[[str, tuple[Any, ...]], bool]


def _before_listing(verb: str, args: tuple[Any, ...]) -> bool:
    """A leader has made sure of its token and beaten: it begins to look."""
    return verb == "list" and args[0] == "pending"


def _before_publishing(verb: str, args: tuple[Any, ...]) -> bool:
    """A leader has staged the lines of a batch, and none of them is a task yet."""
    return verb == "rename" and args[1].startswith("waiting/")


@dataclass(frozen=True, slots=True)
class Opening:
    """A beginning: what was done before m1 froze, where it froze, what came meanwhile, and the ends there may be.

    after: the parents of each task; reads: how often m2 has listed pending/; fewer: how many preemptions fewer than
    elsewhere are tried.
    """

    name: str
    ends: tuple[Ends, ...]
    before: Callable[[WatchedCluster], None] = lambda cluster: None
    meanwhile: Callable[[WatchedCluster], None] = lambda cluster: None
    freeze: Freeze = _before_listing
    after: dict[str, tuple[str, ...]] = field(default_factory=dict)
    reads: int = 3
    fewer: int = 0


def begin(opening: Opening) -> Interleaving:
    """The opening, with everybody before the first call."""
    cluster = WatchedCluster(SETTINGS)
    for task in opening.ends[0]:
        cluster.laws.asked[task] = Asked(task, "", opening.after.get(task, ()))
    for name in ("m1", "m2"):
        cluster.master(name)
        cluster.step(name)
    for name in ("w1", "w2"):
        cluster.worker(name)
    cluster.settle()
    opening.before(cluster)
    play = Interleaving(cluster, lambda name: end_commands(cluster, name))
    play.add("m1", play.steps("m1", STEPS["m1"]))
    _until(play, "m1", opening.freeze)
    opening.meanwhile(cluster)
    _take_over(play, opening.reads)
    for name in ("w1", "w2"):
        play.add(name, play.steps(name, STEPS[name]))
    play.begin()
    return play


def _until(play: Interleaving, name: str, there: Freeze) -> None:
    """Let one go on until it stands before such a call."""
    while True:
        following = play.actors[name].next
        assert following is not None, f"{name} never came to where it is to freeze"
        if there(*following):
            return
        play.call(name)


def _take_over(play: Interleaving, reads: int) -> None:
    """m2 looks at the token until it has stood still for long enough, takes it, and reads the tree so many times."""
    for _ in range(8):
        play.cluster.nodes["m2"].clock.advance(LOOK_S)
        play.add("m2", play.steps("m2", STEPS["m2"]))
        while (following := play.actors["m2"].next) is not None:
            play.call("m2")
            if following[0] == "rename" and following[1][1].startswith("master/2.m2."):
                for _ in range(reads):
                    play.call("m2")
                    _until(play, "m2", _before_listing)
                return
    raise AssertionError("m2 never took over")


def finish(play: Interleaving, ends: tuple[Ends, ...]) -> None:
    """From here on everything goes well, and must come to one of the ends. Errors: Broken."""
    play.close()
    cluster = play.cluster
    lives = 1
    for node in cluster.nodes.values():
        node.frozen = False
    rest = REST_ROUNDS
    for _ in range(ROUNDS_MAX):
        for name in [name for name in cluster.nodes if name in cluster.gone]:
            cluster.crash(name)
        while sum(name.startswith("w") for name in cluster.nodes) < 2:
            lives += 1
            cluster.worker(f"w{lives}-again")
        cluster.pass_time(5.0)
        cluster.step_all()
        for name in cluster.nodes:
            end_commands(cluster, name)
        rest -= cluster.states() in ends
        if not rest:
            cluster.check(cluster.states())
            return
    raise Broken(f"ends: {cluster.states()}, and it had to be one of {ends}: {sorted(cluster.fs.files())}")


def end_commands(cluster: WatchedCluster, name: str) -> None:
    """Whatever runs on this node is done, and well."""
    runner = cluster.nodes[name].runner
    if runner is not None:
        runner.running()
        for key in list(runner.live):
            runner.finish(key)


def _drop(cluster: WatchedCluster, task: str, more: str = "") -> None:
    cluster.submit(f"{task}.json", f'{{"id": "{task}", "command": ["work"]{more}}}')


def _ask(cluster: WatchedCluster, verb: Verb, target: str) -> None:
    person = open_store(cluster.mount("person"), cluster.clock, "person", "/spool")
    person.open_tmp()
    control.post(person, verb, target, "1", by="you")
    person.close_tmp()


def _leave_workers_out(cluster: WatchedCluster) -> None:
    for name in ("w1", "w2"):
        cluster.nodes[name].frozen = True


def _drops(cluster: WatchedCluster) -> None:
    _drop(cluster, "a")
    _drop(cluster, "b")


def _ended_with_child(cluster: WatchedCluster) -> None:
    _drop(cluster, "a")
    _drop(cluster, "b", ', "after": "a"')
    cluster.settle()
    cluster.finish("a")


def _failing_and_ready(cluster: WatchedCluster) -> None:
    _drop(cluster, "a")
    cluster.settle()
    _leave_workers_out(cluster)
    _drop(cluster, "b")
    cluster.step_all()
    cluster.finish("a", exit_code=1)


def _both_on_dead(cluster: WatchedCluster) -> None:
    cluster.worker("w3", 2)
    _leave_workers_out(cluster)
    _drops(cluster)
    cluster.settle()
    cluster.crash("w3")
    _ask(cluster, Verb.REAP, "w3")


def _cancelled(cluster: WatchedCluster) -> None:
    _leave_workers_out(cluster)
    _drop(cluster, "a")
    _drop(cluster, "b", ', "after": "a"')
    cluster.settle()
    _ask(cluster, Verb.CANCEL, "a")


def _tried_again(cluster: WatchedCluster) -> None:
    _drop(cluster, "a", ', "max_retries": 0')
    cluster.settle()
    cluster.finish("a", exit_code=1)
    cluster.settle()
    _leave_workers_out(cluster)
    _ask(cluster, Verb.RETRY, "a")


def _swept(cluster: WatchedCluster) -> None:
    _drops(cluster)
    cluster.settle()
    cluster.finish("a")
    cluster.finish("b")
    cluster.settle()
    _ask(cluster, Verb.GC, "+all")


def _batch(cluster: WatchedCluster) -> None:
    lines = '{"id": "a", "command": ["work"]}\n{"id": "b", "command": ["work"], "after": "a"}\n'
    cluster.submit("two.whole.jsonl", lines)


_WELL = ({"a": "completed", "b": "completed"},)
_CHILD: dict[str, tuple[str, ...]] = {"b": ("a",)}
_OPENINGS = (
    Opening("two drops", _WELL, meanwhile=_drops),
    Opening("a commit and its child", _WELL, _ended_with_child, after=_CHILD),
    Opening("a failure and a ready task", _WELL, _failing_and_ready),
    # Reaping makes so many calls that three preemptions take a quarter of an hour: --preemptions 4 tries them.
    Opening("the claims of a dead worker", _WELL, _both_on_dead, fewer=1),
    Opening("a cancelled parent", (*_WELL, {"a": "failed", "b": "failed"}), _cancelled, after=_CHILD),
    Opening("a retry and a drop", _WELL, _tried_again, lambda cluster: _drop(cluster, "b")),
    Opening("half a batch", _WELL, _batch, freeze=_before_publishing, after=_CHILD, reads=0),
    Opening("the archive", ({"a": "completed, archived", "b": "completed, archived"},), _swept),
)
OPENINGS = (
    *_OPENINGS,
    *(replace(o, name=f"{o.name}, unread", reads=0, fewer=2) for o in _OPENINGS if o.reads),
)
