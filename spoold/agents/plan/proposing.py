"""A planner's answer as a proposal: judged, kept, and submitted as it was shown.

Law: what is wrong is found before anything is submitted. The tasks that were drawn are the tasks that are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spoold.agents.plan import answering, approving, judging, keeping
from spoold.agents.plan.drawing import Plan
from spoold.client.spool_client import SpoolClient
from spoold.client.submission import Drop
from spoold.protocol.errors import BadFile, SpoolError
from spoold.protocol.names import key
from spoold.store.locate import locate_many


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a planner proposes. path: of the file with its answer, '' where it could not be written; plan: None where
    there are faults; unserved: the types that no live worker takes now.
    """

    task: str
    path: str
    faults: Sequence[BadFile] = ()
    tasks: Sequence[Mapping[str, Any]] = ()
    plan: Plan | None = None
    unserved: Sequence[str] = ()
    drops: Sequence[Drop] = field(default=(), repr=False)


def propose(spool: SpoolClient, task_id: str, words: str, environ: Mapping[str, str]) -> Proposal:
    """Judge what a planner answered, and keep it as a file. Errors: Unavailable."""
    served, file = spool.served(), f"the answer of {task_id}"
    answer = answering.read(words, file)
    answering.completed(answer, task_id, _place(spool, task_id))
    with spool.reaching():
        found = locate_many(spool.store, judging.ids_in(answer))
    known = judging.Known(served, {key(ref): one.state.value for ref, one in found.items()})
    faults = judging.judge(answer, spool.store.settings, file, known)
    # Where it is tasks and nothing else, the file can be submitted, once what is wrong is corrected.
    sound = not answer.faults and answer.texts.keys() == answer.objects.keys()
    kept = _kept(b"\n".join(answer.texts.values()).decode() if sound else words, task_id, environ)
    if faults:
        return Proposal(task_id, kept, faults)
    tasks = list(answer.objects.values())
    drops = spool.drafted_many(tasks, file=file)
    plan = Plan([one for drop in drops for one in drop.ids], judging.tasks_of(answer, file), task_id)
    lacking = judging.unserved(plan.tasks, served)
    return Proposal(task_id, kept, (), tasks, plan, lacking, drops)


def submit(spool: SpoolClient, proposal: Proposal) -> list[str]:
    """Submit a plan without a fault; returns the ids. Errors: SpoolError."""
    return _published(spool, proposal.drops)


def submit_asking(spool: SpoolClient, proposal: Proposal) -> tuple[list[str], str]:
    """Submit a plan of which one task asks people before anything starts; returns the ids, and the id of that task.

    Errors: SpoolError.
    """
    plan = proposal.plan or Plan((), ())
    tasks, asker = approving.asking(proposal.tasks, plan, proposal.task, spool.served())
    drops = spool.drafted_many(tasks, file=f"the answer of {proposal.task}")
    return _published(spool, drops), asker


def _published(spool: SpoolClient, drops: Sequence[Drop]) -> list[str]:
    if len(drops) != 1:
        raise SpoolError("the plan is larger than one drop may be, so it would not be admitted whole. Plan less.")
    spool.publish(drops)
    return list(drops[0].ids)


def _place(spool: SpoolClient, task_id: str) -> Mapping[str, str]:
    """Return the repository and the branch that the planner was given."""
    task = spool.show(task_id).task
    long: Any = task.get("input")
    place = task.get("workspace") or (long.get("workspace") if isinstance(long, Mapping) else None)
    return place if isinstance(place, Mapping) else {}


def _kept(words: str, task_id: str, environ: Mapping[str, str]) -> str:
    try:
        return keeping.keep(words, task_id, environ)
    except OSError:
        return ""
