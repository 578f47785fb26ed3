"""The leader's feed: each result is read once, by whichever leader, and only where somebody wants it."""

import errno
import json
from typing import Any

import pytest

from spoold.master.limits import result_stream
from spoold.master.limits.result_stream import Coverage, Feed
from spoold.master.state.known_tasks import End, end_at
from spoold.master.state.tree_view import Place
from spoold.protocol.lifecycle import State
from spoold.protocol.names import EndedName
from spoold.protocol.result import EndedAttempt
from spoold.store import snapshots
from tests.support.cluster import Cluster, Node
from tests.support.counting import CountingFileSystem

QUICK_RETRY = "[retry]\nmax = 2\nbackoff_s = 0.001\njitter = 0\n"


class Book:
    """A subscriber that keeps what it was told, in order."""

    def __init__(self, name: str = "book") -> None:
        self.name = name
        self.taken: list[EndedAttempt] = []
        self.kept: list[list[Any]] = []

    def take(self, attempt: EndedAttempt) -> None:
        self.taken.append(attempt)
        self.kept.append([attempt.id, attempt.attempt, attempt.cost_usd])

    def save(self) -> Any:
        return self.kept

    def restore(self, state: Any) -> None:
        if state is not None and not isinstance(state, list):
            raise ValueError("no list")
        self.kept = list(state or [])


class Pool:
    """A leader with a book, and a worker."""

    def __init__(self, settings: str = QUICK_RETRY) -> None:
        self.cluster = Cluster(settings)
        self.book = Book()
        self.leader = self.lead("m1", self.book)
        self.worker = self.cluster.worker("w1", 4)
        self.cluster.settle()

    def lead(self, name: str, *books: Book) -> Node:
        return self.cluster.master(name, subscribers=books)

    def submit(self, *ids: str, **fields: object) -> None:
        for task_id in ids:
            self.cluster.submit(f"{task_id}.json", json.dumps({"id": task_id, "command": ["work"], **fields}))
        self.cluster.settle()

    def end(self, task_id: str, cost_usd: float | None = None, exit_code: int = 0) -> None:
        """The running attempt ends, and says what it cost."""
        assert self.worker.scratch is not None
        assert self.worker.runner is not None
        key = next(key for key in self.worker.runner.live if key.startswith(f"{task_id}."))
        if cost_usd is not None:
            self.worker.scratch.write(key, "result.json", json.dumps({"cost_usd": cost_usd}).encode())
        self.cluster.finish(task_id, exit_code=exit_code)
        self.cluster.settle()

    def warnings(self) -> str:
        """What people are told now."""
        self.cluster.advance(6)
        snapshots = [name for name in self.cluster.fs.list("status") if "feed" not in name]
        newest = max(snapshots, key=lambda name: [int(n) for n in name.split(".")[0].split("-")])
        return " | ".join(json.loads(self.cluster.fs.read(f"status/{newest}"))["warnings"])

    def checkpoints(self) -> list[str]:
        return sorted(name for name in self.cluster.fs.list("status") if "feed" in name)


def counted(node: Node) -> CountingFileSystem:
    """Put a counter under the node's mount."""
    node.fs.inner = counter = CountingFileSystem(node.fs.inner)
    return counter


def test_every_attempt_is_told_once_with_what_it_cost() -> None:
    pool = Pool()
    asked = counted(pool.leader)
    pool.submit("a", type="review", batch="nightly")
    pool.end("a", 0.5, exit_code=1)
    pool.cluster.advance(2)
    pool.end("a", 0.25)
    pool.cluster.advance(2)
    first, second = pool.book.taken
    assert (first.id, first.attempt, first.status, first.code, first.decider) == (
        "a",
        1,
        "failure",
        "EXIT_NONZERO",
        "w1",
    )
    assert (second.attempt, second.status, second.cost_usd) == (2, "success", 0.25)
    assert {(taken.type, taken.batch) for taken in pool.book.taken} == {("review", "nightly")}
    assert asked.calls["read", "results"] == 2


def test_nothing_is_read_listed_or_written_for_nobody() -> None:
    """Word for word the calls of a leader that knows no feed."""
    pool = Pool()
    pool.leader.actor.close()
    pool.cluster.nodes.pop("m1")
    plain = pool.lead("m2")
    asked = counted(plain)
    pool.cluster.advance(20)
    pool.submit("a", "b")
    pool.end("a", 0.5, exit_code=1)
    pool.cluster.advance(3)
    pool.end("a", 0.5)
    pool.end("b")
    pool.cluster.advance(20)
    assert plain.master.leading
    assert asked.calls["read", "results"] == asked.calls["list", "results"] == 0
    assert plain.master.desk is not None
    assert not plain.master.desk.ends.queue
    assert not plain.master.desk.ends.unsaved
    before = pool.checkpoints()
    assert before == [name for name in before if name.startswith("1-")], "the last ones of the leader with a book"


