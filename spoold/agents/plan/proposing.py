"""A planner's answer as a proposal: judged, kept, and submitted as it was shown.

Law: what is wrong is found before anything is submitted. The tasks that were drawn are the tasks that are dropped.

Touches: files.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spoold.agents.places import state_home
from spoold.agents.plan import answering
from spoold.agents.plan.answering import Answer
from spoold.agents.plan.drawing import Plan
from spoold.client.spool.capabilities import Served
from spoold.client.spool.submission import Drop
from spoold.client.spool_client import SpoolClient
from spoold.protocol import codec
from spoold.protocol.amount import amount, figure
from spoold.protocol.errors import BadFile, SpoolError
from spoold.protocol.names import key
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task
from spoold.protocol.validation_errors import faults_of
from spoold.rules.answers.selection import suggestion
from spoold.rules.entry import admission
from spoold.store.task_location import locate_many


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
        found = locate_many(spool.store, ids_in(answer))
    known = Known(served, {key(ref): one.state.value for ref, one in found.items()})
    faults = judge(answer, spool.store.settings, file, known)
    # Where it is tasks and nothing else, the file can be submitted, once what is wrong is corrected.
    sound = not answer.faults and answer.texts.keys() == answer.objects.keys()
    kept = _kept(b"\n".join(answer.texts.values()).decode() if sound else words, task_id, environ)
    if faults:
        return Proposal(task_id, kept, faults)
    tasks = list(answer.objects.values())
    drops = spool.drafted_many(tasks, file=file)
    plan = Plan([one for drop in drops for one in drop.ids], tasks_of(answer, file), task_id)
    lacking = unserved(plan.tasks, served)
    return Proposal(task_id, kept, (), tasks, plan, lacking, drops)


def submit(spool: SpoolClient, proposal: Proposal) -> list[str]:
    """Submit a plan without a fault; returns the ids. Errors: SpoolError."""
    return _published(spool, proposal.drops)


def submit_asking(spool: SpoolClient, proposal: Proposal) -> tuple[list[str], str]:
    """Submit a plan of which one task asks people before anything starts; returns the ids, and the id of that task.

    Errors: SpoolError.
    """
    plan = proposal.plan or Plan((), ())
    tasks, asker = asking(proposal.tasks, plan, proposal.task, spool.served())
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
        return keep(words, task_id, environ)
    except OSError:
        return ""


# A plan that waits for a person: one of its tasks asks, and everything else comes after it.


ASKER = "approval"


def asking(
    tasks: Sequence[Mapping[str, Any]], plan: Plan, plan_id: str, served: Served
) -> tuple[list[dict[str, Any]], str]:
    """Return the tasks of a plan with their ids, of which one asks, and the id of that one.

    Errors: SpoolError where another task would have to ask, and no live worker runs commands.
    """
    named = [{**task, "id": task_id} for task, task_id in zip(tasks, plan.ids, strict=True)]
    roots = plan.without_dependency()
    question = {"ask": f"Start the plan {plan_id}: {plan.summary()}? `spool plan --task {plan_id}` shows it."}
    shown = {"plan": "\n".join(plan.lines())}
    if len(roots) == 1 and plan.tasks[roots[0]].approval is None:
        root = named[roots[0]]
        root |= {"approval": question, "meta": {**(root.get("meta") or {}), **shown}}
        return named, plan.ids[roots[0]]
    if not served.commands:
        raise SpoolError(
            f"the {len(roots)} first tasks of the plan would come after one more that asks and runs `true`, and no "
            "live worker runs commands. Start one with --allow-command, or submit the plan with --yes."
        )
    asker = f"{plan_id}-{ASKER}"
    for number in roots:
        task = named[number]
        also = task.pop("after", None) or task.pop("dependencies", None) or []
        task["dependencies"] = [asker, *([also] if isinstance(also, str) else also)]
    first = {"id": asker, "name": f"approval of the plan {plan_id}", "batch": plan_id, "command": ["true"]}
    return [{**first, "approval": question, "meta": shown}, *named], asker


# Every fault of a plan, by the rules by which the leader judges a batch, and by what only a plan can be asked.


# A plan is read by a person; and each fault costs another look at all lines.
TASKS_MAX, FAULTS_MAX = 1000, 50


@dataclass(frozen=True, slots=True)
class Known:
    """What a plan is held against. taken: the ids of which the spool has a task, each with its state, by key."""

    served: Served
    taken: Mapping[str, str]


def ids_in(answer: Answer) -> list[str]:
    """Return every id that the tasks have or name, as far as they are texts: to ask the spool for them."""
    found: dict[str, None] = {}
    for task in answer.objects.values():
        for one in (task.get("id"), *_needs(task)):
            if isinstance(one, str) and one:
                found[one] = None
    return list(found)


def judge(answer: Answer, settings: Settings, file: str, known: Known) -> list[BadFile]:
    """Return every fault of the answer, those of one line together; none for a plan that can be submitted."""
    if len(answer.texts) > TASKS_MAX:
        problem = f"has {amount(len(answer.texts), 'task')}, and a plan may have {figure(TASKS_MAX)}."
        return [*answer.faults, BadFile(file, "", problem, "plan less, or let a task plan the rest.")]
    found = [*answer.faults, *_of_batch(answer, settings, file)]
    own = {key(one) for task in answer.objects.values() if isinstance(one := task.get("id"), str)}
    for number, task in answer.objects.items():
        found += _of_plan(task, f"{file} line {number}", own, known)
    return sorted(found, key=_line)


def _of_batch(answer: Answer, settings: Settings, file: str) -> Iterator[BadFile]:
    """Yield the faults that the leader would name, one after the other."""
    left = dict(answer.texts)
    for _ in range(FAULTS_MAX):
        if not left:
            return
        data = b"".join(left.get(number, b"") + b"\n" for number in range(1, max(left) + 1))
        verdict = admission.check(data, file, settings)
        if isinstance(verdict, admission.Accepted):
            return
        wrong = _line(verdict.error)
        if wrong not in left:
            yield verdict.error
            return
        yield from _all_of_line(answer.objects.get(wrong), verdict.error)
        del left[wrong]


def _all_of_line(task: dict[str, Any] | None, first: BadFile) -> list[BadFile]:
    """Return every fault of a line: a task that does not fit its model may have several."""
    return (faults_of(Task, task, first.file) if task is not None else []) or [first]


def _of_plan(task: Mapping[str, Any], where: str, own: Collection[str], known: Known) -> Iterator[BadFile]:
    agent, task_id = task.get("agent"), task.get("id")
    if isinstance(agent, str) and agent not in known.served.agents:
        mend = suggestion(agent, known.served.agents)
        yield BadFile(where, "agent", f"no live worker has the profile {agent!r}.", mend)
    if isinstance(task_id, str) and (state := known.taken.get(key(task_id))):
        yield BadFile(where, "id", f"{task_id!r} is taken by a task that is {state}.", "give it another id.")
    for need in _needs(task):
        if isinstance(need, str) and key(need) not in own and key(need) not in known.taken:
            problem = f"it comes after {need!r}, and neither the plan nor the spool has such a task."
            yield BadFile(where, "after", problem, "name a task of the plan, or leave it out.")


def _needs(task: Mapping[str, Any]) -> Iterator[Any]:
    for name in ("after", "dependencies", "after_any", "after_failed"):
        said = task.get(name)
        yield from said if isinstance(said, list) else [said] if isinstance(said, str) else []


def unserved(tasks: Collection[Task], served: Served) -> list[str]:
    """Return the types of tasks, and `command`, that no live worker takes now: such a task would wait."""
    lacking = {task.type for task in tasks if task.run == "handler" and task.type not in served.types}
    if not served.commands and any(task.run == "command" for task in tasks):
        lacking.add("command")
    return sorted(lacking)


def tasks_of(answer: Answer, file: str) -> list[Task]:
    """Return the tasks of an answer that has no fault. Errors: BadFile."""
    return [codec.load_sent_task(text, f"{file} line {number}") for number, text in answer.texts.items()]


def _line(error: BadFile) -> int:
    """Return the number of the line that an error names first; 0 where it names none."""
    word = error.file.partition(" line")[2].removeprefix("s").split(" to ")[0].strip()
    return int(word) if word.isdecimal() else 0


# What a planner answered, as a file: a person may look at it, correct it, and submit it.


def keep(words: str, task_id: str, environ: Mapping[str, str]) -> str:
    """Write the answer of a planner; returns the path. Errors: OSError."""
    folder = os.path.join(state_home(environ), "spoold", "plans")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, f"{task_id}.jsonl")
    made = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(made, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(words if words.endswith("\n") else f"{words}\n")
    os.replace(f"{path}.new", path)
    return path
