"""Is the one-token law true of this tree? A survey goes in, findings come out, each with its fix; both forms are
here.

Law: an error is a state that the protocol rules out, whichever node crashed when; a warning is for a person to look
at; leftovers, and work under way, are information. A finding that can be fixed without guessing carries its fix, and
nothing else is ever fixed. A spool that lives changes under the survey: `confirmed` keeps what two surveys show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from spoold.protocol import layout
from spoold.protocol.amount import amount
from spoold.protocol.lanes import own_lane
from spoold.protocol.lifecycle import DIRECTORIES, State
from spoold.protocol.names import (
    EndedName,
    LeaseName,
    TaskName,
    key,
    parse_archived,
    parse_ended,
    parse_returned,
    parse_task,
)
from spoold.protocol.result import Status
from spoold.rules.attempts.retry_rule import is_raised

SHOWN = 5
_STATUSES = frozenset(Status)
_UNKNOWN_WORD = "its result has a status that this release does not know"
_SUCCEEDED = "it failed, but its result says success"
_ORDER = (State.WAITING, State.READY, State.RETURNED, State.CLAIMED, State.FAILED, State.COMPLETED)


def audit(survey: Survey) -> list[Finding]:
    """All findings, the worst first."""
    laws = (_directories, _leadership, _tokens, _contents, _results, _orphans, _nodes, _rejections, _leftovers)
    found = [finding for law in laws for finding in law(survey)]
    rank = list(Severity)
    return sorted(found, key=lambda finding: (rank.index(finding.severity), finding.law, finding.paths))


def confirmed(before: list[Finding], after: list[Finding]) -> list[Finding]:
    """The findings that a second survey shows again; the others were only on the move. Information needs no proof."""
    seen = {(finding.law, finding.paths) for finding in before}
    return [f for f in after if f.severity is Severity.INFO or (f.law, f.paths) in seen]


def verdict(findings: list[Finding]) -> str:
    """`clean`, or how much was found, in a few words."""
    counts = Counter(finding.severity for finding in findings)
    parts = [
        f"{counts[severity]} {severity}{'s' if counts[severity] > 1 else ''}"
        for severity in (Severity.ERROR, Severity.WARNING)
        if counts[severity]
    ]
    return ", ".join(parts) or "clean"


def counts(survey: Survey) -> dict[str, int]:
    """How many tasks are in which state, by directory; drops for pending/, rejected drops without their reasons."""
    number = dict.fromkeys((state.value for state in DIRECTORIES), 0)
    number.update(Counter(token.state.value for token in survey.tokens))
    number[State.PENDING] = survey.drops
    number[State.REJECTED] = sum(not name.endswith(layout.REASON) for name in survey.rejected)
    return number


def _directories(survey: Survey) -> Iterator[Finding]:
    for path in survey.missing:
        yield Finding(Severity.ERROR, "tree", (path,), f"{path}/ is missing", f"mkdir {path}", MakeDirectory(path))
    for path, what in survey.blocked:
        yield Finding(Severity.ERROR, "tree", (path,), what, "do so while no node runs, then run fsck again")
    for path, why in survey.unreadable:
        mend = "look at its owner and mode, then run fsck again"
        yield Finding(Severity.ERROR, "readable", (path,), f"it cannot be read: {why}", mend)


def _leadership(survey: Survey) -> Iterator[Finding]:
    if not survey.leases:
        problem = "there is no token of leadership, so no master can lead"
        mend = f"a token of epoch {survey.epoch + 1} is made"
        yield Finding(Severity.ERROR, "leadership", (layout.MASTER,), problem, mend, MakeLease(survey.epoch))
    for lease in sorted(survey.leases)[:-1]:
        path = layout.join(layout.MASTER, lease.encode())
        problem = f"a second token of leadership; {max(survey.leases).encode()} outranks it"
        yield Finding(Severity.ERROR, "leadership", (path,), problem, "the lower one is removed", DropLease(path))


def _tokens(survey: Survey) -> Iterator[Finding]:
    """One token per id: the task is the one that was committed, or else is furthest along."""
    tokens: dict[str, list[Token]] = {}
    for token in survey.tokens:
        tokens.setdefault(key(token.name.id), []).append(token)
    for twins in tokens.values():
        keep, *others = sorted(twins, key=_standing)
        for other in others:
            problem = f"task {other.name.id} has a second token; {keep.path} is further along"
            fix = SetAside(other.path, other.name.id, keep.path)
            paths = tuple(sorted((keep.path, other.path)))
            yield Finding(Severity.ERROR, "one-token", paths, problem, f"{other.path} goes to rejected/", fix)


def _standing(token: Token) -> tuple[int, int, str, str]:
    """Sorts the token to keep first: furthest along, latest attempt, admitted first."""
    order = token.name.order if isinstance(token.name, TaskName) else ""
    return (-_ORDER.index(token.ended or token.state), -token.name.attempt, order, token.path)


def _contents(survey: Survey) -> Iterator[Finding]:
    for token in survey.tokens:
        if token.content is None:
            continue
        content, name = token.content, token.name
        if content.problem:
            problem = f"its content is no task: {content.problem}"
            if isinstance(name, TaskName):
                mend = "it fails as INVALID_TASK, and so do the tasks that depend on it"
                yield Finding(
                    Severity.ERROR, "content", (token.path,), problem, mend, Fail(token.path, name, problem)
                )
            else:
                mend = "the file was damaged after the task ended; restore it, or let retention take it away"
                yield Finding(Severity.ERROR, "content", (token.path,), problem, mend)
        elif content.id is not None and content.id != name.id:
            problem = f"its name says {name.id}, its content says {content.id}"
            mend = "the name or the content was changed by hand: give it back its name"
            yield Finding(Severity.ERROR, "content", (token.path,), problem, mend)
        elif isinstance(name, TaskName):
            yield from _placing(token, name)


def _placing(token: Token, name: TaskName) -> Iterator[Finding]:
    """Lane and flag must say the same as the content, since workers and leaders use them."""
    content = token.content
    assert content is not None
    wrong = []
    # In ready/ it may stand in the lane of another type, which says so itself: no list of a worker need prove that.
    branch = own_lane(token.branch) if token.state is State.READY else token.branch
    if token.state in (State.WAITING, State.READY) and not content.may_stand_in(branch):
        wrong.append(f"its lane is {token.branch}, its content asks for {content.lane}")
    if name.conditional != content.conditional:
        has = "names conditions" if content.conditional else "names no conditions"
        wrong.append(f"its content {has}, its name says otherwise")
    if not wrong:
        return
    problem = "; ".join(wrong)
    if token.state is State.CLAIMED:
        mend = "its worker holds it; look again once it has ended"
        yield Finding(Severity.WARNING, "lane", (token.path,), problem, mend)
        return
    right = replace(name, conditional=content.conditional)
    mend = f"it goes to {layout.waiting(content.lane, right.encode())}"
    yield Finding(Severity.ERROR, "lane", (token.path,), problem, mend, Relane(token.path, content.lane, right))


def _results(survey: Survey) -> Iterator[Finding]:
    """Every task in completed/ or failed/ has its result, under the same name, and the result is of this attempt."""
    records = {record.name: record for record in survey.results}
    for token in survey.tokens:
        if token.ended is None or not isinstance(token.name, EndedName):
            continue
        problem = _result_problem(token, token.name, records.get(token.name))
        if not problem:
            continue
        paths = (token.path, layout.join(layout.RESULTS, token.name.encode()))
        content = token.content
        if problem == _UNKNOWN_WORD:
            mend = (
                "its place counts: it completed; a later release of spoold, or another worker's maker, knows the word"
            )
            yield Finding(Severity.WARNING, "result", paths, f"{problem}: {records[token.name].status}", mend)
        elif token.state is State.ARCHIVE:
            mend = "the record of an old task is lost; nothing depends on it any more"
            yield Finding(Severity.WARNING, "result", (token.path,), problem, mend)
        elif token.state is State.FAILED:
            mend = f"`spool retry {token.name.id}` lets it run again, or leave it failed"
            if problem == _SUCCEEDED:
                mend = f"if it was moved here by hand, move it back to {State.COMPLETED}/; else {mend}"
            yield Finding(Severity.ERROR, "result", paths, problem, mend)
        elif content is None or content.problem:
            mend = "nothing is left to run it from: submit the task again under another id"
            yield Finding(Severity.ERROR, "result", paths, problem, mend)
        else:
            fix = Rerun(token.path, content.lane, content.rank, content.conditional, token.name)
            mend = "it waits for another attempt, since its output is lost"
            yield Finding(Severity.ERROR, "result", paths, problem, mend, fix)


def _result_problem(token: Token, name: EndedName, record: Record | None) -> str:
    if record is None:
        return "it ended, but its result is missing"
    if not record.read:
        return ""
    if record.problem:
        return f"its result is damaged: {record.problem}"
    if (record.task_id, record.attempt) != (name.id, name.attempt):
        return f"its result is that of {record.task_id}, attempt {record.attempt}"
    if record.status not in _STATUSES:
        return _UNKNOWN_WORD if token.ended is State.COMPLETED else ""
    if token.ended is State.COMPLETED and record.status != Status.SUCCESS:
        return f"it completed, but its result says {record.status}"
    return _SUCCEEDED if token.ended is State.FAILED and record.status == Status.SUCCESS else ""


def _orphans(survey: Survey) -> Iterator[Finding]:
    """Results of earlier attempts are history; results of no task at all are left over from a removed task."""
    known = {key(token.name.id) for token in survey.tokens}
    orphans = [record.path for record in survey.results if key(record.name.id) not in known]
    yield from _several(
        "orphans",
        orphans,
        "result of a task that is not here",
        "results of tasks that are not here",
        "delete them when you like",
    )


def _nodes(survey: Survey) -> Iterator[Finding]:
    for worker in survey.workers:
        if worker in survey.nodes:
            continue
        path = layout.join(layout.CLAIMED, worker)
        held = sum(token.branch == worker and token.state is State.CLAIMED for token in survey.tokens)
        problem = f"worker {worker} has no heartbeat and holds {amount(held, 'task')}"
        severity = Severity.WARNING if held else Severity.INFO
        mend = "a leader takes them back once it has watched it long enough"
        yield Finding(severity, "claims", (path,), problem, mend)
    present = {*survey.nodes, *survey.workers}
    idle = [layout.join(layout.TMP, writer) for writer in survey.writers if writer not in present]
    yield from _several(
        "tmp",
        idle,
        "tmp directory of no node",
        "tmp directories of no node",
        "remove them if no client is submitting just now",
    )


def _rejections(survey: Survey) -> Iterator[Finding]:
    names = set(survey.rejected)
    for name in sorted(names):
        path = layout.join(layout.REJECTED, name)
        if not name.endswith(layout.REASON) and f"{name}{layout.REASON}" not in names:
            mend = "put it into pending/ again and it is judged anew"
            yield Finding(Severity.WARNING, "rejected", (path,), "it was rejected without a reason beside it", mend)
    alone = [n for n in sorted(names) if n.endswith(layout.REASON) and n.removesuffix(layout.REASON) not in names]
    paths = [layout.join(layout.REJECTED, name) for name in alone]
    yield from _several(
        "rejected", paths, "reason whose drop is gone", "reasons whose drop is gone", "delete them when you like"
    )


def _leftovers(survey: Survey) -> Iterator[Finding]:
    for path in survey.standing:
        yield Finding(Severity.INFO, "admitting", (path,), "it is being admitted", "a leader finishes it")
    for path, what in survey.irregular:
        yield Finding(Severity.WARNING, "admitting", (path,), f"no drop: {what}", "a leader rejects it, or move it")
    tokens = {key(token.name.id): token.path for token in survey.tokens}
    for path in survey.foreign:
        name = path.rpartition("/")[2]
        if (strayed := _strayed(path, name, tokens)) is not None:
            yield strayed
            continue
        severity = Severity.INFO if path == name or name.startswith(".") else Severity.WARNING
        problem, mend = "it is nothing that spoold knows", "spoold passes it over; move it away if it is not yours"
        yield Finding(severity, "names", (path,), problem, mend)


def _strayed(path: str, name: str, tokens: Mapping[str, str]) -> Finding | None:
    """A task file where no task may stand: every node passes it over, so for the spool that task is gone."""
    returned, archived = parse_returned(name) or (None,), parse_archived(name) or (None,)
    task, ended = parse_task(name) or returned[0], parse_ended(name) or archived[0]
    if (strayed := task or ended) is None:
        return None
    token = tokens.get(key(strayed.id))
    mend = "drop its content into pending/ to run it again"
    if token is not None:
        mend = f"{token} is that task: move this one away"
    problem = f"a task file in the wrong place (id {strayed.id})"
    if task is None:  # the name is also that of its result
        problem = problem.replace("file", "file or a result", 1)
        mend = f"{mend}; a result belongs into {layout.RESULTS}/"
    return Finding(Severity.WARNING, "names", (path,), problem, mend)


def _several(law: str, paths: list[str], one: str, many: str, mend: str) -> Iterator[Finding]:
    """Many similar things are one piece of information."""
    if paths:
        yield Finding(Severity.INFO, law, tuple(paths[:SHOWN]), amount(len(paths), one, many), mend)


# The findings of an audit: severity, broken law, place, the fix in words, and the fix as a value.
# Law: a fix is the action of `--repair`, and `audit` alone chooses it; the code that carries it out decides
# nothing.


class Severity(StrEnum):
    """How bad a finding is; only errors make `spool fsck` fail."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class SetAside:
    """Move a second token of an id to rejected/, with the reason beside it."""

    path: str
    id: str
    kept: str