def test_what_the_leader_ends_itself_is_told_with_the_type_that_it_knew() -> None:
    pool = Pool("[retry]\ncrash_limit = 1\n")
    pool.submit("a", type="review")
    pool.cluster.crash("w1")
    pool.cluster.advance(30)
    assert pool.cluster.state("a") == "failed"
    [taken] = [taken for taken in pool.book.taken if taken.id == "a"]
    assert (taken.status, taken.code, taken.type, taken.decider) == ("worker_died", "WORKER_DIED", "review", "m1")


def test_an_attempt_that_a_dead_worker_left_is_told_when_it_is_taken_back() -> None:
    pool = Pool()
    pool.submit("a")
    pool.cluster.advance(5)
    pool.cluster.crash("w1")
    pool.cluster.advance(30)
    assert [(taken.id, taken.attempt, taken.estimated) for taken in pool.book.taken] == [("a", 1, True)]


@pytest.mark.parametrize("leaves", [True, False])
def test_a_new_leader_goes_on_where_the_last_one_left_off(*, leaves: bool) -> None:
    pool = Pool()
    pool.submit(*(f"t{number}" for number in range(4)))
    for number in range(3):
        pool.end(f"t{number}", number)
    pool.cluster.advance(10)
    pool.cluster.stop("m1") if leaves else pool.cluster.crash("m1")
    second = Book()
    leader = pool.lead("m2", second)
    asked = counted(leader)
    pool.cluster.advance(20)
    assert leader.master.leading
    assert second.kept == [["t0", 1, 0], ["t1", 1, 1], ["t2", 1, 2]]
    assert asked.calls["read", "results"] == 0
    assert asked.calls["list", "results"] == 1
    pool.end("t3", 3)
    assert second.kept[3:] == [["t3", 1, 3]]
    assert asked.calls["read", "results"] == 1
    assert [name[:2] for name in pool.checkpoints()] == ["1-", "2-"], "its first, and the one before"


def test_what_ended_while_nobody_led_or_after_the_last_checkpoint_is_read_by_the_next() -> None:
    pool = Pool()
    pool.submit("a", "b", "c")
    pool.cluster.advance(10)
    pool.end("a", 1)
    pool.end("b", 2)  # in no checkpoint
    assert pool.book.kept == [["a", 1, 1], ["b", 1, 2]]
    pool.cluster.crash("m1")
    pool.end("c", 3, exit_code=1)  # nobody sees it
    second = Book()
    leader = pool.lead("m2", second)
    asked = counted(leader)
    pool.cluster.advance(20)
    assert sorted(second.kept) == [["a", 1, 1], ["b", 1, 2], ["c", 1, 3]]
    assert asked.calls["read", "results"] == 2


def test_an_attempt_that_a_leader_without_the_feed_placed_again_is_found_by_its_record() -> None:
    pool = Pool()
    pool.submit("a", "b")
    pool.cluster.stop("m1")
    plain = pool.lead("m2")
    pool.cluster.advance(20)
    pool.end("a", 1, exit_code=1)
    pool.cluster.advance(3)  # it runs again
    pool.end("b", 2)
    pool.cluster.stop(plain.name)
    book = Book()
    pool.lead("m3", book)
    pool.cluster.advance(20)
    assert sorted(book.kept) == [["a", 1, 1], ["b", 1, 2]]


def test_without_a_checkpoint_what_has_ended_is_not_read() -> None:
    pool = Pool()
    pool.cluster.stop("m1")
    plain = pool.lead("m2")
    pool.cluster.advance(20)
    pool.submit("old", "new")
    pool.end("old", 1)
    pool.cluster.stop(plain.name)
    for name in pool.checkpoints():
        pool.cluster.fs.unlink(f"status/{name}")
    book = Book()
    leader = pool.lead("m3", book)
    asked = counted(leader)
    pool.cluster.advance(20)
    pool.end("new", 2)
    assert book.kept == [["new", 1, 2]]
    assert asked.calls["read", "results"] == 1
    pool.cluster.stop("m3")
    last = Book()
    pool.lead("m4", last)
    pool.cluster.advance(20)
    assert last.kept == [["new", 1, 2]], "what was old then counts as covered for ever"


