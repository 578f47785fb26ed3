"""A task for an agent, as people write it: `agent`, a `prompt`, and what counts as done.

    {"agent": "coder", "prompt": "Fix the typo in README.md", "accept": ["pytest -q"]}

It is a short form: `agent` is the type, and the other fields belong into `input`, where the handler of that type
finds them. So no node has to know what an agent is.

Law: the short form and the long one are one task, and both are held to the same rules. Nothing is guessed: a field
that stands in both places, or is of the wrong kind, is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from spoold.protocol.errors import WrongValue

AGENT = "agent"
RESUMES = ("session", "work", "no")
CONDITIONS = ("nonempty", "file", "regex", "schema", "command")
# The type of a task that merges the work of agents.
MERGE = "merge"
# One word of a command line or a name: longer ones are a mistake.
WORD_MAX = 200
# In a prompt, {deps.ID.output} is an output of another task, or what is in it, by names and numbers:
# {deps.ID.output.FIELD.0.OTHER}, also {….output.a[0]}. In two pairs of braces it stands for itself, in one.
NAMED = r"\{deps\.([A-Za-z0-9][A-Za-z0-9_=+,.-]*?)\.output((?:\.[\w-]+|\[[0-9]+\])*)\}"
FILLED = re.compile(rf"(\{{)?{NAMED}(?(1)\}})")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@/+=-]*")
# The parts of a workspace that a task may choose. The commands that set it up are the worker's own.
PLACE = ("repo", "base", "kind", "keep_s")


def expanded(task: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the task in the long form; a task that names no agent as it is. Errors: WrongValue."""
    if AGENT not in task:
        if named := [name for name in ("prompt", "prompt_file") if name in task]:
            raise WrongValue(
                f"{named[0]} belongs to a task with an agent", 'add "agent": "NAME", or put it into input'
            )
        return task
    for name in ("type", "command", "python"):
        if task.get(name) is not None:
            raise WrongValue(f"agent and {name} both say what runs the task", "keep one of them")
    own = task.get("input")
    if not isinstance(own, Mapping | None):
        raise WrongValue("the input of a task for an agent is not an object", 'write {"name": value}')
    said = {name: task[name] for name in CHECKS if name in task}
    if twice := [name for name in said if own and name in own]:
        raise WrongValue(f"{twice[0]} stands in the task and in its input", "keep one of them")
    found = {**(own or {}), **said}
    check(found)
    rest = {name: value for name, value in task.items() if name not in CHECKS and name not in (AGENT, "input")}
    return {**rest, "type": task[AGENT], "input": found}


def check(found: Mapping[str, Any]) -> None:
    """Refuse an input that is no errand for an agent. Other fields are the submitter's own. Errors: WrongValue."""
    given = [name for name in ("prompt", "prompt_file") if found.get(name) is not None]
    if len(given) != 1:
        problem = "prompt and prompt_file both say what to do" if given else "a task for an agent has no prompt"
        raise WrongValue(problem, "keep one of them" if given else "add a prompt, or a prompt_file of the workspace")
    for name, judge in CHECKS.items():
        if found.get(name) is not None:
            judge(name, found[name])


def is_errand(found: Any) -> bool:
    """Whether the input of a task may be an errand for an agent."""
    return isinstance(found, Mapping) and any(isinstance(found.get(name), str) for name in ("prompt", "prompt_file"))


def filled_in(prompt: str) -> list[str]:
    """Return what in a prompt an output takes the place of, each once, as it stands there."""
    return list(dict.fromkeys(found[0] for found in FILLED.finditer(prompt) if not found[1]))


def commands(value: Any) -> list[list[str]]:
    """Return commands as lists of words: a text is a line for the shell. value: as `check` lets it pass."""
    return [["/bin/sh", "-c", one] if isinstance(one, str) else list(one) for one in _listed(value)]


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, str) else list(value)


def _text(name: str, value: Any) -> None:
    if not isinstance(value, str) or not value.strip():
        raise WrongValue(f"{name} is not a text, or is empty", "write what the agent is to do")


