"""Wrong advice is worse than none: each sentence of advice that `explain` can give stands here, with its situation.

A sentence in `why_not_running.py` or `why_waiting.py` of `rules/answers/`, or in `rules/gates/`, that is not
found here fails the last test.
"""

from __future__ import annotations

import ast
import inspect
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

import pytest

from spoold.protocol.approval import Approval
from spoold.protocol.errors import BadFile
from spoold.protocol.heartbeat import UNCHECKED, Capabilities, Keeps
from spoold.protocol.lanes import Lane
from spoold.protocol.lifecycle import State
from spoold.protocol.request import Request, Verb
from spoold.protocol.result import Code
from spoold.protocol.settings import BreakerSettings, Settings
from spoold.rules import gates as gates_room
from spoold.rules.answers import task_facts, why_waiting
from spoold.rules.answers import why_not_running as explaining
from spoold.rules.answers.task_facts import Case, Claim, EndedAttempt, Seen
from spoold.rules.answers.why_not_running import explain
from spoold.rules.cluster.election import MISSING_MEND
from spoold.rules.gates import breaker_gate
from spoold.rules.gates.breaker_gate import Book as Failures
from spoold.rules.gates.breaker_gate import Row
from spoold.rules.gates.budget_gate import Book as Reserved
from spoold.rules.gates.budget_gate import First, Purse
from spoold.rules.gates.budget_usage import Asked
from spoold.rules.gates.facts import Conditions, Parent, TypeFacts
from spoold.rules.gates.lock_holders import Book, Demand
from spoold.rules.gates.resources import Capacity, Company, KeptUnits, Shares, Stock
from spoold.rules.gates.standing_requests import Closed, Requested
from spoold.rules.share.free_space import Room
from tests.rules.strategies import limited, name

NOW = 1_760_000_000.0
CAN = Capabilities(cpus=4, mem_mb=8192, handlers=("review",))
WORKER = Seen("w-1", CAN, slots=2)
NONE = Capabilities(cpus=4, mem_mb=8192)
LACKING = replace(WORKER, capabilities=NONE.model_copy(update={"lacks": {"review": "it lacks the program tool"}}))
WAITING = Case("t", State.WAITING, NOW, attempt=1, leader="m-1", lane=Lane("review"), workers=(WORKER,))
READY = replace(WAITING, state=State.READY)
CLAIMED = replace(WAITING, state=State.CLAIMED, claim=Claim("w-1"))
HANDLER = (
    'start a worker: `spool worker --config worker.toml`, with `[handlers.review]` and its `command = ["PROGRAM"]` '
    "(of an agent `[agents.review]` and its `cli`) in worker.toml"
)
BIG = (
    f"{HANDLER.replace(':', ' on a machine with 64 cpus:', 1)}; if it does not find that by itself, put `cpus = 64` "
    "there, too; or change what the task requires"
)
OTHERS_BEFORE = "if others reach it before, the leader takes the task back, and it runs again elsewhere"
PENDING = replace(WAITING, state=State.PENDING)
REJECTED = replace(WAITING, state=State.REJECTED)
HALF = BadFile("a.json", "", "is not JSON.", "check it.")


def locked_by(holder: str) -> Case:
    """A task that waits for a lock that this one holds."""
    book, demand = Book(), Demand(("src/**",))
    book.hold(holder, demand)
    asking = Conditions(more=(("locks", demand),))
    return replace(WAITING, conditions=asking, type=TypeFacts(more={"locks": book}), file=name("t").encode())


UNKNOWN, OPEN = {"p": Parent.UNKNOWN}, {"p": Parent.OPEN}


def failed(code: str, **more: object) -> Case:
    return replace(WAITING, state=State.FAILED, last=EndedAttempt(1, "failure", "w-1", code=code), **more)  # type: ignore[arg-type]


def spent(per: str, closed: str = "") -> Case:
    """A task that draws on a budget of which nothing is left."""
    settings = Settings.model_validate({"budgets": {"small": {"cost_usd": 0, "per": per}}})
    asked = Conditions(more=(("budget", Asked(budgets=("small",))),))
    return replace(
        WAITING, conditions=asked, type=TypeFacts(more={"budget": Purse(settings, Reserved(closed=closed), NOW)})
    )