def test_a_step_reads_a_bounded_number_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_stream, "PER_STEP", 2)
    pool = Pool()
    pool.submit(*(f"t{number}" for number in range(4)))
    pool.cluster.stop("m1")
    for number in range(4):
        pool.cluster.finish(f"t{number}")
    pool.cluster.step("w1")
    book = Book()
    leader = pool.lead("m2", book)
    asked = counted(leader)
    steps = []
    while len(book.kept) < 4:
        step = leader.master.step()
        steps.append(asked.calls["read", "results"])
        if 0 < len(book.kept) < 4:
            assert step.next_due == leader.clock.monotonic()
        pool.cluster.pass_time(0.5)
    assert steps[-2:] == [2, 4]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ("missing", "is missing"),
        ("damaged", "is not JSON"),
        ("denied", "Permission denied"),
        ("link", "a symlink"),
    ],
)
def test_a_record_that_cannot_be_read_stops_nothing_and_is_told(
    monkeypatch: pytest.MonkeyPatch, spoil: str, said: str
) -> None:
    pool = Pool()
    monkeypatch.setattr(pool.cluster.witness, "look", lambda who: None)  # else a result that is gone ends the test
    pool.submit("a", "b")
    path = "results/a.1.w1.json"

    def spoiled() -> None:
        if spoil == "missing":
            pool.cluster.fs.unlink(path)
        elif spoil == "damaged":
            pool.cluster.fs.unlink(path)
            pool.cluster.fs.write(path, b"{", durable=False)
        elif spoil == "link":
            pool.cluster.fs.unlink(path)
            pool.cluster.fs.make_symlink(path)

    if spoil == "denied":
        pool.leader.fs.fail("read", path, errno.EACCES, times=99)
    else:
        pool.leader.fs.hang("read", path, spoiled)
    pool.end("a", 1)
    pool.end("b", 2)
    assert pool.book.kept == [["b", 1, 2]]
    told = pool.warnings()
    assert path in told
    assert said in told
    assert "is not counted" in told
    pool.cluster.advance(result_stream.SHOWN_S)
    assert path not in pool.warnings()


def test_a_disk_that_cannot_read_one_record_costs_one_step() -> None:
    pool = Pool()
    pool.submit("a", "b")
    pool.leader.fs.fail("read", "results/a.1.w1.json", errno.EIO, times=99)
    pool.end("a", 1)
    pool.end("b", 2)
    pool.cluster.advance(2)
    assert pool.book.kept == [["b", 1, 2]]
    assert len(pool.cluster.troubles) == 1
    assert "results/a.1.w1.json" in pool.warnings()


def test_a_hand_back_without_a_record_is_not_worth_a_word() -> None:
    pool = Pool()
    pool.submit("a")
    pool.worker.worker.drain(0.0)
    pool.leader.fs.hang("read", "results/", lambda: pool.cluster.fs.unlink("results/a.1.w1.json"))
    pool.cluster.advance(5)
    assert pool.book.kept == []
    assert "results/" not in pool.warnings()


def test_while_something_stands_in_the_place_of_results_the_records_wait() -> None:
    pool = Pool()
    pool.submit("a")
    pool.leader.fs.fail("read", "results/", errno.ENOTDIR, times=3)
    pool.end("a", 1)
    pool.cluster.advance(5)
    assert pool.book.kept == [["a", 1, 1]]


def test_no_task_is_archived_before_its_results_are_in_a_checkpoint() -> None:
    pool = Pool("[retention]\nkeep = 0\n")
    pool.cluster.advance(10)
    pool.submit("a")
    pool.end("a", 1)
    assert pool.cluster.state("a") == "completed"
    pool.cluster.crash("m1")
    book = Book()
    pool.lead("m2", book)
    pool.cluster.advance(30)
    assert book.kept == [["a", 1, 1]]
    assert pool.cluster.find("a").path.startswith("archive/")
    pool.cluster.advance(10)
    pool.submit("b")
    pool.end("b", 1)
    pool.cluster.advance(20)
    covered = [json.loads(pool.cluster.fs.read(f"status/{name}"))["covered"] for name in pool.checkpoints()]
    assert covered[-1] == ["b.1.w1.json"], "what is archived leaves the checkpoint"