def _word(name: str, value: Any) -> None:
    if not isinstance(value, str) or not is_word(value):
        raise WrongValue(
            f"{name} is not a name", f"write 1 to {WORD_MAX} of A-Z a-z 0-9 _ . : @ / + = - that begin with no sign"
        )


def is_word(text: str) -> bool:
    """Whether the text is one plain word for a command line: nothing in it means anything to a shell."""
    return len(text) <= WORD_MAX and _WORD.fullmatch(text) is not None


def _path(name: str, value: Any) -> None:
    parts = value.split("/") if isinstance(value, str) else [""]
    if not parts[0] or ".." in parts or "\0" in str(value):
        raise WrongValue(f"{name} is not a path in the workspace", "write it relative to the workspace, without '..'")


def _turns(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 100_000:
        raise WrongValue(f"{name} is not a whole number above 0", "write how many turns the agent may take")


def _switch(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise WrongValue(f"{name} is neither true nor false", "write one of them, without quotes")


def _resume(name: str, value: Any) -> None:
    if value not in RESUMES:
        raise WrongValue(f"{name} is {value!r}", f"use one of {', '.join(RESUMES)}")


def _commands(name: str, value: Any) -> None:
    if not isinstance(value, str | list | tuple) or not value:
        raise WrongValue(f"{name} is not a list of commands", 'write ["make test"], or [["make", "test"]]')
    for one in _listed(value):
        words = (one,) if isinstance(one, str) else one
        sound = isinstance(words, list | tuple) and all(isinstance(word, str) and "\0" not in word for word in words)
        if not sound or not words or not words[0].strip():
            raise WrongValue(f"{name} holds what is no command: {one!r}", "write a line for the shell, or its words")


def _command(name: str, value: Any) -> None:
    _commands(name, value if isinstance(value, str) else [value])


def _conditions(name: str, value: Any) -> None:
    if not isinstance(value, Mapping) or not value:
        raise WrongValue(f"{name} is not an object with conditions", f"use {', '.join(CONDITIONS)}")
    for condition, wanted in value.items():
        if condition not in CONDITIONS:
            raise WrongValue(f"{name}.{condition} is no condition", f"use {', '.join(CONDITIONS)}")
        _CONDITION[condition](f"{name}.{condition}", wanted)


def _pattern(name: str, value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise WrongValue(f"{name} is not a regular expression", "write one, in quotes")


def _schema(name: str, value: Any) -> None:
    if not isinstance(value, Mapping | bool):
        raise WrongValue(f"{name} is no JSON schema", 'write one, such as {"type": "object"}')


def _place(name: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise WrongValue(f"{name} is not an object", 'write {"repo": "URL or path", "base": "main"}')
    for part, wanted in value.items():
        if part not in PLACE:
            known = ", ".join(PLACE)
            raise WrongValue(f"{name}.{part} is not a task's to choose", f"use {known}; the rest is in the profile")
        if part == "keep_s":
            if isinstance(wanted, bool) or not isinstance(wanted, int | float) or not 0 <= wanted < float("inf"):
                raise WrongValue(f"{name}.{part} is not a number of seconds", "write 0 or more")
        elif not isinstance(wanted, str) or wanted.startswith("-") or "\0" in wanted or not wanted:
            raise WrongValue(f"{name}.{part} is not a text, or begins with -", "write it in quotes")


Judge = Callable[[str, Any], None]
_CONDITION: Mapping[str, Judge] = {
    "nonempty": _switch,
    "file": _path,
    "regex": _pattern,
    "schema": _schema,
    "command": _command,
}
# The fields of a task for an agent → what each has to be.
CHECKS: Mapping[str, Judge] = {
    "prompt": _text,
    "prompt_file": _path,
    "model": _word,
    "max_turns": _turns,
    "accept": _commands,
    "success_if": _conditions,
    "must_change": _switch,
    "workspace": _place,
    "resume": _resume,
}
