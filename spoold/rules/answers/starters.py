"""The command that starts a worker which can run a lane's tasks: advice that a person can type.

Law: each word is one that `spool worker` or its configuration reads. What the task requires of a machine is never
only a line in a file: that line is for a machine that has it and does not find it by itself.
"""

from __future__ import annotations

import json
import math

from spoold.protocol.amount import amount
from spoold.protocol.errand import MERGE
from spoold.protocol.lanes import Lane

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
