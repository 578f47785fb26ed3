"""What the scripted model makes of a prompt: a plan, an edit, or a conflict resolved.

The work: features f01 to fNN, each a file of its own. The first and the last one also write into the last line of
CHANGES.md, so that they conflict. Where a prompt says so, an edit copies a file of a submodule, or makes a
large file. Law: pure, and nothing is said but what the prompt asks for: ids, agents, repository and merge are those
that stand in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

GROUPS = 3
# The edit during which its laptop is killed, and the one whose quota is used up. The latter has no retry to spend.
SLOW, SPENT = 2, 3
LEAST = 4
CHANGES = "CHANGES.md"
WORD, LARGE = "lib/word.txt", "large"  # the file of a submodule, and the folder of large files
SUITE = "python3 -B -m unittest -q"
_PREFIX = re.compile(r'begins with "(\S+)-"')
_COUNT = re.compile(r"Add (\d+) features")
_AGENTS = re.compile(r"Use one of: (.+)\.")
_EDIT = re.compile(r"Edit f(\d+): ")
_MERGE = re.compile(r"Run: git merge ([0-9a-f]{40})")
_TELLS = f"Say so in the last line of {CHANGES}."
_COPIES = f"Copy {WORD} beside it."
_LARGE = f"Make a file of 300,000 bytes in {LARGE}/, too."
_MARKS = r"/^<<<<<<< /d; /^=======$/d; /^>>>>>>> /d"


@dataclass(frozen=True, slots=True)
class Thought:
    """What is to be done: a line for a shell first (none for a plan), then the words. edit: of which feature."""

    words: str
    line: str = ""
    edit: str = ""


def feature(number: int) -> str:
    """Return the name of a feature."""
    return f"f{number:02d}"


def wish(count: int) -> str:
    """Return what the planner is asked for."""
    return (
        f"Add {count} features to the application, {feature(1)} to {feature(count)}. Feature fNN is the file "
        "features/fNN.py, with a function value() that returns NN."
    )


def think(prompt: str) -> Thought | None:
    """Return what a prompt asks for; None for one that is not ours."""
    if found := _MERGE.search(prompt):
        line = f"git merge -q {found[1]} || sed -i '{_MARKS}' {CHANGES} && git add -A && git commit -q --no-edit"
        return Thought("Both lines are kept.", line)
    if found := _COUNT.search(prompt):
        return Thought("\n".join(json.dumps(task) for task in plan(int(found[1]), prompt)))
    if edits := _EDIT.findall(prompt):
        # The last one: some agents begin with the files and the last commits of the repository.
        return _edit(int(edits[-1]), prompt)
    return None


def asked_for(number: int, *, tells: bool = False, copies: bool = False, large: bool = False) -> str:
    """Return the prompt of an edit. tells: it also writes into the shared line; copies: the file of the submodule;
    large: it makes a large file, too."""
    more = ((tells, _TELLS), (copies, _COPIES), (large, _LARGE))
    name = feature(number)
    what = f"Edit {name}: make features/{name}.py, with a function value() that returns {number}."
    return " ".join([what, *(words for asked, words in more if asked)])


def plan(count: int, prompt: str) -> Iterator[dict[str, Any]]:
    """Yield the tasks: the edits, and a merge after each group of them."""
    prefix, agents, merge = _PREFIX.search(prompt), _AGENTS.search(prompt), _merge(prompt)
    names = [name for name in (agents[1].split(", ") if agents else []) if name != "planner"]
    start, agent = prefix[1] if prefix else "plan", names[0] if names else "coder"
    size = -(-count // GROUPS)
    for first in range(1, count + 1, size):
        group = range(first, min(first + size, count + 1))
        ids = [f"{start}-{feature(number)}" for number in group]
        for number, task_id in zip(group, ids, strict=True):
            tells = number in (1, count)
            # What tells of itself in the same line as another one begins early, so that it does not see the other.
            early = {"priority": "high"} if tells else {}
            name = feature(number)
            yield {
                "id": task_id,
                "agent": agent,
                "prompt": asked_for(number, tells=tells),
                "must_change": True,
                "accept": [SUITE, f"python3 -B -c 'from features.{name} import value; assert value() == {number}'"],
                **early,
                **({"max_retries": 0} if number == SPENT else {}),
            }
        if merge is not None:
            said = {**merge["input"], "tasks": ids, "agent": agent, "ask_s": 0}
            yield {**merge, "id": f"{start}-land-{first}", "after": ids, "input": said}


def _merge(prompt: str) -> dict[str, Any] | None:
    """Return the merge that the prompt shows."""
    for line in prompt.splitlines():
        if line.startswith("{") and '"type": "merge"' in line:
            found: dict[str, Any] = json.loads(line)
            return found
    return None


def _edit(number: int, prompt: str) -> Thought:
    name = feature(number)
    line = f"printf 'def value():\\n    return {number}\\n' > features/{name}.py"
    if _TELLS in prompt:
        line += f" && sed -i '$s/.*/- {name} is there/' {CHANGES}"
    if _COPIES in prompt:
        line += f" && cp {WORD} features/{name}.txt"
    if _LARGE in prompt:
        line += f" && yes {name} | head -c 300000 > {LARGE}/{name}.bin"
    return Thought(f"features/{name}.py is there.", line, name)
