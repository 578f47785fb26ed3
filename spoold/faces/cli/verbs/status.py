"""`spool status`: the whole cluster on one screen.

Law: all figures on a screen are of one picture, which the client has made. With --json and --watch, each picture is
one line.

Touches: the clock, the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from spoold.faces.cli.terminal import completion, local_files, screen
from spoold.faces.cli.terminal.global_options import session
from spoold.faces.cli.terminal.output import JsonOption, few, one_line, print_json, sentence, summed
from spoold.faces.cli.terminal.screen import Block, Line, Table
from spoold.faces.cli.terminal.worker_rows import columns, node_row
from spoold.protocol.amount import amount, figure, length, some
from spoold.protocol.errors import SpoolError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from spoold.client.read.task_groups import Progress
    from spoold.protocol.snapshot import Alert, Rates, Snapshot


T = TypeVar("T")


# Turns a picture into blocks.
Blocks = Callable[[T], Sequence[Block]]

# So many lines of one kind, and rows of one table: the picture is a file that a member may have written.
LINES_SHOWN, ROWS_SHOWN = 40, 200
WATCH_EVERY_S = 0.5
PAGE_EVERY_S = 5.0
_COLOURS = {
    "failed": "red",
    "rejected": "red",
    "completed": "green",
    "claimed": "cyan",
    "dead": "red",
    "asleep": "dim",
}


EPILOG = """Example: spool status --watch

Example: spool status --batch nightly --watch

Example: spool status -o status.html --watch"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("status", epilog=EPILOG)(status)


def status(
    ctx: typer.Context,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show it repeatedly, until Ctrl-C.")] = False,
    batch: Annotated[
        str | None,
        typer.Option(
            "--batch",
            metavar="B",
            help="Only the progress of this batch, and why its tasks failed.",
            autocompletion=completion.batches,
        ),
    ] = None,
    archived: Annotated[
        bool, typer.Option("--all", "-a", help="With --batch: look also through a large archive.")
    ] = False,
    file: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            show_default=False,
            help="Replace this local file by an HTML page without scripts; with --watch again every 5 s. "
            "- is stdout.",
        ),
    ] = None,
    as_json: JsonOption = False,
    html: Annotated[str | None, local_files.older("--html")] = None,
) -> None:
    """Show the number of tasks in each state, the leader, and the workers with their tasks.

    The figures are the leader's own, up to 0.3 s old on a local disk and some seconds on a share. Without a leader
    they are counted now, and a warning says so. Those of a batch are always counted now.
    """
    if archived and batch is None:
        raise SpoolError("--all needs --batch: the archive is counted for one batch only.")
    file = local_files.named(file, html, "--html")
    if file == "-" and watch:
        raise SpoolError("-o - is one page, and --watch writes many. Fix: name a file.")
    if file is not None and as_json:
        raise SpoolError("-o and --json exclude each other. Fix: run the verb twice.")
    with session(ctx).spool() as spool, spool.reaching():
        title = f"spool {spool.store.marker.spool_id}"
        page = None if file is None else _File(file, session(ctx).directory(), title)
        if batch is None:
            _show(spool.picture, blocks, watch=watch, as_json=as_json, file=page)
        else:
            from spoold.client.read.task_groups import Batch

            _show(
                Batch(spool.store, batch, archived=archived).look,
                blocks_of_batch,
                watch=watch,
                as_json=as_json,
                file=page,
            )


class _File(NamedTuple):
    """A local file, or - for stdout, that shows a picture as a page. spool: the spool's directory."""

    path: str
    spool: str
    title: str

    def show(self, shown: Sequence[Block], *, again: bool) -> None:
        """Replace the page. again: it will be replaced in PAGE_EVERY_S."""
        from datetime import UTC, datetime

        from spoold.faces.cli.terminal.html_page import page

        made = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
        text = page(shown, self.title, made, PAGE_EVERY_S if again else None)
        if self.path == "-":
            local_files.save(text, None)
            return
        local_files.replace(self.path, text, spool=self.spool, option="-o")