def behind_one_that_wants_more() -> Case:
    """A task that finds enough of a budget, and of which another one wants more than is left."""
    settings = Settings.model_validate({"budgets": {"small": {"tokens": 5}}})
    mine, more = (Asked(budgets=("small",), own=(("tokens", count * 1_000_000),)) for count in (1, 9))
    before = First(name("first").encode(), "first", "review", more)
    purse = Purse(settings, Reserved(first=(before,)), NOW)
    asking = Conditions(more=(("budget", mine),))
    file = name("t", micros=1_780_000_000_000_000).encode()
    return replace(WAITING, conditions=asking, type=TypeFacts(more={"budget": purse}), file=file)


def with_stock(**said: object) -> TypeFacts:
    """The facts of a type of which one may run, in a stock of which this is known, too."""
    facts = limited("review", 1, 1 if "company" in said else 0)
    return replace(facts, stock=replace(facts.stock, **said))  # type: ignore[arg-type]


def of_class(*, borrow: bool) -> TypeFacts:
    """The facts of a task whose class has one slot, which is in use."""
    shares = Shares(1, {"bulk": 1}, frozenset({"bulk"} if borrow else ()))
    return TypeFacts(uses={"type:review": 1, "class:bulk": 1}, stock=Stock(used={"class:bulk": 1}, shares=shares))


def using_llm(resource: str, units: int, used: int, *, each: int = 1) -> TypeFacts:
    """The facts of a task that uses so much of a resource of the limit llm."""
    there = Capacity(units, "limit llm", "[limits.llm] max")
    return TypeFacts(uses={"type:review": 1, resource: each}, stock=Stock({resource: there}, {resource: used}))


SPENT = replace(using_llm("quota:llm", 1, 0), closed={"llm": Closed(NOW + 9, quota=True)})


def kept_of_llm(task: str) -> TypeFacts:
    facts = using_llm("limit:llm", 1, 0)
    return replace(facts, stock=replace(facts.stock, kept={"limit:llm": KeptUnits(1, task)}))


def failing(until: float, used: int = 0, *, reading: bool = False) -> TypeFacts:
    """The facts of a type whose attempts failed in a row. used: how many tasks of it try."""
    there = Capacity(1, "type review", "-")
    book = Failures({"review": Row(5, until, "task a, attempt 1, TIMEOUT")}, reading=reading)
    return TypeFacts(
        uses={"type:review": 1, "breaker:review": 1},
        stock=Stock({"breaker:review": there}, {"breaker:review": used}),
        more={breaker_gate.NAME: breaker_gate.Seen({"review": BreakerSettings()}, NOW, book)},
    )


ASKED = Requested(
    Request(Verb.ASK, "t", "q1"), ask="Where?", choices=("a", "b"), attempt=1, at="2026-02-02T09:00:00Z"
)


