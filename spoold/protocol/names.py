"""The grammar of every file name but those of admitting/: urgency and age as text that sorts, the names of tokens,
parts of a name cut out without parsing the rest, and the names in pending/.

Law: what changes lives in names, never inside a file. Each kind of name has one dataclass with `encode()` and one
`parse_…` that returns None for any other name: foreign files are passed over. A dot separates fields. A field that
may hold dots itself (an id) stands between fields that cannot. Every value has one spelling, or is not encoded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

from spoold.protocol.errors import BadFile, BadName

# Urgency and age as text that sorts as names do: ranks and orders, in digits of base 36.
# Law: a smaller rank, and of two equal ranks the earlier microsecond, comes first also as text. So both have a
# fixed width. The epoch behind them only keeps the orders of two leaders apart.


PRIORITIES = {"critical": 20, "high": 10, "medium": 0, "normal": 0, "low": -10, "background": -20}
BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
_PAIRS = [high + low for high in BASE36 for low in BASE36]
ORDER = r"[0-9a-z]{10}-[0-9a-z]{1,6}"
MICROS_MAX, EPOCH_MAX = 36**10 - 1, 36**6 - 1


def base36(number: int, width: int = 1) -> str:
    """The number in base 36, lower case, padded with zeros to `width` digits."""
    digits = ""
    while number:
        number, rest = divmod(number, len(_PAIRS))
        digits = _PAIRS[rest] + digits
    return digits.lstrip("0").rjust(width, "0")


def encode_order(micros: int, epoch: int) -> str:
    """Age as a name: microseconds since 1970 at admission, then the epoch of the leader that admitted.

    The epoch keeps the names of two leaders apart; within an epoch the leader never gives the same number twice.
    """
    return f"{base36(micros, 10)}-{base36(epoch)}"


def order_micros(order: str) -> int:
    """The microseconds since 1970 in an order."""
    return int(order.partition("-")[0], 36)


def rank_of(priority: int) -> int:
    """Sorts as names do: a smaller rank is more urgent. Priorities beyond ±4999 count as ±4999."""
    return 5000 - max(-4999, min(4999, priority))


def own_name(node: str) -> str:
    """The name with which a node was started, by its id: the id up to the last `-`; '' where it has none."""
    return node.rpartition("-")[0]


ID_MAX = 120
NODE_MAX = 40
# Windows servers refuse these stems, with any extension.
_NO_DEVICE = r"(?!(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$))"
ID = rf"{_NO_DEVICE}[A-Za-z0-9](?:[A-Za-z0-9_=+,.-]{{0,{ID_MAX - 2}}}[A-Za-z0-9_=+,-])?"
NODE = rf"{_NO_DEVICE}[a-z0-9][a-z0-9_-]{{0,39}}"
NOBODY = "nobody"
# The end of the decider in the name of a task that was skipped: the name alone tells it from one that failed.
SKIPPED = "_skipped"
DELAY_MAX_MS = 10**12 - 1
COUNT_MAX, BEAT_MAX = 10**9 - 1, 10**15 - 1
# A NUMBER above this leaves no room for later ones. The rest is for those that a writer gave and that did not appear.
NUMBER_MOST = COUNT_MAX - 10**6


def number(digits: int) -> str:
    """A whole number in a name, without leading zeros."""
    return rf"(0|[1-9][0-9]{{0,{digits - 1}}})"


_TAIL = rf"a{number(9)}f{number(9)}c{number(9)}(?:r([1-9][0-9]{{0,11}}))?(d)?"
TASK = re.compile(rf"([0-9]{{4}})\.({ORDER})\.({ID})\.{_TAIL}\.json")
_RETURNED = re.compile(rf"([0-9]{{4}})\.({ORDER})\.({ID})\.{_TAIL}\.({NODE})\.json")
_ENDED = re.compile(rf"({ID})\.{number(9)}\.({NODE})\.json")
_ARCHIVED = re.compile(rf"({ID})\.{number(9)}\.({NODE})\.(completed|failed|result)\.json")
_LOG = re.compile(rf"({ID})\.{number(9)}\.({NODE})\.log")
_BEAT = re.compile(rf"({NODE})\.{number(15)}(?:\.{number(15)})?\.json")
_LEASE = re.compile(rf"{number(12)}\.({NODE})\.{number(15)}")
_SNAPSHOT = re.compile(rf"{number(12)}-{number(15)}\.json")
_EVENTS = re.compile(rf"({NODE})\.{number(9)}\.jsonl")


def sure(value: object, name: str, parse: Callable[[str], object]) -> str:
    """The name, if it reads back as the value. Errors: BadName."""
    if parse(name) != value:
        raise BadName(f"{name!r} cannot be a name, since it does not read back as {value}")
    return name


class Numbered(Protocol):
    """A name with a NUMBER: a later one has a higher number."""

    @property
    def number(self) -> int:
        """The number."""
        ...

    def encode(self) -> str:
        """The file name. Errors: BadName."""
        ...


def next_number(directory: str, standing: Iterable[Numbered], given: int = 0) -> int:
    """A number above those of all names that stand in a directory, and above the one given last.

    Errors: BadFile that names the file which leaves no room. Those who number follow each other, so that is the first
    one after the widest gap: all behind it were counted on from there.
    """
    names = {name.number: name for name in standing}
    if names and max(names) > NUMBER_MOST:
        culprit = max(pairwise(sorted({0, *names})), key=lambda two: two[1] - two[0])[1]
        problem = f"has a number that leaves no room for later ones: at most {NUMBER_MOST:,} does."
        fix = "rename it to a lower number that is free, or remove it."
        raise BadFile(f"{directory}/{names[culprit].encode()}", "", problem, fix)
    return max((given, *names)) + 1


def is_id(text: str) -> bool:
    """Whether the text may be the id of a task, as it stands."""
    return re.fullmatch(ID, text) is not None


def is_node(text: str) -> bool:
    """Whether the text may be the id of a worker, a master or another writer."""
    return re.fullmatch(NODE, text) is not None


def skipper(node: str) -> str:
    """The decider of a task that this leader skips: its id, of which the end is unique, and the mark."""
    return f"{node[len(SKIPPED) - NODE_MAX :].lstrip('-_')}{SKIPPED}"


def key(task_id: str) -> str:
    """The form in which two ids are compared: names must never differ by case alone (SMB folds it)."""
    return task_id.lower()


def slug(text: str, limit: int) -> str:
    """The text made legal as the beginning of an id: never empty, at most `limit` characters."""
    legal = re.sub(r"[^A-Za-z0-9_=+,.-]+", "-", text).strip("-.")[:limit].rstrip("-.")
    return legal if is_id(legal) else f"t{legal[: limit - 1]}".rstrip("-.")


@dataclass(frozen=True, slots=True)
class TaskName:
    """The name of a task file in waiting/, ready/ and claimed/: `RANK.ORDER.ID.aAfFcC[rMS][d].json`.

    attempt counts every start granted; failures and crashes are the charges on the retry budget; delay_ms: the
    backoff, counted from when a leader first sees the name; conditional: read its content before you move it.
    """

    rank: int
    order: str
    id: str
    attempt: int = 1
    failures: int = 0
    crashes: int = 0
    delay_ms: int = 0
    conditional: bool = False

    def encode(self) -> str:
        """The file name. Errors: BadName for a field outside the grammar."""
        match = TASK.fullmatch(name := f"{self._stem()}.json")
        # All fields but these two are numbers, which have one spelling. This is faster than `sure`, and called often.
        return name if match and match.group(2, 3) == (self.order, self.id) else sure(self, name, parse_task)

    def encode_returned(self, mover: str) -> str:
        """The name in returned/, unique to the node that hands the attempt back. Errors: BadName."""
        return sure((self, mover), f"{self._stem()}.{mover}.json", parse_returned)

    def ended(self, decider: str) -> EndedName:
        """The name that this attempt gets in completed/ or failed/; its result has the same name."""
        return EndedName(self.id, self.attempt, decider)

    def again(self, *, failures: int = 0, crashes: int = 0, delay_ms: int = 0) -> TaskName:
        """The next attempt, with this attempt's charges added. A count stops at the highest that a name can hold."""
        return replace(
            self,
            attempt=min(self.attempt + 1, COUNT_MAX),
            failures=min(self.failures + failures, COUNT_MAX),
            crashes=min(self.crashes + crashes, COUNT_MAX),
            delay_ms=delay_ms,
        )

    def _stem(self) -> str:
        rest = (f"r{self.delay_ms}" if self.delay_ms else "") + ("d" if self.conditional else "")
        counts = f"a{self.attempt}f{self.failures}c{self.crashes}{rest}"
        return f"{self.rank:04d}.{self.order}.{self.id}.{counts}"


