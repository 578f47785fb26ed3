"""Small stories, and the playing of one: some nodes, a client, what happens, and how it must end.

A story is played in rounds of half a second; in every round each node makes a step. Whoever crashes is started again
under another name, as its service manager would.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spoold.client.spool.limits_and_budgets import raise_budget
from spoold.client.spool_client import SpoolClient
from spoold.protocol.errors import SpoolError
from tests.sim import lockers
from tests.sim.conduct import Broken
from tests.sim.laws import Asked
from tests.sim.story_shelves import saves_and_shares
from tests.sim.watched import Gate, WatchedCluster
from tests.support.faults import Crashed
from tests.support.loans import FakeLoans

TICK_S = 0.5
ROUNDS_MAX = 200
REST_ROUNDS = 14
# By then one task has ended, in most of the crashes.
RAISED_AT = 24
SETTINGS = """
[heartbeat]
interval_s = 1
misses = 3
[retry]
backoff_s = 1
jitter = 0
[drop]
grace_s = 1
"""
Task = dict[str, Any]
# As an exit code: the attempt ends with 75, and reports that a quota is used up.
USED_UP = 1075
REPORT = b'{"quota": {"limit": "llm", "retry_after_s": 3}}'


@dataclass(frozen=True, slots=True)
class Story:
    """What is submitted and how it ends. turn: what else happens, looked at in every round.

    exits: exit codes of attempts that are not well, by id and attempt; None: that command never ends by itself.
    result: what each attempt that ends well writes as its result.
    """

    name: str
    nodes: tuple[str, ...]
    tasks: tuple[Task, ...]
    ends: dict[str, str]
    settings: str = ""
    exits: tuple[tuple[str, int | None], ...] = ()
    turn: Callable[[Play], None] | None = None
    result: bytes = b""


class Play:
    """One playing of a story. gate: what stands between all of it and the tree; kept: what the programs of its tasks
    were told will stay.
    """

    def __init__(self, story: Story, gate: Gate | None = None) -> None:
        self.story = story
        self.round = -1
        self.cluster = WatchedCluster(SETTINGS + story.settings)
        if gate is not None:
            self.cluster.gate = gate
        for task in story.tasks:
            needs = tuple(task.get("dependencies", ()))
            self.cluster.laws.asked[task["id"]] = Asked(task["id"], "", needs, locks=task.get("locks"))
        self.cluster.laws.check_locks = lockers.check
        self.elsewhere = False
        self.loans: dict[str, FakeLoans] = {}
        self.kept: dict[str, int] = {}
        self._lives = dict.fromkeys((*story.nodes, "client"), 1)
        self._done: set[str] = set()
        self._wishes: list[Callable[[SpoolClient], object]] = []
        self.wish(self._submit)
        for name in story.nodes:
            self._start(name, name)

    def run(self, after_round: Callable[[], object] = lambda: None) -> int:
        """Play it to its end; returns the number of rounds. Errors: Broken."""
        for number in range(ROUNDS_MAX):
            self.play_round(number)
            after_round()
            if self._over():
                return number
        raise Broken(f"liveness: no end after {ROUNDS_MAX} rounds: {sorted(self.cluster.fs.files())}")

    def rest(self, rounds: int = REST_ROUNDS) -> None:
        """Long enough for the dead to be noticed and cleared away; then it must look as it had to. Errors: Broken."""
        for _ in range(rounds):
            self.play_round(self.round + 1)
        self.cluster.check(self.story.ends)

    def play_round(self, number: int) -> None:
        """One round. Errors: Broken."""
        self.round = number
        self.cluster.pass_time(TICK_S)
        if self.story.turn is not None:
            self.story.turn(self)
        self._ask()
        self.cluster.step_all()
        self._restart()
        self._finish()
        if self.cluster.broken is not None:
            raise self.cluster.broken

    def wish(self, act: Callable[[SpoolClient], object]) -> None:
        """The client is to do this, again and again until it is acknowledged."""
        self._wishes.append(act)

    def once(self, what: str, when: bool) -> bool:
        """True the first time that `when` is."""
        if not when or what in self._done:
            return False
        self._done.add(what)
        return True

    @property
    def happened(self) -> frozenset[str]:
        """What `once` was true for."""
        return frozenset(self._done)

    def living(self, base: str) -> str | None:
        """The name under which a node lives now."""
        names = self.cluster.nodes
        return next((name for name in names if name == base or name.startswith(f"{base}-")), None)

    def _submit(self, spool: SpoolClient) -> None:
        if len(self.story.tasks) > 1 and "batch" in self.story.name:
            spool.submit_many(self.story.tasks)
        else:
            for task in self.story.tasks:
                spool.submit(task)

    def _ask(self) -> None:
        """The client's turn; one that crashed is a new process the next time."""
        if not self._wishes:
            return
        mount = self.cluster.mount("client" if self._lives["client"] == 1 else f"client-{self._lives['client']}")
        try:
            with SpoolClient("/spool", filesystem=mount, clock=self.cluster.clock) as spool:
                self._wishes[0](spool)
        except Crashed:
            self._lives["client"] += 1
            return
        except SpoolError:
            if self._lives["client"] == 1:
                raise
            # The client before got its wish, and died before it heard of that.
        del self._wishes[0]

    def _start(self, name: str, host: str) -> None:
        try:
            if name.startswith("m"):
                self.cluster.master(name, host=host)
            else:
                self.loans[name] = FakeLoans()
                self.cluster.worker(name, host=host, loans=self.loans[name])
        except Crashed:
            if name in self.cluster.nodes:
                self.cluster.crash(name)
            else:
                self.cluster.gone[name] = "crashed"

    def _restart(self) -> None:
        for base in self.story.nodes:
            if self.living(base) is None:
                self._lives[base] += 1
                name = f"{base}-{self._lives[base]}"
                self._start(name, name if self.elsewhere else base)

    def _finish(self) -> None:
        exits = dict(self.story.exits)
        for node in self.cluster.nodes.values():
            if node.runner is None:
                continue
            node.runner.running()  # what its lease has ended by now cannot finish any more
            for key in list(node.runner.live):
                code = exits.get(key, exits.get(key.partition(".")[0], 0))
                if code == USED_UP:
                    node.runner.scratch.write(key, "result.json", REPORT)
                    node.runner.finish(key, exit_code=75)
                elif code is not None:
                    if self.story.result:
                        node.runner.scratch.write(key, "result.json", self.story.result)
                    node.runner.finish(key, exit_code=code, output=f"{key}\n")

    def _over(self) -> bool:
        if self._wishes:
            return False
        return self.cluster.states() == self.story.ends


