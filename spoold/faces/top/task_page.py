"""One task: its state and why, its attempts, what waits for what, its history, and what it was submitted as.

Law: whatever cannot be read is a line that says so, and the rest of the page stands. Of what waits for what, as
indented text, a task that stands elsewhere on the page is not unfolded again, and what is left out is counted. No
sentence of the history is made here; each is that of the client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from spoold.faces.top.page import OfTask, kept
from spoold.faces.top.source import Room, Source
from spoold.faces.top.text_layout import (
    TASK,
    Behind,
    Cells,
    Column,
    Line,
    Picture,
    Row,
    Word,
    moment,
    money,
    progress,
    short,
    shown,
    state,
    summed,
    table,
    word,
    wrap,
)
from spoold.pictures.picture_data import Bond
from spoold.protocol.amount import amount, precise
from spoold.protocol.errors import SpoolError
from spoold.protocol.result import why_ended

if TYPE_CHECKING:
    from spoold.client.read.task_info import TaskInfo
    from spoold.pictures.picture_data import Scene, Task
    from spoold.protocol.result import Result
    from spoold.protocol.settings import Settings


T = TypeVar("T")
_NAME = 13
_FIELDS = ("name", "type", "batch", "priority", "worker", "lane", "reason", "sent_back")
_TIMES = ("created_at", "admitted_at", "started_at", "completed_at")
_ATTEMPTS = (
    Column("TRY", 3, 4, right=True),
    Column("STATUS", 8, 14),
    Column("TOOK", 6, 10, right=True),
    Column("EXIT", 4, 5, rank=3, right=True),
    Column("TOKENS", 6, 8, rank=4, right=True),
    Column("COST", 6, 8, rank=5, right=True),
    Column("WORKER", 8, 30, rank=2),
    Column("WHY", 10, 300),
)
_LINES_OF_TASK = 40
# What waits for what seldom changes, and to read it costs a walk over the whole spool. States are those of now.
SCENE_S = 60.0
# To explain takes a look at lanes and nodes. After a move it is asked at once.
EXPLAIN_S = 15.0


class TaskPage(OfTask):
    """All that is known of one task."""

    name = "task"
    about = "a task: state, why, attempts, what it waits for"
    every_s = 3.0
    share = True

    def gather(self, source: Source, room: Room) -> Picture:
        """Return the page."""
        info = _asked(lambda: source.view.info(self.id))
        if isinstance(info, SpoolError):
            return shown(f"task {self.id}", _text("", str(info), room.width, "alert"))
        rows = [
            *_facts(info, source.spool.store.settings, room.width),
            *_explained(source, info, room.width),
            *_attempts(info, room.width),
            *_around(source, info, room.width),
            *_submitted(info, room.width),
        ]
        rows = [replace(row, key=row.key or f"line {number}") for number, row in enumerate(kept(self.typed, rows))]
        return shown(f"task {self.id}", rows, note=amount(len(rows), "line"))


def _asked(ask: Callable[[], T]) -> T | SpoolError:
    try:
        return ask()
    except SpoolError as error:
        return error


def _text(name: str, said: object, width: int, style: str = "") -> list[Row]:
    line: Line = (Word(f"{name:<{_NAME}}", "mute"), word(said, style))
    return [Row(each) for each in wrap(line, width, _NAME)]


def _title(words: str) -> list[Row]:
    return [Row(()), Row((Word(words.upper(), "bold"),))]


def charges(info: TaskInfo, settings: Settings) -> str:
    """Return how much of its retry budget a task has spent: after so many failures or crashes it runs again."""
    own, retry = info.task, info.task.get("retry")
    wishes = (retry.get("max") if isinstance(retry, dict) else None, own.get("max_retries"))
    of_type = settings.of(info.type).max_retries
    most = next((wish for wish in (*wishes, of_type) if type(wish) is int), settings.retry.max)
    return f"{info.failures or 0} of {amount(most, 'failure')}, {info.crashes or 0} of {_crashes(settings)}"


def _crashes(settings: Settings) -> str:
    return amount(settings.retry.crash_limit - 1, "crash", "crashes")


def _facts(info: TaskInfo, settings: Settings, width: int) -> Iterator[Row]:
    archived = " (archived)" if info.archived else ""
    yield Row((Word(f"{'state':<{_NAME}}", "mute"), state(info.state), Word(f"  attempt {info.attempt}{archived}")))
    if info.failures is not None and info.crashes is not None:
        yield from _text("charged", charges(info, settings), width)
    for name in _FIELDS:
        value = getattr(info, name)
        if value not in (None, ""):
            yield from _text(name.replace("_", " "), value, width)
    times = "  ".join(f"{name[:-3]} {value}" for name in _TIMES if (value := getattr(info, name)))
    if times:
        yield from _text("times", times, width)
    if info.progress is not None:
        yield from _text("progress", progress(info.progress).text, width)
    if info.progress_problem:
        yield from _text("progress", info.progress_problem, width)
    if info.total is not None:
        yield from _text("together", summed(info.total), width)


def _explained(source: Source, info: TaskInfo, width: int) -> Iterator[Row]:
    yield from _title("why")
    name = f"explain {info.id} {info.state} {info.attempt}"
    answer = source.soon(name, lambda: source.view.explain(info.id), for_s=EXPLAIN_S)
    if answer is None:
        yield Row((Word("being worked out …", "mute"),))
        return
    if isinstance(answer, SpoolError):
        yield from _text("", answer, width, "alert")
        return
    yield from (Row(line) for line in wrap((word(answer.verdict),), width))
    if answer.last_line:
        yield from _text("last line", answer.last_line, width)
    for reason in answer.reasons:
        if reason.reason != answer.verdict:
            yield from _text(reason.gate, reason.reason, width)
        if reason.change:
            yield from _text("fix" if reason.reason == answer.verdict else "", reason.change, width, "mute")


def _attempts(info: TaskInfo, width: int) -> Iterator[Row]:
    if not info.attempts:
        return
    yield from _title(f"attempts {len(info.attempts)}")
    laid = table(_ATTEMPTS, [_attempt(result) for result in info.attempts], width)
    yield Row(laid.head)
    for row, result in zip(laid.rows, info.attempts, strict=True):
        yield row
        why = why_ended(result)
        if why and laid.rows and why not in "".join(each.text for each in row.line):
            yield from (Row(line) for line in wrap((Word("     "), word(why, "mute")), width, 5))


def _attempt(result: Result) -> Cells:
    good = str(result.status) == "success"
    words = (
        Word(str(result.attempt)),
        word(result.status, "ok" if good else "alert"),
        Word(f"{'~' if result.estimated else ''}{precise(result.duration_s)}"),
        Word("-" if result.exit_code is None else str(result.exit_code)),
        Word(short(result.tokens_used)),
        Word(money(result.cost_usd)),
        word(result.worker_id, "mute"),
        word(why_ended(result), most=300),
    )
    return Cells(words)


def _around(source: Source, info: TaskInfo, width: int) -> Iterator[Row]:
    """Yield what the task waits for, and what waits for it: of a batch with all between them."""
    if info.batch:
        scene = scene_of(source, info.batch)
        if scene is None:
            yield Row(())
            yield Row((Word("what it needs, and what needs it, is being read …", "mute"),))
            return
        if isinstance(scene, SpoolError):
            yield from _text("", scene, width, "alert")
            return
        for title, lines in around(scene, info.id, partial(state_of, source)):
            yield from _title(title)
            yield from lines
        return
    needs = [(bond, one) for bond in BONDS for one in _listed(info.task.get(bond))]
    if needs:
        yield from _title(f"needs {len(needs)}")
    for bond, one in needs:
        card = source.view.card(one)
        where = state(card.state) if card is not None else Word("? not seen", "state:unknown")
        behind = Behind(TASK, one) if card is not None else None
        yield Row((where, Word("  "), word(one), Word(f"  {bond}", "mute")), f"need {one}", behind)


def scene_of(source: Source, batch: str) -> Scene | SpoolError | None:
    """Return the tasks of a batch with what they wait for; None while they are read, which may take long."""
    return source.soon(f"scene {batch}", lambda: source.view.scene(batch), for_s=SCENE_S)


def state_of(source: Source, task_id: str, before: str) -> str:
    """Return the state of a task as the view knows it now."""
    card = source.view.card(task_id)
    return card.state if card is not None else before


def _listed(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _submitted(info: TaskInfo, width: int) -> Iterator[Row]:
    if not info.task:
        return
    text = orjson.dumps(info.task, option=orjson.OPT_INDENT_2).decode()
    lines = text.split("\n")
    title = f"as submitted, {_LINES_OF_TASK} of {amount(len(lines), 'line')}"
    yield from _title(title if len(lines) > _LINES_OF_TASK else "as submitted")
    for each in lines[:_LINES_OF_TASK]:
        indent = len(each) - len(each.lstrip())
        yield from (Row(line) for line in wrap((Word(" " * indent), word(each.lstrip())), width, indent + 2))
    yield from _text("file", info.path, width)


# Who waits for whom, as indented text: around one task, and of a whole batch.


BONDS = tuple(bond.value for bond in Bond)
# Of one task, and of a batch: a person who needs more has `spool graph`.
MOST_AROUND, MOST_OF_BATCH = 30, 2000
_DEEP = 12
Links = Mapping[str, Sequence[tuple[str, Bond]]]
# The state of a task now: the scene may be older.
StateOf = Callable[[str, str], str]


def around(scene: Scene, task_id: str, now_of: StateOf) -> Iterator[tuple[str, list[Row]]]:
    """Yield what the task waits for, and what waits for it, each with a title; nothing where there is none."""
    tasks = _now(scene, now_of)
    start = next((task for task in scene.tasks if task.id == task_id), None)
    if start is None:
        return
    for name, links in (("needs", _needs(scene)), ("needed by", _dependants(scene))):
        if links.get(start.key):
            rows, all_ = _walk(tasks, links, start.key, MOST_AROUND, name)
            count = f"{len(rows)}" if len(rows) == all_ else f"{len(rows)} of {all_}"
            yield f"{name} {count}", rows


def whole(scene: Scene, now_of: StateOf) -> tuple[list[Row], int]:
    """Return the tasks of a scene, each below one that it waits for, and how many there are."""
    tasks, links = _now(scene, now_of), _dependants(scene)
    needs = _needs(scene)
    rows: list[Row] = []
    seen: set[str] = set()
    for task in tasks.values():
        if task.key not in seen and not any(key in tasks for key, _ in needs.get(task.key, ())):
            seen.add(task.key)
            rows.append(_row(task, "", None, "dag"))
            rows += _below(tasks, links, task.key, "", seen, "dag")
    rows += [_row(task, "", None, "dag") for task in tasks.values() if task.key not in seen]
    return rows[:MOST_OF_BATCH], len(rows)


def _now(scene: Scene, now_of: StateOf) -> dict[str, Task]:
    """Return the tasks by their keys, in the states that they are in now, the first admitted first."""
    ordered = sorted(scene.tasks, key=_first)
    return {task.key: replace(task, state=now_of(task.id, task.state)) for task in ordered}


def _first(task: Task) -> tuple[float, str]:
    return task.since or 0.0, task.id


def _needs(scene: Scene) -> Links:
    return {task.key: [(need.key, need.bond) for need in task.needs] for task in scene.tasks}


def _dependants(scene: Scene) -> Links:
    found: dict[str, list[tuple[str, Bond]]] = {}
    for task in sorted(scene.tasks, key=_first):
        for need in task.needs:
            found.setdefault(need.key, []).append((task.key, need.bond))
    return found


def _walk(tasks: Mapping[str, Task], links: Links, start: str, most: int, name: str) -> tuple[list[Row], int]:
    rows = list(_below(tasks, links, start, "", {start}, name))
    return rows[:most], len(rows)


def _below(
    tasks: Mapping[str, Task], links: Links, start: str, before: str, seen: set[str], name: str
) -> Iterator[Row]:
    """Yield what is linked to a task, with all below each of them."""
    near = links.get(start, ())
    for number, (key, bond) in enumerate(near):
        last = number == len(near) - 1
        lead = f"{before}{'└─' if last else '├─'} "
        task = tasks.get(key)
        if task is None:
            yield Row((Word(lead, "mute"), word(key), Word(f"  {bond.value}", "mute")), f"{name} {lead}{key}")
            continue
        more = key not in seen and len(before) < 3 * _DEEP and bool(links.get(key))
        elided = key in seen or (bool(links.get(key)) and not more)
        yield _row(task, lead, bond, name, "  …" if elided and links.get(key) else "")
        if more or key not in seen:
            seen.add(key)
        if more:
            yield from _below(tasks, links, key, f"{before}{'   ' if last else '│  '}", seen, name)


def _row(task: Task, lead: str, bond: Bond | None, name: str, after: str = "") -> Row:
    how = "" if bond is None or bond is Bond.SUCCESS else f"  {bond.value}"
    kind = f"  {task.type}" if task.type else ""
    cause = f"  {task.cause[0]}" if task.cause is not None else ""
    line = (
        Word(lead, "mute"),
        state(task.state),
        Word("  "),
        word(task.id),
        word(kind, "mute"),
        word(cause, "alert"),
    )
    behind = Behind(TASK, task.id)
    return Row((*line, Word(f"{how}{after}", "mute")), f"{name} {lead}{task.key}", behind)


# Everything that happened to a task, told in its order.


_COLUMNS = (
    Column("AT", 19, 30),
    Column("AFTER", 6, 10, right=True),
    Column("TRY", 3, 4, right=True),
    Column("WHAT", 20, 300),
    Column("BY", 8, 30, rank=1),
)


class History(OfTask):
    """The story of one task."""

    name = "history"
    about = "everything that happened to a task"
    every_s = 10.0
    share = True

    def gather(self, source: Source, room: Room) -> Picture:
        """Return each chapter as a row."""
        told = source.view.history(self.id)
        began = moment(told[0].at) if told else None
        cells = []
        for number, chapter in enumerate(told):
            at = moment(chapter.at)
            after = at - began if at is not None and began is not None else -1.0
            words = (
                word(chapter.at[:19] or "-"),
                Word("-" if after < 0 else precise(after), "mute"),
                Word("-" if chapter.attempt is None else str(chapter.attempt)),
                word(chapter.text, most=300),
                word(chapter.writer, "mute"),
            )
            cells.append(Cells(words, str(number)))
        return self.tabled(f"history of {self.id}", _COLUMNS, cells, room)
