"""Which patterns overlap, which tasks may run together, who goes first, and what it costs to wait."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol import codec
from spoold.protocol.errors import BadFile, WrongValue
from spoold.protocol.lock_patterns import PATTERNS_MAX, pattern
from spoold.protocol.names import TaskName, key, parse_task, urgency_in
from spoold.protocol.task import Task
from spoold.rules.cluster.pool_clock import Now
from spoold.rules.gates import lock_gate
from spoold.rules.gates import lock_holders as overlapping
from spoold.rules.gates.facts import Conditions, Facts, Held, Parent, TypeFacts
from spoold.rules.gates.gate import PASS, Verdict, Wait
from spoold.rules.gates.lock_holders import (
    KEEPING,
    NO_LOCKS,
    Book,
    Demand,
    Line,
    Reserved,
    Waiter,
    book_seen,
    comes_before,
    locks_seen,
    overlap,
    told,
    turn_of,
)
from spoold.rules.gates.registry import change, conditions_of, detail, judge, registered, unregister
from spoold.rules.gates.registry import register as register_gate
from spoold.rules.scheduling import backlog
from spoold.rules.scheduling.backlog import Backlog
from spoold.rules.scheduling.promotion import LaneView, displaced, promotions
from spoold.rules.scheduling.queues import Queues, Standing, Way, urgency
from spoold.rules.scheduling.waiting_task import Entry
from tests.rules.strategies import limited, name

NOW = Now(1000.0, 1_770_000_000.0)
MINUTE = 60_000_000


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("src/api/**", "src/api/**"),
        ("./src//api/", "src/api/**"),
        ("/src/./api", "src/api"),
        ("docs/", "docs/**"),
        ("docs/**/", "docs/**"),
        ("a/**/**/b", "a/**/b"),
        (".", "**"),
        ("/", "**"),
        ("repo:main", "repo:main"),
        ("e\u0301", "\u00e9"),
    ],
)
def test_a_pattern_has_one_spelling(text: str, spelled: str) -> None:
    assert pattern(text) == spelled
    assert pattern(spelled) == spelled


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a pattern"),
        ("  ", "not a pattern"),
        ("a" * 501, "not a pattern"),
        ("a/../b", "goes up with '..'"),
        ("a\\b", "backslash"),
        ("!a", "excludes"),
        ("{a,b}", "brace"),
        ("a\nb", "cannot be printed"),
    ],
)
def test_a_pattern_that_may_mean_two_things_is_refused(text: str, said: str) -> None:
    with pytest.raises(WrongValue, match=re.escape(said)):
        pattern(text)


def test_a_task_says_what_it_locks() -> None:
    task = codec.load_task(b'{"command": "x", "locks": {"write": "src/", "read": ["docs//a"]}}', "t.json")
    assert (task.locks.write, task.locks.read) == (("src/**",), ("docs/a",))
    assert task.conditional
    assert conditions_of(task).asks("locks") == Demand(("src/**",), ("docs/a",))
    plain = codec.load_task(b'{"command": "x", "locks": {"write": []}, "after": "b"}', "t.json")
    assert conditions_of(plain).asks("locks") is None
    assert not codec.load_task(b'{"command": "x", "locks": {}}', "t.json").conditional


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ('{"writes": "a"}', "locks.writes"),
        ('{"write": ["a", "../b"]}', "locks.write"),
        ('{"write": [' + ", ".join(['"a"'] * (PATTERNS_MAX + 1)) + "]}", "101 patterns"),
    ],
)
def test_locks_that_are_wrong_are_named_with_their_field(fields: str, said: str) -> None:
    with pytest.raises(BadFile, match=re.escape(said)):
        codec.load_task(f'{{"command": "x", "locks": {fields}}}'.encode(), "t.json")


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("src/api/**", "src/api/x/y.py", True),
        ("src/api/**", "src/api", True),
        ("src/api/**", "src/apix", False),
        ("src/api/**", "src/*/x", True),
        ("docs/**", "docs", True),
        ("docs", "docs/a", False),
        ("**", "repo:main", True),
        ("repo:main", "repo:main", True),
        ("repo:main", "repo:Main", False),
        ("a/**/z", "a/z", True),
        ("a/**/z", "a/b/c", False),
        ("a/**/z", "**/y/z", True),
        ("*.py", "?.py", True),
        ("*.py", "*.md", False),
        ("a*c", "ab?", True),
        ("a*c", "b*", False),
        ("a*", "a*/b", False),
        ("file[0-9].txt", "file7.txt", True),
        ("file[0-9].txt", "other.txt", False),
        ("a[b/c]d", "a/x", True),
        ("a[b", "az/q", True),
        ("src**", "src/a/b", True),
        ("src**/x", "srcs/x", True),
        ("src**", "lib/a", False),
        ("**/a", "b/**", True),
    ],
)
def test_two_patterns_overlap_if_a_path_may_be_both(one: str, other: str, meet: bool) -> None:
    assert overlap(one, other) is meet
    assert overlap(other, one) is meet


LETTERS = "ab"
SEGMENTS = st.text("ab*?", min_size=1, max_size=2)
NAMES = [*LETTERS, *map("".join, itertools.product(LETTERS, repeat=2))]
PATHS = ["/".join(parts) for depth in range(1, 5) for parts in itertools.product(NAMES, repeat=depth)]


def covers(some: str) -> re.Pattern[str]:
    """A pattern as a regular expression, by another way than the rule's."""
    text = "".join({"*": "[ab]*", "?": "[ab]"}.get(char, char) for char in some.replace("**", "\0"))
    text = re.sub("/\0/", "(?:/[ab]+)*/", text)
    text = re.sub("^\0/", "(?:[ab]+/)*", text)
    text = re.sub("/\0$", "(?:/[ab]+)*", text)
    return re.compile(re.sub("^\0$", "[ab/]+", text))