def _show(look: Callable[[], T], blocks: Blocks[T], *, watch: bool, as_json: bool, file: _File | None = None) -> None:
    """Show one look, or with watch repeated looks: in a file, as one JSON line each, or as a screen in its place."""
    import sys
    import time

    while file is not None:
        file.show(blocks(look()), again=watch)
        if not watch:
            return
        time.sleep(PAGE_EVERY_S)
    if watch and not as_json and sys.stdout.isatty():
        screen.watch(blocks(picture) for picture in _looks(look))
        return
    while True:
        if as_json:
            print_json(look(), compact=watch)
        else:
            screen.show(blocks(look()))
        if not watch:
            return
        sys.stdout.flush()
        time.sleep(WATCH_EVERY_S)


def _looks(look: Callable[[], T]) -> Iterator[T]:
    import time

    while True:
        yield look()
        time.sleep(WATCH_EVERY_S)


def render(picture: Snapshot, *, narrow: bool = False) -> RenderableType:
    """Return the picture for rich. narrow: there is no room for tables."""
    return screen.renderable(blocks(picture), narrow=narrow)


def blocks(picture: Snapshot) -> list[Block]:
    """Return the picture for people."""
    held = [*_few(list(_pauses(picture))), *_few(list(_breakers(picture)))]
    said = [_headline(picture), *held, *lines(picture.gates), ""]
    parts: list[Block] = [*(Line(sentence(line)) for line in said), *_tasks(picture)]
    if picture.types:
        parts += [Line(""), *_rows(_types(picture))]
    parts += [Line(""), Line(_workers_line(picture))]
    if picture.nodes:
        parts += _rows(_nodes(picture))
    if picture.spent is not None and picture.spent.attempts:
        parts.append(Line(f"since these workers started: {summed(picture.spent)}"))
    parts += [Line(f"ALERT {sentence(one)}", "red") for one in _few([_alert(alert) for alert in picture.alerts])]
    return [*parts, *(Line(f"! {sentence(one)}", "yellow") for one in _few(picture.warnings))]


def _few(lines: Sequence[str]) -> list[str]:
    """Return the first of the lines of one kind, and how many more there are."""
    shown, more = few(lines, LINES_SHOWN)
    return [*shown, more] if more else shown


def _rows(table: Table) -> list[Block]:
    """Return a table with its first rows, and how many more there are."""
    rows, more = few(table.rows, ROWS_SHOWN)
    return [Table(table.header, rows), *([Line(more)] if more else [])]


def _alert(alert: Alert) -> str:
    """Return an alert as a line: what it is about, since when, and which task tells of it."""
    task = f"; told by {alert.task}" if alert.task else ""
    return f"{alert.name}: {alert.text} (since {alert.since}{task})"


def blocks_of_batch(progress: Progress) -> list[Block]:
    """Return one batch for people."""
    share = f"{100 * progress.ended // progress.total} %"
    ended = f"{figure(progress.ended)} of {amount(progress.total, 'task')} ended, {share}"
    parts: list[Block] = [Line(f"batch {one_line(progress.batch)}: {ended}"), Line(""), _counts(progress.tasks)]
    for cause in progress.causes:
        why = one_line(f"{cause.code}: {cause.message}" if cause.message else cause.code, 200)
        more = f" and {cause.count - len(cause.ids)} more" if cause.count > len(cause.ids) else ""
        parts.append(Line(f"{figure(cause.count)} failed: {why} ({sentence(', '.join(cause.ids))}{more})"))
    if progress.unread:
        more = amount(progress.unread, "archived task")
        parts.append(Line(f"{more} of any batch {'is' if progress.unread == 1 else 'are'} not looked at; see --all"))
    if progress.ended < progress.total:
        parts.append(Line(_to_go(progress.eta_s, progress.eta_unknown)))
    if progress.spent is not None:
        parts.append(Line(f"ended tasks took {summed(progress.spent)}"))
    return parts


def _to_go(eta_s: float | None, unknown: str) -> str:
    """Return when all will have ended, or why that is unknown."""
    return f"about {length(eta_s)} to go" if eta_s is not None else f"time to go: unknown, {unknown}"


