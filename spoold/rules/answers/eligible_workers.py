"""Which workers could take a task, and their obstacles: the part of `explain` that looks at machines.

Law: `matching` decides, as for the workers themselves; workers in the same situation are named together.
"""

from __future__ import annotations

import json
import math

from spoold.protocol.agent_fields import MERGE
from spoold.protocol.amount import amount, some
from spoold.protocol.heartbeat import UNCHECKED, Capabilities
from spoold.protocol.lanes import Lane
from spoold.protocol.names import key
from spoold.rules.answers.task_facts import Case, Reason, Seen
from spoold.rules.workers.matching import fits, free, shuns, unfit
from spoold.rules.workers.slots import SLOT, machine_needs, within

NAMED = 5
MUTE = "its heartbeat does not say what it can run (`capabilities`)"


def suitable(case: Case) -> tuple[list[Seen], list[Reason]]:
    """The workers that can run the task at all, and the obstacles if there are none."""
    if case.lane is None:
        return [], []
    alive = [worker for worker in case.workers if worker.alive and not worker.asleep]
    dozing = [w for w in case.workers if w.alive and w.asleep and unfit(case.lane, w.capabilities) is None]
    if not alive and not dozing and not case.mute:
        return [], [Reason("workers", "no worker is alive", starter(case.lane, case.repo))]
    why_not: dict[str, list[str]] = {MUTE: list(case.mute)} if case.mute else {}
    able = []
    for worker in alive:
        why = unfit(case.lane, worker.capabilities)
        if why is None:
            able.append(worker)
        else:
            why_not.setdefault(why, []).append(worker.node)
    if able:
        return able, []
    if dozing:
        since = some([f"{worker.node} since {worker.asleep}" for worker in dozing])
        return [], [
            Reason("asleep", f"every worker that can run it is asleep: {since}", "wake one, or start another")
        ]
    each = "; ".join(f"{some(nodes)}: {why}" for why, nodes in sorted(why_not.items()))
    return [], [Reason("capability", f"no worker alive can run it: {each}", _remedy(case.lane, alive, case.repo))]


def _remedy(lane: Lane, alive: list[Seen], repo: str) -> str:
    """The change that makes a worker able to run it: install what it lacks, if that is all; else another worker."""
    lacking = [w.node for w in alive if lane.type in w.capabilities.lacks and unfit(lane, _equipped(w, lane)) is None]
    unchecked = [w.node for w in alive if w.node in lacking and w.capabilities.lacks[lane.type] == UNCHECKED]
    if unchecked:
        return f"wait some seconds: the check runs on {some(unchecked)}"
    if lacking:
        look = "looks" if len(lacking) == 1 else "look"
        return f"install what is missing on {some(lacking)}, which {look} again every 30 s, or start one that has it"
    start = starter(lane, repo)
    if lane == Lane(lane.type, lane.run, module=lane.module):
        return start
    return f"{start}; or change what the task requires"


def _equipped(worker: Seen, lane: Lane) -> Capabilities:
    """The worker's capabilities as if it had the program for the lane's type."""
    can = worker.capabilities
    return can.model_copy(update={"lacks": {}, "handlers": (*can.handlers, lane.type)})


def room_now(case: Case, able: list[Seen]) -> list[Reason]:
    """Why the workers that could run it do not take it now."""
    assert case.lane is not None
    awake = [worker for worker in able if not worker.draining]
    if not awake:
        nodes = some([worker.node for worker in able])
        return [Reason("drain", f"every worker that can run it is draining: {nodes}", "start another worker")]
    if case.disk.full:
        return [Reason("disk", f"{case.disk.value}, so workers start nothing", case.disk.mend)]
    left = {worker.node: why for worker in awake if (why := _leaves(case, worker)) is not None}
    willing = [worker for worker in awake if worker.node not in left]
    if not willing:
        each = some([f"{node}: {why}" for node, why in left.items()])
        text = f"every worker that can run it leaves it to others for now: {each}"
        over = "each takes it when that is over, after a failure within ten minutes"
        return [Reason("left", text, f"{over}; fix the cause, or start another worker")]
    idle = [worker for worker in willing if worker.running < worker.slots]
    if not idle:
        each = some([f"{w.node} ({w.running} of {amount(w.slots, 'slot')})" for w in willing])
        text = f"every worker that can run it is busy: {each}{_queue(case)}"
        return [Reason("busy", text, "it goes on when a slot is free; more workers or slots make it faster")]
    roomy = [w for w in idle if fits(case.lane, free(w.capabilities, list(w.lanes)))]
    if crowded := _crowded(case, case.lane, idle, roomy):
        return [crowded]
    notes = sorted({note for worker in roomy for note in worker.notes})
    if notes:
        return [Reason("notes", f"its workers say: {some(notes)}", "see `spool workers`")]
    if case.ahead:
        text = f"{amount(case.ahead, 'more urgent or older task')} before it in its lane"
        return [Reason("queue", text, "a higher priority puts a task before them")]
    return []