def test_a_full_share_delays_a_checkpoint_and_nothing_else() -> None:
    pool = Pool()
    pool.submit("a", "b")
    pool.cluster.advance(10)
    before = pool.checkpoints()
    pool.leader.fs.fail("write", "tmp/m1", errno.ENOSPC, times=30)
    pool.end("a", 1)
    pool.end("b", 1)
    assert len(pool.book.kept) == 2
    pool.leader.fs.faults.clear()
    pool.cluster.advance(10)
    assert pool.checkpoints() != before
    assert not pool.cluster.troubles


def test_a_checkpoint_that_nobody_could_read_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_stream, "BYTES_MAX", 10)
    pool = Pool("[retention]\nkeep = 0\n")
    pool.submit("a")
    pool.end("a", 1)
    pool.cluster.advance(10)
    assert pool.checkpoints() == []
    assert "lower retention.keep" in pool.warnings()
    assert pool.cluster.find("a").path.startswith("archive/")


def test_a_damaged_checkpoint_is_told_and_the_one_before_counts() -> None:
    pool = Pool()
    pool.submit("a", "b")
    pool.end("a", 1)
    pool.cluster.advance(10)
    pool.end("b", 2)
    pool.cluster.stop("m1")
    newest = max(pool.checkpoints(), key=lambda name: int(name.split(".")[0].split("-")[1]))
    pool.cluster.fs.unlink(f"status/{newest}")
    pool.cluster.fs.write(f"status/{newest}", b"{", durable=False)
    book = Book()
    leader = pool.lead("m2", book)
    asked = counted(leader)
    pool.cluster.advance(20)
    assert sorted(book.kept) == [["a", 1, 1], ["b", 1, 2]]
    assert asked.calls["read", "results"] == 1
    assert newest in pool.warnings()


def test_a_checkpoint_of_an_epoch_that_is_still_to_come_is_passed_over_and_named() -> None:
    """Names-a: every next leader would go on from it, and count nothing that was counted since."""
    pool = Pool()
    pool.submit("a")
    pool.end("a", 1.0)
    pool.cluster.advance(20)
    forged = "status/999999999999-7.feed.json"
    pool.cluster.fs.write(forged, json.dumps({"states": {"book": []}, "covered": []}).encode(), durable=False)
    for number in (2, 3):
        pool.cluster.stop(f"m{number - 1}")
        after = Book()
        pool.lead(f"m{number}", after)
        pool.cluster.advance(20)
        assert after.kept == [["a", 1, 1.0]]
        found = snapshots.latest(pool.cluster.fs)
        assert found is not None
        assert [line for line in found[1].warnings if line.startswith(f"{forged} is of a later epoch than ")]


@pytest.mark.parametrize(("times", "kept"), [(3, [["a", 1, 1], ["b", 1, 2]]), (999, [])])
def test_a_checkpoint_that_cannot_be_read_for_a_moment_is_waited_for(times: int, kept: list[list[Any]]) -> None:
    """The next leader went on without it, and forgot all that had been counted."""
    pool = Pool()
    pool.submit("a", "b")
    pool.end("a", 1)
    pool.cluster.advance(10)
    pool.end("b", 2)
    pool.cluster.stop("m1")
    book = Book()
    leader = pool.cluster.master("m2", subscribers=[book])
    leader.fs.fail("read", "status/1-", errno.EBUSY, times=times)
    pool.cluster.advance(20)
    assert sorted(book.kept) == kept


def test_nothing_is_archived_while_a_checkpoint_cannot_be_read() -> None:
    pool = Pool()
    pool.submit("a")
    pool.cluster.advance(10)
    pool.end("a", 1)
    pool.cluster.crash("m1")
    leader = pool.cluster.master("m2", subscribers=[book := Book()])
    leader.fs.fail("read", "status/1-", errno.EBUSY, times=4)
    pool.cluster.fs.write("control/gc.+all.x-1.json", b"{}", durable=False)
    pool.cluster.advance(30)
    assert book.kept == [["a", 1, 1]]
    assert pool.cluster.find("a").path.startswith("archive/")


def test_a_state_of_another_release_is_kept_and_one_that_cannot_be_used_is_told() -> None:
    pool = Pool()
    pool.submit("a", "b")
    pool.end("a", 1)
    pool.cluster.stop("m1")
    newest = pool.checkpoints()[-1]
    said = json.loads(pool.cluster.fs.read(f"status/{newest}"))
    changed = {**said, "states": {"book": {"no": "list"}, "later": {"x": 1}}, "more": True}
    pool.cluster.fs.write("status/1-999.feed.json", json.dumps(changed).encode(), durable=False)
    book = Book()
    pool.lead("m2", book)
    pool.cluster.advance(20)
    assert book.kept == []
    assert "the saved state of book cannot be used" in pool.warnings()
    pool.end("b", 2)
    pool.cluster.stop("m2")
    [last] = [json.loads(pool.cluster.fs.read(f"status/{name}")) for name in pool.checkpoints()[-1:]]
    assert last["states"] == {"book": [["b", 1, 2]], "later": {"x": 1}}


