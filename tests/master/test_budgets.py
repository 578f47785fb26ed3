"""Budgets as a leader holds them: what starts, what waits, and what the next leader makes of it."""

import errno
import json
from collections import Counter
from typing import Any

import pytest

from spoold.master.limits import result_stream
from spoold.rules.gates import budget_gate as gate
from spoold.store.settings_change import publish_change
from spoold.store.store import open_store
from spoold.system.clock import ManualClock
from tests.support.cluster import Cluster, Node
from tests.support.counting import CountingFileSystem

ONE = """
[retry]
max = 2
backoff_s = 0.001
jitter = 0
[budgets.nightly]
cost_usd = 1.00
"""
TYPED = ONE + '[types.review]\nbudgets = ["nightly"]\n'


class Pool:
    """A leader and a worker with room for everything."""

    def __init__(self, settings: str = ONE, *, wall: float = 1_770_000_000.0) -> None:
        self.cluster = Cluster(settings, clock=ManualClock(wall=wall))
        self.leader = self.cluster.master("m1")
        self.worker = self.cluster.worker("w1", 50)
        self.cluster.settle()

    def submit(self, *ids: str, **fields: object) -> None:
        for task_id in ids:
            task = {"id": task_id, "command": ["work"], **fields}
            self.cluster.submit(f"{task_id}.json", json.dumps(task))
            self.cluster.settle()

    def many(self, count: int, **fields: object) -> None:
        self.submit(*(f"t{number:02}" for number in range(count)), **fields)

    def running(self) -> list[str]:
        assert self.worker.runner is not None
        return sorted(key.rpartition(".")[0] for key in self.worker.runner.live)

    def end(self, *ids: str, cost_usd: float | None = 0.10, exit_code: int = 0) -> None:
        for task_id in ids:
            self.cost(task_id, cost_usd)
            self.cluster.finish(task_id, exit_code=exit_code)
            self.cluster.settle()

    def cost(self, task_id: str, cost_usd: float | None) -> None:
        """What the running attempt will have cost."""
        assert self.worker.scratch is not None
        assert self.worker.runner is not None
        key = next(key for key in self.worker.runner.live if key.startswith(f"{task_id}."))
        if cost_usd is not None:
            self.worker.scratch.write(key, "result.json", json.dumps({"cost_usd": cost_usd}).encode())

    def lead(self, name: str, *, crash: str = "") -> Node:
        """Another leader, after this one was killed."""
        self.cluster.crash(crash or next(n for n, node in self.cluster.nodes.items() if node.runner is None))
        self.leader = self.cluster.master(name)
        self.cluster.advance(20)
        assert self.leader.master.leading
        return self.leader

    def change(self, said: dict[str, Any]) -> None:
        store = open_store(self.cluster.fs, self.cluster.clock, f"cli-{self.cluster.clock.monotonic():.0f}", "/spool")
        store.open_tmp()
        publish_change(store, said, by="ada")
        self.cluster.advance(6)
        self.cluster.settle()

    def picture(self) -> dict[str, Any]:
        """The budgets of the newest snapshot."""
        self.cluster.advance(6)
        names = [name for name in self.cluster.fs.list("status") if "feed" not in name]
        newest = max(names, key=lambda name: [int(n) for n in name.split(".")[0].split("-")])
        found: dict[str, Any] = json.loads(self.cluster.fs.read(f"status/{newest}"))
        return {**found["gates"].get("budget", {}), "warnings": found["warnings"]}

    def period(self, name: str = "nightly") -> dict[str, Any]:
        found: dict[str, Any] = self.picture()[name]["periods"][0]
        return found

    def events(self) -> Counter[str]:
        said: Counter[str] = Counter()
        for file in self.cluster.fs.list("events"):
            said += Counter(json.loads(line)["event"] for line in self.cluster.fs.read(f"events/{file}").splitlines())
        return said


TENTH = {"budgets": ["nightly"], "budget": {"cost_usd": 0.10}}