def parse_task(name: str) -> TaskName | None:
    """A name in waiting/, ready/ or claimed/, or None."""
    match = TASK.fullmatch(name)
    return _task_name(match) if match else None


def parse_returned(name: str) -> tuple[TaskName, str] | None:
    """A name in returned/ as (task name, mover), or None."""
    match = _RETURNED.fullmatch(name)
    return (_task_name(match), match.group(9)) if match else None


def parse_moving(name: str) -> TaskName | None:
    """The task's name in that of a token that has not ended, whatever its directory, or None."""
    returned = parse_returned(name)
    return returned[0] if returned is not None else parse_task(name)


def _task_name(match: re.Match[str]) -> TaskName:
    rank, order, task_id, attempt, failures, crashes, delay, flag = match.groups()[:8]
    return TaskName(int(rank), order, task_id, int(attempt), int(failures), int(crashes), int(delay or 0), bool(flag))


@dataclass(frozen=True, slots=True)
class EndedName:
    """`ID.ATTEMPT.DECIDER.json`: an attempt that was decided, in completed/, failed/ and results/ alike."""

    id: str
    attempt: int
    decider: str

    @property
    def skipped(self) -> bool:
        """Whether, in failed/, it is the name of a task that was skipped and has not failed."""
        return self.decider.endswith(SKIPPED)

    def encode(self) -> str:
        """The file name in completed/, failed/ and results/. Errors: BadName."""
        return sure(self, f"{self._stem()}.json", parse_ended)

    def log(self) -> str:
        """The name of the attempt's log. Errors: BadName."""
        return sure(self, f"{self._stem()}.log", parse_log)

    def archived(self, kind: str) -> str:
        """The name under archive/: kind is completed, failed or result. Errors: BadName."""
        return sure((self, kind), f"{self._stem()}.{kind}.json", parse_archived)

    def _stem(self) -> str:
        return f"{self.id}.{self.attempt}.{self.decider}"