@given(st.lists(SEGMENTS, min_size=1, max_size=3), st.lists(SEGMENTS, min_size=1, max_size=3))
def test_overlap_is_what_trying_all_paths_says(left: list[str], right: list[str]) -> None:
    one, other = pattern("/".join(left)), pattern("/".join(right))
    mine, theirs = covers(one), covers(other)
    found = next((path for path in PATHS if mine.fullmatch(path) and theirs.fullmatch(path)), None)
    assert overlap(one, other) is (found is not None), found


@given(st.text("ab*?[]!-/.", min_size=1, max_size=8), st.text("ab*?[]!-/.", min_size=1, max_size=8))
def test_overlap_goes_both_ways_and_every_pattern_overlaps_with_itself_and_with_all(one: str, other: str) -> None:
    try:
        mine, theirs = pattern(one), pattern(other)
    except WrongValue:
        return
    assert overlap(mine, theirs) is overlap(theirs, mine)
    assert overlap(mine, mine)
    assert overlap(mine, "**")


def test_what_would_take_long_to_decide_counts_as_overlap() -> None:
    one, other = "a" + "*a" * 200 + "b", "a" + "*a" * 200 + "c"
    assert overlap(one, other)
    assert not overlap(one[:21] + "b", other[:21] + "c")


def test_the_stars_of_all_segments_share_one_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlapping, "STEPS_MAX", 3)
    assert overlap("*ab", "*ac")


def test_demands_conflict_if_one_writes_what_the_other_has() -> None:
    writer, reader = Demand(("src/**",)), Demand(read=("src/a",))
    assert writer.clash(writer) == ("src/**", "src/**")
    assert writer.clash(reader) == ("src/**", "src/a")
    assert reader.clash(writer) == ("src/a", "src/**")
    assert reader.clash(reader) is None
    assert writer.clash(Demand(("lib/**",), ("docs/**",))) is None
    assert not NO_LOCKS
    assert Demand(("a",), ("b", "c")).told() == "write a, read b, read c"


def test_the_older_goes_first_and_priority_weighs_as_minutes() -> None:
    old, urgent = name("old", micros=0), name("urgent", rank=4995, micros=4 * MINUTE)
    assert turn_of(urgent.encode()) < turn_of(old.encode()), "five points are five minutes"
    late = name("late", rank=4995, micros=6 * MINUTE)
    assert turn_of(old.encode()) < turn_of(late.encode())
    most = name("most", rank=1, micros=61 * MINUTE)
    assert turn_of(old.encode()) < turn_of(most.encode()), "no priority is worth more than an hour"


def waiter(number: int, demand: Demand = NO_LOCKS, lane: str = "t") -> Waiter:
    return Waiter((number, str(number)), demand, lane)