def test_ten_of_a_tenth_run_on_one_the_eleventh_waits_and_says_so_and_a_raise_lets_it_go() -> None:
    pool = Pool()
    pool.many(12, **TENTH)
    assert pool.running() == [f"t{number:02}" for number in range(10)]
    said = pool.period()
    [first] = said.pop("first")
    assert first.split(".")[2] == "t10"
    assert said | {"unknown": {}} == {
        "period": "total",
        "spent": {"cost_usd": 0, "tokens": 0, "task_s": 0},
        "reserved": {"cost_usd": 1, "tokens": 0, "task_s": 0},
        "left": {"cost_usd": 0},
        "attempts": 0,
        "unknown": {},
        "waits": "t10",
    }
    pool.end(*(f"t{number:02}" for number in range(10)))
    pool.cluster.advance(20)
    assert pool.running() == []
    assert (pool.period()["spent"]["cost_usd"], pool.period()["reserved"]["cost_usd"]) == (1, 0)
    assert pool.events()["BUDGET_CLOSED"] == 1
    pool.change({"budgets": {"nightly": {"add": {"cost_usd": 0.1}}}})
    assert pool.running() == ["t10"]
    pool.change({"budgets": {"nightly": {"add": {"cost_usd": 5}}}})
    assert pool.running() == ["t10", "t11"]
    assert pool.events()["BUDGET_OPENED"] == 1


def test_what_costs_less_than_it_reserved_lets_more_run_at_once() -> None:
    pool = Pool()
    pool.many(14, **TENTH)
    pool.end("t00", cost_usd=0)
    assert "t10" in pool.running()
    pool.end("t01", cost_usd=0.10)
    assert "t11" not in pool.running()
    pool.end("t02", cost_usd=0.35)  # more than it reserved, and that was given out
    pool.end("t03", cost_usd=0)
    assert "t11" not in pool.running()
    for task_id in ("t04", "t05", "t06"):
        pool.end(task_id, cost_usd=0)
    assert pool.running() == ["t07", "t08", "t09", "t10", "t11"], "0.45 are spent, and half is reserved"
    assert pool.period()["left"] == {"cost_usd": 0.05}


