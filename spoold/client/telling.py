"""Whether the agent of a task can be told something.

Law: looks and never touches. These checks only save a person a wait: the leader judges each message again.
"""

from __future__ import annotations

from typing import Any

from spoold.client.agents import list_served
from spoold.client.info import kind_of, read_content, running_of
from spoold.protocol.agent_messages import STANDING_MAX, fault_in
from spoold.protocol.errors import BadFile, NotFound, SpoolError
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key
from spoold.protocol.request import Verb
from spoold.rules.answers import task_history
from spoold.store import control
from spoold.store.locate import Located, locate
from spoold.store.store import Store
from spoold.system.host import Host

_ENDS = {State.COMPLETED: "completed", State.FAILED: "failed", State.SKIPPED: "been skipped"}


def insist_on_text(text: str) -> None:
    """Refuse a text that cannot be told. Errors: BadFile."""
    fault = fault_in(text)
    if fault is not None:
        raise BadFile("the message", "", *fault)


def refuses(store: Store, host: Host, located: Located) -> SpoolError | None:
    """Return why the agent of this task cannot be told anything; None where it can, or where that is not known.

    Errors: OSError.
    """
    if located.state is State.REJECTED:
        return SpoolError(
            f"rejected/{located.drop} was rejected: nothing of it runs, so nobody can be told anything."
        )
    content = read_content(store, located)
    why = _no_agent(store, host, content)
    if not why and located.state in _ENDS:
        return _ended(located, kind_of(content))
    if why:
        return SpoolError(f"task {located.id} {why}, so nobody reads a message. `spool agents` lists the agents.")
    asked = [one for one in control.list_requests(store.fs) if one.verb is Verb.TELL]
    if sum(key(one.target) == key(located.id) for one in asked) >= STANDING_MAX:
        return SpoolError(
            f"task {located.id} has {STANDING_MAX} messages, and no more are kept; they stand until it has ended. "
            "Put what is to be said into a file that its agent reads, or submit a task that comes after it."
        )
    return None


def when(store: Store, task_id: str) -> str:
    """Return when the agent of a task is given a message that was told now. Errors: OSError."""
    try:
        located = locate(store, task_id)
    except NotFound:  # it moves just now
        return task_history.when(None, runs=True)
    running = running_of(store, located)
    return task_history.when(running.progress if running else None, runs=located.state is State.CLAIMED)


def _ended(located: Located, kind: str) -> SpoolError:
    if located.state is State.COMPLETED:
        follow = f"`spool agent {kind or 'AGENT'} 'PROMPT' --after {located.id}`"
        then = f"Submit what is left as a task of its own: {follow}."
    else:
        then = f"`spool retry {located.id}` runs it again, and then it can be told."
    return SpoolError(f"task {located.id} has {_ENDS[located.state]}, and its agent is gone. {then}")


def _no_agent(store: Store, host: Host, content: dict[str, Any]) -> str:
    """Return why no agent runs a task; '' where one does, or nobody knows."""
    kind = kind_of(content)
    if content.get("command") is not None or content.get("python") is not None:
        return "runs no agent, but a command" if content.get("command") is not None else "runs no agent, but Python"
    served = list_served(store, host, store.clock)
    if kind.lower() in {one.lower() for one in served.types} - {one.lower() for one in served.agents}:
        return f"is of the type {kind}, whose handler is no agent"
    return ""
