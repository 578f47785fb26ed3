"""Files among the tasks and the requests whose names are of neither: they are ignored, with a warning.

Law: the name alone decides: such a file is never opened and never moved. A warning stands for as long as the last
listing shows the file. Only what is shown is explained, since anybody may put any number of files there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from spoold.protocol import layout, misnamed
from spoold.protocol.amount import amount
from spoold.protocol.errors import legible
from spoold.protocol.lifecycle import State
from spoold.protocol.misnamed import belongs_to_others, fault

TOLD = 5
MEND = "it is passed over: rename it, or move it away"


@dataclass(slots=True)
class Misnamed:
    """Directory → the names there that count as nothing, as last listed, and what explains one."""

    found: dict[str, tuple[list[str], Callable[[str], str | None]]] = field(default_factory=dict)

    def see(self, state: State, directory: str, names: Collection[str]) -> None:
        """Note the names in a listed directory that did not parse."""
        self._note(directory, [name for name in names if not belongs_to_others(name)], partial(fault, state))

    def see_requests(self, names: Collection[str]) -> None:
        """Note the names in control/ that did not parse."""
        self._note(layout.CONTROL, [name for name in names if not name.startswith(".")], misnamed.of_request)

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
