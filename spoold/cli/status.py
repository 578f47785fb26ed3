"""`spool status`: the whole cluster on one screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar

import typer

from spoold.cli import completing
from spoold.cli.nodes import columns, node_row
from spoold.cli.output import JsonOption, one_line, print_exactly, print_json, sentence, stacks, summed, width, within
from spoold.cli.session import session
from spoold.protocol.amount import amount, figure, length

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from spoold.client.batches import Progress
    from spoold.protocol.snapshot import Rates, Snapshot

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Render(Protocol[T_contra]):
    """How a picture is shown; narrow: without tables."""

    def __call__(self, picture: T_contra, /, *, narrow: bool) -> RenderableType: ...


WATCH_EVERY_S = 0.5
_COLOURS = {
    "failed": "red",
    "rejected": "red",
    "completed": "green",
    "claimed": "cyan",
    "dead": "red",
    "asleep": "dim",
}


EPILOG = """Example: spool status --watch

Example: spool status --batch nightly --watch"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("status", epilog=EPILOG)(status)


def status(
    ctx: typer.Context,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show it again and again, until Ctrl-C.")] = False,
    batch: Annotated[
        str | None,
        typer.Option(
            "--batch",
            metavar="B",
            help="Only how far this batch is, and why its tasks failed.",
            autocompletion=completing.batches,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show how many tasks are in which state, who leads, and what the workers run.

    The figures are the leader's own, up to 0.3 s old on a local disk, on a share a second or some; where nobody leads
    they are counted now, and a warning says so. Those of a batch are counted now in any case, without archived tasks.
    """
    from spoold.client.pauses import with_pauses
    from spoold.client.status import status as look
    from spoold.system.clock import SystemClock
    from spoold.system.host import SystemHost

    host, clock = SystemHost(), SystemClock()
    with session(ctx).spool() as spool, spool.reaching():
        if batch is None:
            store = spool.store
            _show(lambda: with_pauses(store, look(store, host, clock)), render, watch=watch, as_json=as_json)
        else:
            from spoold.client.batches import Batch

            _show(Batch(spool.store, batch).look, render_batch, watch=watch, as_json=as_json)


def _show(look: Callable[[], T], render: Render[T], *, watch: bool, as_json: bool) -> None:
    """One look, or look after look: then one JSON line each for programs, a screen that stays in place for people."""
    import sys
    import time

    if not watch or as_json or not sys.stdout.isatty():
        while True:
            if as_json:
                print_json(look(), compact=watch)
            else:
                _print(look(), render)
            if not watch:
                return
            sys.stdout.flush()
            time.sleep(WATCH_EVERY_S)
    from rich.live import Live

    def shown() -> RenderableType:
        return render(look(), narrow=stacks(width()))

    with Live(shown(), auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(WATCH_EVERY_S)
            live.update(shown(), refresh=True)


def _print(picture: T, render: Render[T]) -> None:
    from rich.console import Console

    # Wide where nobody looks: a file or a pipe has no width, and a wrapped table cannot be searched.
    console = Console() if Console().is_terminal else Console(width=200)
    with console.capture() as captured:
        console.print(render(picture, narrow=console.is_terminal and stacks(console.width)), crop=False)
    for line in captured.get().splitlines():
        print_exactly(line.rstrip())


def _text(text: str, style: str = "") -> Text:
    """Whatever a table or line holds: rich lets escapes pass, and takes brackets in a str for its own markup."""
    from rich.text import Text

    # A word that is longer than a line is an id or a path: it goes over the edge, and can be copied.
    return Text(within(text), style=style, overflow="ignore")


def render(picture: Snapshot, *, narrow: bool = False) -> RenderableType:
    """The picture as people read it. narrow: there is no room for tables."""
    from rich.console import Group

    said = [_headline(picture), *_pauses(picture), ""]
    parts: list[RenderableType] = [
        *(_text(sentence(line)) for line in said),
        _tasks(picture, narrow=narrow),
    ]
    if picture.types:
        parts += [_text(""), _types(picture, narrow=narrow)]
    parts += [_text(""), _text(_workers_line(picture))]
    if picture.nodes:
        parts.append(_nodes(picture, narrow=narrow))
    if picture.spent is not None and picture.spent.attempts:
        parts.append(_text(f"since these workers started: {summed(picture.spent)}"))
    parts += [_text(f"! {sentence(warning)}", style="yellow") for warning in picture.warnings]
    return Group(*parts)


def render_batch(progress: Progress, *, narrow: bool = False) -> RenderableType:
    """One batch as people read it."""
    from rich.console import Group

    share = f"{100 * progress.ended // progress.total} %"
    ended = f"{figure(progress.ended)} of {amount(progress.total, 'task')} ended, {share}"
    parts = [_text(f"batch {one_line(progress.batch)}: {ended}"), _text(""), _counts(progress.tasks, narrow=narrow)]
    for cause in progress.causes:
        why = one_line(f"{cause.code}: {cause.message}" if cause.message else cause.code, 200)
        more = f" and {cause.count - len(cause.ids)} more" if cause.count > len(cause.ids) else ""
        parts.append(_text(f"{figure(cause.count)} failed: {why} ({sentence(', '.join(cause.ids))}{more})"))
    if progress.spent is not None:
        parts.append(_text(f"what has ended came to {summed(progress.spent)}"))
    return Group(*parts)


def _headline(picture: Snapshot) -> str:
    master = picture.master
    leader = f"led by {master.leader} (epoch {master.epoch})" if master.leader else "led by nobody"
    standbys = f", standing by: {', '.join(master.standbys)}" if master.standbys else ""
    paused = [kind if kind != "+all" else "everything" for kind in picture.paused]
    state = " HALTED" if picture.halted else f" paused: {', '.join(paused)}" if paused else ""
    counted = " (counted now)" if picture.source == "listing" else ""
    return f"spool {picture.spool_id}, {leader}{standbys}{counted}{state}"


def _pauses(picture: Snapshot) -> Iterator[str]:
    """Who paused what, and why, as far as `with_pauses` has added that."""
    for pause in getattr(picture, "pauses", ()):
        if isinstance(pause, dict):
            what = "everything" if pause["target"] == "+all" else pause["target"]
            until = f" until {pause['until']}" if pause["until"] else ""
            yield f"{pause['verb']} of {what}{until}: {pause['told']}"


def _table(
    header: Sequence[str], rows: Sequence[Sequence[Text]], *, narrow: bool, right: frozenset[str] = frozenset()
) -> RenderableType:
    """Columns; where there is no room for them, each row as lines `field: value`."""
    from rich.console import Group
    from rich.table import Table

    if narrow:
        return Group(*_stacked(header, rows))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in header:
        table.add_column(_text(name), justify="right" if name in right else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _stacked(header: Sequence[str], rows: Sequence[Sequence[Text]]) -> Iterator[Text]:
    for number, row in enumerate(rows):
        if number:
            yield _text("")
        for name, cell in zip(header, row, strict=False):
            yield _text(f"{name.lower()}: ").append_text(cell)


def _tasks(picture: Snapshot, *, narrow: bool) -> RenderableType:
    from rich.console import Group

    table = _counts(picture.tasks.model_dump(), narrow=narrow)
    lines = [_pace(picture.rates)]
    recent, span = picture.recent, length(picture.recent.over_s)
    if recent.failed_attempts:
        each = ", ".join(f"{count} {one_line(cause)}" for cause, count in recent.failed_attempts.items())
        lines.append(f"attempts that failed in the last {span}: {each}")
    # A cause is a sentence about one drop: "input: unknown field."
    for cause, count in recent.rejections.items():
        drops = f"{amount(count, 'drop')} {'was' if count == 1 else 'were'}"
        lines.append(f"{drops} rejected in the last {span}: {one_line(cause)}")
    return Group(table, *(_text(line) for line in lines if line))


def _counts(counts: dict[str, int], *, narrow: bool) -> RenderableType:
    """How many tasks are in which state."""
    row = [_text(str(n), style=_COLOURS.get(state, "") if n else "dim") for state, n in counts.items()]
    return _table(tuple(counts), [row], narrow=narrow, right=frozenset(counts))


def _pace(rates: Rates) -> str:
    """How fast tasks end, and when the rest will have ended; '' where nothing is known of either."""
    pace = ""
    if rates.completed_per_min or rates.failed_per_min:
        pace = f"{rates.completed_per_min:g} completed and {rates.failed_per_min:g} failed per minute"
    if rates.eta_s is not None:
        return f"{pace}, about {length(rates.eta_s)} to go"
    unknown = f"time to go: unknown, {rates.eta_unknown}" if rates.eta_unknown else ""
    return ", ".join(filter(None, (pace, unknown)))


def _types(picture: Snapshot, *, narrow: bool) -> RenderableType:
    # A leader of an earlier release counts what is ready and what runs as one.
    told = {name for counts in picture.types.values() for name in counts}
    names: list[str] = [name for name in ("waiting", "ready", "running") if name in told]
    names += [] if "running" in told else sorted(told - set(names))
    header = [name.upper() for name in names]
    rows = [
        [_text(one_line(kind) or "(unknown)"), *(_text(str(counts.get(name, 0))) for name in names)]
        for kind, counts in sorted(picture.types.items())
    ]
    return _table(("TYPE", *header), rows, narrow=narrow, right=frozenset(header))


def _workers_line(picture: Snapshot) -> str:
    counts = picture.workers
    dead = f", {counts.dead} dead" if counts.dead else ""
    rest = f"{f', {counts.asleep} asleep' if counts.asleep else ''}{dead}"
    if not counts.alive:
        return f"no workers alive{rest}; `spool worker` or `spool up` starts one"
    each = f"{counts.working} working, {counts.idle} idle, {counts.draining} draining"
    return f"{amount(counts.alive, 'worker')}: {each}{rest}"


def _nodes(picture: Snapshot, *, narrow: bool) -> RenderableType:
    rows = []
    for node in picture.nodes:
        row = [_text(cell) for cell in node_row(node)]
        row[2].stylize(_COLOURS.get(node.state, ""))
        rows.append(row)
    return _table(columns(), rows, narrow=narrow)
