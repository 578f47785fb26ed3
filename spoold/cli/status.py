"""`spool status`: the whole cluster on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from spoold.cli.output import JsonOption, one_line, print_json, print_line
from spoold.cli.session import session

if TYPE_CHECKING:
    from rich.console import RenderableType

    from spoold.protocol.snapshot import Node, Snapshot

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

Example: spool status --json"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("status", epilog=EPILOG)(status)


def status(
    ctx: typer.Context,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show it again and again, until Ctrl-C.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show how many tasks are in which state, who leads, and what the workers run.

    The figures are the leader's own, up to 0.3 s old on a local disk, on a share a second or some; where nobody leads
    they are counted now, and a warning says so.
    """
    from spoold.client.status import status as look
    from spoold.system.clock import SystemClock
    from spoold.system.host import SystemHost

    host, clock = SystemHost(), SystemClock()
    with session(ctx).spool() as spool, spool.reaching():
        if not watch:
            picture = look(spool.store, host, clock)
            if as_json:
                print_json(picture)
            else:
                _print(picture)
            return
        _watch(lambda: look(spool.store, host, clock), as_json=as_json)


def _watch(look: Any, *, as_json: bool) -> None:
    """One JSON line per look for programs; a screen that stays in place for people."""
    import sys
    import time

    if as_json or not sys.stdout.isatty():
        while True:
            if as_json:
                print_json(look(), compact=True)
            else:
                _print(look())
            sys.stdout.flush()
            time.sleep(WATCH_EVERY_S)
    from rich.live import Live

    with Live(render(look()), auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(WATCH_EVERY_S)
            live.update(render(look()), refresh=True)


def _print(picture: Snapshot) -> None:
    from rich.console import Console

    # Wide where nobody looks: a file or a pipe has no width, and a wrapped table cannot be searched.
    console = Console() if Console().is_terminal else Console(width=200)
    with console.capture() as captured:
        console.print(render(picture), soft_wrap=False)
    for line in captured.get().splitlines():
        print_line(line.rstrip())


def render(picture: Snapshot) -> RenderableType:
    """The picture as people read it."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [Text(_headline(picture)), Text(""), _tasks(picture)]
    if picture.types:
        parts += [Text(""), _types(picture)]
    parts += [Text(""), Text(_workers_line(picture))]
    if picture.nodes:
        parts.append(_nodes(picture))
    parts += [Text(f"! {one_line(warning, 400)}", style="yellow") for warning in picture.warnings]
    return Group(*parts)


def _headline(picture: Snapshot) -> str:
    master = picture.master
    leader = f"led by {master.leader} (epoch {master.epoch})" if master.leader else "led by nobody"
    standbys = f", standing by: {', '.join(master.standbys)}" if master.standbys else ""
    paused = [kind if kind != "+all" else "everything" for kind in picture.paused]
    state = " HALTED" if picture.halted else f" paused: {', '.join(paused)}" if paused else ""
    counted = " (counted now)" if picture.source == "listing" else ""
    return f"spool {picture.spool_id}, {leader}{standbys}{counted}{state}"


def _table(header: tuple[str, ...], *, right: frozenset[str] = frozenset()) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in header:
        table.add_column(name, justify="right" if name in right else "left", no_wrap=True)
    return table


def _tasks(picture: Snapshot) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    counts = picture.tasks.model_dump()
    table = _table(tuple(counts), right=frozenset(counts))
    table.add_row(*(Text(str(n), style=_COLOURS.get(state, "") if n else "dim") for state, n in counts.items()))
    rates = picture.rates
    if not (rates.completed_per_min or rates.failed_per_min):
        return Group(table)
    eta = f", about {_duration(rates.eta_s)} to go" if rates.eta_s else ""
    pace = f"{rates.completed_per_min:g} completed and {rates.failed_per_min:g} failed per minute{eta}"
    return Group(table, Text(pace))


def _types(picture: Snapshot) -> RenderableType:
    names = sorted({name for counts in picture.types.values() for name in counts})
    table = _table(("TYPE", *(name.upper() for name in names)), right=frozenset(name.upper() for name in names))
    for kind, counts in sorted(picture.types.items()):
        table.add_row(kind or "(unknown)", *(str(counts.get(name, 0)) for name in names))
    return table  # type: ignore[no-any-return]


def _workers_line(picture: Snapshot) -> str:
    counts = picture.workers
    dead = f", {counts.dead} dead" if counts.dead else ""
    rest = f"{f', {counts.asleep} asleep' if counts.asleep else ''}{dead}"
    if not counts.alive:
        return f"no workers alive{rest}; `spool worker` or `spool up` starts one"
    return f"{counts.alive} workers: {counts.working} working, {counts.idle} idle, {counts.draining} draining{rest}"


def _nodes(picture: Snapshot) -> RenderableType:
    from rich.text import Text

    table = _table(columns())
    for node in picture.nodes:
        row = [Text(cell) for cell in node_row(node)]
        row[2].stylize(_COLOURS.get(node.state, ""))
        table.add_row(*row)
    return table  # type: ignore[no-any-return]


def columns() -> tuple[str, ...]:
    """The headings over `node_row`."""
    return ("WORKER", "HOST", "STATE", "SLOTS", "CPUS", "MEM", "LOAD", "LABELS", "RUNNING")


def node_row(node: Node) -> tuple[str, ...]:
    """One worker as a row of text: slots in use of all, memory in GiB free of all."""
    memory = f"{node.mem_available_mb / 1024:.1f}/{node.mem_mb / 1024:.1f}G"
    running = ", ".join(str(task.get("id")) for task in node.tasks if isinstance(task, dict))
    return (
        node.worker,
        node.host,
        f"{node.state} since {node.since}" if node.since else node.state,
        f"{node.running}/{node.slots}",
        f"{node.cpus:g}",
        memory,
        f"{node.load:.2f}",
        ",".join(node.labels) or "-",
        one_line(running, 60) or "-",
    )


def _duration(seconds: float) -> str:
    """A length of time in the two largest units that fit."""
    whole = round(seconds)
    for size, unit, smaller, sub in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // smaller} {sub}"
    return f"{whole} s"