@pytest.mark.parametrize("ended", [0, 4, 10])
@pytest.mark.parametrize("archived", [False, True])
def test_the_next_leader_after_a_kill_lets_no_more_start(ended: int, *, archived: bool) -> None:
    pool = Pool(ONE + ("[retention]\ncompleted_s = 1\n" if archived else ""))
    pool.many(12, **TENTH)
    ids = [f"t{number:02}" for number in range(12)]
    pool.end(*ids[: ended // 2])
    if archived:
        pool.cluster.advance(20)
        assert pool.cluster.fs.list("completed") == []
    pool.end(*ids[ended // 2 : ended])  # in no checkpoint
    pool.lead("m2")
    assert pool.running() == ids[ended:10]
    pool.end(*ids[ended:10])
    pool.lead("m3")
    assert pool.running() == []
    assert pool.period()["spent"]["cost_usd"] == 1
    pool.change({"budgets": {"nightly": {"add": {"cost_usd": 0.1}}}})
    assert pool.running() == ["t10"]


def test_a_new_leader_opens_only_when_all_records_of_before_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool()
    pool.many(12, **TENTH)
    pool.cluster.advance(10)
    pool.cluster.crash("m1")
    pool.end(*(f"t{number:02}" for number in range(10)))
    monkeypatch.setattr(result_stream, "PER_STEP", 1)
    pool.leader = pool.cluster.master("m2")
    pool.cluster.advance(40)
    assert pool.running() == []
    assert pool.period()["spent"]["cost_usd"] == 1


def test_nothing_draws_on_a_budget_before_a_checkpoint_stands() -> None:
    """Without one, the next leader would take what ended by then for counted."""
    cluster = Cluster(ONE)
    leader = cluster.master("m1")
    cluster.worker("w1", 4)
    leader.fs.fail("rename", "status", errno.ENOSPC, times=1000)
    cluster.submit("a.json", json.dumps({"id": "a", "command": ["work"], **TENTH}))
    cluster.advance(10)
    assert cluster.state("a") == "waiting"
    leader.fs.faults.clear()
    cluster.advance(6)
    assert [name for name in cluster.fs.list("status") if "feed" in name]
    assert cluster.state("a") == "claimed"


def test_retries_count_and_reserve_too() -> None:
    pool = Pool()
    pool.submit("a", **{**TENTH, "budget": {"cost_usd": 0.40}})
    pool.end("a", cost_usd=0.40, exit_code=1)
    pool.cluster.advance(2)
    assert pool.running() == ["a"]
    pool.end("a", cost_usd=0.40, exit_code=1)
    pool.cluster.advance(2)
    assert pool.running() == [], "0.20 are left for the third attempt, which reserves 0.40"
    assert pool.period()["attempts"] == 2
    pool.change({"budgets": {"nightly": {"cost_usd": 2}}})
    assert pool.running() == ["a"]


def test_tasks_of_a_type_draw_by_its_settings_and_reserve_what_is_usual() -> None:
    pool = Pool(TYPED)
    pool.submit("first", type="review")
    pool.submit("other", type="build")
    pool.end("first", cost_usd=0.30)
    pool.many(5, type="review")
    assert pool.running() == ["other", "t00", "t01"], "0.30 are spent, and twice 0.30 are reserved"
    pool.end("t00", cost_usd=0.15)
    assert pool.running() == ["other", "t01", "t02"], "now 0.225 are usual, and 0.45 are spent"
    assert pool.picture()["nightly"]["usual"]["review"]["cost_usd"] == 0.225
    pool.lead("m2")
    assert pool.running() == ["other", "t01", "t02"]
    pool.change({"types": {"review": {"budgets": []}}})
    assert pool.running() == ["other", "t01", "t02", "t03", "t04"]


def test_a_budget_that_comes_while_tasks_wait_holds_those_too() -> None:
    pool = Pool("[types.review]\nmax_concurrent = 2\n")
    pool.many(6, type="review")
    pool.end("t00", "t01", cost_usd=1)
    assert pool.picture() == {"warnings": []}
    pool.change({"budgets": {"late": {"cost_usd": 1}}, "types": {"review": {"budgets": ["late"]}}})
    pool.end("t02", cost_usd=1)
    assert pool.running() == ["t03", "t04"], "what one usually costs was not known before that record was read"
    pool.end("t03", cost_usd=1)
    assert pool.running() == ["t04"]
    assert pool.period("late")["spent"]["cost_usd"] == 2, "what ran when the budget came draws on it, too"


@pytest.mark.parametrize("spent", [0.95, 1.0])
def test_over_fail_fails_what_can_never_fit_and_holds_what_still_may(spent: float) -> None:
    pool = Pool(ONE + 'over = "fail"\n')
    pool.submit("a", budgets=["nightly"], budget={"cost_usd": 0.95})
    pool.submit("b", **TENTH)
    assert pool.cluster.state("b") == "waiting", "the reservation may not be used up"
    pool.end("a", cost_usd=spent)
    pool.cluster.advance(2)
    assert pool.cluster.state("b") == "failed"
    said = json.loads(pool.cluster.fs.read("results/b.1.m1.json"))
    assert said["error"]["code"] == "BUDGET_EXCEEDED"
    assert "budget nightly: " in said["error"]["message"]


def test_unknown_refuse_holds_what_says_no_cost_and_counts_an_attempt_without_figures_as_reserved() -> None:
    pool = Pool(ONE + 'unknown = "refuse"\n')
    pool.submit("silent", budgets=["nightly"])
    pool.submit("said", **TENTH)
    assert pool.running() == ["said"]
    pool.end("said", cost_usd=None)
    assert pool.period()["spent"]["cost_usd"] == 0.1
    assert pool.period()["unknown"] == {"cost_usd": 1, "tokens": 1}
    pool.submit("known", **TENTH)
    pool.end("known")
    assert pool.running() == ["silent"], "now it is known what a command usually costs"


def test_unknown_counts_as_nothing_by_itself() -> None:
    pool = Pool(ONE)
    pool.submit("silent", budgets=["nightly"])
    pool.end("silent", cost_usd=None)
    assert pool.period()["spent"]["cost_usd"] == 0
    assert pool.period()["unknown"]["cost_usd"] == 1


def test_a_day_ends_at_midnight_by_the_time_of_the_pool() -> None:
    pool = Pool(ONE + 'per = "day"\n', wall=20_500 * 86_400 - 60.0)
    pool.many(11, **TENTH)
    pool.end(*pool.running())
    assert pool.running() == []
    day = pool.period()["period"]
    pool.cluster.advance(86_400 - pool.cluster.clock.wall() % 86_400 - 2)
    assert pool.running() == []
    pool.cluster.advance(4)
    assert pool.running() == ["t10"]
    assert pool.period()["period"] > day


def test_batches_and_types_have_accounts_of_their_own() -> None:
    pool = Pool('[budgets.each]\ntokens = 0\nper = "batch"\n[budgets.kind]\ncost_usd = 0.1\nper = "type"\n')
    pool.submit("a", budgets=["each"], batch="b1")
    assert pool.running() == []
    assert [one["period"] for one in pool.picture()["each"]["periods"]] == ["batch:b1"]
    pool.submit("c", type="x", budgets=["kind"], budget={"cost_usd": 0.1})
    pool.submit("d", type="y", budgets=["kind"], budget={"cost_usd": 0.1})
    pool.submit("e", type="y", budgets=["kind"], budget={"cost_usd": 0.1})
    assert pool.running() == ["c", "d"]


def test_a_budget_per_batch_of_a_type_reads_the_batch_of_each_task() -> None:
    pool = Pool(TYPED + '[budgets.each]\ncost_usd = 0.2\nper = "batch"\n[types.build]\nbudgets = ["each"]\n')
    pool.submit("first", type="build")
    pool.end("first", cost_usd=0.1)
    for batch in ("x", "y"):
        pool.submit(*(f"{batch}{number}" for number in range(3)), type="build", batch=batch)
    assert pool.running() == ["x0", "x1", "y0", "y1"]
    assert pool.cluster.find("x2").path.endswith("d.json")
    pool.lead("m2")
    assert pool.running() == ["x0", "x1", "y0", "y1"]


def test_a_small_task_does_not_overtake_a_large_one_on_the_same_budget() -> None:
    pool = Pool()
    pool.submit("a", budgets=["nightly"], budget={"cost_usd": 0.5})
    pool.submit("large", budgets=["nightly"], budget={"cost_usd": 0.6}, type="x")
    pool.submit("small", budgets=["nightly"], budget={"cost_usd": 0.1})
    pool.submit("free")
    assert pool.running() == ["a", "free"]
    pool.end("a", cost_usd=0.2)
    assert pool.running() == ["free", "large", "small"]


def test_a_claim_that_cannot_be_read_keeps_the_budgets_closed() -> None:
    pool = Pool()
    pool.submit("a", **TENTH)
    pool.cluster.crash("m1")
    pool.leader = pool.cluster.master("m2")
    pool.leader.fs.fail("read", "claimed/w1", errno.EACCES, times=1000)
    pool.cluster.advance(20)
    pool.submit("b", **TENTH)
    assert pool.running() == ["a"]
    pool.cluster.advance(10)
    assert any("nothing that draws on a budget starts" in said for said in pool.picture()["warnings"])
    pool.leader.fs.faults.clear()
    pool.cluster.advance(5)
    assert pool.running() == ["a", "b"]


def test_thousands_of_tasks_behind_a_spent_budget_cost_one_question_a_step() -> None:
    pool = Pool("[budgets.nightly]\ncost_usd = 0\n[types.review]\nbudgets = ['nightly']\n")
    lines = [json.dumps({"type": "review", "command": ["work"]}) for _ in range(4_000)]
    pool.cluster.submit("all.jsonl", "\n".join([*lines, ""]))
    pool.cluster.advance(20)
    assert pool.leader.master.desk is not None
    assert len(pool.leader.master.desk.backlog) == 4_000
    asked = Counter[str]()
    judge = gate.GATE.judge
    object.__setattr__(gate.GATE, "judge", lambda *args: (asked.update("j"), judge(*args))[1])
    try:
        pool.leader.fs.inner = counter = CountingFileSystem(pool.leader.fs.inner)
        for _ in range(10):
            pool.cluster.pass_time(1)
            pool.cluster.step("m1")
    finally:
        object.__setattr__(gate.GATE, "judge", judge)
    assert asked["j"] <= 20
    assert counter.calls["list", "waiting"] <= 2
    assert counter.calls["read", "waiting"] == 0


def test_a_name_that_the_settings_lack_is_an_error_at_the_drop() -> None:
    pool = Pool()
    pool.submit("a", budgets=["nigthly"])
    [reason] = [name for name in pool.cluster.fs.list("rejected") if name.endswith("reason.json")]
    said = json.loads(pool.cluster.fs.read(f"rejected/{reason}"))
    assert (said["field"], said["problem"]) == ("budgets", "there is no budget 'nigthly'.")
    assert said["mend"].startswith("did you mean 'nightly'?")


def test_without_budgets_nothing_is_read_and_nothing_told() -> None:
    pool = Pool("")
    pool.leader.fs.inner = counter = CountingFileSystem(pool.leader.fs.inner)
    pool.submit("a", budget={"cost_usd": 1})
    pool.end("a")
    assert pool.picture() == {"warnings": []}
    assert counter.calls["read", "results"] == counter.calls["list", "results"] == 0


def test_a_worker_that_died_counts_as_reserved_where_unknown_is_refused() -> None:
    pool = Pool(ONE.replace("max = 2", "crash_limit = 1") + 'unknown = "refuse"\n')
    pool.submit("a", **TENTH)
    pool.cluster.crash("w1")
    pool.cluster.advance(30)
    assert pool.cluster.state("a") == "failed"
    assert pool.period()["spent"]["cost_usd"] == 0.1
