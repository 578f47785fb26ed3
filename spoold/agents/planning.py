"""A planner's answer becomes tasks: an agent plans, its answer is judged as a drop would be, and a person decides.

The planner's task has all that it needs in its prompt. Its words are read as lines, of which some are tasks. A whole
answer is judged, kept, and drawn as a tree: each task once, below the last of those that it comes after.

Law: what is wrong is found before anything is submitted. The tasks that were drawn are the tasks that are dropped.
All that a task says is in the drawing, since a person decides by it: the head and the place in the tree say its type
and what it comes after, `pictures.task_description` the rest. Nothing is cut.

Lines keep their numbers, so that a fault names the line that a person sees. Nothing is guessed: words around the
tasks are a fault. One code fence around all of it is none, since models write it unasked.

Touches: files.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spoold.agents.attempt.prompting import literal
from spoold.agents.merge.merge_request import merge_task
from spoold.agents.process.interfaces import state_home
from spoold.client.spool.capabilities import Served
from spoold.client.spool.submission import Drop
from spoold.client.spool_client import SpoolClient
from spoold.pictures import task_description
from spoold.protocol import codec
from spoold.protocol.agent_fields import MERGE
from spoold.protocol.amount import amount, figure
from spoold.protocol.errors import BadFile, SpoolError
from spoold.protocol.names import key
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task
from spoold.protocol.validation_errors import faults_of
from spoold.rules.answers.selection import suggestion
from spoold.rules.entry import admission
from spoold.store.task_location import locate_many

# A plan as a tree of lines: each task once, below the last of those that it comes after, with what it does.


# Deeper tasks are not moved further to the right.
DEPTH_MAX = 12
# What the head of a task and its place in the tree say.
HEAD = ("type", "dependencies", "after_any", "after_failed", "after_batch")


class Plan:
    """The tasks of a plan, with the ids under which they will be submitted. steps: how many run one after the other
    at least; widest: how many of them may run at the same time. batch: of the plan; a task in another one says so.
    """

    def __init__(self, ids: Sequence[str], tasks: Sequence[Task], batch: str | None = None) -> None:
        self.ids, self.tasks, self._batch = tuple(ids), tuple(tasks), batch
        self._number = {key(one): index for index, one in enumerate(ids)}
        self._parents = [self._of_plan((*t.dependencies, *t.after_any, *t.after_failed)) for t in tasks]
        self._step = self._steps()
        self.steps = max(self._step, default=0)
        self.widest = max(Counter(self._step).values(), default=0)

    def without_dependency(self) -> list[int]:
        """Return the numbers of the tasks that need the success of no other task of the plan."""
        return [number for number, task in enumerate(self.tasks) if not self._of_plan(task.dependencies)]

    def summary(self) -> str:
        """Return how much it is, as a sentence."""
        after = f"{amount(self.steps, 'step')} one after the other, " if self.steps > 1 else ""
        return f"{amount(len(self.ids), 'task')}, {after}at most {self.widest} at once"

    def lines(self, width: int | None = None) -> list[str]:
        """Return the tree. width: of the terminal in columns, None for lines of any length."""
        below: dict[int, list[int]] = {}
        roots: list[int] = []
        for number, parents in enumerate(self._parents):
            last = max(parents, key=self._rank, default=None)
            (roots if last is None else below.setdefault(last, [])).append(number)
        drawn: list[str] = []
        open_ = [(number, 0) for number in reversed(roots)]
        while open_:
            number, depth = open_.pop()
            drawn += self._drawn(number, "  " * min(depth, DEPTH_MAX), width)
            open_ += [(child, depth + 1) for child in reversed(below.get(number, []))]
        return drawn

    def _of_plan(self, names: Sequence[str]) -> list[int]:
        return [self._number[key(one)] for one in dict.fromkeys(names) if key(one) in self._number]

    def _steps(self) -> list[int]:
        """Return for each task the number of its step, from 1. There is no circle: the plan was judged."""
        left = [len(parents) for parents in self._parents]
        children: dict[int, list[int]] = {}
        for number, parents in enumerate(self._parents):
            for parent in parents:
                children.setdefault(parent, []).append(number)
        step = [1] * len(left)
        free = [number for number, count in enumerate(left) if not count]
        while free:
            number = free.pop()
            for child in children.get(number, []):
                step[child] = max(step[child], step[number] + 1)
                left[child] -= 1
                if not left[child]:
                    free.append(child)
        return step

    def _drawn(self, number: int, indent: str, width: int | None) -> list[str]:
        task, under = self.tasks[number], max(self._parents[number], key=self._rank, default=None)
        rest = [one for one in self._needs(task) if under is None or key(one[0]) != key(self.ids[under])]
        also = [one for one, how in rest if not how]
        said = [task.kind, *(how.format(one) for one, how in self._needs(task) if how)]
        if also:
            said.append(f"{'also ' if under is not None else ''}after {', '.join(also)}")
        head = f"{self.ids[number]} ({'; '.join(said)})"
        elsewhere = (*HEAD, "batch") if task.batch == self._batch else HEAD
        rows = task_description.drawn(task_description.parts(task, elsewhere), width, f"{indent}    ")
        return [*task_description.drawn([task_description.Part("", (head,))], width, indent), *rows]

    def _rank(self, number: int) -> tuple[int, int]:
        return self._step[number], -number

    def _needs(self, task: Task) -> list[tuple[str, str]]:
        """Return what it comes after, each with the words for another condition than success."""
        ends = [(one, "when {} has ended") for one in task.after_any]
        failed = [(one, "if {} fails") for one in task.after_failed]
        batch = [(task.after_batch, "after the batch {}")] if task.after_batch else []
        return [*((one, "") for one in task.dependencies), *ends, *failed, *batch]


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
    answer = read(words, file)
    completed(answer, task_id, _place(spool, task_id))
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


# The words of a planner as lines: tasks, and what is none.


FENCE = "```"
SHOWN_MAX = 60
ALONE = "answer with the tasks alone, one {…} a line."


@dataclass(slots=True)
class Answer:
    """What a planner answered. texts: the lines that may be tasks, by number; objects: those of them that are JSON
    objects; faults: of the other lines.
    """

    texts: dict[int, bytes] = field(default_factory=dict)
    objects: dict[int, dict[str, Any]] = field(default_factory=dict)
    faults: list[BadFile] = field(default_factory=list)


def read(words: str, file: str) -> Answer:
    """Return the lines of an answer. file: its name in the faults."""
    found = Answer()
    for numbers, text in _runs(_without_fence(words.split("\n"))):
        if not text.startswith("{"):
            found.faults.append(_no_task(numbers, text, file))
            continue
        number = numbers[0]
        data, where = text.encode(errors="backslashreplace"), f"{file} line {number}"
        found.texts[number] = data
        try:
            value = codec.load_object(data, where)
            codec.sure(data, value, where)
            found.objects[number] = value
        except BadFile:
            continue  # the judge of the line names that fault
    if not found.texts:
        found.faults.append(BadFile(file, "", "holds no task.", ALONE))
    return found


def completed(answer: Answer, batch: str, place: Mapping[str, str]) -> None:
    """Fill in what a task may leave out: its batch, and for an agent the repository and the branch of the plan."""
    for number, task in answer.objects.items():
        task.setdefault("batch", batch)
        if place and "agent" in task:
            task.setdefault("workspace", dict(place))
        answer.texts[number] = codec.dump(task)


def _without_fence(lines: list[str]) -> list[str]:
    """Return the lines, with an empty one in place of each of the two fences around all of them."""
    solid = [index for index, line in enumerate(lines) if line.strip()]
    fenced = len(solid) > 1 and lines[solid[0]].lstrip().startswith(FENCE) and lines[solid[-1]].strip() == FENCE
    ends = {solid[0], solid[-1]} if fenced else set()
    return ["" if index in ends else line for index, line in enumerate(lines)]


def _runs(lines: list[str]) -> Iterator[tuple[list[int], str]]:
    """Yield each line that may be a task, and lines of words that follow each other together, with their numbers."""
    words: list[int] = []
    first = ""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.startswith("{"):
            first = first or text
            words.append(number)
            continue
        if words and text:
            yield words, first
            words, first = [], ""
        if text:
            yield [number], text
    if words:
        yield words, first


def _no_task(numbers: list[int], text: str, file: str) -> BadFile:
    where = f"line {numbers[0]}" if len(numbers) == 1 else f"lines {numbers[0]} to {numbers[-1]}"
    shown = text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 1]}…"
    if text.startswith("["):
        return BadFile(
            f"{file} {where}", "", f"begins a list: {shown!r}.", f"write no list around the tasks; {ALONE}"
        )
    return BadFile(f"{file} {where}", "", f"no task, but words: {shown!r}.", ALONE)


# The task of a planner, and what it is told: the work, the format, and who is there to do it.


NAME_MAX = 200
_FORMAT = """Plan the work below as tasks for agents. Do none of the work yourself, and change no file.

