"""What live workers offer, as their heartbeats say it: agents, and what else they can run.

Law: looks and never touches. What a worker says of a handler is for people; whether a task of the type can run is
said by its capabilities alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spoold.protocol.heartbeat import Capabilities, Heartbeat
    from spoold.protocol.settings import Settings, TypeSettings
    from spoold.store.store import Store
    from spoold.system.clock import Clock
    from spoold.system.host import Host


_VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})+")


@dataclass(frozen=True, slots=True)
class Offered:
    """One profile on one worker. cli: the agent behind it; version: that was found there, '' for not known; recorded:
    of which version its output is known; ok: whether it was found to start; trouble: why it takes no task just now,
    '' where it does; running: how many tasks of the profile run there; drops: what the profile or the type's settings
    say, such as max_tokens, and this agent cannot be given; limit: that of the profile; gap: why a spent quota does
    not keep its tasks back all the same, '' where it does; untested: what may go unseen, since it is older than what
    was recorded; warning: what its worker says of the profile, such as a sandbox that keeps it from its model.
    instead: the types as which its tasks run while a limit of theirs is closed.
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
    untested: str = ""
    warning: str = ""
    instead: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a task for an agent would wait: no live worker has it. fix: names that there are.

    unknown: it may be misspelt, since other agents are there, and neither the settings nor what ran before has it.
    """

    problem: str
    fix: str
    unknown: bool


@dataclass(frozen=True, slots=True)
class Served:
    """What live workers can run, by name, sorted. agents: their profiles; types: of all handlers, profiles included;
    commands: whether one of them runs any command.
    """

    agents: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    commands: bool = False


def untested(cli: str, version: str, recorded: str) -> str:
    """Return what is not known of an agent that is older than what its output is known of; '' where all is, or where
    a version is none. recorded: of the adapter, with the version in it.
    """
    found, known = _numbers(version), _numbers(recorded)
    if not found or not known or found >= known:
        return ""
    return (
        f"{cli} {version} is older than {'.'.join(map(str, known))}, of which its output is known, and was not "
        "tested: a spent quota, its tokens or its cost may go unseen"
    )


def _numbers(text: str) -> tuple[int, ...]:
    """Return the first version in a text, () for none."""
    found = _VERSION.search(text)
    return tuple(map(int, found[0].split("."))) if found else ()


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
                others = can.instead.get(kind, ())
                held = (limit, _gap(kind, limit, others, store.settings))
                old = untested(about["agent"], version, recorded)
                own = (running, kind not in can.lacks, trouble, drops)
                found.append(Offered(kind, beat.node, *words, *own, *held, old, about.get("warning", ""), others))
    return sorted(found, key=lambda one: (one.agent, one.worker))


def list_served(store: Store, host: Host, clock: Clock) -> Served:
    """Return what live workers can run. Errors: OSError."""
    cans = [can for _, can in _living(store, host, clock)]
    agents = {kind for can in cans for kind, about in can.about.items() if "agent" in about}
    types = {kind for can in cans for kind in (*can.handlers, *can.lacks)}
    return Served(tuple(sorted(agents)), tuple(sorted(types | agents)), any(can.allow_command for can in cans))


def list_about(store: Store, host: Host, clock: Clock, kind: str) -> dict[str, Mapping[str, str]]:
    """Return what each live worker that runs tasks of a type says of its handler, by worker. Errors: OSError."""
    living = _living(store, host, clock)
    return {beat.node: can.about.get(kind, {}) for beat, can in living if kind in (*can.handlers, *can.lacks)}


def missing_agent(store: Store, host: Host, clock: Clock, name: str) -> Missing | None:
    """Return why a task for this agent would wait; None where a live worker has it, or a handler of that name.

    Errors: OSError.
    """
    from spoold.rules.answers.selection import suggestion
    from spoold.store import snapshots

    served, word = list_served(store, host, clock), name.lower()
    if word in served.types:
        return None
    problem = f"no live worker has the agent {name!r}."
    if not served.types:
        fix = f"one that has just started needs some seconds; else start one whose file has [agents.{name}]."
        problem = f"no live worker has the agent {name!r} yet."
        return Missing(problem, fix, unknown=False)
    last = snapshots.latest(store.fs)
    before = () if last is None else (*last[1].types, *last[1].durations)
    unknown = word not in {one.lower() for one in (*store.settings.types, *before)}
    return Missing(problem, suggestion(name, served.agents or served.types), unknown)


def _living(store: Store, host: Host, clock: Clock) -> Iterator[tuple[Heartbeat, Capabilities]]:
    """Yield the heartbeat of each live worker, and what it says that it can. Errors: OSError."""
    from spoold.client.spool.spool_status import roster
    from spoold.store import heartbeats

    living = {node.worker for node in roster(store, host, clock).workers if node.state != "dead"}
    for beat in heartbeats.read_all(store.fs).values():
        if beat.node in living and beat.capabilities is not None:
            yield beat, beat.capabilities


def _drops(about: Mapping[str, str], kind: TypeSettings) -> tuple[str, ...]:
    """Return what an agent is to have and cannot be given; nothing where its worker does not say what it takes."""
    if "takes" not in about:
        return ()
    said = {"model": kind.model, "max_tokens": kind.max_tokens, "temperature": kind.temperature}
    wanted = {*about.get("sets", "").split(), *(name for name, value in said.items() if value is not None)}
    return tuple(sorted(wanted.difference(about["takes"].split())))


def _gap(kind: str, limit: str, others: tuple[str, ...], settings: Settings) -> str:
    """Return why a quota of a limit does not keep the tasks of a type back; '' where it does, or for no limit.

    others: the types as which they are to run meanwhile.
    """
    if others and not limit and not settings.of(kind).uses:
        return f"its type uses no limit, so none of its tasks goes to {others[0]}: add uses to [types.{kind}]"
    if not limit:
        return ""
    if limit not in settings.limits:
        return f"its limit {limit} is not in spool.toml, so a spent quota closes nothing: add [limits.{limit}]"
    if limit in settings.of(kind).uses:
        return ""
    why = f"its type does not use its limit {limit}, so a spent quota keeps none of its tasks back"
    return f'{why}: add uses = ["{limit}"] to [types.{kind}] of spool.toml'
