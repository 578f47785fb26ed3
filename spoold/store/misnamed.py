"""Files among the tasks and the requests whose names are of neither: they are ignored, with a warning.

Law: the name alone decides: such a file is never opened and never moved. A warning stands for as long as the last
listing shows the file. Only what is shown is explained, since anybody may put any number of files there. What is no
lane in waiting/ or ready/, and no worker's directory in claimed/, counts as such a file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from spoold.protocol import layout, wrong_names
from spoold.protocol.amount import amount
from spoold.protocol.errors import legible
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key
from spoold.protocol.wrong_names import belongs_to_others, fault, of_branch
from spoold.store.absence import names_shown
from spoold.system.filesystem import FileSystem

TOLD = 5
_BRANCHED = (State.WAITING, State.READY, State.CLAIMED)
_FLAT = (State.RETURNED, State.COMPLETED, State.FAILED)
MEND = "it is passed over: rename it, or move it away"


@dataclass(slots=True)
class Misnamed:
    """Directory → the names there that count as nothing, as last listed, and what explains one."""

    found: dict[str, tuple[list[str], Callable[[str], str | None]]] = field(default_factory=dict)

    def see(self, state: State, directory: str, names: Collection[str]) -> None:
        """Note the names in a listed directory that did not parse."""
        self._note(directory, [name for name in names if not belongs_to_others(name)], partial(fault, state))

    def see_branches(self, state: State, names: Collection[str]) -> None:
        """Note the names in waiting/ and ready/ that are no lanes, and those in claimed/ that are no workers."""
        self._note(state.value, [name for name in names if not name.startswith(".")], partial(of_branch, state))

    def see_requests(self, names: Collection[str]) -> None:
        """Note the names in control/ that did not parse."""
        self._note(layout.CONTROL, [name for name in names if not name.startswith(".")], wrong_names.of_request)

    def _note(self, directory: str, names: list[str], explain: Callable[[str], str | None]) -> None:
        self.found.pop(directory, None)
        if names:
            self.found[directory] = sorted(names), explain

    def see_waiting(self, directory: str, lanes: Iterable[tuple[str, str]]) -> None:
        """Note lane and name of each file that did not parse in a listing of all of waiting/."""
        by_lane: dict[str, list[str]] = {}
        for lane, name in lanes:
            by_lane.setdefault(f"{directory}/{lane}", []).append(name)
        for gone in [known for known in self.found if known.startswith(f"{directory}/") and known not in by_lane]:
            del self.found[gone]
        for lane, names in by_lane.items():
            self.see(State.WAITING, lane, names)

    def warnings(self) -> list[str]:
        """Return the warnings: the first few, and how many more there are."""
        listed = ((place, name, explain) for place, (names, explain) in sorted(self.found.items()) for name in names)
        shown = [f"{place}/{legible(name)} {explain(name)}; {MEND}" for place, name, explain in islice(listed, TOLD)]
        more = sum(len(names) for names, _ in self.found.values()) - TOLD
        rest = [f"{amount(more, 'more file')} with a wrong name; `spool fsck` shows them"] if more > 0 else []
        return [*shown, *rest]


def said_of(fs: FileSystem, task_id: str) -> str:
    """The sentence about a file of this id that counts as nothing; '' for none. Errors: OSError.

    A person who looks for a task by the id in its file's name is told where the file is, and what is wrong with it.
    """
    wanted = f".{key(task_id)}."
    for directory, name, explain in _entries(fs):
        if wanted in f".{key(name)}." and (why := explain(name)) is not None:
            return f"{directory}/{legible(name)} {why}; {MEND}"
    return ""


def _entries(fs: FileSystem) -> Iterator[tuple[str, str, Callable[[str], str | None]]]:
    """Every name where task files are: its directory, the name, and what explains it."""
    for state in _FLAT:
        yield from ((state.value, name, partial(fault, state)) for name in names_shown(fs, state))
    for state in _BRANCHED:
        for branch in names_shown(fs, state):
            yield state.value, branch, partial(of_branch, state)
            directory = layout.join(state, branch)
            strange = of_branch(state, branch)
            explain = partial(fault, state) if strange is None else partial(_inside, directory, strange)
            yield from ((directory, name, explain) for name in names_shown(fs, directory))


def _inside(directory: str, strange: str, name: str) -> str | None:
    """What is wrong with a task file below a directory that counts as nothing."""
    return None if belongs_to_others(name) else f"counts as nothing, since {directory} {strange}"