def test_only_the_first_in_line_keep_others_back() -> None:
    line = Line()
    for number in range(KEEPING + 5):
        line.join(str(number), waiter(number, lane="early" if number < 3 else "t"))
    assert len(line) == KEEPING + 5
    assert len(list(line.before((10**6, "")))) == KEEPING
    assert [task for task, _ in line.before((2, "2"))] == ["0", "1"]
    assert line.position((2, "2")) == 2
    assert line.lanes() == {"early", "t"}
    line.shut = {"early"}
    assert next(line.before((10**6, "")))[0] == "3"
    line.join("1", waiter(1, lane="early"))
    line.join("1", waiter(10**5))
    assert line.get("1") == waiter(10**5)
    assert line.leave("1")
    assert not line.leave("1")
    assert "1" not in line


def test_holders_and_those_before_in_line_keep_a_task_back() -> None:
    book, mine = Book(), Demand(("src/a",))
    turn = (5, "me")
    assert book.keeper("me", turn, mine) is None
    book.line.join("me", Waiter(turn, mine, "t"))
    book.line.join("old", Waiter((1, "old"), Demand(read=("src/**",)), "t"))
    book.line.join("new", Waiter((9, "new"), mine, "t"))
    keeper = book.keeper("me", turn, mine)
    assert keeper is not None
    assert (keeper.key, keeper.mine, keeper.theirs, keeper.holds) == ("old", "src/a", "src/**", False)
    book.line.leave("old")
    assert book.keeper("me", turn, mine) is None
    book.hold("me", mine)
    book.hold("far", Demand(("lib",)))
    assert book.keeper("me", turn, mine) is None
    assert book.begin({"far": Demand(("lib",)), "dark": None}) == {"me"}
    keeper = book.keeper("me", turn, mine)
    assert keeper is not None
    assert (keeper.key, keeper.theirs) == ("dark", "")
    assert book.begin({"dark": mine}) == {"dark", "far"}
    assert book.clashing("dark") == []
    book.hold("me", mine)
    assert book.clashing("dark") == ["me"]
    assert book.clashing("nobody") == []


def test_the_gate_says_which_lock_and_who_has_it() -> None:
    book = Book()
    conditions = Conditions(more=(("locks", Demand(("src/**",), ("docs",))),))
    facts = Facts(NOW.wall, lambda _: Parent.UNKNOWN, key="me", more={"locks": book}, file=name("me").encode())
    assert lock_gate.GATE.judge(conditions, facts) == PASS
    assert lock_gate.GATE.judge(Conditions(), facts) == PASS
    assert lock_gate.GATE.judge(conditions, replace(facts, more={})) == PASS
    book.hold("other", Demand(("docs",)))
    held = lock_gate.GATE.judge(conditions, facts)
    assert held == Wait("locks", "it waits for the lock read docs, which is held by task other", behind="other")
    assert "that task" in change(Held("me", "t", TypeFacts()), Wait("locks", "-", behind="other"))
    book.begin({"dark": None})
    dark = lock_gate.GATE.judge(conditions, facts)
    assert isinstance(dark, Wait)
    assert "dark may hold it" in dark.reason
    assert lock_gate.GATE.judge(conditions, replace(facts, file="")) == PASS
    book.begin({})
    book.line.join("first", Waiter((0, ""), Demand(("src/x",)), "t"))
    first = lock_gate.GATE.judge(conditions, facts)
    assert isinstance(first, Wait)
    assert "and src/x is waited for longer by task first" in first.reason
    assert judge(conditions, facts) == first