def _crowded(case: Case, lane: Lane, idle: list[Seen], roomy: list[Seen]) -> Reason | None:
    """The task has no room on any worker with a free slot, or none that is not kept for a task before it."""
    kept = [worker.node for worker in idle if worker.keeps is not None and key(worker.keeps.task) == key(case.id)]
    keeps = f"; {some(kept)} {'keeps' if len(kept) == 1 else 'keep'} room for it" if kept else ""
    if not roomy or kept:
        nodes = some([worker.node for worker in idle])
        text = f"no worker has {_demand(lane)} free just now: {nodes}{keeps}{_queue(case)}"
        return Reason("room", text, "it goes on when tasks there end")
    needs = {**machine_needs(lane), **{f"limit {name}": float(units) for name, units in lane.uses}, SLOT: 1.0}
    held = {w.node: w.keeps.task for w in roomy if w.keeps is not None and not within(needs, w.keeps.spare)}
    if len(held) < len(roomy):
        return None
    each = some([f"{node} for {task}" for node, task in held.items()])
    text = f"every worker that has room for it keeps that for a task before it: {each}"
    return Reason("room", text, "it goes on when that one has started; a higher priority puts a task before it")


def _leaves(case: Case, worker: Seen) -> str | None:
    """Why this worker leaves the task to others for a while; None if it does not."""
    assert case.lane is not None
    return worker.avoids.get(key(case.id)) or shuns(case.lane, worker.capabilities)


def _queue(case: Case) -> str:
    return f"; {amount(case.ahead, 'task')} before it" if case.ahead else ""


def _demand(lane: Lane) -> str:
    """The task's requirements, in the form of its lane's name."""
    return lane.encode().replace(",", " ")


# The command that starts a worker which can run a lane's tasks: advice that a person can type.


FILE = "worker.toml"
# Merges are a table of their own, and no worker merges into a repository that it does not name.
REPO = "/srv/git/app.git"


def starter(lane: Lane, repo: str = "") -> str:
    """How to start a worker that can run the lane's tasks. repo: that a merge names, '' where it is not known."""
    lines = _lines(lane, repo)
    words = ["spool worker"]
    if lane.run == "command":
        words.append("--allow-command")
    if lane.need:
        words.append(f"--labels {','.join(sorted(lane.need))}")
    if lines:
        words.append(f"--config {FILE}")
    text = f"start a worker{_machine(lane)}: `{' '.join(words)}`"
    if lines:
        text = f"{text}, with {' and '.join(lines)} in {FILE}"
    if sizes := _sizes(lane):
        where = "there, too" if lines else f"into {FILE}, and add `--config {FILE}`"
        said = " and ".join(f"`{name} = {number}`" for name, number, _ in sizes)
        text = f"{text}; if it does not find that by itself, put {said} {where}"
    return text


def _lines(lane: Lane, repo: str) -> list[str]:
    """What has to be in the worker's configuration, since no option says it."""
    lines = [f'`pools = ["{lane.pool}"]`'] if lane.pool else []
    if lane.run == "handler" and lane.type == MERGE:
        lines.append(f"`[{MERGE}]` and its `repos = [{json.dumps(repo or REPO, ensure_ascii=False)}]`")
    elif lane.run == "handler":
        name = f'"{lane.type}"' if "." in lane.type else lane.type
        # A lane does not say whether its type is one of agents.
        agent = f"of an agent `[agents.{name}]` and its `cli`"
        lines.append(f'`[handlers.{name}]` and its `command = ["PROGRAM"]` ({agent})')
    if lane.run == "python":
        lines.append(f'`[python]` and its `allow = ["{lane.module}"]`')
    return lines


def _sizes(lane: Lane) -> list[tuple[str, int, str]]:
    """What the machine must have: the key of the configuration, the number, and the words."""
    cpus = math.ceil(lane.cpus)
    found = [
        ("gpus", lane.gpus, amount(lane.gpus, "gpu")),
        ("cpus", cpus, amount(cpus, "cpu")),
        ("mem_mb", lane.mem_mb, f"{lane.mem_mb} MiB of memory"),
    ]
    # Any machine has one cpu.
    return [(name, number, words) for name, number, words in found if number > (name == "cpus")]


def _machine(lane: Lane) -> str:
    """The machine that has what the task requires; '' where any has."""
    sizes = [words for _, _, words in _sizes(lane)]
    return f" on a machine with {' and '.join(sizes)}" if sizes else ""