def _work(task_id: str, *after: str, **more: Any) -> Task:
    return {"id": task_id, "command": ["work"], "dependencies": list(after), **more}


def _waits_for_its_child(play: Play) -> None:
    """Each attempt of p waits until c has ended, and ends when it has its slot back."""
    for node in [*play.cluster.nodes.values()]:
        if node.runner is None:
            continue
        for attempt in [key for key in node.runner.live if key.startswith("p.")]:
            loans = play.loans[node.name]
            if play.once(f"waits {node.name} {attempt}", when=True):
                loans.lend(attempt)
            elif play.cluster.states().get("c") == "completed" and play.once(
                f"asks {node.name} {attempt}", when=True
            ):
                loans.ask(attempt)
            elif attempt in loans.settled:
                node.runner.finish(attempt, exit_code=0, output="went on")


def _dies(play: Play) -> None:
    """Whoever has the first attempt loses its power."""
    for node in [*play.cluster.nodes.values()]:
        if node.runner is not None and play.once("dies", "a.1" in node.runner.live):
            play.cluster.crash(node.name)


def _freezes(play: Play) -> None:
    node = play.cluster.nodes.get("m1")
    if node is not None and play.once("freezes", play.cluster.where("a") == "claimed"):
        node.frozen = True
    if node is not None and play.once("thaws", play.round >= 16):
        node.frozen = False


def _cancels(play: Play) -> None:
    if play.once("cancels", play.cluster.where("a") == "claimed"):
        play.wish(lambda spool: spool.cancel("a"))


def _retries(play: Play) -> None:
    if play.once("retries", play.cluster.where("a") == "failed"):
        play.wish(lambda spool: spool.retry("a"))


def _releases_and_approves(play: Play) -> None:
    """First the hold is lifted, then the question, once it is put, is answered."""
    if play.once("releases", play.cluster.where("a") == "waiting"):
        play.wish(lambda spool: spool.release_held("a"))
    if play.once("approves", _is_asked(play)):
        play.wish(lambda spool: spool.approve("a", "no"))