def test_a_snapshot_says_who_holds_and_who_waits_also_to_a_later_reader() -> None:
    file = name("w").encode()
    gates = {
        "locks": {
            "held": 4,
            "waiting": 2,
            "holders": [
                {"key": "t", "known": True, "task": "T", "worker": "w1", "since": "noon", "write": ["a"], "read": []},
                {"key": "d", "known": False, "task": "d", "state": "claimed"},
                {
                    "key": "+r",
                    "known": True,
                    "reservation": "r",
                    "by": "ada",
                    "reason": "why",
                    "write": ["b"],
                    "read": None,
                },
                {"known": True},
                7,
            ],
            "waiters": [
                {"task": "w", "file": file, "behind": "t", "write": ["a"], "read": [], "lane": "k"},
                {"task": "v", "file": "no task", "behind": "x"},
                {"task": "u", "file": name("u").encode(), "behind": "x"},
            ],
        }
    }
    book = book_seen(gates)
    assert book is not None
    assert book.held == {"t": Demand(("a",)), "d": None, "+r": Demand(("b",))}
    assert book.told["t"] == "task T on w1 since noon"
    assert book.told["d"] == "task d (claimed)"
    assert book.told["+r"] == "reservation r of ada: why"
    assert len(book.line) == 1
    assert told({"key": "x", "reservation": "x"}) == "reservation x"
    assert "in line" in detail(Held("me", "t", TypeFacts(more={"locks": book})), Wait("locks", "-"))
    assert detail(Held("me", "t", TypeFacts(more={"locks": Book()})), Wait("locks", "-")) == ""
    seen = locks_seen(gates)
    assert [row["locks"] for row in seen["holders"]] == ["write a", "not known yet", "write b", ""]
    assert [row["told"] for row in seen["waiters"]] == ["task T on w1 since noon", "task x", "task x"]
    assert "r ends" not in change(Held("me", "t", TypeFacts()), Wait("locks", "-", behind="+r"))
    assert "r has ended or is released" in change(Held("me", "t", TypeFacts()), Wait("locks", "-", behind="+r"))
    for nothing in ({}, {"locks": 7}, {"locks": {"holders": 7}}):
        assert locks_seen(nothing)["holders"] == []
    assert book_seen({}) is None


def test_reservations_are_granted_in_order_beside_tasks_but_their_own() -> None:
    book = Book()
    book.hold("t", Demand(("a/**",)))
    book.reserved = {
        "+2": Reserved(Demand(("a/x",)), 9.0),
        "+1": Reserved(Demand(("a/x",)), 9.0, task="t"),
        "+3": Reserved(Demand(read=("b",)), 9.0),
        "+4": Reserved(Demand(("b",)), 9.0, over=True),
    }
    assert book.grant() == ["+1", "+3"]
    assert book.grant() == []
    against = book.against("+2")
    assert against is not None
    assert against.key == "t"
    book.begin({"dark": None})
    against = book.against("+2")
    assert against is not None
    assert (against.key, against.theirs) == ("dark", "")
    book.begin({})
    del book.reserved["+1"]
    assert book.grant() == ["+2"]
    book.reserved["+1"] = Reserved(Demand(("a/**",)), 9.0)
    assert book.overtakes("+1") == "+2"
    assert book.overtakes("+3") is None
    assert book.grant() == [], "the one that came later was granted already"


class Leader:
    """A backlog, and steps of a leader: what is promoted holds its locks until it ends."""

    def __init__(self) -> None:
        self.now, self.types = NOW, {"t": TypeFacts(), "u": TypeFacts()}
        self.backlog = Backlog(lambda _: Parent.UNKNOWN)
        self.held: dict[str, Demand | None] = {}

    def add(
        self, task_id: str, write: str = "", read: str = "", *, kind: str = "t", micros: int = 0, rank: int = 5000
    ) -> Entry:
        demand = Demand((write,) if write else (), (read,) if read else ())
        micros = micros or len(self.backlog) + 1
        conditions = Conditions(more=(("locks", demand),))
        entry = Entry(name(task_id, micros=micros, rank=rank).encode(), f"type={kind}", conditions)
        self.backlog.add(entry, self.now)
        return entry

    def facts(self) -> dict[str, TypeFacts]:
        return {f"type={kind}": facts for kind, facts in self.types.items()}

    def end(self, *keys: str) -> None:
        for task_key in keys:
            del self.held[task_key]

    def step(self, window: int = 10, room: int | None = None, way: Way | None = None) -> list[str]:
        self.now = Now(self.now.monotonic + 1, self.now.wall + 1)
        self.backlog.locks.hold(self.held)
        self.backlog.gathered = {"locks": self.backlog.locks.book}
        self.backlog.tick(self.now)
        standing = () if room is None else (0,) * (window - room)
        kinds = ("t", "u")
        self.backlog.locks.pass_over({f"type={kind}" for kind in kinds if self.types[kind].halted})
        lanes = {f"type={kind}": LaneView(kind, standing) for kind in kinds}
        chosen = promotions(self.backlog, lanes, self.facts(), window, self.now, way)
        for entry in chosen:
            demand = entry.conditions.asks("locks")
            assert isinstance(demand, Demand)
            self.held[key(entry.name.id)] = demand
            self.backlog.remove(key(entry.name.id))
        return [entry.name.id for entry in chosen]


