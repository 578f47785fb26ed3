"""Why a file that looks like a task, a request or a change of settings is none: readers pass over names that do not
parse for ever, so a report must say what is wrong with them.

Law: a name that parses has no fault here, and one that does not always has one. Files of other programs (hidden, or
with another ending) have none: they belong to people. In control/ only hidden ones belong to them: all that people
put there is meant as a request. In the directories of lanes and workers, too: a file there was meant to be a task.
"""

from __future__ import annotations

import re

from spoold.protocol.errors import nearest
from spoold.protocol.lanes import parse_lane
from spoold.protocol.lifecycle import State
from spoold.protocol.names import ID, NODE, ORDER, is_id, is_node, parse_ended, parse_returned, parse_task
from spoold.protocol.request import EVERYTHING, Verb, parse_request
from spoold.protocol.settings_change import parse_change

_SEE = "see Names in spool_layout.md"
_COUNTS = re.compile(r"a(\d+)f(\d+)c(\d+)(?:r(\d+))?(d?)")
_DIGITS = {"attempt a": 9, "failures f": 9, "crashes c": 9, "rest r": 12}


def belongs_to_others(name: str) -> bool:
    """Whether it is the name of another program's file: hidden, or with another ending."""
    return name.startswith(".") or not name.endswith(".json")


def fault(state: State, name: str) -> str | None:
    """What is wrong with a name in this state's directory; None if it parses, and for other programs' files."""
    if belongs_to_others(name):
        return None
    if state in (State.COMPLETED, State.FAILED):
        return None if parse_ended(name) else _of_ended(name)
    if state is State.RETURNED:
        return None if parse_returned(name) else _of_task(name, returned=True)
    return None if parse_task(name) else _of_task(name, returned=False)


def of_branch(state: State, name: str) -> str | None:
    """What is wrong with a name in waiting/ or ready/, where lanes are, or in claimed/, where workers are; None if it
    parses, and for hidden ones.
    """
    if name.startswith("."):
        return None
    if state is State.CLAIMED:
        return None if is_node(name) else f"is not the directory of a worker ({_SEE})"
    if parse_lane(name) is not None:
        return None
    return f"is not a lane ({_SEE}); a new task goes into pending/"


def of_request(name: str) -> str | None:
    """What is wrong with a name in control/; None if it parses, and for hidden files."""
    if name.startswith(".") or parse_request(name):
        return None
    form = f"is not VERB.TARGET.UNIQUE.json ({_SEE})"
    verb, _, rest = name.partition(".")
    target, _, unique = rest.removesuffix(".json").rpartition(".")
    if verb not in [*Verb]:
        meant = nearest(verb, Verb) if rest else ""
        return f"has the verb {verb!r}: write {meant} if you meant that" if meant else form
    if not name.endswith(".json") or not target:
        return form
    if not re.fullmatch(r"[a-z0-9-]{1,40}", unique):
        return f"has {unique!r} as UNIQUE: write 1 to 40 characters of a-z, 0-9 and -"
    if target == EVERYTHING:
        return f"has the target {target!r}: {verb} is for a single one (see docs/spec/requests.md)"
    why = f"{verb} is for the whole spool alone: write {EVERYTHING}" if is_id(target) else f"it is not an id ({_SEE})"
    return f"has the target {target!r}: {why}"


def of_change(name: str) -> str | None:
    """What is wrong with a name in settings/; None if it parses, and for other programs' files."""
    if belongs_to_others(name) or parse_change(name):
        return None
    return f"is not NUMBER.NODE.json ({_SEE})"


def _of_task(name: str, *, returned: bool) -> str:
    form = f"RANK.ORDER.ID.aAfFcC[rMS][d]{'.NODE' if returned else ''}.json"
    words = name.split(".")
    ending = 3 if returned else 2
    if len(words) < 3 + ending:
        return f"is not {form} ({_SEE})"
    rank, order, counts = words[0], words[1], words[-ending]
    task_id = ".".join(words[2:-ending])
    if not re.fullmatch(r"[0-9]{4}", rank):
        return f"has the rank {rank!r}: write four digits"
    if not re.fullmatch(ORDER, order):
        return f"has the order {order!r}: write ten digits in base 36, '-', and the epoch in base 36"
    if not re.fullmatch(ID, task_id):
        return f"has the id {task_id!r}, which is not an id ({_SEE})"
    if returned and not re.fullmatch(NODE, words[-2]):
        return f"has the node {words[-2]!r}, which is not a node id ({_SEE})"
    return _of_counts(counts, form)


def _of_counts(counts: str, form: str) -> str:
    match = _COUNTS.fullmatch(counts)
    if match is None:
        return f"has {counts!r} where aAfFcC[rMS][d] belongs: it is not {form} ({_SEE})"
    for (what, most), digits in zip(_DIGITS.items(), match.groups("1")[:4], strict=True):
        if len(digits) > most:
            return f"has the number {digits!r} for {what}: at most {most} digits"
        if digits != "0" and digits.startswith("0"):
            return f"has the number {digits!r} for {what}: write it without leading zeros"
    return "has r0: leave out a rest of 0"


def _of_ended(name: str) -> str:
    words = name.split(".")
    if len(words) < 4:
        return f"is not ID.ATTEMPT.DECIDER.json ({_SEE})"
    if not re.fullmatch(r"0|[1-9][0-9]{0,8}", words[-3]):
        return f"has the attempt {words[-3]!r}: write 1 to 9 digits without leading zeros"
    if not re.fullmatch(NODE, words[-2]):
        return f"has the decider {words[-2]!r}, which is not a node id ({_SEE})"
    return f"has the id {'.'.join(words[:-3])!r}, which is not an id ({_SEE})"