def parse_ended(name: str) -> EndedName | None:
    """A name in completed/, failed/ or results/, or None."""
    match = _ENDED.fullmatch(name)
    return EndedName(match[1], int(match[2]), match[3]) if match else None


def is_skipped(name: str) -> bool:
    """Whether a name in failed/ is of a task that was skipped and has not failed."""
    return name.endswith(f"{SKIPPED}.json")


def parse_archived(name: str) -> tuple[EndedName, str] | None:
    """A name in archive/HH/ as (name, kind), or None; logs keep their own grammar there."""
    match = _ARCHIVED.fullmatch(name)
    return (EndedName(match[1], int(match[2]), match[3]), match[4]) if match else None


def parse_log(name: str) -> EndedName | None:
    """A name in logs/, or None."""
    match = _LOG.fullmatch(name)
    return EndedName(match[1], int(match[2]), match[3]) if match else None


@dataclass(frozen=True, slots=True)
class BeatName:
    """`NODE.BEAT[.SAID].json` in heartbeats/: a living node. said: the earlier beat that wrote the content."""

    node: str
    beat: int
    said: int | None = None

    @property
    def content(self) -> int:
        """The beat that wrote the content."""
        return self.beat if self.said is None else self.said

    def encode(self) -> str:
        """The file name. Errors: BadName."""
        said = "" if self.said is None else f".{self.said}"
        return sure(self, f"{self.node}.{self.beat}{said}.json", parse_beat)


def parse_beat(name: str) -> BeatName | None:
    """A name in heartbeats/, or None."""
    match = _BEAT.fullmatch(name)
    if match is None or (match[3] and int(match[3]) >= int(match[2])):
        return None
    return BeatName(match[1], int(match[2]), int(match[3]) if match[3] else None)


@dataclass(frozen=True, slots=True, order=True)
class LeaseName:
    """`EPOCH.HOLDER.BEAT` in master/: the one token of leadership. Sorts by epoch, then beat."""

    epoch: int
    beat: int
    holder: str

    def encode(self) -> str:
        """The file name. Errors: BadName."""
        return sure(self, f"{self.epoch}.{self.holder}.{self.beat}", parse_lease)


def parse_lease(name: str) -> LeaseName | None:
    """A name in master/, or None."""
    match = _LEASE.fullmatch(name)
    return LeaseName(int(match[1]), int(match[3]), match[2]) if match else None


@dataclass(frozen=True, slots=True, order=True)
class SnapshotName:
    """`EPOCH-SEQ.json` in status/: readers take the highest."""

    epoch: int
    seq: int

    def encode(self) -> str:
        """The file name. Errors: BadName."""
        return sure(self, f"{self.epoch}-{self.seq}.json", parse_snapshot)


def parse_snapshot(name: str) -> SnapshotName | None:
    """A name in status/, or None."""
    match = _SNAPSHOT.fullmatch(name)
    return SnapshotName(int(match[1]), int(match[2])) if match else None


@dataclass(frozen=True, slots=True, order=True)
class EventsName:
    """`WRITER.SEGMENT.jsonl` in events/: one writer per file."""

    writer: str
    segment: int

    def encode(self) -> str:
        """The file name. Errors: BadName."""
        return sure(self, f"{self.writer}.{self.segment}.jsonl", parse_events)


def parse_events(name: str) -> EventsName | None:
    """A name in events/, or None."""
    match = _EVENTS.fullmatch(name)
    return EventsName(match[1], int(match[2])) if match else None


# Not a hexadecimal digit, so no id that was only hashed has one.
_MARK = "+"


def marked(machine_id: str, chance: str) -> str:
    """Return the id of a machine that is not the only one with this id. chance: drawn once on this machine."""
    return f"{unmarked(machine_id)}{_MARK}{chance}"


