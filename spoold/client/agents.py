"""The agents that live workers offer, as their heartbeats say it.

Law: looks and never touches. What a worker says of a handler is for people; whether a task of the type can run is
said by its capabilities alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spoold.store.store import Store
    from spoold.system.clock import Clock
    from spoold.system.host import Host


@dataclass(frozen=True, slots=True)
class Offered:
    """One profile on one worker. cli: the agent behind it; recorded: of which version its output is known; trouble:
    why it takes no task just now, '' where it does; running: how many tasks of the profile run there.
    """

    agent: str
    worker: str
    cli: str
    model: str
    recorded: str
    running: int
    trouble: str


def list_agents(store: Store, host: Host, clock: Clock) -> list[Offered]:
    """Return every profile on every live worker, by name. Errors: OSError."""
    from spoold.client.status import roster
    from spoold.store import beats

    living = {node.worker for node in roster(store, host, clock).workers if node.state != "dead"}
    found = []
    for beat in beats.read_all(store.fs).values():
        can = beat.capabilities
        if beat.node not in living or can is None:
            continue
        for kind, about in can.about.items():
            if "agent" in about:
                running = sum(task.type == kind for task in beat.running)
                trouble = can.lacks.get(kind) or can.shuns.get(kind) or ""
                words = (about["agent"], about.get("model", ""), about.get("recorded", ""))
                found.append(Offered(kind, beat.node, *words, running, trouble))
    return sorted(found, key=lambda one: (one.agent, one.worker))
