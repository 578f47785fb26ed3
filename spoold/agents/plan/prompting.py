"""The task of a planner, and what it is told: the work, the format, and who is there to do it.

Law: pure. All that a plan needs is in the prompt, so that any agent can plan, with tools or without.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from spoold.agents.merge.wanted import merge_task
from spoold.agents.prompting import literal
from spoold.client.spool.capabilities import Served
from spoold.protocol.agent_fields import MERGE

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