def _headline(picture: Snapshot) -> str:
    master = picture.master
    leader = f"led by {master.leader} (epoch {master.epoch})" if master.leader else "no leader"
    standbys = f", standing by: {', '.join(master.standbys)}" if master.standbys else ""
    paused = [kind if kind != "+all" else "everything" for kind in picture.paused]
    state = " HALTED" if picture.halted else f" paused: {', '.join(paused)}" if paused else ""
    counted = " (counted now)" if picture.source == "listing" else ""
    return f"spool {picture.spool_id}, {leader}{standbys}{counted}{state}"


def _pauses(picture: Snapshot) -> Iterator[str]:
    """Yield a line on each pause that `with_pauses` has added, with who asked for it and why."""
    for pause in getattr(picture, "pauses", ()):
        if isinstance(pause, dict):
            what = "everything" if pause["target"] == "+all" else pause["target"]
            until = f" until {pause['until']}" if pause["until"] else ""
            yield f"{pause['verb']} of {what}{until}: {pause['told']}"


def _breakers(picture: Snapshot) -> Iterator[str]:
    """Yield a line on each type of which nothing starts, or one task alone, since its attempts fail."""
    for kind, said in picture.gates.get("breaker", {}).items():
        if isinstance(said, dict) and said.get("until"):
            until = f"until {said['until']}, and then one task tries it"
            now = f"tried by {said['trying'] or 'the next task'}" if "trying" in said else until
            failed = amount(int(said.get("failures", 0)), "failure")
            yield f"breaker of type {kind} is open, {now}: {failed} in a row, the last: {said.get('last', '')}"


def _tasks(picture: Snapshot) -> list[Block]:
    table = _counts(picture.tasks.model_dump())
    lines = [_pace(picture.rates)]
    recent, span = picture.recent, length(picture.recent.over_s)
    if recent.failed_attempts:
        each = ", ".join(f"{count} {one_line(cause)}" for cause, count in recent.failed_attempts.items())
        lines.append(sentence(f"attempts that failed in the last {span}: {each}"))
    # A cause is a sentence about one drop: "input: unknown field."
    rejected = [
        f"{amount(count, 'drop')} {'was' if count == 1 else 'were'} rejected in the last {span}: {one_line(cause)}"
        for cause, count in recent.rejections.items()
    ]
    lines += _few(rejected)
    return [table, *(Line(line) for line in lines if line)]


def _counts(counts: dict[str, int]) -> Table:
    """Return a table with the number of tasks in each state."""
    row = [Line(str(n), _COLOURS.get(state, "") if n else "dim") for state, n in counts.items()]
    return Table(tuple(counts), [row])


def _pace(rates: Rates) -> str:
    """Return how fast tasks end, and the time to the end of the rest; '' where neither is known."""
    pace = ""
    if rates.completed_per_min or rates.failed_per_min:
        pace = f"{rates.completed_per_min:g} completed and {rates.failed_per_min:g} failed per minute"
    if rates.eta_s is not None:
        return f"{pace}, {_to_go(rates.eta_s, '')}"
    unknown = _to_go(None, rates.eta_unknown) if rates.eta_unknown else ""
    return sentence(", ".join(filter(None, (pace, unknown))))


def _types(picture: Snapshot) -> Table:
    # A leader of an earlier release counts ready and running tasks together.
    told = {name for counts in picture.types.values() for name in counts}
    names: list[str] = [name for name in ("waiting", "ready", "running") if name in told]
    names += [] if "running" in told else sorted(told - set(names))
    header = [name.upper() for name in names]
    rows = [
        [Line(one_line(kind) or "(unknown)"), *(Line(str(counts.get(name, 0))) for name in names)]
        for kind, counts in sorted(picture.types.items())
    ]
    return Table(("TYPE", *header), rows)


def _workers_line(picture: Snapshot) -> str:
    counts = picture.workers
    dead = f", {counts.dead} dead" if counts.dead else ""
    rest = f"{f', {counts.asleep} asleep' if counts.asleep else ''}{dead}"
    if not counts.alive:
        return f"no workers alive{rest}; `spool worker` or `spool up` starts one"
    each = f"{counts.working} working, {counts.idle} idle, {counts.draining} draining"
    return f"{amount(counts.alive, 'worker')}: {each}{rest}"


