"""Who waits for whom, as indented text: around one task, and of a whole batch.

Law: pure. A task that stands elsewhere on the page is not unfolded again, and what is left out is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from spoold.faces.top.lines import TASK, Behind, Row, Word, state, word
from spoold.pictures.picture_data import Bond

if TYPE_CHECKING:
    from spoold.pictures.picture_data import Scene, Task

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
