"""Lists of what the view has in its memory: batches, nodes, the queue, failures, what runs, questions, alerts, …

Law: each list says how many rows it has, and how many of them the filter leaves. What a task says of itself is text
of other people. Of what it does not say the cell is empty. An alert and a warning are shown whole, in as many lines
as they need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spoold.faces.top.page import Page, kept, words_of
from spoold.faces.top.source import Room, Source
from spoold.faces.top.tasks_page import Tasks
from spoold.faces.top.text_layout import (
    BATCH,
    NODE,
    QUESTION,
    REASON,
    TASK,
    TYPE,
    Behind,
    Cells,
    Column,
    Line,
    Picture,
    Row,
    Word,
    age,
    bar,
    cut,
    memory,
    moment,
    money,
    progress,
    short,
    shown,
    since,
    stack,
    text_of,
    word,
    wrap,
)
from spoold.protocol.amount import amount, figure

if TYPE_CHECKING:
    from spoold.client.read.questions import Question
    from spoold.client.view import BatchRow, Card, Reason, Run
    from spoold.protocol.snapshot import Node


AGE_NAMES = ("<1m", "<5m", "<15m", "<1h", "<4h", "<1d", "≥1d")
BAR = 10
BATCHES_COLUMNS = (
    Column("BATCH", 12, 50),
    Column("DONE", 10, 10),
    Column("ENDED", 6, 15, right=True),
    Column("RUN", 3, 7, rank=1, right=True),
    Column("FAILED", 6, 7, right=True),
    Column("AGE", 4, 5, rank=2, right=True),
    Column("LAST", 4, 5, rank=3, right=True),
)
# A bar repeats the figure before it, so it is the first to go for want of room.
NODES_COLUMNS = (
    Column("NODE", 14, 40),
    Column("STATE", 8, 30),
    Column("SLOTS", 6, 9, right=True),
    Column("", BAR, BAR),
    Column("LOAD", 9, 12, rank=1, right=True),
    Column("", BAR, BAR, rank=8),
    Column("MEMORY", 11, 13, rank=2, right=True),
    Column("", BAR, BAR, rank=7),
    Column("AGENTS", 8, 40, rank=4),
    Column("LABELS", 6, 30, rank=5),
    Column("HOST", 6, 30, rank=6),
    Column("RUNS", 10, 120, rank=3),
)
_NOTES = 5
# What a node offers seldom changes, and to ask takes a look at all heartbeats.
_AGENTS_S = 30.0
FAILED_COLUMNS = (
    Column("TASK", 16, 50),
    Column("STATE", 10, 11, rank=2),
    Column("FOR", 4, 5, right=True),
    Column("CODE", 12, 24),
    Column("TRY", 3, 4, rank=1, right=True),
    Column("TYPE", 8, 24, rank=3),
    Column("BATCH", 8, 30, rank=4),
    Column("WORKER", 8, 30, rank=5),
)


class Batches(Page):
    """All batches, the newest first."""

    name = "batches"
    about = "the batches, and how far each is"

    def gather(self, source: Source, room: Room) -> Picture:
        """Return the batches."""
        now = source.now()
        return self.tabled("batches", BATCHES_COLUMNS, [batch_cells(row, now) for row in source.view.batches()], room)


def ended(row: BatchRow) -> int:
    """Return how many tasks of a batch have ended."""
    return sum(row.counts.get(name, 0) for name in ("completed", "failed", "skipped", "rejected"))


def batch_cells(row: BatchRow, now: float) -> Cells:
    """Return a batch as a row."""
    failed = row.counts.get("failed", 0) + row.counts.get("rejected", 0)
    words = (
        word(row.batch),
        Word(text_of(stack(row.counts, BAR)), "mute"),
        Word(f"{figure(ended(row))}/{figure(row.total)}"),
        Word(figure(row.counts.get("claimed", 0)), "state:claimed" if row.counts.get("claimed") else "mute"),
        Word(figure(failed), "alert" if failed else "mute"),
        Word(since(row.first, now), "mute"),
        Word(since(row.last, now), "mute"),
    )
    return Cells(words, row.batch, Behind(BATCH, row.batch))


class Nodes(Page):
    """The workers, with what they run."""

    name = "nodes"
    about = "the nodes: slots, load, memory, what they run"

    def gather(self, source: Source, room: Room) -> Picture:
        """Return the nodes."""
        picture = source.view.picture
        nodes = picture.nodes if picture is not None else ()
        notes = [f"{node.worker}: {note}" for node in nodes for note in node.notes]
        lines: list[Line] = [(Word("note  ", "mute"), word(note, "low")) for note in notes[:_NOTES]]
        if len(notes) > _NOTES:
            lines.append((Word(f"and {amount(len(notes) - _NOTES, 'more note')}; `spool workers` has all", "mute"),))
        offered = source.soon("agents", source.spool.agents, for_s=_AGENTS_S)
        agents: dict[str, list[str]] = {}
        for one in offered if isinstance(offered, list) else ():
            agents.setdefault(one.worker, []).append(
                f"{one.agent}{' (not now)' if one.trouble or not one.ok else ''}"
            )
        cells = [node_cells(node, agents.get(node.worker, ())) for node in nodes]
        return self.tabled("nodes", NODES_COLUMNS, cells, room, lines=lines)


def node_cells(node: Node, agents: Sequence[str] = ()) -> Cells:
    """Return a node as a row: its state, and what is used of its slots, processors and memory."""
    used = node.mem_mb - node.mem_available_mb
    styles = {"dead": "alert", "asleep": "mute", "draining": "low"}
    busy, full = node.cpus > 0 and node.load > 2 * node.cpus, node.mem_mb > 0 and used / node.mem_mb > 0.9
    words = (
        word(node.worker),
        word(f"{node.state} since {node.since}" if node.since else node.state, styles.get(node.state, "")),
        Word(f"{node.running}/{node.slots}"),
        Word(text_of(bar(node.running, node.slots, BAR)), "bar"),
        Word(f"{node.load:.1f}/{node.cpus:g}", "alert" if busy else ""),
        Word(text_of(bar(node.load, node.cpus, BAR)), "alert" if busy else "bar"),
        Word(f"{memory(used)}/{memory(node.mem_mb)}", "alert" if full else ""),
        Word(text_of(bar(used, node.mem_mb, BAR)), "alert" if full else "bar"),
        word(", ".join(agents)),
        word(",".join(node.labels), "mute"),
        word(node.host, "mute"),
        word(", ".join(str(one.get("id")) for one in node.tasks if isinstance(one, dict)), "state:claimed"),
    )
    return Cells(words, node.worker, Behind(NODE, node.worker))


class Queue(Page):
    """How many tasks of each type wait for how long."""

    name = "queue"
    about = "tasks that wait, by type and age"

    def gather(self, source: Source, room: Room) -> Picture:
        """Return the table of types and ages."""
        rows = source.view.ages()
        picture = self.tabled("queue by age", queue_columns(), queue_cells(rows), room)
        waiting = sum(row.total for row in rows)
        return replace(picture, note=f"{picture.note}; {amount(waiting, 'task')} waiting or ready")


def queue_columns() -> tuple[Column, ...]:
    """Return the headings of the queue."""
    ages = tuple(Column(name, 5, 9, right=True) for name in AGE_NAMES)
    return (Column("TYPE", 10, 40), Column("ALL", 5, 9, right=True), *ages)


def queue_cells(rows: Sequence[Any]) -> list[Cells]:
    """Return the rows of the queue: the types, and how many tasks of each are how old."""
    found = []
    for row in rows:
        counts = [Word(figure(count) if count else "·", "" if count else "mute") for count in row.counts]
        name = word(row.type or "(unknown)")
        found.append(Cells((name, Word(figure(row.total), "bold"), *counts), row.type or "-", Behind(TYPE, row.type)))
    return found


class Waiting(Page):
    """Why tasks wait."""

    name = "waiting"
    about = "why tasks wait, counted"

    def gather(self, source: Source, room: Room) -> Picture:
        """Return the reasons."""
        reasons = source.last("reasons", source.view.reasons)
        rows = kept(self.typed, [row for reason in reasons for row in reason_rows(reason, room.width)])
        return shown("why tasks wait", rows, note=self.counted(len([row for row in rows if row.key]), len(reasons)))


def reason_rows(reason: Reason, width: int) -> list[Row]:
    """Return a reason with its count, in as many lines as it needs."""
    words = words_of(reason.query) if reason.query is not None else ""
    behind = Behind(REASON, words) if words else None
    line = (Word(f"{figure(reason.count):>7}  ", "bold"), word(reason.text))
    first, *more = wrap(line, width, 9)
    return [Row(first, reason.text, behind), *(Row(each) for each in more)]


class Failed(Page):
    """What failed last."""

    name = "failed"
    about = "what failed last, and the codes counted"

    def gather(self, source: Source, room: Room) -> Picture:
        """Return the failures."""
        now, cards = source.now(), source.view.failures()
        codes, counts = codes_lines(source, room.width), source.view.counts()
        there = counts.get("failed", 0) + counts.get("rejected", 0)
        rows = [failed_cells(card, now) for card in cards]
        return self.tabled("failed", FAILED_COLUMNS, rows, room, lines=codes, there=there)


def codes_lines(source: Source, width: int) -> list[Line]:
    """Return the codes of what failed in the last minutes, counted; none where nothing did."""
    recent = source.view.picture.recent if source.view.picture is not None else None
    if recent is None or not (recent.failed_attempts or recent.rejections):
        return []
    counted = {**recent.failed_attempts, **{f"rejected: {why}": n for why, n in recent.rejections.items()}}
    parts = ", ".join(f"{figure(count)} {code}" for code, count in counted.items())
    return wrap((Word(f"last {recent.over_s / 60:.0f} min: ", "mute"), word(parts, "alert")), width, 2)[:4]


def failed_cells(card: Card, now: float) -> Cells:
    """Return a task that failed, or a drop that was rejected, as a row."""
    words = (
        Word(card.id),
        Word(card.state, f"state:{card.state}"),
        Word(since(card.since, now), "mute"),
        word(card.code, "alert"),
        Word(str(card.attempt) if card.attempt else ""),
        word(card.type),
        word(card.batch),
        word(card.worker, "mute"),
    )
    return Cells(words, f"{card.id} {card.file}", Behind(TASK, card.id))


def opened(behind: Behind) -> Page | None:
    """Return the list of tasks that a type, a node or a reason stands for; None for others."""
    if behind.kind == TYPE and behind.id:
        return Tasks(f"type:{behind.id} state:pending,waiting,ready")
    if behind.kind == NODE:
        return Tasks(f"worker:{behind.id} state:claimed")
    if behind.kind == REASON:
        return Tasks(behind.id)
    return None


def one_line(rows: Sequence[Row], width: int) -> list[Row]:
    """Return rows that stand for something, each cut to one line."""
    return [replace(row, line=cut(row.line, width)) for row in rows if row.key]


# What runs now: since when, how far it is, what it has cost.


COLUMNS = (
    Column("TASK", 16, 50),
    Column("FOR", 4, 5, right=True),
    Column("TRY", 3, 4, rank=5, right=True),
    Column("CHARGED", 7, 7, rank=7, right=True),
    Column("TYPE", 8, 20, rank=3),
    Column("WORKER", 8, 30, rank=6),
    Column("TOKENS", 6, 8, rank=4, right=True),
    Column("COST", 6, 8, rank=4, right=True),
    Column("SILENT", 6, 6, rank=2, right=True),
    Column("PROGRESS", 20, 200, rank=1),
)


class Running(Page):
    """The tasks that run, by worker."""

    name = "running"
    about = "what runs: since when, progress, tokens, cost"

    def gather(self, source: Source, room: Room) -> Picture:
        """Return the tasks that run."""
        now = source.now()
        return self.tabled("running", COLUMNS, [cells(run, now) for run in source.view.running()], room)


def cells(run: Run, now: float) -> Cells:
    """Return a task that runs as a row."""
    words = (
        Word(run.id, "state:claimed"),
        Word(since(run.since, now)),
        Word(str(run.attempt)),
        _charged(run),
        word(run.type),
        word(run.worker, "mute"),
        Word(short(run.tokens)),
        Word(money(run.cost_usd)),
        Word("" if run.quiet_s is None else age(run.quiet_s), "mute"),
        _progress(run),
    )
    return Cells(words, run.id, Behind(TASK, run.id))


def _charged(run: Run) -> Word:
    """Return the failures and crashes that are charged on its retry budget; its page says how many are left."""
    if run.card is None:
        return Word("")
    charged = run.card.failures + run.card.crashes
    return Word(f"{run.card.failures}+{run.card.crashes}", "low" if charged else "mute")


def _progress(run: Run) -> Word:
    notes = []
    if run.lent:
        notes.append("(waits, slot lent)")
    if run.frozen_s:
        notes.append(f"(was frozen for {age(run.frozen_s)})")
    said = progress(run.progress)
    return Word(" ".join(filter(None, [*notes, said.text])))


# What people are told: questions, what happened, what is wrong.


ASKS_COLUMNS = (
    Column("TASK", 16, 50),
    Column("AGE", 4, 5, right=True),
    Column("QUESTION", 20, 200),
    Column("CHOICES", 8, 40, rank=1),
    Column("UNTIL", 20, 20, rank=2),
)
EVENTS_COLUMNS = (
    Column("AT", 8, 12),
    Column("EVENT", 10, 18),
    Column("TASK", 16, 50),
    Column("TRY", 3, 4, rank=2, right=True),
    Column("BY", 8, 30, rank=1),
    Column("DETAIL", 10, 200, rank=3),
)


class Asks(Page):
    """Questions that nobody has answered."""

    name = "asks"
    about = "questions and approvals that stand"

    def gather(self, source: Source, room: Room) -> Picture:
        """Return the questions."""
        cells = [ask_cells(one, source.now()) for one in source.last("questions", source.view.questions)]
        return self.tabled("questions", ASKS_COLUMNS, cells, room)


def ask_cells(one: Question, now: float) -> Cells:
    """Return a question as a row."""
    age = since(moment(one.at), now)
    words = (Word(one.task), Word(age), word(one.ask), word(", ".join(one.choices)), word(one.until))
    name = one.question if one.attempt is not None else ""
    return Cells(words, f"{one.task} {one.question}", Behind(QUESTION, one.task, (name, one.ask, *one.choices)))


class Events(Page):
    """What happened, the last at the end."""

    name = "events"
    about = "the last events, as the journals tell them"

    def __init__(self, task: str = "") -> None:
        super().__init__()
        self._task = task

    def gather(self, source: Source, room: Room) -> Picture:
        """Return the events, followed."""
        cells = []
        for one in source.view.events(task=self._task, most=1000):
            detail = " ".join(f"{name}={said}" for name, said in (one.detail or {}).items() if said not in (None, ""))
            words = (
                word(one.at[11:19]),
                word(one.event, "bold"),
                word(one.task),
                Word("" if one.attempt is None else str(one.attempt)),
                word(one.writer, "mute"),
                word(detail, most=300),
            )
            cells.append(Cells(words, str(one.number), Behind(TASK, one.task) if one.task else None))
        return self.tabled("events, the last first", EVENTS_COLUMNS, cells[::-1], room)


class Alerts(Page):
    """What is wrong now."""

    name = "alerts"
    about = "alerts, warnings, and why the share cannot be read"

    def gather(self, source: Source, room: Room) -> Picture:
        """Return each alert and warning, whole."""
        rows = kept(self.typed, alert_rows(source, room.width))
        count = len([row for row in rows if row.key])
        return shown("alerts", rows or [Row((Word("nothing is wrong", "mute"),))], note=f"{count:,}")


def alert_rows(source: Source, width: int) -> list[Row]:
    """Return what is wrong: the share, alerts, warnings; each in as many lines as it needs."""
    view, picture = source.view, source.view.picture
    rows: list[tuple[str, Line, Behind | None]] = []
    if view.problem:
        rows.append(("problem", (Word("! share  ", "alert"), word(view.problem)), None))
    for alert in picture.alerts if picture is not None else ():
        line: Line = (word(f"! {alert.name}  ", "alert"), word(alert.text), word(f" (since {alert.since})", "mute"))
        rows.append((f"alert {alert.name} {alert.subject}", line, Behind(TASK, alert.task) if alert.task else None))
    for number, warning in enumerate(picture.warnings if picture is not None else ()):
        rows.append((f"warning {number}", (Word("! ", "low"), word(warning)), None))
    found = []
    for key, said, behind in rows:
        first, *more = wrap(said, width, 2)
        found += [Row(first, key, behind), *(Row(each) for each in more)]
    return found