def _nodes(picture: Snapshot) -> Table:
    state = columns().index("STATE")
    rows = [
        [Line(cell, _COLOURS.get(node.state, "") if at == state else "") for at, cell in enumerate(node_row(node))]
        for node in picture.nodes
    ]
    return Table(columns(), rows)


# What keeps tasks waiting, by the numbers of the gates in a picture: a line for each gate that has any.


# So many names a line.
NAMED = 5


def lines(gates: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines on what is held, asked, closed, full or locked, and the command that says more."""
    if held := _count(gates, "hold", "waiting"):
        yield f"held by people: {amount(held, 'task')}{_oldest(gates, 'hold')}; `spool release ID` lets one go"
    questions, waiting = _count(gates, "approval", "questions"), _count(gates, "approval", "waiting")
    if questions or waiting:
        for_it = f"{amount(waiting, 'task')} wait{'s' if waiting == 1 else ''} for an approval"
        oldest = _oldest(gates, "approval")
        yield f"{amount(questions, 'question')} to people, {for_it}{oldest}; `spool asks` lists them"
    if closed := [_closed(name, said) for name, said in _rows_of_gates(gates, "quota")]:
        yield f"closed: limit {some(closed, NAMED)}; `spool limits` says why"
    if full := [f"{name} ({used} of {most})" for name, used, most in _full(gates, "limit", "max")]:
        yield f"at its max: limit {some(full, NAMED)}; `spool limits` shows all"
    rates = gates.get("rate", {})
    if spent := [
        f"{name}{_until(rates[name], 'opens')} ({used} of {most})"
        for name, used, most in _full(gates, "rate", "count")
    ]:
        yield f"at its rate: limit {some(spent, NAMED)}; `spool limits` shows all"
    if full := [f"{name} ({used} of {most})" for name, used, most in _full(gates, "class", "slots")]:
        yield f"all own slots in use: class {some(full, NAMED)}"
    if short := [name for name, said in _rows_of_gates(gates, "budget") if said.get("closed") or _awaited(said)]:
        yield f"too little left: budget {some(short, NAMED)}; `spool budget` shows all"
    if locked := _count(gates, "locks", "waiting"):
        holders = amount(_count(gates, "locks", "held"), "holder")
        yield f"locked out: {amount(locked, 'task')}, by {holders}; `spool locks` shows who waits for whom"
    batches = [(name, _whole(said.get("open"))) for name, said in _rows_of_gates(gates, "after_batch")]
    if awaited := [f"{name} ({amount(left, 'task')})" for name, left in batches if left]:
        yield f"awaited to end: batch {some(awaited, NAMED)}"


def _rows_of_gates(gates: Mapping[str, Mapping[str, Any]], gate: str) -> list[tuple[str, dict[str, Any]]]:
    return [(name, said) for name, said in gates.get(gate, {}).items() if isinstance(said, dict)]


def _count(gates: Mapping[str, Mapping[str, Any]], gate: str, field: str) -> int:
    return _whole(gates.get(gate, {}).get(field))


def _oldest(gates: Mapping[str, Mapping[str, Any]], gate: str) -> str:
    oldest = gates.get(gate, {}).get("oldest")
    return f", the oldest is {oldest['id']}" if isinstance(oldest, dict) and oldest.get("id") else ""


def _closed(name: str, said: Mapping[str, Any]) -> str:
    if "trying" in said:
        return f"{name} (tried by {said['trying'] or 'the next task'})"
    return f"{name}{_until(said, 'until')}"


def _until(said: Mapping[str, Any], field: str) -> str:
    return f" until {said[field]}" if said.get(field) else ""


def _full(gates: Mapping[str, Mapping[str, Any]], gate: str, most: str) -> Iterator[tuple[str, int, int]]:
    """Yield each name of which all units are in use, its use, and how much there is."""
    for name, said in _rows_of_gates(gates, gate):
        used, there = _whole(said.get("used")) + _whole(said.get("doubtful")), _whole(said.get(most))
        if used and used >= there:
            yield name, used, there


def _awaited(said: Mapping[str, Any]) -> bool:
    periods = said.get("periods")
    return any(isinstance(one, dict) and one.get("waits") for one in (periods if isinstance(periods, list) else ()))


def _whole(value: Any) -> int:
    return value if type(value) is int else 0