The work:

{feature}

Answer with the tasks alone: one JSON object a line. No list around them, no other words, no code fence. An example:

{example}

Fields of a task:
- id: begins with "{prefix}-"; letters, digits, - and _.
- agent: who does it. Use one of: {agents}.
- prompt: all that this agent has to know. It sees the files, but neither this text nor the other tasks.
  {{deps.ID.output}} becomes the answer of a task that stands in `after`.
- after: a list of the ids of tasks that must have completed before. Tasks without an order run at the same time, so
  ask for no order that the work does not need, and for no circle.
- must_change: true, if it must change a file.
- accept: a list of commands that must succeed after it, such as ["make test"].
- locks: {{"write": ["src/api/"]}}, the files that it changes, so that no two tasks change the same at once.
- artifacts: a list of the files that it makes.
- budget: {{"tokens": 20000, "cost_usd": 1}}, what one attempt may take.
- input: an object, with whatever else the task has to say.
"""
_MERGE = """
The last task takes the work of all others into the branch {branch}. It names them in `after` and in `tasks`:

{line}
"""


def planner_task(feature: str, task_id: str, agent: str, place: Mapping[str, str], served: Served) -> dict[str, Any]:
    """Return the task that plans. place: the repository and branch, as in the workspace of a task, empty for none."""
    told = prompt(feature, task_id, served.agents, place, merges=MERGE in served.types)
    name = f"plan: {' '.join(feature.split())}"[:NAME_MAX]
    workspace = {"workspace": dict(place)} if place else {}
    return {"id": task_id, "name": name, "agent": agent, "prompt": literal(told), **workspace}


def prompt(feature: str, prefix: str, agents: Sequence[str], place: Mapping[str, str], *, merges: bool) -> str:
    """Return what the planner is told. prefix: with which the id of each of its tasks begins."""
    who = agents[0] if agents else "coder"
    first = {
        "id": f"{prefix}-model",
        "agent": who,
        "prompt": "Add the table `users` to app/model.py, with a test. Answer with the names of its columns.",
        "must_change": True,
    }
    second = {
        "id": f"{prefix}-api",
        "agent": who,
        "prompt": f"Add GET /users to app/api.py. The columns are: {{deps.{prefix}-model.output}}",
        "after": [f"{prefix}-model"],
    }
    example = "\n".join(json.dumps(task, ensure_ascii=False) for task in (first, second))
    names = ", ".join(agents) or "(no live worker has an agent)"
    told = _FORMAT.format(feature=feature.strip(), example=example, prefix=prefix, agents=names)
    if merges and "repo" in place:
        branch = place.get("base", "main")
        ids = [str(first["id"]), str(second["id"])]
        task = merge_task(ids, place["repo"], branch, agent=who, task_id=f"{prefix}-{MERGE}")
        named = {"after" if name == "dependencies" else name: value for name, value in task.items() if name != "name"}
        told += _MERGE.format(branch=branch, line=json.dumps(named, ensure_ascii=False))
    return told