TOLD = Requested(Request(Verb.TELL, "t", "1"), by="ada", tell="Use v2.", at="2026-02-02T09:00:00Z")
ADVICE: list[tuple[str, Case, str, str]] = [
    (
        "held by its drop",
        replace(WAITING, conditions=Conditions(more=(("hold", "why"),))),
        "hold",
        "`spool release t`",
    ),
    (
        "held by a person",
        replace(WAITING, requested=(Requested(Request(Verb.HOLD, "t", "1"), by="ada"),)),
        "hold",
        "`spool release t`",
    ),
    (
        "locked by a task",
        locked_by("other"),
        "locks",
        "it goes on when that task has ended; `spool locks` shows who holds and who waits",
    ),
    (
        "locked by a reservation",
        locked_by("+r1"),
        "locks",
        "it goes on when r1 has ended or is released; `spool locks` shows who holds and who waits",
    ),
    (
        "locked by a task that waits for it",
        replace(locked_by("other"), above=("other",)),
        "locks",
        (
            "never, if other, which is above it and waits for tasks below, waits for this one: cancel it and submit "
            "it with fewer locks, or let other not lock what tasks below it lock"
        ),
    ),
    (
        "not approved yet",
        replace(WAITING, conditions=Conditions(more=(("approval", Approval(ask="Deploy?")),))),
        "approval",
        "`spool approve t`, or `spool reject t --reason …`; `spool asks` lists all questions",
    ),
    (
        "not approved, and there is work that can run again",
        replace(
            WAITING,
            conditions=Conditions(needs=("p",), more=(("approval", Approval(ask="Deploy?")),)),
            parents={"p": Parent.COMPLETED, "batch:b": Parent.COMPLETED},
        ),
        "approval",
        (
            "`spool approve t`, or `spool reject t --reason …`, with `--redo p` to run that again; "
            "`spool asks` lists all questions"
        ),
    ),
    (
        "sent back",
        replace(WAITING, sent_back="sent back, round 1, by ada: why"),
        "redo",
        "nothing: that is why it runs again",
    ),
    (
        "it asks",
        replace(CLAIMED, requested=(ASKED,)),
        "question",
        "`spool approve t --answer …`, or `spool reject t`",
    ),
    (
        "its agent was told something",
        replace(CLAIMED, requested=(TOLD,)),
        "told",
        "its agent is given that when its next turn begins; `spool show t` has all of it",
    ),
    (
        "a writer has it open",
        replace(PENDING, held=True),
        "writer",
        "it is judged when that program closes the file or ends",
    ),
    (
        "a batch may have its id",
        replace(PENDING, awaits="a.jsonl cannot be read"),
        "batch",
        "it is judged once that batch is tasks, or is taken out of the spool",
    ),
    (
        "half a drop",
        replace(PENDING, problem=HALF, young=True),
        "young",
        "check it. It is rejected once it has been still for 10 s.",
    ),
    ("half a drop in use", replace(PENDING, problem=HALF, young=True, held=True), "young", "check it."),
    (
        "nobody leads",
        replace(WAITING, leader=None),
        "leader",
        "start `spool master` or `spool up` on a machine that mounts it",
    ),
    ("read-only", replace(WAITING, leader=None, read_only=True), "leader", "mount it read-write"),
    ("no token", replace(WAITING, leader=None, token=False), "leader", MISSING_MEND),
    (
        "the turn of another share",
        replace(WAITING, turn="2 shares take turns: it is the turn of batch a, then of its own, batch b"),
        "turn",
        "nothing: each start brings its turn nearer; `[fair]` in the settings gives a share more starts in one",
    ),
    (
        "a full lane",
        replace(WAITING, standing=256),
        "window",
        "it moves up as they are taken; more workers or slots make it faster",
    ),
    (
        "an unknown parent",
        replace(WAITING, conditions=Conditions(needs=("p",)), parents=UNKNOWN),
        "dependencies",
        "submit p, or cancel this task and submit it without",
    ),
    (
        "an open parent",
        replace(WAITING, conditions=Conditions(needs=("p",)), parents=OPEN),
        "dependencies",
        "p is open (`spool explain p`)",
    ),
    (
        "too early",
        replace(WAITING, conditions=Conditions(not_before=NOW + 9)),
        "not_before",
        "time; or cancel it and submit it again without not_before",
    ),
    (
        "resting",
        replace(WAITING, rest_s=9),
        "retry_delay",
        "time; `retry.backoff_s` of the task or [retry] in spool.toml says how long",
    ),
    (
        "resting after an error with a fix",
        replace(
            WAITING, rest_s=9, last=EndedAttempt(1, "failure", "w", "", "EXIT_NONZERO", "away. Fix: look there.")
        ),
        "retry_delay",
        (
            "the fix that the error names, where its cause stays; else time; `retry.backoff_s` of the task or "
            "[retry] in spool.toml says how long"
        ),
    ),
    (
        "too late",
        replace(WAITING, conditions=Conditions(deadline=NOW - 1)),
        "deadline",
        "the leader fails it as DEADLINE; submit t again, corrected and under another id",
    ),
    (
        "a failed parent",
        replace(WAITING, conditions=Conditions(needs=("p",)), parents={"p": Parent.FAILED}),
        "dependencies",
        "the leader fails it as DEPENDENCY_FAILED; fix the cause, then `spool retry t`",
    ),
    (
        "a skipped parent",
        replace(WAITING, conditions=Conditions(needs=("p",)), parents={"p": Parent.SKIPPED}),
        "dependencies",
        "the leader skips it; `spool retry t` asks the gates anew",
    ),
    (
        "a clean-up that is not needed",
        replace(WAITING, conditions=Conditions(needs_failed=("p",)), parents={"p": Parent.COMPLETED}),
        "after_failed",
        "the leader skips it; `spool retry t` asks the gates anew",
    ),
    (
        "it was skipped",
        replace(
            WAITING,
            state=State.SKIPPED,
            last=EndedAttempt(1, "skipped", "m-1", code=Code.SKIPPED, message="p did not fail", started=False),
        ),
        "skipped",
        "nothing: it was not needed; once one of them has failed, `spool retry t` runs it",
    ),
    (
        "a batch of which nothing is known",
        replace(WAITING, conditions=Conditions(needs_batch="b"), parents={"batch:b": Parent.UNKNOWN}),
        "after_batch",
        "submit a task of that batch, or cancel this task and submit it without after_batch",
    ),
    (
        "a batch that is not over",
        replace(
            WAITING,
            conditions=Conditions(needs_batch="b"),
            parents={"batch:b": Parent.OPEN},
            places={"batch:b": "not ended: 1 of 2 tasks: x"},
        ),
        "after_batch",
        "it runs when they have ended: `spool ls --batch b` shows them",
    ),
    ("halted", replace(WAITING, type=TypeFacts(halted=True)), "halt", "`spool resume`"),
    (
        "a paused type",
        replace(WAITING, type=TypeFacts(paused=dict.fromkeys(("review",)))),
        "pause",
        "`spool resume review`",
    ),
    (
        "of no use to any worker",
        replace(WAITING, type=TypeFacts(unserved=True)),
        "worker",
        "start a worker that can run it, or change one that is awake; within its next heartbeats the task goes on",
    ),
    (
        "at its limit",
        replace(WAITING, type=limited("review", 1, 1)),
        "limit",
        "it goes on when one of them ends; or raise it: `spool config set types.review.max_concurrent …`",
    ),
    (
        "at a limit",
        replace(WAITING, type=using_llm("limit:llm", 1, 1)),
        "limit",
        "it goes on when one of them ends; or raise it: `spool config set limits.llm.max …`",
    ),
    (
        "a unit is kept for another one",
        replace(WAITING, type=kept_of_llm("first")),
        "limit",
        "it goes on when task first has had its turn; or raise it: `spool config set limits.llm.max …`",
    ),
    (
        "more than there is",
        replace(WAITING, type=using_llm("limit:llm", 1, 0, each=2)),
        "limit",
        "it uses more than there is: raise it: `spool config set limits.llm.max …`",
    ),
    (
        "too many starts",
        replace(WAITING, type=using_llm("rate:llm", 1, 1)),
        "rate",
        "time; or raise it: `spool config set limits.llm.max …`",
    ),
    (
        "a quota",
        replace(WAITING, type=replace(using_llm("quota:llm", 1, 0), closed={"llm": Closed(NOW + 9, quota=True)})),
        "quota",
        "time; or `spool limits open llm`",
    ),
    (
        "a closed limit",
        replace(WAITING, type=replace(using_llm("quota:llm", 1, 0), closed={"llm": Closed(None, quota=False)})),
        "quota",
        "`spool limits open llm`",
    ),
    (
        "a quota, and another type that is open",
        replace(WAITING, type=SPENT, others=(("review-b", TypeFacts()),)),
        "instead",
        "nothing: it goes within moments",
    ),
    (
        "a quota, and another type that is paused",
        replace(WAITING, type=SPENT, others=(("review-b", TypeFacts(paused={"review-b": None})),)),
        "instead",
        "`spool resume review-b`",
    ),
    (
        "ready as another type",
        replace(READY, lane=Lane("review-b", instead_of="review"), home=SPENT),
        "instead",
        "once no limit of review is closed, it goes back, unless a worker has it by then",
    ),
    (
        "running once more",
        replace(CLAIMED, attempt=2, last=EndedAttempt(1, "failure", "w-1")),
        "retry",
        "nothing; `spool show t` lists each attempt before it",
    ),
    (
        "running as another type",
        replace(CLAIMED, claim=Claim("w-1", kind="review-b")),
        "instead",
        "a later attempt uses its own type again, once no limit of that is closed",
    ),
    (
        "a quota on trial",
        replace(WAITING, type=using_llm("quota:llm", 1, 1)),
        "quota",
        "the end of the task that tries it",
    ),
    (
        "an open breaker",
        replace(WAITING, type=failing(NOW + 9)),
        "breaker",
        "time: then one task tries; or, once it is fixed, `spool config set types.review.breaker.failures 6`",
    ),
    (
        "a breaker on trial",
        replace(WAITING, type=failing(NOW, 1)),
        "breaker",
        "the end of the task that tries; or, once it is fixed, `spool config set types.review.breaker.failures 6`",
    ),
    (
        "a leader that still reads",
        replace(WAITING, type=failing(NOW, reading=True)),
        "breaker",
        "it goes on within moments",
    ),
    (
        "a class without a slot",
        replace(WAITING, type=of_class(borrow=False)),
        "class",
        "it goes on when a task ends; or start another worker, or raise slots of [classes.bulk] or let it borrow",
    ),
    (
        "a class with nothing to borrow",
        replace(WAITING, type=of_class(borrow=True)),
        "class",
        "it goes on when a task ends; or start another worker",
    ),
    (
        "classes that reserve more than there is",
        replace(
            WAITING,
            type=replace(
                of_class(borrow=False), stock=Stock(shares=Shares(8, {"bulk": 0, "big": 10**6}, frozenset()))
            ),
        ),
        "class",
        "it goes on when a task ends; or start another worker, or reserve less: slots of [classes.big]",
    ),
    ("no worker", replace(READY, workers=()), "workers", HANDLER),
    ("all asleep", replace(READY, workers=(replace(WORKER, asleep="9:00"),)), "asleep", "wake one, or start another"),
    (
        "no able worker",
        replace(READY, lane=Lane("other")),
        "capability",
        HANDLER.replace("review", "other"),
    ),
    (
        "no worker is big enough",
        replace(READY, lane=Lane("review", cpus=64)),
        "capability",
        BIG,
    ),
    (
        "no program",
        replace(
            READY, workers=(LACKING, replace(LACKING, node="w-2"), replace(WORKER, node="w-3", capabilities=NONE))
        ),
        "capability",
        "install what is missing on w-1, w-2, which look again every 30 s, or start one that has it",
    ),
    (
        "its check runs",
        replace(
            WAITING,
            workers=(replace(LACKING, capabilities=NONE.model_copy(update={"lacks": {"review": UNCHECKED}})),),
        ),
        "capability",
        "wait some seconds: the check runs on w-1",
    ),
    (
        "its program is not all that it lacks",
        replace(READY, lane=Lane("review", cpus=64), workers=(LACKING,)),
        "capability",
        BIG,
    ),
    ("all draining", replace(READY, workers=(replace(WORKER, draining=True),)), "drain", "start another worker"),
    ("a full share", replace(READY, disk=Room.FULL), "disk", Room.FULL.mend),
    ("a full share at the door", replace(PENDING, disk=Room.FULL), "disk", Room.FULL.mend),
    (
        "left to others",
        replace(READY, workers=(replace(WORKER, avoids={"t": "no program"}),)),
        "left",
        "each takes it when that is over, after a failure within ten minutes; fix the cause, or start another worker",
    ),
    (
        "all busy",
        replace(READY, workers=(replace(WORKER, running=2),)),
        "busy",
        "it goes on when a slot is free; more workers or slots make it faster",
    ),
    (
        "no room",
        replace(
            READY, lane=Lane("review", cpus=3), workers=(replace(WORKER, running=1, lanes=(Lane("review", cpus=2),)),)
        ),
        "room",
        "it goes on when tasks there end",
    ),
    (
        "kept",
        replace(
            READY,
            lane=Lane("review", cpus=1),
            workers=(replace(WORKER, keeps=Keeps(task="urgent", spare={"cpus": 0})),),
        ),
        "room",
        "it goes on when that one has started; a higher priority puts a task before it",
    ),
    ("notes", replace(READY, workers=(replace(WORKER, notes=("on battery",)),)), "notes", "see `spool workers`"),
    ("a queue", replace(READY, ahead=2), "queue", "a higher priority puts a task before them"),
    (
        "progress",
        replace(CLAIMED, claim=Claim("w-1", progress=7)),
        "progress",
        "`spool logs -f t` follows its output",
    ),
    (
        "progress that does not count",
        replace(CLAIMED, claim=Claim("w-1", progress_problem="SPOOL_PROGRESS_FILE: is a directory.")),
        "progress",
        "the next report that counts takes its place",
    ),
    ("frozen", replace(CLAIMED, claim=Claim("w-1", frozen_s=7)), "frozen", "its timeouts do not count that time"),
    (
        "a silent worker",
        replace(CLAIMED, claim=Claim("w-1", silent_s=20)),
        "silent",
        f"it goes on as the same attempt once w-1 reaches the share again; {OTHERS_BEFORE}",
    ),
    (
        "lent units",
        replace(CLAIMED, claim=Claim("w-1", lent=True, back=("1 of limit x, with 1 of [limits.x] max = 1 in use",))),
        "lent",
        (
            "the leader gives it all of that before any ready task gets it, once enough tasks have ended or wait; "
            "`spool limits` shows the figures"
        ),
    ),
    (
        "a lent slot",
        replace(CLAIMED, claim=Claim("w-1", lent=True)),
        "lent",
        "it goes on when those have ended and a slot is free; `spool tree t` shows its children",
    ),
    (
        "a budget of which no leader says anything",
        spent("total", closed="no leader says"),
        "budget",
        "it goes on when a leader has counted that; `spool status` warns of what keeps one from it",
    ),
    (
        "an earlier task wants more of a budget",
        behind_one_that_wants_more(),
        "budget",
        "it goes on once task first has had its turn; or `spool budget raise`",
    ),
    ("a spent budget", spent("total"), "budget", "`spool budget raise`, or a smaller `budget` of the task"),
    ("a budget of a day", spent("day"), "budget", "time; or `spool budget raise`"),
    ("a cancel", replace(CLAIMED, claim=Claim("w-1", cancel=True)), "cancel", "its worker stops it within a beat"),
    (
        "another priority while it runs",
        replace(CLAIMED, claim=Claim("w-1", ranked=True)),
        "priority",
        "its next attempt has it, if there is one",
    ),
    (
        "a hold while it runs",
        replace(CLAIMED, requested=(Requested(Request(Verb.HOLD, "t", "1"), by="ada"),)),
        "hold",
        "`spool release t`; this attempt goes on",
    ),
    (
        "a full share at the end",
        replace(CLAIMED, disk=Room.FULL),
        "disk",
        f"{Room.FULL.mend}; its worker tries again until then",
    ),
    (
        "a link in the place of results/ at the end",
        replace(CLAIMED, blocked="results is a link; replace it"),
        "blocked",
        "when that is fixed, its worker ends it within moments",
    ),
    (
        "a silent worker",
        replace(CLAIMED, claim=Claim("w-1", alive=False)),
        "silent",
        (
            "the leader takes it back after 15 s of silence, and it runs again elsewhere; "
            "if the share was silent for all nodes, the worker has as long again to come back"
        ),
    ),
    (
        "a claim that is stuck",
        replace(CLAIMED, claim=Claim("w-1", alive=False, stuck="EACCES")),
        "denied",
        "when that is fixed, the leader takes it back within moments, and it runs again elsewhere",
    ),
    ("no result", replace(WAITING, state=State.FAILED), "failed", "`spool fsck` says more"),
    (
        "it asked for what no worker grants",
        failed(Code.SPAWN_FAILED),
        "failed",
        "fix the cause, then `spool retry t`; or submit t again, corrected and under another id",
    ),
    ("a failure", failed(Code.TIMEOUT), "failed", "fix the cause, then `spool retry t`"),
    (
        "later for ever",
        failed(Code.TRY_LATER),
        "failed",
        "`spool retry t` grants one more attempt; [retry] max_later in spool.toml says how many",
    ),
    (
        "no task",
        failed(Code.INVALID_TASK),
        "failed",
        "submit t again, corrected and under another id, since a retry would fail as well",
    ),
    (
        "a parent failed",
        failed(Code.DEPENDENCY_FAILED, origins={"p": Code.TIMEOUT}, conditions=Conditions(needs=("p",))),
        "failed",
        "fix the cause (`spool explain p`), then `spool retry p t`",
    ),
    (
        "a grandparent failed",
        failed(Code.DEPENDENCY_FAILED, origins={"g": Code.TIMEOUT}),
        "failed",
        (
            "fix the cause (`spool explain g`), then retry g, the tasks that failed because of that and t "
            "by one command: `spool retry g … t`; `spool retry --state failed` retries every failed task"
        ),
    ),
    (
        "a retry without its parent",
        failed(
            Code.DEPENDENCY_FAILED, retried=True, conditions=Conditions(needs=("p",)), parents={"p": Parent.FAILED}
        ),
        "retry",
        "`spool retry p` within 10 s, or t fails again",
    ),
    ("a retry", failed(Code.TIMEOUT, retried=True), "retry", "the leader carries it out within moments"),
    (
        "a grandparent failed, of a batch",
        failed(Code.DEPENDENCY_FAILED, origins={"g": Code.TIMEOUT}, batch="B"),
        "failed",
        (
            "fix the cause (`spool explain g`), then retry g, the tasks that failed because of that and t "
            "by one command, if all are of its batch: `spool retry --batch B --state failed`"
        ),
    ),
    (
        "many drops come before it",
        replace(PENDING, ahead=4999),
        "drops",
        "nothing: m-1 admits drops in the order of their names",
    ),
    (
        "a standby is about to lead",
        replace(WAITING, leader=None, standbys=("m-2", "m-3")),
        "leader",
        "nothing: m-2, m-3 stand by, and one of them leads within about 15 s",
    ),
    (
        "an earlier task wants more of a limit",
        replace(WAITING, type=with_stock(wanted={"type:review"}, first={"type:review": KeptUnits(2, "first")})),
        "limit",
        "it goes on once task first has had its turn; or raise it: `spool config set types.review.max_concurrent …`",
    ),
    (
        "a limit that ready tasks hold",
        replace(WAITING, type=with_stock(company={"type:review": Company(1, ("idle",))})),
        "limit",
        (
            "it goes on when idle has run (`spool explain idle` says why no worker takes it); "
            "or raise it: `spool config set types.review.max_concurrent …`"
        ),
    ),
    ("the origin is lost", failed(Code.DEPENDENCY_FAILED), "failed", "fix its dependencies, then `spool retry t`"),
    (
        "a parent is no task",
        failed(Code.DEPENDENCY_FAILED, origins={"p": Code.INVALID_TASK}),
        "failed",
        (
            "submit p again, corrected and under another id; "
            "then this one, under another id too, with the new one among its dependencies"
        ),
    ),
    (
        "an attempt was handed back",
        replace(READY, attempt=2, last=EndedAttempt(1, "handed_back", "w-9", code=Code.HANDED_BACK)),
        "handed_back",
        "nothing: that charged nothing, and the next attempt begins anew",
    ),
    ("rejected, why is lost", REJECTED, "rejected", "put it into pending/ again and it is judged anew"),
    ("rejected", replace(REJECTED, problem=HALF), "rejected", "check it."),
    (
        "rejected half",
        replace(REJECTED, problem=HALF, young=True),
        "unfinished",
        "if its writer goes on, the leader judges it again once it is whole",
    ),
]


