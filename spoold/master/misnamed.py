"""Files among the tasks and the requests whose names are of neither: they are ignored, with a warning.

Law: the name alone decides: such a file is never opened and never moved. A warning stands for as long as the last
listing shows the file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from spoold.protocol import layout, misnamed
from spoold.protocol.amount import amount
from spoold.protocol.errors import legible
from spoold.protocol.lifecycle import State
from spoold.protocol.misnamed import fault

TOLD = 5
MEND = "it is passed over: rename it, or move it away"


@dataclass(slots=True)
class Misnamed:
    """Directory → each path there and its fault, as last listed."""

    found: dict[str, list[str]] = field(default_factory=dict)

    def see(self, state: State, directory: str, names: Collection[str]) -> None:
        """Note the names in a listed directory that did not parse."""
        self._note(directory, {name: fault(state, name) for name in sorted(names)})

    def see_requests(self, names: Collection[str]) -> None:
        """Note the names in control/ that did not parse."""
        self._note(layout.CONTROL, {name: misnamed.of_request(name) for name in sorted(names)})

    def _note(self, directory: str, faults: dict[str, str | None]) -> None:
        self.found.pop(directory, None)
        if told := [f"{directory}/{legible(name)} {why}" for name, why in faults.items() if why is not None]:
            self.found[directory] = told

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
        faults = [line for _, lines in sorted(self.found.items()) for line in lines]
        more = len(faults) - TOLD
        rest = [f"{amount(more, 'more file')} with a wrong name; `spool fsck` shows them"] if more > 0 else []
        return [*(f"{line}; {MEND}" for line in faults[:TOLD]), *rest]