@pytest.fixture
def asked() -> Iterator[list[str]]:
    """For which task the gate is asked, in order."""
    found: list[str] = []

    def counting(conditions: Conditions, facts: Facts) -> Verdict:
        found.append(facts.key)
        return lock_gate.judge(conditions, facts)

    unregister(lock_gate.GATE)
    try:
        with registered(replace(lock_gate.GATE, judge=counting)):
            yield found
    finally:
        register_gate(lock_gate.GATE)


def test_writers_go_one_by_one_and_readers_together() -> None:
    leader = Leader()
    for task_id, write, read in (("w1", "a", ""), ("r1", "", "a"), ("r2", "", "a"), ("w2", "a", ""), ("x", "b", "")):
        leader.add(task_id, write, read)
    assert leader.step() == ["w1", "x"]
    assert leader.step() == []
    leader.end("w1")
    assert leader.step() == ["r1", "r2"]
    leader.end("r1")
    assert leader.step() == []
    leader.end("r2")
    assert leader.step() == ["w2"]


def test_a_writer_among_endless_readers_starts() -> None:
    leader = Leader()
    leader.add("r0", read="a")
    assert leader.step() == ["r0"]
    leader.add("w", "a", micros=10)
    assert leader.step() == []
    for number in range(1, 50):
        leader.add(f"r{number}", read="a", micros=2 * MINUTE + number, kind="u", rank=4999)
    assert leader.step() == [], "they came later, and one point of priority is a minute"
    leader.add("urgent", read="a", micros=3 * MINUTE, rank=4990)
    assert leader.step() == ["urgent"], "ten points are ten minutes"
    leader.end("r0", "urgent")
    while (gone := leader.step()) != ["w"]:
        assert gone == []
    leader.end("w")
    assert len(leader.step(window=100)) == 49


def test_a_task_that_waits_for_something_else_keeps_nobody_back() -> None:
    leader = Leader()
    leader.add("r0", read="a")
    assert leader.step() == ["r0"]
    leader.add("w", "a", micros=10)
    leader.add("r1", read="a", micros=20, kind="u")
    assert leader.step() == []
    leader.types["t"] = replace(limited("t", 1), halted=True)
    assert leader.step() == ["r1"], "the writer's type is halted now"
    leader.types["t"] = TypeFacts()
    leader.add("r2", read="a", micros=30, kind="u")
    leader.step()
    assert leader.step() == [], "it stands in line again"


def test_a_task_that_is_removed_or_finds_no_room_keeps_nobody_back() -> None:
    leader = Leader()
    leader.add("r0", read="a")
    leader.add("x0", "b")
    assert leader.step() == ["r0", "x0"]
    leader.add("w1", "a", micros=10)
    leader.add("w2", "b", micros=11)
    leader.add("r1", read="a", micros=20, kind="u")
    leader.add("r2", read="b", micros=21, kind="u")
    assert leader.step() == []
    leader.backlog.remove("w1")
    assert leader.step() == ["r1"]
    leader.end("x0")
    lanes = {"type=t": LaneView("t", (0,) * 10), "type=u": LaneView("u", ())}
    leader.backlog.locks.hold(leader.held)
    leader.backlog.tick(leader.now)
    assert promotions(leader.backlog, lanes, leader.facts(), 10, leader.now) == []
    assert leader.backlog.locks.left, "w2 was called and had no room, so it leaves the line"
    leader.backlog.locks.hold(leader.held)
    leader.backlog.tick(leader.now)
    assert [entry.name.id for entry in promotions(leader.backlog, lanes, leader.facts(), 10, leader.now)] == ["r2"]


def test_a_more_urgent_task_with_the_same_locks_is_asked_for_again(asked: list[str]) -> None:
    leader = Leader()
    leader.add("r0", read="a")
    leader.step()
    leader.add("w", "a", micros=10)
    leader.add("r1", read="a", micros=20)
    assert leader.step() == []
    asked.clear()
    leader.add("r2", read="a", micros=30)
    assert leader.step() == []
    assert asked == [], "r2 stands behind r1"
    leader.add("r3", read="a", micros=40, rank=4900)
    assert leader.step() == ["r3"], "more urgent than w"
    leader.end("r0", "r3")
    assert leader.step() == ["w"]