def _rejects_retries_and_approves(play: Play) -> None:
    if play.once("rejects", _is_asked(play)):
        play.wish(lambda spool: spool.reject("a", reason="no"))
    if play.once("retries", play.cluster.where("a") == "failed"):
        play.wish(lambda spool: spool.retry("a"))
    if "retries" in play.happened and play.once("approves", play.cluster.where("a") == "waiting" and _is_asked(play)):
        play.wish(lambda spool: spool.approve("a"))


def _raises(play: Play) -> None:
    """The budget is enough for one of the tasks, whichever it is, until somebody adds to it."""
    begun = [task["id"] for task in play.story.tasks if play.cluster.where(task["id"]) in ("claimed", "completed")]
    if len(begun) > 1 and "raises" not in play.happened:
        raise Broken(f"budget: {' and '.join(begun)} have begun, and the budget is enough for one")
    if play.once("raises", play.round >= RAISED_AT):
        play.wish(lambda spool: raise_budget(spool, "purse", {"cost_usd": 1.0}))


def _cancels_when_the_other_has_run(play: Play) -> None:
    """What no worker can run is in nobody's way."""
    if play.once("cancels", play.cluster.where("b") == "completed"):
        play.wish(lambda spool: spool.cancel("a"))


def _sends_back_and_approves(play: Play) -> None:
    """The question is put, the work is sent back to the first task, and the next round is approved."""
    if play.once("sends back", _is_asked(play)):
        play.wish(lambda spool: spool.reject("a", reason="again", redo="b"))
    again = all(play.cluster.where(one) == "completed" for one in ("b", "c"))
    twice = any(name.startswith("c.2.") for name in play.cluster.fs.list("results"))
    if play.once("approves", again and twice and _is_asked(play)):
        play.wish(lambda spool: spool.approve("a", "no"))


def _is_asked(play: Play) -> bool:
    return any(name.startswith("ask.a.") for name in play.cluster.fs.list("control"))


def _closes(play: Play) -> None:
    """Somebody closes a limit, of which an alert tells."""
    if play.once("closes", play.cluster.where("a") == "ready"):
        play.wish(lambda spool: spool.close_limit("api"))


_APPROVAL: dict[str, Any] = {"ask": "Deploy?", "choices": ["yes", "no"]}
_PAID: dict[str, Any] = {"budgets": ["purse"], "budget": {"cost_usd": 0.1}}

