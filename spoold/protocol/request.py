"""Requests to the cluster. A request is a file in control/: `VERB.TARGET.UNIQUE.json`.

control/ is a blackboard: leader and workers list this one directory. The leader removes a request once it is done.

Law: the name of a request says everything that machines need, but for four things in the content: when a pause, or a
closed limit, ends by itself, what is asked, answered and told about a task, what a reservation locks, and which tasks
a request for many has. A pause, a closed limit, a halt, a drain and a reservation stand as long as their file does.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from spoold.protocol.errors import BadName, WrongValue
from spoold.protocol.lanes import as_word
from spoold.protocol.names import is_id

EVERYTHING = "+all"
# The tasks that the content names.
MANY = "+many"


class Verb(StrEnum):
    """The requests there are; the comment says what TARGET is."""

    CANCEL = "cancel"  # a task
    RETRY = "retry"  # a failed task
    PRIORITY = "priority"  # a task: UNIQUE says how urgent it is from now on, see `priority_unique`
    PAUSE = "pause"  # a type, or +all
    RESUME = "resume"  # a type, or +all
    DRAIN = "drain"  # a worker, by its id or its own name, or +all
    UNDRAIN = "undrain"  # as for drain
    REAP = "reap"  # a worker or a master that its own host knows to be gone
    HALT = "halt"  # +all: kill what runs, hand it back, start nothing
    CLOSE = "close"  # a limit
    OPEN = "open"  # a limit
    QUOTA = "quota"  # a limit: an attempt found its quota used up
    GC = "gc"  # +all: apply retention now
    HOLD = "hold"  # a task
    UNHOLD = "unhold"  # a task: lifts every hold of it
    ASK = "ask"  # a task: a question that is open, of the task itself or of the leader about its approval
    APPROVE = "approve"  # a task: the answer to a question
    REJECT = "reject"  # a task: the answer to a question is no
    TELL = "tell"  # a task: words for its agent
    RESERVE = "reserve"  # +all, or the task that asks: hold what the content names; UNIQUE is its name
    RELEASE = "release"  # a reservation
    LEND = "lend"  # a task that waits: its worker offers its units of limits to others
    LENT = "lent"  # the same, once a leader has taken the offer
    REGAIN = "regain"  # the same, once the task wants to go on; the leader removes it when the units are there


# These act on the whole spool; a name with another target was meant for something else.
_ALL_ALONE = frozenset((Verb.HALT, Verb.GC))
_OF_A_LIMIT = frozenset((Verb.CLOSE, Verb.OPEN, Verb.QUOTA))
# These are about one task, and their content matters.
OF_ONE_TASK = frozenset((Verb.HOLD, Verb.UNHOLD, Verb.ASK, Verb.APPROVE, Verb.REJECT, Verb.TELL))
# These may be for many tasks at once.
OF_MANY = frozenset((Verb.CANCEL, Verb.RETRY, Verb.PRIORITY))
_NEVER_ALL = OF_MANY | frozenset((Verb.REAP, Verb.RELEASE))
_NEVER_ALL |= frozenset((Verb.LEND, Verb.LENT, Verb.REGAIN))
_NEVER_ALL |= _OF_A_LIMIT | OF_ONE_TASK
# A loan of units: UNIQUE says whose, see `loan_unique`.
OF_A_LOAN = frozenset((Verb.LEND, Verb.LENT, Verb.REGAIN))
# These may end by themselves.
ENDING = frozenset((Verb.PAUSE, Verb.CLOSE, Verb.QUOTA))


def kind_target(kind: str | None) -> str:
    """The target of a request for a type, spelled as in tasks; None stands for all types. Errors: BadName."""
    if kind is None:
        return EVERYTHING
    try:
        target = as_word(kind)
    except WrongValue as why:
        raise BadName(f"{kind!r} is not a type of tasks: {why}; or name none, to mean all.") from why
    if not is_id(target):
        raise BadName(f"{kind!r} cannot be a name on a Windows server; pause all, or give the tasks another type.")
    return target


_NAME = re.compile(rf"({'|'.join(Verb)})\.(.+)\.([a-z0-9-]{{1,40}})\.json")


@dataclass(frozen=True, slots=True)
class Request:
    """The name of a request."""

    verb: Verb
    target: str
    unique: str

    def encode(self) -> str:
        """The file name. Errors: BadName for a target, or a suffix, that cannot stand in a name."""
        name = f"{self.verb}.{self.target}.{self.unique}.json"
        if parse_request(name) != self:
            raise BadName(f"{self.target!r} cannot be the target of a request, or {self.unique!r} its suffix")
        return name


def each_of(request: Request, tasks: Iterable[str]) -> list[Request]:
    """The requests for single tasks for which one for many stands. tasks: the ids in its content."""
    return [Request(request.verb, task, request.unique) for task in tasks]


def priority_unique(rank: int, unique: str) -> str:
    """UNIQUE of a request for a priority. rank: as in names of tasks; unique: sorts by time."""
    return f"{rank:04d}-{unique}"


def rank_asked(request: Request) -> tuple[int, str] | None:
    """The rank that a request for a priority asks for, and the rest of UNIQUE; None where it names none."""
    digits, _, rest = request.unique.partition("-")
    return (int(digits), rest) if re.fullmatch(r"\d{4}", digits) and int(digits) and rest else None


def loan_mark(node: str) -> str:
    """The first part of UNIQUE in all loans of a worker: with it alone a loan is of a claim of that worker."""
    return hashlib.blake2b(node.encode(), digest_size=8).hexdigest()


def loan_unique(node: str, number: int) -> str:
    """UNIQUE of a worker's loan of units; it gives each loan another number."""
    return f"{loan_mark(node)}-{number}"


def parse_request(name: str) -> Request | None:
    """A name in control/, or None."""
    match = _NAME.fullmatch(name)
    if match is None or not _may_aim(Verb(match[1]), match[2]):
        return None
    return Request(Verb(match[1]), match[2], match[3])


def _may_aim(verb: Verb, target: str) -> bool:
    if target == EVERYTHING:
        return verb not in _NEVER_ALL
    if target == MANY:
        return verb in OF_MANY
    return verb not in _ALL_ALONE and is_id(target)
