"""The steps of a task: published, listed, and the last one that is whole.

Law: a step is published whole and never replaced. An author removes only earlier steps of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.names import is_id, key
from spoold.protocol.step import BYTES_MAX, KEPT, Step, StepName, directory, parse_step
from spoold.store import absence
from spoold.store.regular import regular
from spoold.store.store import Store, make_directory
from spoold.system.filesystem import FileSystem

_FILE_MAX = 6 * BYTES_MAX + 4096


def steps(fs: FileSystem, task_id: str) -> list[StepName]:
    """The steps of a task, the one that counts last; none where it has made none. Errors: OSError."""
    try:
        names = absence.names_in(fs, directory(task_id))
    except FileNotFoundError:
        if absence.stands(fs, layout.STEPS):
            raise
        names = []  # a spool of an earlier release
    return sorted(filter(None, map(parse_step, names)))


def publish_step(store: Store, task_id: str, name: StepName, step: dict[str, object]) -> None:
    """Publish a step, and remove the author's steps of this attempt that are no longer needed. Errors: OSError."""
    path, data = layout.join(directory(task_id), name.encode()), codec.dump(step)
    try:
        staged = store.publish(path, data, durable=store.durable)
    except FileNotFoundError:
        make_directory(store.fs, layout.STEPS)
        make_directory(store.fs, directory(task_id))
        staged = store.publish(path, data, durable=store.durable)
    if store.durable:
        store.settle(directory(task_id), {staged: path})
    own = [each for each in steps(store.fs, task_id) if each.attempt == name.attempt]
    for old in own[:-KEPT]:
        absence.remove(store.fs, layout.join(directory(task_id), old.encode()))


def last_step(fs: FileSystem, task_id: str, before: int) -> tuple[StepName, Step] | None:
    """The last whole step of the attempts up to this one; None for none. Errors: OSError."""
    for name in reversed([each for each in steps(fs, task_id) if each.attempt <= before]):
        path = layout.join(directory(task_id), name.encode())
        try:
            with regular(path):
                data = absence.read(fs, path, _FILE_MAX)
            step = None if data is None else codec.load_model(Step, data, path)
        except BadFile:
            continue
        if step is not None and step.whole:
            return name, step
    return None


def tasks(fs: FileSystem) -> list[str]:
    """The tasks that have made steps, by key. Errors: OSError."""
    return sorted(name for name in absence.names_in(fs, layout.STEPS) if is_id(name))


def foreign(names: Callable[[str], list[str]]) -> Iterator[str]:
    """The paths in steps/ that are no steps. names: the listing of a directory."""
    for task in names(layout.STEPS):
        path = layout.join(layout.STEPS, task)
        if not is_id(task) or task != key(task):
            yield path
            continue
        yield from (layout.join(path, name) for name in names(path) if parse_step(name) is None)