STORIES = (
    Story("first task", ("m1", "w1"), (_work("a"),), {"a": "completed"}),
    Story("retry", ("m1", "w1"), (_work("a"),), {"a": "completed"}, exits=(("a.1", 1),)),
    Story("chain of two", ("m1", "w1", "w2"), (_work("a"), _work("b", "a")), {"a": "completed", "b": "completed"}),
    Story(
        "batch of three",
        ("m1", "m2", "w1"),
        (_work("a"), _work("b", "a"), _work("c", "a", "b")),
        {"a": "completed", "b": "completed", "c": "completed"},
    ),
    Story("a worker dies", ("m1", "w1", "w2"), (_work("a"),), {"a": "completed"}, exits=(("a.1", None),), turn=_dies),
    Story(
        "standby takes over",
        ("m1", "m2", "w1"),
        (_work("a"), _work("b", "a")),
        {"a": "completed", "b": "completed"},
        turn=_freezes,
    ),
    Story(
        "two that conflict",
        ("m1", "m2", "w1"),
        (_work("a", locks={"write": ["src/**"]}), _work("b", locks={"read": ["src/api/**"]})),
        {"a": "completed", "b": "completed"},
    ),
    Story("cancel", ("m1", "w1"), (_work("a"),), {"a": "failed"}, exits=(("a", None),), turn=_cancels),
    Story(
        "failed, tried again",
        ("m1", "w1"),
        (_work("a", max_retries=0),),
        {"a": "completed"},
        exits=(("a.1", 65),),
        turn=_retries,
    ),
    Story(
        "after a failure",
        ("m1", "w1"),
        (
            _work("a", max_retries=0),
            _work("b", after_failed=["a"]),
            _work("c", after_failed=["b"]),
            _work("d", "c"),
        ),
        {"a": "failed", "b": "completed", "c": "failed", "d": "failed"},
        exits=(("a", 1),),
    ),
    Story(
        "after a batch",
        ("m1", "m2", "w1"),
        (_work("a", batch="x", max_retries=0), _work("b", batch="x"), _work("c", after_batch="x")),
        {"a": "failed", "b": "completed", "c": "completed"},
        exits=(("a", 1),),
        turn=_freezes,
    ),
    Story(
        "held and approved",
        ("m1", "m2", "w1"),
        (_work("a", hold="not yet", approval=_APPROVAL),),
        {"a": "completed"},
        exits=(("a.1", 1),),
        turn=_releases_and_approves,
    ),
    Story(
        "rejected, then approved",
        ("m1", "w1"),
        (_work("a", approval=_APPROVAL),),
        {"a": "completed"},
        turn=_rejects_retries_and_approves,
    ),
    Story(
        "sent back, then approved",
        ("m1", "w1"),
        (_work("b"), _work("c", "b"), _work("a", "c", approval=_APPROVAL)),
        {"a": "completed", "b": "completed", "c": "completed"},
        turn=_sends_back_and_approves,
    ),
    Story(
        "silence approves",
        ("m1", "w1"),
        (_work("a", approval={**_APPROVAL, "expires_s": 3, "on_expire": "no"}),),
        {"a": "completed"},
    ),
    Story(
        "archive",
        ("m1", "w1"),
        (_work("a"), _work("b", max_retries=0)),
        {"a": "completed, archived", "b": "failed, archived"},
        settings="[retention]\ncompleted_s = 1\nfailed_s = 1\n",
        exits=(("b", 1),),
    ),
    Story(
        "a class has its slots back",
        ("m1", "m2", "w1"),
        (_work("a", **{"class": "spare"}), _work("b", **{"class": "spare"}), _work("c", **{"class": "own"})),
        {"a": "completed", "b": "completed", "c": "completed"},
        settings="[classes.own]\nslots = 1\n[classes.spare]\nslots = 0\nborrow = true\n",
    ),
    Story(
        "a task that no worker can run",
        ("m1", "m2", "w1"),
        (_work("a", uses=["x"], requires={"labels": ["nowhere"]}), _work("b", uses=["x"])),
        {"a": "failed", "b": "completed"},
        settings="[limits.x]\nmax = 1\n",
        turn=_cancels_when_the_other_has_run,
    ),
    Story(
        "a budget is spent, and raised",
        ("m1", "m2", "w1"),
        (_work("a", **_PAID), _work("b", **_PAID)),
        {"a": "completed", "b": "completed"},
        settings="[budgets.purse]\ncost_usd = 0.1\n",
        turn=_raises,
        result=b'{"cost_usd": 0.1}',
    ),
    Story(
        "an alert is told once",
        ("m1", "m2"),
        (_work("a"),),
        {"a": "ready", "alert-limit_closed-api": "ready"},
        settings='[limits.api]\nmax = 1\n[alerts]\ndead_s = 0\ntask = {type = "notify"}\n',
        turn=_closes,
    ),
    Story(
        "a breaker opens and is tried",
        ("m1", "m2", "w1"),
        (_work("a", type="t", max_retries=0), _work("b", type="t", max_retries=0)),
        {"a": "failed", "b": "completed"},
        settings="[types.t]\nbreaker = {failures = 1, open_s = 3}\n",
        exits=(("a", 1),),
    ),
    Story(
        "a parent has its units back",
        ("m1", "m2", "w1"),
        (_work("p", uses=["x"]), _work("c", uses=["x"], parent="p"), _work("d", uses=["x"])),
        {"p": "completed", "c": "completed", "d": "completed"},
        settings="[limits.x]\nmax = 1\n",
        exits=(("p", None),),
        turn=_waits_for_its_child,
    ),
    Story(
        "a quota is used up",
        ("m1", "m2", "w1"),
        (_work("a", uses=["llm"], max_retries=0), _work("b", uses=["llm"], max_retries=0)),
        {"a": "completed", "b": "completed"},
        settings="[limits.llm]\nmax = 1\nrate = {count = 2, per_s = 2}\n",
        exits=(("a.1", USED_UP),),
    ),
    Story(
        "steps and an entry stay",
        ("m1", "m2", "w1"),
        (_work("a", batch="x"),),
        {"a": "completed"},
        settings="[retention]\narchive_s = 1\n",
        exits=(("a", None),),
        turn=saves_and_shares,
    ),
)