def unmarked(machine_id: str) -> str:
    """Return the id that the machine had before it was marked."""
    return machine_id.partition(_MARK)[0]


def is_marked(machine_id: str) -> bool:
    """Return whether a node knows that another machine has its identity."""
    return _MARK in machine_id


# Parts of a name, cut out without parsing the rest, for directories with up to a million names.
# Law: the part is only valid if the parser in `names` accepts the name; `is_task` checks that.


def is_task(name: str) -> bool:
    """Whether it is a name in waiting/, ready/ or claimed/."""
    return TASK.fullmatch(name) is not None


def key_in(name: str) -> str:
    """The key of the id (see `names.key`). If the name is not a task's, the result means nothing."""
    return name.split(".", 2)[-1].rsplit(".", 2)[0].lower()


def ended_key_in(name: str) -> str:
    """The key of the id in a name of completed/, failed/, results/ or logs/."""
    return name.rsplit(".", 3)[0].lower()


def rank_in(name: str) -> int:
    """The rank."""
    return int(name[:4])


def order_in(name: str) -> str:
    """The order."""
    return name.split(".", 2)[1]


def urgency_in(name: str) -> list[str]:
    """The parts by which waiting tasks sort: the rank, then the order; both sort as texts."""
    return name.split(".", 2)[:2]


def age_in(name: str) -> str:
    """The part that sorts by age, and then by id: all but the rank."""
    return name[5:]


def is_conditional(name: str) -> bool:
    """Whether the name says that the content has conditions."""
    return name[-6] == "d"


def is_plain(name: str) -> bool:
    """Whether the task has neither a backoff nor conditions, so that it only waits for its turn."""
    return name[-6] != "d" and "r" not in name.rsplit(".", 2)[1]


# The names of files in pending/. Other people's may be anything; ours state what a reader can then skip opening.
# Law: a name is only believed where the content says the same, or where nothing is decided by it.


# Editors, browsers, rsync and shells first write under such names; these files are not finished.
UNFINISHED = (".tmp", ".part", ".partial", ".crdownload", ".filepart", ".swp", "~")
# Editors, patch and version control keep earlier states of a file beside it; Windows its own notes of a folder.
BACKUPS = (".bak", ".orig", ".rej", ".save", ".swo", ",v")
OF_FOLDERS = frozenset({"thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r", "$recycle.bin", "__macosx"})
WHOLE = ".whole.jsonl"
# An id never holds an @, so the text before the @ is the id and nothing else.
UNIQUE = "@unique.json"
_WIDTH = 10
_AGAIN = re.compile(rf"\.{ORDER}$")
_OURS = re.compile(rf"[0-9a-z]{{{_WIDTH}}}\.([^@]+)(?:@unique)?\.json")
_OUR_BATCH = re.compile(rf"[0-9a-z]{{{_WIDTH}}}\.batch-.+{re.escape(WHOLE)}")


def first_stem(stem: str) -> str:
    """The drop's first name, without the order that it got when it was given a free name."""
    return _AGAIN.sub("", stem)


def concerns_us(drop: str) -> bool:
    """Whether an entry of pending/ is ours to judge: not hidden, and not under a name by which other programs keep
    unfinished files, backups, locks and notes of a folder.
    """
    name = drop.lower()
    autosaved = name.startswith("#") and name.endswith("#")  # Emacs
    return not (
        name.startswith((".", "~$")) or name.endswith(UNFINISHED + BACKUPS) or autosaved or name in OF_FOLDERS
    )


def task_drop(micros: int, task_id: str, *, unique: bool) -> str:
    """The name that we drop a task under: it sorts by age and states the id, so the file need not be opened.

    micros: microseconds since 1970; unique: whether the id was made for this drop alone, see `is_unique`.
    """
    return f"{base36(micros, _WIDTH)}.{task_id}{UNIQUE if unique else '.json'}"


def batch_drop(micros: int, word: str) -> str:
    """The name that we drop a batch under, which is published by rename."""
    return f"{base36(micros, _WIDTH)}.batch-{word}{WHOLE}"


def is_our_batch(drop: str) -> bool:
    """Whether spoold itself dropped this batch: by a rename, after its content was durable.

    In other people's names WHOLE is only a promise: `mv` from another file system is a slow copy under that name.
    """
    return _OUR_BATCH.fullmatch(drop) is not None


def id_in(drop: str) -> str | None:
    """The id in a name that spoold made; None for other names."""
    match = _OURS.fullmatch(drop)
    return match[1] if match is not None and is_id(match[1]) else None


def is_unique(drop: str, task_id: str) -> bool:
    """Whether the name promises that no other drop, before or after, has the id in this drop's content."""
    return drop.endswith(UNIQUE) and id_in(drop) == task_id
