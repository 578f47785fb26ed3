"""Which tasks run again when a person sends a task back to one that it comes after.

Law: looks and never touches. The leader checks the attempts again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spoold.client.info import read_content
from spoold.protocol.amount import some
from spoold.protocol.errors import SpoolError
from spoold.protocol.lifecycle import State
from spoold.protocol.names import is_id, key
from spoold.rules.gates.standing_requests import way
from spoold.store.locate import Located, locate_many
from spoold.store.store import Store

# A task may move between the look for it and its reading, each time it is looked for.
TRIES = 5
_ENDED = (State.COMPLETED, State.FAILED, State.SKIPPED)


def redo_of(store: Store, located: Located, upstream: str) -> tuple[tuple[str, int], ...]:
    """Return the tasks from `upstream` to this one, which is left out, each with the attempt that has ended.

    Errors: SpoolError where one of them cannot run again, or none leads there; OSError.
    """
    found, needs = _above(store, located)
    tasks = way(key(upstream), key(located.id), needs)
    if not tasks:
        raise _no_way(located.id, upstream, [one.id for one in found.values()])
    for one in tasks:
        if (error := _refuses(found.get(one), one)) is not None:
            raise error
    return tuple((found[one].id, found[one].attempt) for one in tasks)


def _above(store: Store, located: Located) -> tuple[dict[str, Located], dict[str, tuple[str, ...]]]:
    """Return the tasks before this one that are there, and what each comes after, all by key. Errors: OSError."""
    found: dict[str, Located] = {}
    needs = {key(located.id): _needs_of(store, located)}
    while wanted := {parent for parents in needs.values() for parent in parents} - needs.keys():
        there = {key(where.id): where for where in locate_many(store, wanted).values()}
        found |= there
        needs |= {one: _needs_of(store, there[one]) if one in there else () for one in wanted}
    return found, needs


def _needs_of(store: Store, located: Located) -> tuple[str, ...]:
    """Return the keys of the tasks that a task comes after. Errors: SpoolError where it cannot be read; OSError."""
    for _ in range(TRIES):
        if content := read_content(store, located):
            return _needs(content)
        located = locate_many(store, [located.id]).get(located.id, located)
    raise SpoolError(
        f"task {located.id} keeps moving or cannot be read, so what it comes after is unknown; try again."
    )


def _needs(content: dict[str, Any]) -> tuple[str, ...]:
    """Return the keys of the tasks that a task comes after."""
    named = (content.get(field) for field in ("dependencies", "after", "after_any", "after_failed"))
    return tuple(dict.fromkeys(key(one) for names in named for one in _words(names)))


def _words(names: Any) -> Iterable[str]:
    return (one for one in names if isinstance(one, str) and is_id(one)) if isinstance(names, list) else ()


def _refuses(located: Located | None, task: str) -> SpoolError | None:
    if located is None:
        return SpoolError(f"there is no task {task} any more, so it cannot run again.")
    if located.archived:
        return SpoolError(f"task {located.id} is archived, so it cannot run again; submit its work as a new task.")
    if located.state not in _ENDED:
        return SpoolError(f"task {located.id} is {located.state} and has not ended; wait for its end, then reject.")
    return None


def _no_way(task: str, upstream: str, above: list[str]) -> SpoolError:
    if not above:
        return SpoolError(f"{upstream} is not upstream of {task}, which comes after no task.")
    return SpoolError(f"{upstream} is not upstream of {task}. Upstream of it: {some(sorted(above))}.")
