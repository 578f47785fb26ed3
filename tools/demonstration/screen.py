"""What the terminal shows while the tasks run: a picture that stays in place, or plain lines where nobody looks.

Law: it shows and decides nothing. Touches: standard output.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from spoold.protocol.amount import amount
from spoold.protocol.event import Event
from spoold.protocol.snapshot import Node, Snapshot
from tools.demonstration.cluster import laptop_of
from tools.demonstration.ledger import detail_of

STATES = ("pending", "waiting", "ready", "claimed", "completed", "failed", "rejected")
RECENT = 8
LINE_EVERY_S = 2.0
BAR = 40


def tell(event: Event) -> str | None:
    """An event that somebody who watches would want to hear of, as a sentence; None for all others."""
    detail, who = detail_of(event), laptop_of(event.writer)
    match event.event:
        case "WORKER_JOINED":
            return f"{who} joined with {amount(int(detail.get('slots', 0)), 'slot')}"
        case "STARTED" if (event.attempt or 0) > 1:
            return f"{event.task}: attempt {event.attempt} started on {who}"
        case "COMPLETED" if (event.attempt or 0) > 1:
            return f"{event.task}: attempt {event.attempt} completed on {who}"
        case "RETURNED" if "worker" in detail:
            return (
                f"{event.task}: attempt {event.attempt} died with {laptop_of(detail['worker'])}; another one follows"
            )
        case "RETURNED":
            return f"{event.task}: attempt {event.attempt} on {who}: {detail.get('message')}; another one follows"
        case "REAPED":
            return f"{laptop_of(detail.get('node'))} was silent for {detail.get('silent_s')} s and is taken for dead"
        case "FAILED" | "REJECTED" | "FENCED" | "VANISHED":
            why = detail.get("message") or detail.get("problem") or ""
            return f"{event.task or detail.get('drop')}: {event.event.lower()} {why}".rstrip()
    return None


class Screen:
    """Use it in a `with`; `update` it as often as there is something new."""

    def __init__(self, console: Console, total: int, *, live: bool) -> None:
        self._console = console
        self._total = total
        self._began = time.monotonic()
        self._story: list[Text] = []
        self._seen: set[tuple[str, int]] = set()
        self._lined_at, self._counted = float("-inf"), ""
        self._live = Live(console=console, refresh_per_second=8, transient=True) if live else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._console.print(*self._story, sep="\n")

    def say(self, sentence: str, style: str = "") -> None:
        """Something that happened just now."""
        line = Text(f"{time.monotonic() - self._began:6.1f} s  {sentence}", style=style, no_wrap=True)
        self._story.append(line)
        if self._live is None:
            self._console.print(line)

    def update(self, picture: Snapshot, events: Iterable[Event]) -> None:
        """Show how things stand, and what is new among the events."""
        for event in events:
            if (event.writer, event.seq) not in self._seen:
                self._seen.add((event.writer, event.seq))
                if (sentence := tell(event)) is not None:
                    self.say(sentence, "yellow" if event.event in ("RETURNED", "REAPED") else "")
        if self._live is not None:
            self._live.update(self._picture(picture))
        elif time.monotonic() - self._lined_at >= LINE_EVERY_S and self._counts(picture) != self._counted:
            self._lined_at, self._counted = time.monotonic(), self._counts(picture)
            self.say(self._counted)

    def _counts(self, picture: Snapshot) -> str:
        counts = picture.tasks.model_dump()
        some = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
        busy = ", ".join(f"{laptop_of(node.worker)} {node.running}" for node in picture.nodes if node.running)
        return f"{some or 'no tasks yet'}{f'; running: {busy}' if busy else ''}"

    def _picture(self, picture: Snapshot) -> RenderableType:
        counts = picture.tasks.model_dump()
        states = Table(box=None, pad_edge=False)
        for state in STATES:
            states.add_column(state, justify="right", style="bold red" if state in ("failed", "rejected") else "")
        states.add_row(*(str(counts[state]) for state in STATES))
        total = max(self._total, counts["completed"])  # agents may have made more tasks
        done = round(BAR * counts["completed"] / max(total, 1))
        bar = Text.assemble(("━" * done, "green"), ("━" * (BAR - done), "dim"), f" {counts['completed']}/{total}")
        laptops = Table(box=None, pad_edge=False, show_header=False)
        for node in picture.nodes:
            laptops.add_row(*_row(node))
        return Group(states, bar, "", laptops, "", *self._story[-RECENT:])


def _row(node: Node) -> tuple[Text, ...]:
    """A laptop in one line: what it is about, and what it runs."""
    style = {"working": "cyan", "dead": "red"}.get(node.state, "dim")
    running = [_running(task) for task in node.tasks]
    return (
        Text(laptop_of(node.worker), style="bold"),
        Text(f"{node.state} {node.running}/{node.slots}", style=style),
        Text(", ".join(running), no_wrap=True, overflow="ellipsis"),
    )


def _running(task: dict[str, Any]) -> str:
    progress = task.get("progress")
    far = f" {progress['done']}/{progress['of']}" if isinstance(progress, dict) and "of" in progress else ""
    again = f" (attempt {task['attempt']})" if task.get("attempt", 1) > 1 else ""
    return f"{task['id']}{far}{again}"
