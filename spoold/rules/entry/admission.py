"""A drop as a task, a rejection, or not yet.

Law: a half-copied file is not bad, only young. A drop that can never become good (a link, a pipe, a directory, a file
over the limit, JSON that is complete and wrong) is rejected at once; one that may still be growing gets the drop
grace since its last change. Nothing is ever judged by its clock.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache

from spoold.protocol import codec
from spoold.protocol.amount import amount
from spoold.protocol.drop import first_stem
from spoold.protocol.errors import BadFile, BadName
from spoold.protocol.names import TaskName, slug
from spoold.protocol.order import base36, encode_order
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task
from spoold.rules.attempts.policy import rank
from spoold.rules.entry.naming import check_names
from spoold.rules.scheduling.spending import needs_reading

_SHORT = re.compile(r"[A-Z0-9_]{1,6}~[A-Z0-9]{1,2}(?:\.[A-Z0-9]{1,3})?")


@dataclass(frozen=True, slots=True)
class Outline:
    """The part of a task that its lane and name state, beside its id and its age, and its batch. Equal ones are one
    object.
    """

    lane: str
    rank: int
    failures: int
    conditional: bool
    batch: str | None = None

    def name(self, order: str, task_id: str) -> TaskName:
        """The name of a task with this outline."""
        return TaskName(self.rank, order, task_id, failures=self.failures, conditional=self.conditional)


_outline = lru_cache(maxsize=4096)(Outline)


@dataclass(frozen=True, slots=True)
class Admit:
    """The drop is a task: its name and lane, and its content."""

    name: TaskName
    lane: str
    task: Task


@dataclass(frozen=True, slots=True)
class Reject:
    """The drop is not a task: why, and the fix."""

    error: BadFile


@dataclass(frozen=True, slots=True)
class Young:
    """The drop may still be on its way: look again later."""

    error: BadFile


@dataclass(frozen=True, slots=True)
class Known:
    """The very same task is here already: the drop is a no-op."""

    id: str


Judgement = Admit | Reject | Young | Known


def judge_kind(drop: str, kind: str, size: int, settings: Settings) -> Reject | Young | None:
    """The verdict before the drop is opened, by its kind: file, dir, symlink or other; size in bytes.

    A file of another name may be about to get its own: `sed -i` and editors write first, then rename.
    """
    what = {"dir": "a directory", "symlink": "a symbolic link", "other": "a pipe, socket or device"}.get(kind)
    if what:
        return Reject(
            BadFile(drop, "", f"is {what}.", "copy a regular file into pending/ instead; links are never followed.")
        )
    low = drop.lower()
    if _SHORT.fullmatch(drop) is not None:
        return Reject(
            BadFile(
                drop,
                "",
                "is a short name, made up by an SMB server for one that Windows cannot hold (con.json, a:b.json).",
                "give the file a plain name, such as task.json, on the server or where it was dropped.",
            )
        )
    if not low.endswith((".json", ".jsonl")):
        return Young(
            BadFile(drop, "", "is neither .json nor .jsonl.", "name one task NAME.json, many tasks NAME.jsonl.")
        )
    key, limit = ("max_bytes", settings.drop.max_bytes)
    if low.endswith(".jsonl"):
        key, limit = ("max_batch_bytes", settings.drop.max_batch_bytes)
    return Reject(too_large(drop, size, key, limit)) if size > limit else None


def too_large(file: str, size: int | None, key: str, limit: int) -> BadFile:
    """The error of a drop, or a line of one, with more bytes than the setting `key` allows. size: None if they were
    not all counted.
    """
    problem = f"has more than {amount(limit, 'byte')}, which is the limit."
    if size is not None:
        problem = f"has {amount(size, 'byte')}, over the limit of {limit:,}."
    mend = f"put large data beside the spool and its path into the task, or raise [drop] {key} in spool.toml."
    return BadFile(file, "", problem, mend)


def settle(drop: str, micros: int, epoch: int) -> tuple[str, str]:
    """The order and the id (or prefix) of a drop that names none: its stem and a suffix that no other drop gets.

    The suffix is a hash of the order, which this leader gives only once, so the same file may be dropped twice.
    """
    order = encode_order(micros, epoch)
    stem = first_stem(drop.rsplit(".", 1)[0].removesuffix(".whole"))
    digest = int.from_bytes(
        hashlib.blake2b(f"{order}/{drop}".encode(errors="surrogateescape"), digest_size=5).digest()
    )
    return order, f"{slug(stem, 90)}-{base36(digest, 8)}"


def judge_content(drop: str, data: bytes, order: str, made_id: str, settings: Settings) -> Judgement:
    """The verdict on a .json drop that has been read."""
    try:
        value = codec.load(data, drop)
    except BadFile as error:
        return Young(codec.several(error, data, drop))
    try:
        codec.sure(data, value, drop)
        task = codec.check(Task, codec.as_object(value, drop, codec.ONE_TASK), drop)
        check_names(task, settings, drop)
        return admit(task, order, made_id, settings, drop)
    except BadFile as error:
        return Reject(error)


def admit(task: Task, order: str, made_id: str, settings: Settings, file: str) -> Admit:
    """A valid task with its name and lane. Errors: BadFile if its requirements cannot be spelled as a lane."""
    shape = outline(task, settings, file)
    return Admit(shape.name(order, task.id or made_id), shape.lane, task)


def outline(task: Task, settings: Settings, file: str) -> Outline:
    """The outline of a valid task. Errors: BadFile if its requirements cannot be spelled as a lane, or if it is too
    deep below other tasks.
    """
    if task.level > settings.children.max_depth:
        raise too_deep(file, task.level, settings.children.max_depth)
    try:
        needs, batch = needs_reading(task, settings), task.batch
        return _outline(task.lane_name, rank(task, settings), task.retry_count, needs, batch)
    except BadName as error:
        raise BadFile(file, "requires", f"{error}.", "use fewer and shorter labels, and plain names.") from error


def too_deep(file: str, depth: int, most: int) -> BadFile:
    """The rejection of a task with too many tasks above it."""
    problem = f"{depth} is too deep: at most {amount(most, 'generation')} of children may be below a task."
    mend = "let a task further up submit it, or raise [children] max_depth in spool.toml."
    return BadFile(file, "depth", problem, mend)


def too_many(file: str, parent: str, most: int) -> BadFile:
    """The rejection of a child of a parent that has as many children as it may have."""
    problem = f"{parent!r} has {amount(most, 'child', 'children')} already, which is the limit."
    mend = "put more work into each child, let children submit more, or raise [children] max_per_task in spool.toml."
    return BadFile(file, "parent", problem, mend)


def judge_duplicate(drop: str, task_id: str, *, same: bool) -> Known | Reject:
    """A drop whose id is taken: a no-op if the content is the same, else a rejection that says so."""
    return Known(task_id) if same else Reject(taken(drop, task_id))


def taken(drop: str, task_id: str) -> BadFile:
    """The rejection of a drop whose id belongs to a task with other content."""
    problem = f"{task_id!r} is taken by a task with other content (ids that differ by case alone count as one)."
    return BadFile(drop, "id", problem, "choose another id, or leave it out and one is made.")