def test_who_takes_the_place_of_a_task_that_went_stands_in_line() -> None:
    leader = Leader()
    leader.add("hog", read="x/a", micros=1)
    leader.step()
    leader.add("first", "x/**", micros=10)
    leader.add("reader", read="x/b", micros=20)
    assert leader.step() == [], "it stands behind the first"
    leader.backlog.remove(key("first"))
    leader.add("second", "x/**", micros=11)
    assert leader.step() == []
    leader.add("late", read="x/c", micros=30)
    assert leader.step() == [], "both stand behind the second"
    leader.add("first", "x/**", micros=10)
    leader.end("hog")
    assert leader.step() == ["first"], "which was held for a while"
    leader.end("first")
    assert leader.step() == ["second"]


def test_a_queue_in_line_takes_a_file_once_and_one_that_is_gone_is_forgotten() -> None:
    there = {"a", "b"}
    queues = Queues(lambda file, lane, groups: file in there, lambda groups: True)
    for file in ("a", "a", "b", "b"):
        queues.push("t", (), file)
    assert [queues.take("t"), queues.take("t"), queues.take("t")] == ["a", "b", None]
    queues.push("t", (), "a")
    queues.set_aside("t", (), "a", "holder")
    assert list(queues.aside()) == [("a", "holder", 1)]
    there.clear()
    assert list(queues.aside()) == []
    assert queues.free("holder") == [], "its queue is gone, too"


def test_a_queue_in_no_line_that_is_set_aside_is_looked_at_for_a_more_urgent_head() -> None:
    queues = Queues(lambda file, lane, groups: True)
    first, second, urgent = (
        name(task_id, rank=rank).encode() for task_id, rank in (("a", 5000), ("b", 5000), ("c", 1))
    )
    queues.push("t", (), first)
    queues.set_aside("t", (), first, "holder")
    queues.push("t", (), second)
    assert (queues.head("t"), queues.keeper(first)) == (None, "holder")
    queues.push("t", (), urgent)
    assert queues.head("t") == (urgent, urgency(urgent, 0))
    assert queues.keeper(first) == ""


@pytest.mark.parametrize("different", [False, True])
def test_many_tasks_behind_one_lock_cost_nothing_in_a_step(asked: list[str], different: bool) -> None:
    many = 30_000 if not different else 10_000
    leader = Leader()
    leader.add("holder", "src/**")
    assert leader.step() == ["holder"]
    for number in range(many):
        leader.add(f"t{number}", f"src/f{number}" if different else "src/f", micros=number + 2)
    steps = 0
    while not steps or leader.backlog.locks.left:
        asked.clear()
        assert leader.step() == []
        assert len(asked) <= backlog.SET_ASIDE
        steps += 1
    assert steps == (many // backlog.SET_ASIDE + 1 if different else 1)
    assert sum(count for _, _, count in leader.backlog.locks.aside()) == many
    for number in range(5):
        leader.add(f"free{number}", f"lib/{number}", micros=many + number + 10)
    asked.clear()
    assert len(leader.step()) == 5, "the others flow past"
    assert leader.step() == []
    assert len(asked) == 5
    leader.end("holder")
    asked.clear()
    ready = leader.step(window=10)
    assert ready == ([f"t{number}" for number in range(10)] if different else ["t0"])
    assert len(asked) <= 12


def test_a_queue_whose_tasks_are_gone_is_forgotten() -> None:
    leader = Leader()
    leader.add("holder", "a")
    leader.step()
    leader.add("w", "a")
    leader.add("r", read="a")
    assert leader.step() == []
    assert len(leader.backlog.locks.aside()) == 2
    leader.backlog.remove("w")
    assert len(leader.backlog.locks.aside()) == 1
    leader.end("holder")
    assert leader.step() == ["r"]
    assert leader.backlog.locks.aside() == []


def test_tasks_without_conflict_cost_only_what_finds_room(asked: list[str]) -> None:
    leader = Leader()
    for number in range(10_000):
        leader.add(f"t{number}", f"f{number}")
    assert len(leader.step()) == 10
    assert leader.step(room=0) == []
    assert len(asked) == 10


def test_what_displaces_has_its_locks() -> None:
    leader = Leader()
    ready = [name(f"r{number}", rank=5000, micros=number) for number in range(4)]
    leader.add("holder", "a")
    assert leader.step() == ["holder"]
    leader.add("blocked", "a", rank=4990)
    leader.backlog.gathered = {"locks": leader.backlog.locks.book}
    leader.backlog.locks.hold(leader.held)
    assert displaced(ready, leader.backlog, "type=t", TypeFacts(), 2, NOW) == []
    leader.add("open", "b", rank=4991)
    assert len(displaced(ready, leader.backlog, "type=t", TypeFacts(), 2, NOW)) == 2


def test_a_holder_whose_file_was_read_lets_go_what_it_does_not_lock() -> None:
    leader = Leader()
    leader.held["dark"] = None
    leader.add("a", "a")
    assert leader.step() == []
    leader.held["dark"] = Demand(("b",))
    assert leader.step() == ["a"]


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.booleans(), st.sampled_from("tu"), st.integers(4990, 5010)), max_size=12
    ),
    st.randoms(use_true_random=False),
)
def test_nothing_that_conflicts_is_held_at_once_and_all_tasks_have_their_turn(
    wants: list[tuple[str, bool, str, int]], chance: object
) -> None:
    leader = Leader()
    for number, (what, writes, kind, rank) in enumerate(wants):
        leader.add(
            f"t{number}", what if writes else "", "" if writes else what, kind=kind, rank=rank, micros=number + 1
        )
    done = 0
    for _ in range(6 * len(wants) + 2):
        leader.step(window=3)
        held = [demand for demand in leader.held.values() if demand is not None]
        assert not any(one.clash(other) for one, other in itertools.combinations(held, 2))
        for task_key in list(leader.held):
            if chance.random() < 0.5:  # type: ignore[attr-defined]
                leader.end(task_key)
                done += 1
    assert done + len(leader.held) == len(wants)
    assert Task.model_fields["locks"].default.write == ()


