"""A plan that waits for a person: one of its tasks asks, and everything else comes after it.

The plan's only root asks by itself. Where there are several, one more task asks, which runs `true`. That one has the
drawing of the whole plan in its `meta.plan`, since that is what a person says yes to.

Law: pure. A plan that is rejected runs nothing, not even what would clean up after a failure: each task without a
dependency in the plan comes after the one that asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spoold.agents.plan.drawing import Plan
from spoold.client.agents import Served
from spoold.protocol.errors import SpoolError

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
