"""Who paused what, and why: only the content of the requests says so, since machines need only their names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from spoold.protocol.request import Request, Verb
from spoold.protocol.snapshot import Snapshot
from spoold.store import control
from spoold.store.store import Store


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause or a halt that stands. target: a type, or +all; at: RFC 3339; each text may be empty."""

    verb: str
    target: str
    by: str
    at: str
    reason: str

    @property
    def told(self) -> str:
        """Who asked for it, when and why."""
        since = f" since {self.at}" if self.at else ""
        return f"asked for by {self.by or 'somebody'}{since}" + (f": {self.reason}" if self.reason else "")


def list_pauses(store: Store, requests: Iterable[Request] | None = None) -> tuple[Pause, ...]:
    """All that stand. requests: those that were listed already. Errors: OSError from listing."""
    found = []
    for request in control.list_requests(store.fs) if requests is None else requests:
        if request.verb in (Verb.PAUSE, Verb.HALT):
            body = control.read(store.fs, request)
            found.append(Pause(request.verb.value, request.target, body.by, body.at, body.reason))
    return tuple(found)


def told(store: Store, requests: Iterable[Request]) -> dict[tuple[str, str], str]:
    """What is said of each pause and halt, by verb and target; of several alike, of the first."""
    return {(pause.verb, pause.target): pause.told for pause in reversed(list_pauses(store, requests))}


def with_pauses(store: Store, picture: Snapshot) -> Snapshot:
    """The picture with who paused what; control/ is only listed where something is. Errors: OSError."""
    if not picture.paused and not picture.halted:
        return picture
    pauses = [{**asdict(pause), "told": pause.told} for pause in list_pauses(store)]
    return picture.model_copy(update={"pauses": pauses})