@pytest.mark.parametrize("seed", range(300))
def test_tasks_of_any_age_and_urgency_that_come_at_any_time_all_have_their_turn(seed: int) -> None:
    """They stand in ready/ for a while, where they make way for more urgent ones, and then run for a while."""
    chance = random.Random(f"locks {seed}")
    leader, ready = Leader(), dict[str, Standing]()
    whats, ages = ["a", "b", "**"][: chance.randint(1, 3)], chance.choice([1, 60, 600])
    coming = [f"t{number}" for number in range(chance.randint(2, 12))]
    left, steps = set(coming), 0
    while left:
        steps += 1
        assert steps < 400, f"{left} wait for ever, behind {leader.backlog.locks.aside()}"
        while coming and chance.random() < 0.5:
            what, writes = chance.choice(whats), chance.random() < 0.7
            age = chance.randrange(ages * 60_000_000) + 1
            rank, kind = chance.choice([4980, 4990, 5000, 5010]), chance.choice("ttu")
            leader.add(coming.pop(), what if writes else "", "" if writes else what, kind=kind, micros=age, rank=rank)
        way = Way(ready.values)
        waits = {entry.name.id: entry for _, entry in leader.backlog.items()}
        chosen = leader.step(window=chance.randint(1, 3), way=way)
        for one in itertools.chain.from_iterable(way.made.values()):
            del ready[one.task.id]
            leader.end(key(one.task.id))
            leader.backlog.add(Entry(one.task.encode(), one.lane, one.conditions), leader.now)
        ready.update((i, Standing(waits[i].name, waits[i].lane, waits[i].conditions)) for i in chosen)
        leader.backlog.locks.see_ready(ready.__contains__)
        held = [demand for demand in leader.held.values() if demand is not None]
        assert not any(one.clash(other) for one, other in itertools.combinations(held, 2))
        for task_id in sorted(ready, key=lambda i: ready[i].task.rank):
            if chance.random() < 0.2:
                del ready[task_id]
        for task_key in sorted(leader.held.keys() - ready.keys()):
            if chance.random() < 0.3:
                leader.end(task_key)
                left.discard(task_key)


FILES = st.builds(
    TaskName,
    rank=st.sampled_from([1, 4990, 5000, 9999]),
    order=st.sampled_from(["hff58yhhc0-3", "hff58yhhc0-10", "hff58yhhc1-3", "hff59yhhc0-3"]),
    id=st.sampled_from(["a", "b", "a.b"]),
).map(TaskName.encode)


@given(FILES, FILES)
def test_who_comes_first_is_seen_from_the_age_where_the_rank_is_the_same(file: str, other: str) -> None:
    assert comes_before(file, turn_of(other)) == (turn_of(file) < turn_of(other))


@given(FILES, FILES)
def test_the_parts_of_a_name_sort_as_rank_and_order_do(file: str, other: str) -> None:
    one, two = parse_task(file), parse_task(other)
    assert one is not None
    assert two is not None
    assert (urgency_in(file) < urgency_in(other)) == ((one.rank, one.order) < (two.rank, two.order))
