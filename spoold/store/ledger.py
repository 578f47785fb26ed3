"""The records of the earlier attempts of a task, found by listing results/ once for many tasks.

Law: the node that ends an attempt writes its record before the next attempt begins: a listing that is younger than an
attempt shows all records before it. Unreadable records are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from spoold.protocol import layout
from spoold.protocol.names import EndedName, ended_key_in, key, parse_ended
from spoold.protocol.result import Result, Total
from spoold.rules.attempts.attempt_costs import total_of
from spoold.store.records import read_record
from spoold.system.filesystem import FileSystem


class Ledger:
    """Valid for one step: each directory is listed once."""

    def __init__(self, fs: FileSystem) -> None:
        self._fs = fs
        self._names: dict[str, list[str]] | None = None

    def before(self, task_id: str, attempt: int) -> Iterator[Result]:
        """The records of the attempts before this one, the latest first. Errors: OSError."""
        listed = (parse_ended(name) for name in self._listed().get(key(task_id), ()))
        earlier = [name for name in listed if name is not None and _is_of(name, task_id) and name.attempt < attempt]
        for name in sorted(earlier, key=lambda one: one.attempt, reverse=True):
            found = read_record(self._fs, layout.join(layout.RESULTS, name.encode()))
            if found is not None:
                yield found

    def total_before(self, task_id: str, attempt: int) -> Total | None:
        """The sums over those attempts; None without any record. Errors: OSError."""
        found: list[Result] = []
        for result in self.before(task_id, attempt):
            if found and result.attempt < found[-1].attempt and any(one.total is not None for one in found):
                break  # this record holds the total of all before it
            found.append(result)
        return total_of(found)

    def _listed(self) -> dict[str, list[str]]:
        if self._names is None:
            names: dict[str, list[str]] = {}
            for name in self._fs.list(layout.RESULTS):
                names.setdefault(ended_key_in(name), []).append(name)
            self._names = names
        return self._names


def _is_of(name: EndedName, task_id: str) -> bool:
    return key(name.id) == key(task_id)
