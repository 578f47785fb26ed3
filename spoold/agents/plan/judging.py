"""Every fault of a plan, by the rules by which the leader judges a batch, and by what only a plan can be asked.

Law: pure. A batch is judged up to its first fault. So the line with the fault is taken out, and the rest is judged
again, until nothing is wrong: what is left is what the leader would admit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spoold.agents.plan.answering import Answer
from spoold.client.agents import Served
from spoold.protocol import codec
from spoold.protocol.amount import amount, figure
from spoold.protocol.complaint import faults_of
from spoold.protocol.errors import BadFile
from spoold.protocol.names import key
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task
from spoold.rules.answers.selection import suggestion
from spoold.rules.entry import batch

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
        verdict = batch.check(data, file, settings)
        if isinstance(verdict, batch.Accepted):
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
