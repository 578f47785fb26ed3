"""A worker as a row in the tables of `spool status` and `spool workers`.

Law: each cell of `node_row` is under its heading of `columns`. Text that a node chose itself is cut to one line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spoold.faces.cli.terminal.output import one_line
from spoold.protocol.amount import figure, length

if TYPE_CHECKING:
    from spoold.protocol.snapshot import Node


def _running(task: dict[str, Any]) -> str:
    frozen_s = task.get("frozen_s")
    frozen = f" (was frozen for {length(frozen_s)})" if isinstance(frozen_s, int | float) and frozen_s else ""
    waits = "wants back what it lent" if task.get("back") is True else "waits, slot lent"
    lent = f" ({waits})" if task.get("lent") is True else ""
    return f"{task.get('id')}{lent}{frozen}"


def columns() -> tuple[str, ...]:
    """Return the headings of `node_row`."""
    return ("WORKER", "HOST", "STATE", "SLOTS", "CPUS", "MEM", "LOAD", "LABELS", "RUNNING")


def node_row(node: Node) -> tuple[str, ...]:
    """Return one worker as a row of text: used/all slots, free/all memory in GiB."""
    memory = f"{node.mem_available_mb / 1024:.1f}/{node.mem_mb / 1024:.1f}G"
    running = ", ".join(_running(task) for task in node.tasks if isinstance(task, dict))
    return (
        node.worker,
        one_line(node.host, 60),
        one_line(f"{node.state} since {node.since}" if node.since else node.state),
        f"{node.running}/{node.slots}",
        f"{node.cpus:g}",
        memory,
        figure(node.load, 2),
        one_line(",".join(node.labels)) or "-",
        one_line(running, 60) or "-",
    )
