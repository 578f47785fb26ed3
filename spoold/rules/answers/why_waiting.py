"""Why a task waits or is ready, and what would change that: the part of `explain` that asks the gates, and looks at
machines.

Law: the gates and `matching` decide, as for the leader and the workers themselves. A gate's words come from the gate.
One gate alone is named here: of the workers that keep `worker` closed, `suitable` says more. Workers in the same
situation are named together.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from spoold.protocol.agent_fields import MERGE
from spoold.protocol.amount import amount, length, some
from spoold.protocol.heartbeat import UNCHECKED, Capabilities
from spoold.protocol.lanes import Lane
from spoold.protocol.names import key
from spoold.protocol.result import Code, Status
from spoold.rules.answers.task_facts import Answer, Case, Reason, Seen, first_of, leadership, unread
from spoold.rules.answers.why_failed import SPENT, anew
from spoold.rules.gates import limit_gates
from spoold.rules.gates.facts import Facts, Held, Parent
from spoold.rules.gates.gate import Pass, Refuse, Verdict, Wait
from spoold.rules.gates.registry import change, detail, judge, judge_ready, judge_type, parts
from spoold.rules.scheduling.fallback_types import is_closed
from spoold.rules.workers.matching import fits, free, shuns, unfit
from spoold.rules.workers.slots import SLOT, machine_needs, within

# West of Greenwich a task may name a moment beyond the years that UTC can write.
_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
MUTE = "its heartbeat does not say what it can run (`capabilities`)"


def waiting(case: Case) -> Answer:
    """Why a task of waiting/ or returned/ does not become ready."""
    reasons = [*unread(case), *_task_gates(case)]
    hindrances = suitable(case)[1]
    of_type = list(_type_gates(case))
    if hindrances and any(reason.gate == limit_gates.WORKER for reason in of_type):
        of_type, hindrances = hindrances, []
    reasons += of_type
    reasons += _instead(case)
    reasons += leadership(case)
    if case.turn:
        change = (
            "nothing: each start brings its turn nearer; `[fair]` in the settings gives a share more starts in one"
        )
        reasons.append(Reason("turn", case.turn, change))
    if case.standing >= case.window:
        text = f"its lane is full: {case.standing} stand ready there, {case.ahead} wait before it"
        reasons.append(Reason("window", text, "it moves up as they are taken; more workers or slots make it faster"))
    reasons += hindrances
    verdict = first_of(reasons, f"nothing stands in its way: {case.leader} moves it to ready/ within moments")
    return verdict, [*reasons, *_handed_back(case, reasons)]


def ready(case: Case) -> Answer:
    """Why a task of ready/ is not taken."""
    held = judge_ready(case.conditions, _facts(case))
    reasons = [*unread(case), *([] if isinstance(held, Pass) else [_reason(case, held)])]
    reasons += _type_gates(case, ready=True)
    reasons += _ready_instead(case)
    able, hindrances = suitable(case)
    reasons += hindrances
    reasons += room_now(case, able) if able else []
    verdict = first_of(reasons, "it is ready: a worker takes it within moments")
    return verdict, [*reasons, *_handed_back(case, reasons)]


def _instead(case: Case) -> Iterator[Reason]:
    """As which other types a task may run that a closed limit of its own holds, and what keeps it from that."""
    if case.lane is None or not case.others or not is_closed(case.lane.type, case.type):
        return
    for kind, facts in case.others:
        verdict = judge_type(kind, facts)
        if isinstance(verdict, Pass):
            yield Reason("instead", f"it goes to {kind} meanwhile, which is open", "nothing: it goes within moments")
            return
        found = _reason(replace(case, lane=case.lane.under(kind), type=facts), verdict)
        yield Reason("instead", f"as {kind} it would wait, too: {found.reason}", found.change, found.until)


def _ready_instead(case: Case) -> Iterator[Reason]:
    """Why a task is ready as another type."""
    if case.lane is None or not case.lane.instead_of or case.home is None:
        return
    own = replace(case, lane=case.lane.under(case.lane.instead_of), type=case.home)
    found = next(_type_gates(own), None)
    why = f"since {found.reason}" if found is not None else f"and {case.lane.instead_of} is open again"
    change = f"once no limit of {case.lane.instead_of} is closed, it goes back, unless a worker has it by then"
    yield Reason("instead", f"it goes to {case.lane.type}, {why}", change)


def _handed_back(case: Case, reasons: list[Reason]) -> Iterator[Reason]:
    """Why a task has come back from a worker, unless a gate has said so already."""
    last = case.last
    if last is None or last.status != Status.HANDED_BACK or any(case.before in r.reason for r in reasons):
        return
    text = f"attempt {last.number} was handed back by {last.by}{f': {last.message}' if last.message else ''}"
    yield Reason("handed_back", text, "nothing: that charged nothing, and the next attempt begins anew")


def _task_gates(case: Case) -> Iterator[Reason]:
    """The leader's own verdict first, then each part that would still hold without it."""
    conditions, facts = case.conditions, _facts(case)
    # The whole verdict comes first; its parts name the parents more exactly.
    found: dict[Verdict, tuple[str, ...]] = {judge(conditions, facts): (), **dict(parts(conditions, facts))}
    for verdict, about in found.items():
        if not isinstance(verdict, Pass):
            yield _reason(case, verdict, about)


def _type_gates(case: Case, *, ready: bool = False) -> Iterator[Reason]:
    if case.lane is not None:
        verdict = judge_type(case.lane.type, case.type, ready=ready)
        if not isinstance(verdict, Pass):
            yield _reason(case, verdict)


def _facts(case: Case) -> Facts:
    def parent(task_id: str) -> Parent:
        return case.parents.get(task_id, Parent.UNKNOWN)

    facts = Facts(case.now, parent, case.rest_s, key(case.id), _kind(case), type=case.type, more=case.type.more)
    return replace(facts, order=case.order, requested=case.requested, file=case.file)


def _kind(case: Case) -> str:
    return case.lane.type if case.lane is not None else ""


def _reason(case: Case, verdict: Wait | Refuse, about: tuple[str, ...] = ()) -> Reason:
    """A gate's verdict with its fix; about: the parents concerned."""
    if isinstance(verdict, Refuse) and verdict.code is Code.SKIPPED:
        return Reason(
            verdict.gate, verdict.reason, f"the leader skips it; `spool retry {case.id}` asks the gates anew"
        )
    if isinstance(verdict, Refuse):
        then = anew(case.id) if verdict.code in SPENT else f"fix the cause, then `spool retry {case.id}`"
        return Reason(verdict.gate, verdict.reason, f"the leader fails it as {verdict.code}; {then}")
    facts = (case.id, _kind(case), case.type, case.parents, case.places, case.asked, case.before, case.above)
    lane = case.lane.encode() if case.lane is not None else ""
    held = Held(*facts, case.conditions, case.file, lane, case.ahead, case.in_line)
    text, until = verdict.reason, verdict.until
    if until is not None:
        stamp = datetime.fromtimestamp(min(until, _LAST), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        text = f"{text}: {length(max(until - case.now, 0))} more, until {stamp}"
    if said := detail(held, verdict):
        text = f"{text}; {said}"
    return Reason(verdict.gate, text, change(held, verdict, about), until)


# The workers' side: which of them could take a task, and what keeps those that could.


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