@pytest.mark.parametrize(("case", "gate", "change"), [row[1:] for row in ADVICE], ids=[row[0] for row in ADVICE])
def test_the_advice_of_a_situation(case: Case, gate: str, change: str) -> None:
    assert (gate, change) in [(reason.gate, reason.change) for reason in explain(case).reasons]


def test_what_an_agent_was_given_is_no_reason_any_more() -> None:
    given = replace(CLAIMED, claim=Claim("w-1", progress={"told": ["1"]}), requested=(TOLD,))
    assert "told" not in [reason.gate for reason in explain(given).reasons]


ADVISERS = ("_change", "_about_parents", "_about_origins", "_anew")


def fragments(tree: ast.AST) -> list[str]:
    """The pieces of text in a module that can become advice."""
    found: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Reason":
            found.append(node.args[2])
        elif isinstance(node, ast.FunctionDef) and node.name.startswith(ADVISERS):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            found += body
        elif isinstance(node, ast.Assign) and any("change" in ast.unparse(target) for target in node.targets):
            found.append(node.value)
    texts = [part.value for root in found for part in ast.walk(root) if isinstance(part, ast.Constant)]
    return [
        text.strip() for text in texts if isinstance(text, str) and len(text.strip()) >= 12 and " " in text.strip()
    ]


def test_no_advice_is_without_its_situation() -> None:
    said = [change for *_, change in ADVICE] + [
        reason.reason for _, case, *_ in ADVICE for reason in explain(case).reasons
    ]
    gates = [import_module(found.name) for found in iter_modules(gates_room.__path__, f"{gates_room.__name__}.")]
    modules = (explaining, why_waiting, task_facts, *gates)
    found = [text for module in modules for text in fragments(ast.parse(inspect.getsource(module)))]
    assert len(found) > 20
    assert [text for text in found if not any(text in sentence for sentence in said)] == []
