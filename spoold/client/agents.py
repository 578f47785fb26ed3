"""What live workers offer, as their heartbeats say it: agents, and what else they can run.

Law: looks and never touches. What a worker says of a handler is for people; whether a task of the type can run is
said by its capabilities alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spoold.protocol.heartbeat import Capabilities, Heartbeat
    from spoold.protocol.settings import Settings, TypeSettings
    from spoold.store.store import Store
    from spoold.system.clock import Clock
    from spoold.system.host import Host


@dataclass(frozen=True, slots=True)
class Offered:
    """One profile on one worker. cli: the agent behind it; version: that was found there, '' for not known; recorded:
    of which version its output is known; ok: whether it was found to start; trouble: why it takes no task just now,
    '' where it does; running: how many tasks of the profile run there; drops: what the profile or the type's settings
    say, such as max_tokens, and this agent cannot be given; limit: that of the profile; gap: why a spent quota does
    not keep its tasks back all the same, '' where it does.
    """

    agent: str
    worker: str
    cli: str
    model: str
    version: str
    recorded: str
    running: int
    ok: bool
    trouble: str
    drops: tuple[str, ...]
    limit: str
    gap: str


@dataclass(frozen=True, slots=True)
class Served:
    """What live workers can run, by name, sorted. agents: their profiles; types: of all handlers, profiles included;
    commands: whether one of them runs any command.
    """

    agents: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    commands: bool = False


def list_agents(store: Store, host: Host, clock: Clock) -> list[Offered]:
    """Return every profile on every live worker, by name. Errors: OSError."""
    found = []
    for beat, can in _living(store, host, clock):
        for kind, about in can.about.items():
            if "agent" in about:
                running = sum(task.type == kind for task in beat.running)
                trouble = can.lacks.get(kind) or can.shuns.get(kind) or ""
                model, version, recorded = (about.get(name, "") for name in ("model", "version", "recorded"))
                words = (about["agent"], model, version, recorded)
                drops = _drops(about, store.settings.of(kind))
                limit = about.get("limit", "")
                held = (limit, _gap(kind, limit, store.settings))
                found.append(Offered(kind, beat.node, *words, running, kind not in can.lacks, trouble, drops, *held))
    return sorted(found, key=lambda one: (one.agent, one.worker))


def list_served(store: Store, host: Host, clock: Clock) -> Served:
    """Return what live workers can run. Errors: OSError."""
    cans = [can for _, can in _living(store, host, clock)]
    agents = {kind for can in cans for kind, about in can.about.items() if "agent" in about}
    types = {kind for can in cans for kind in (*can.handlers, *can.lacks)}
    return Served(tuple(sorted(agents)), tuple(sorted(types | agents)), any(can.allow_command for can in cans))


def _living(store: Store, host: Host, clock: Clock) -> Iterator[tuple[Heartbeat, Capabilities]]:
    """Yield the heartbeat of each live worker, and what it says that it can. Errors: OSError."""
    from spoold.client.status import roster
    from spoold.store import beats

    living = {node.worker for node in roster(store, host, clock).workers if node.state != "dead"}
    for beat in beats.read_all(store.fs).values():
        if beat.node in living and beat.capabilities is not None:
            yield beat, beat.capabilities


def _drops(about: Mapping[str, str], kind: TypeSettings) -> tuple[str, ...]:
    """Return what an agent is to have and cannot be given; nothing where its worker does not say what it takes."""
    if "takes" not in about:
        return ()
    said = {"model": kind.model, "max_tokens": kind.max_tokens, "temperature": kind.temperature}
    wanted = {*about.get("sets", "").split(), *(name for name, value in said.items() if value is not None)}
    return tuple(sorted(wanted.difference(about["takes"].split())))


def _gap(kind: str, limit: str, settings: Settings) -> str:
    """Return why a quota of a limit does not keep the tasks of a type back; '' where it does, or for no limit."""
    if not limit:
        return ""
    if limit not in settings.limits:
        return f"its limit {limit} is not in spool.toml, so a spent quota closes nothing: add [limits.{limit}]"
    if limit in settings.of(kind).uses:
        return ""
    why = f"its type does not use its limit {limit}, so a spent quota keeps none of its tasks back"
    return f'{why}: add uses = ["{limit}"] to [types.{kind}] of spool.toml'