def test_a_leader_that_was_fenced_leaves_quietly() -> None:
    pool = Pool()
    pool.submit("a")
    pool.cluster.advance(10)
    pool.end("a", 1)
    for name in pool.cluster.fs.list("tmp/m1"):
        pool.cluster.fs.unlink(f"tmp/m1/{name}")
    pool.cluster.fs.rmdir("tmp/m1")
    pool.cluster.stop("m1")
    assert pool.cluster.gone["m1"] == "left"


def test_a_leader_that_begins_its_epoch_anew_counts_nothing_twice() -> None:
    pool = Pool()
    pool.submit("a", "b")
    pool.end("a", 1)
    pool.cluster.advance(10)
    pool.end("b", 2)
    desk = pool.leader.master.desk
    assert desk is not None
    pool.cluster.fs.rmdir(desk.door.path)
    pool.submit("c")
    pool.cluster.advance(10)
    assert pool.leader.master.desk is not desk
    assert sorted(pool.book.kept) == [["a", 1, 1], ["b", 1, 2]]


def test_two_subscribers_of_one_name_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="book"):
        Feed([Book(), Book()])


def test_which_attempt_a_token_in_its_place_has_ended() -> None:
    returned = Place(State.RETURNED, "returned", "5000.0000000001-1.a.a2f1c0.w1.json")
    assert end_at(returned, "type=review") == End(EndedName("a", 1, "w1"), "review", final=False)
    assert end_at(Place(State.FAILED, "failed", "a.2.w1.json")) == End(EndedName("a", 2, "w1"))
    for place in (
        Place(State.RETURNED, "returned", "5000.0000000001-1.a.a1f0c0.w1.json"),
        Place(State.READY, "ready/type=a", "5000.0000000001-1.a.a2f1c0.json"),
        Place(State.COMPLETED, "completed", "a.json"),
    ):
        assert end_at(place) is None


def test_what_is_behind_is_told_by_where_the_token_is() -> None:
    places = {
        "done": Place(State.COMPLETED, "completed", "done.2.w1.json"),
        "waits": Place(State.WAITING, "waiting/type=review", "5000.0000000001-1.waits.a3f2c0.json"),
        "runs": Place(State.CLAIMED, "claimed/w1", "5000.0000000001-2.runs.a1f0c0.json"),
        "back": Place(State.RETURNED, "returned", "5000.0000000001-3.back.a2f1c0.w1.json"),
        "odd": Place(State.WAITING, "waiting/type=review", "odd.json"),
    }
    names = ["done.1.w9.json", "done.2.w1.json", "done.2.fenced.json", "waits.1.w1.json", "waits.2.m1.json"]
    names += ["waits.2.w1.json", "waits.3.w1.json", "runs.1.w1.json", "back.1.w1.json", "back.1.w2.json"]
    names += ["odd.1.w1.json", "unknown.1.w1.json", "no name"]

    def behind(*covered: str) -> list[str]:
        return [end.name.encode() for end in Coverage(covered).behind(names, places.get)]

    first = ["back.1.w1.json", "done.1.w9.json", "waits.1.w1.json"]
    assert behind() == [*first, "done.2.w1.json", "waits.2.m1.json"]
    assert behind("done.2.w1.json", "waits.2.w1.json", "back.1.w1.json", "no name") == []
    assert behind("done.2.w7.json", "waits.2.w7.json", "back.1.w7.json") == ["done.2.w1.json"]
    assert {end.kind for end in Coverage().behind(["waits.1.w1.json"], places.get)} == {"review"}


def test_coverage_goes_by_the_last_attempt_of_a_task() -> None:
    coverage = Coverage(["A.2.w1.json"])
    assert not coverage.lacks(EndedName("a", 1, "w1"))
    assert not coverage.lacks(EndedName("A", 2, "w1"))
    assert coverage.lacks(EndedName("A", 2, "w2"))
    assert coverage.lacks(EndedName("a", 3, "w1"))
    coverage.add(EndedName("A", 1, "w9"))
    assert coverage.names() == ["A.2.w1.json"]
    coverage.keep(lambda _: False)
    assert len(coverage) == 0