@dataclass(frozen=True, slots=True)
class Relane:
    """Move a token to waiting/, into the lane and under the name that its content asks for."""

    path: str
    lane: str
    name: TaskName


@dataclass(frozen=True, slots=True)
class Rerun:
    """Let a task whose result is lost wait for another attempt."""

    path: str
    lane: str
    rank: int
    conditional: bool
    name: EndedName


@dataclass(frozen=True, slots=True)
class Fail:
    """End a token whose content is no task, so that the tasks that wait for it get an answer."""

    path: str
    name: TaskName
    problem: str


@dataclass(frozen=True, slots=True)
class MakeLease:
    """Make the token of leadership, with an epoch above all earlier ones."""

    above: int


@dataclass(frozen=True, slots=True)
class DropLease:
    """Remove a token of leadership that another one outranks."""

    path: str


@dataclass(frozen=True, slots=True)
class MakeDirectory:
    """Make a directory of the layout."""

    path: str


Fix = SetAside | Relane | Rerun | Fail | MakeLease | DropLease | MakeDirectory


@dataclass(frozen=True, slots=True)
class Finding:
    """The fault, its place, its law, and the fix in words; fix is the action of `--repair`, None for nothing."""

    severity: Severity
    law: str
    paths: tuple[str, ...]
    problem: str
    mend: str
    fix: Fix | None = None


