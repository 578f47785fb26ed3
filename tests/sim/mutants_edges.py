"""The laws of `after_failed` and `after_batch`, broken on purpose."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Set
from dataclasses import replace

from spoold.master.listing.batch_members import Membership
from spoold.master.state.tree_view import View
from spoold.protocol.lifecycle import State
from spoold.protocol.result import Code
from spoold.rules.gates import dependency_gates, registry
from spoold.rules.gates.facts import OVER, Conditions, Facts, Parent
from spoold.rules.gates.gate import PASS, Refuse, Verdict, Wait
from spoold.rules.scheduling.batch_members import Members, Phase
from tests.sim.mutation import Mutations, Swap

edges = Mutations(world="edges")


def _gate(judge: Callable[[Conditions, Facts], Verdict]) -> list[Swap]:
    mine = replace(dependency_gates.AFTER_FAILED, judge=judge, parts=None)
    gates = [mine if gate is dependency_gates.AFTER_FAILED else gate for gate in registry.TASK_GATES]
    return [(registry, "TASK_GATES", gates)]


@edges.add("after_failed", "A clean-up runs when any of its tasks has ended, however.")
def clean_up_after_any() -> list[Swap]:
    def ended(conditions: Conditions, facts: Facts) -> Verdict:
        named = conditions.needs_failed
        over = not named or any(facts.parent(p) in OVER for p in named)
        return PASS if over else Wait("after_failed", "none has ended")

    return _gate(ended)


@edges.add("after_failed", "A clean-up is skipped as soon as one of its tasks has completed.")
def skipped_too_early() -> list[Swap]:
    whole = dependency_gates.judge_after_failed

    def hasty(conditions: Conditions, facts: Facts) -> Verdict:
        if any(facts.parent(p) is Parent.COMPLETED for p in conditions.needs_failed):
            return Refuse("after_failed", Code.SKIPPED, "one has completed")
        return whole(conditions, facts)

    return _gate(hasty)


@edges.add("after_failed", "A task that was skipped counts as one that failed.")
def skipped_is_failed() -> list[Swap]:
    parent = View.parent

    def failed(self: View, task_id: str) -> Parent:
        state = parent(self, task_id)
        return Parent.FAILED if state is Parent.SKIPPED else state

    return [(View, "parent", failed)]


@edges.add("after_batch", "A batch is over when no task of it is known to be open: drops are not looked at.")
def drops_not_awaited() -> list[Swap]:
    def at_once(
        self: Members,
        batch: str,
        behind: Callable[[], Set[str]],
        drops: Collection[str] | None,
        door: Callable[[], Set[Hashable]],
    ) -> Phase:
        watch = self._watched[batch]
        watch.phase = Phase.OVER if self._ended(batch, behind) else Phase.OPEN
        return watch.phase

    return [(Members, "advance", at_once)]


@edges.add("after_batch", "A new leader does not read the tasks that it did not admit.")
def inherited_tasks_not_read() -> list[Swap]:
    return [(Members, "came", lambda self, task_key, file: None)]


@edges.add("after_batch", "A task that goes back for another attempt counts as ended.")
def returned_is_ended() -> list[Swap]:
    step = Membership.step

    def hasty(self: Membership, desk: object) -> int:
        view = desk.view  # type: ignore[attr-defined]
        for task_key, place in view.where.items():
            if place.state in (State.RETURNED, State.CLAIMED):
                view.members.left(task_key)
        return step(self, desk)  # type: ignore[arg-type]

    return [(Membership, "step", hasty)]