# The content of a survey of a whole tree, as values: the question that `audit` answers.
# Law: a sighting says what stood where, and not its meaning. Files that vanished between listing and reading are
# sighted without content; they moved on, and the next survey sees them at their new place.


@dataclass(frozen=True, slots=True)
class Content:
    """The facts of a task file's content; problem says why it is not a task, '' if it is one.

    raises: attempts that run out of memory raise the demand of the next one.
    """

    id: str | None = None
    lane: str = ""
    conditional: bool = False
    rank: int = 0
    problem: str = ""
    raises: bool = False

    def may_stand_in(self, lane: str) -> bool:
        """Whether its token may be in a lane: its own, or one with more memory after attempts that ran out of it."""
        return lane == self.lane or (self.raises and is_raised(lane, self.lane))


@dataclass(frozen=True, slots=True)
class Token:
    """One task file: its state, its path, the lane or worker it stands under ('' for none), its name.

    ended: the state that it ended in, archived or not; content is None if it was not read (archived, or moved on).
    """

    state: State
    path: str
    name: TaskName | EndedName
    branch: str = ""
    ended: State | None = None
    content: Content | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One result. Its content is read only if a task file of the same name counts on it."""

    path: str
    name: EndedName
    read: bool = False
    task_id: str = ""
    attempt: int = 0
    status: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Survey:
    """The tree. nodes have a heartbeat, workers a claim directory, writers a tmp directory.

    epoch: the highest in any name; foreign: paths whose names are of no grammar; missing: missing directories of the
    layout; unreadable: paths with the system's error; blocked: directories of the layout in whose place something
    else stands, with its kind; rejected: the names in rejected/; drops: how many in pending/; standing: paths that
    leaders are admitting; irregular: those of them that are not files, with their kind.
    """

    tokens: tuple[Token, ...] = ()
    results: tuple[Record, ...] = ()
    leases: tuple[LeaseName, ...] = ()
    nodes: frozenset[str] = frozenset()
    workers: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    standing: tuple[str, ...] = ()
    irregular: tuple[tuple[str, str], ...] = ()
    foreign: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unreadable: tuple[tuple[str, str], ...] = ()
    blocked: tuple[tuple[str, str], ...] = ()
    drops: int = 0
    epoch: int = 0
