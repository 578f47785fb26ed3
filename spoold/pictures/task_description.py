"""What a task runs, and what decides that, in lines for people: a yes to a task is a yes to these.

Law: every field of a task is in `parts`, but for those of SAID_ELSEWHERE; a field that nobody thought of is drawn as
JSON. Each line of a command, a prompt or another text is a line of its own, with its number where there are several,
so that no line can look like a part of the one before it. Nothing is cut, and nothing hidden stays hidden (`exact`).
What a task names and is read elsewhere when it runs is no part of such a yes: the last part says so of each (`READ`).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spoold.pictures.wording import columns, exact, is_hidden
from spoold.protocol import agent_fields, codec
from spoold.protocol.amount import amount
from spoold.protocol.errors import BadFile
from spoold.protocol.task import Task

# The id stands above each drawing, and when a task was written decides nothing.
SAID_ELSEWHERE = ("id", "created_at")
# The fields of a task in the order in which they are drawn, after what it runs; any other one comes after these.
ORDER = (
    *("type", "command", "python", "args", "kwargs", "calls", "stdin", "input", "env", "cwd"),
    *("dependencies", "after_any", "after_failed", "after_batch", "not_before", "deadline", "hold", "approval"),
    *("uses", "locks", "requires", "pool", "bulkhead", "budgets", "budget", "timeout", "stall_timeout", "retry"),
    *("max_retries", "retry_count", "artifacts", "priority", "batch", "parent", "depth", "name", "labels", "meta"),
)
_LABELS = {"dependencies": "after", "bulkhead": "class"}
# Words that are told to a model, or are data: a face may fold them where they are long.
_FOLDS = frozenset({"prompt", "input", "meta"})
# A value of so many characters at most is drawn as JSON on one line; of others each part is.
SHORT = 80
# A prompt of more than this may be folded.
FOLDED_LINES, FOLDED_CHARACTERS = 40, 4000
# The label of what the task's own file does not hold.
READ = "no part of an approval, read when it runs"
# The fewest columns in which lines are wrapped.
NARROWEST = 24


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a task says. label: '' for none; lines: whole, each without anything hidden.

    hidden: how many characters became escapes; folds: whether a face may show it folded where it is long.
    """

    label: str
    lines: tuple[str, ...]
    hidden: int = 0
    folds: bool = False

    @property
    def long(self) -> bool:
        """Whether it is so long that a face may show it folded."""
        return self.folds and (len(self.lines) > FOLDED_LINES or sum(map(len, self.lines)) > FOLDED_CHARACTERS)

    @property
    def title(self) -> str:
        """The label, with what has to be known of the lines below it."""
        notes = [amount(len(self.lines), "line")] if len(self.lines) > 1 else []
        if self.hidden:
            notes.append(f"{amount(self.hidden, 'hidden character')} as escapes")
        return f"{self.label} ({', '.join(notes)})" if notes else self.label


def parts_of(content: Mapping[str, Any], where: str = "the task") -> tuple[Part, ...]:
    """Return the same for the content of a task file; of one that is no task, each field as it stands."""
    try:
        return parts(codec.check(Task, dict(content), where))
    except BadFile:
        return tuple(part for name, value in content.items() for part in _values(exact(name), value))


def parts(task: Task, elsewhere: Collection[str] = ()) -> tuple[Part, ...]:
    """Return all that a task says, first what it runs. elsewhere: fields that the caller draws by itself."""
    left = [*ORDER, *(name for name in type(task).model_fields if name not in ORDER)]
    found: list[Part] = []
    for name in left:
        if name in SAID_ELSEWHERE or name in elsewhere:
            continue
        value, field = getattr(task, name), type(task).model_fields[name]
        if value != field.get_default(call_default_factory=True):
            found += _field(task, name, value)
    read = tuple(_read(task))
    return (*found, Part(READ, read)) if read else tuple(found)


def drawn(some: Iterable[Part], width: int | None = None, indent: str = "") -> list[str]:
    """Return the parts as lines of text. A part of one line stands beside its label; of others each line has its
    number. width: in columns, None for lines of any length; what goes on in another line begins with `+|`.
    """
    found: list[str] = []
    room = None if width is None else max(NARROWEST, width - len(indent))
    for part in some:
        if len(part.lines) == 1:
            beside = f"{part.title}: {part.lines[0]}" if part.label else part.lines[0]
            first, *more = _wrapped(beside, room, 5)
            found += [first, *(f"  +| {piece}" for piece in more)]
            continue
        found.append(part.title)
        digits = len(str(len(part.lines)))
        for number, line in enumerate(part.lines, 1):
            first, *more = _wrapped(line, None if room is None else room - digits - 4, 0)
            found.append(f"  {number:>{digits}}| {first}" if line else f"  {number:>{digits}}|")
            found += [f"  {'+':>{digits}}| {piece}" for piece in more]
    return [f"{indent}{line}" for line in found]


def _wrapped(text: str, room: int | None, mark: int) -> list[str]:
    """Return a line in pieces of so many columns; mark: the columns before each but the first."""
    if room is None or columns(text) <= room:
        return [text]
    room -= mark
    pieces, piece, left = [], "", room
    for char in text:
        size = columns(char)
        if size > left:
            pieces.append(piece)
            piece, left = "", room
        piece, left = piece + char, left - size
    return [*pieces, piece]


def _field(task: Task, name: str, value: Any) -> Iterator[Part]:
    label = _LABELS.get(name, name)
    match name:
        case "command":
            yield _text(label, command_line(value))
        case "env":
            for variable, said in value.items():
                yield _text(f"env {exact(variable)}", said)
        case "input" if task.run == "handler" and isinstance(value, Mapping):
            yield from _errand(value)
        case "dependencies" | "after_any" | "after_failed":
            yield Part(label, (", ".join(value),))
        case "retry" | "requires" | "locks" | "approval":
            yield from _members(label, value.model_dump(mode="json", exclude_defaults=True))
        case "deadline" | "not_before":
            yield Part(label, (value.isoformat(),))
        case _ if isinstance(value, str) and name != "input":
            yield _text(label, value)
        case _:
            yield from _values(label, value)


def command_line(value: str | Sequence[str]) -> str:
    """Return a command as a shell reads it: a line for the shell as it is, words in quotes where they need them."""
    return value if isinstance(value, str) else shlex.join(value)


def _errand(said: Mapping[str, Any]) -> Iterator[Part]:
    """Yield what an agent, or another handler, is told: the fields of a task for an agent by their own names."""
    known = [name for name in agent_fields.CHECKS if said.get(name) is not None]
    for name in known:
        value = said[name]
        if name == "accept" and _is_commands(value):
            many = [value] if isinstance(value, str) else list(value)
            for number, one in enumerate(many, 1):
                yield _text(f"accept {number}" if len(many) > 1 else "accept", command_line(one))
        elif name == "success_if" and isinstance(value, Mapping):
            for condition, wanted in value.items():
                if condition == "command" and _is_commands([wanted]):
                    yield _text("success_if.command", command_line(wanted))
                else:
                    yield from _values(f"success_if{_member(condition)}", wanted)
        elif isinstance(value, str):
            yield _text(name, value, folds=name in _FOLDS)
        else:
            yield from _members(name, value)
    yield from _members("input", {name: value for name, value in said.items() if name not in known})


def _read(task: Task) -> Iterator[str]:
    """Yield what the agent of a task is told that its file does not hold: nobody can have seen it before."""
    said = task.input if task.run == "handler" and isinstance(task.input, Mapping) else {}
    prompt, file = said.get("prompt"), said.get("prompt_file")
    if isinstance(file, str):
        yield f"prompt_file {exact(file)}, as its workspace has it then"
    if isinstance(prompt, str):
        yield from (f"the output for {exact(one)} in the prompt" for one in agent_fields.filled_in(prompt))
    if task.approval is not None and (prompt is not None or file is not None):
        yield "messages to its agent (spool tell), what earlier attempts left"


def _is_commands(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list | tuple)
        and all(
            isinstance(one, str)
            or (isinstance(one, list | tuple) and one and all(isinstance(word, str) for word in one))
            for one in value
        )
    )


def _members(label: str, value: Any) -> Iterator[Part]:
    """Yield each member of an object by its own name; any other value as `_values`."""
    if not isinstance(value, Mapping):
        yield from _values(label, value)
        return
    for name, inner in value.items():
        yield from _values(f"{label}{_member(name)}", inner)


def _values(label: str, value: Any) -> Iterator[Part]:
    """Yield a JSON value: on one line where it is short, else member by member. It may be nested deeply."""
    folds = label.partition(".")[0].partition("[")[0] in _FOLDS
    stack: list[tuple[str, Any]] = [(label, value)]
    while stack:
        path, one = stack.pop()
        if isinstance(one, str) and not _is_short(one):
            yield _text(path, one, folds=folds)
        elif isinstance(one, Mapping) and not _is_short(one):
            stack += [(f"{path}{_member(name)}", inner) for name, inner in reversed(list(one.items()))]
        elif isinstance(one, list | tuple) and not _is_short(one) and not _is_row(one):
            stack += [(f"{path}[{number}]", one[number]) for number in reversed(range(len(one)))]
        else:
            yield _text(path, json.dumps(one, ensure_ascii=False, default=str), folds=folds)


def _is_row(some: Sequence[Any]) -> bool:
    """Whether it is a list of numbers and the like: however long, it is one line."""
    return all(one is None or isinstance(one, int | float) for one in some)


def _member(name: object) -> str:
    text = str(name)
    return (
        f".{text}" if text.isascii() and text.isidentifier() else f"[{exact(json.dumps(text, ensure_ascii=False))}]"
    )


def _is_short(value: Any) -> bool:
    """Whether a value is drawn on one line as JSON: it is small, and no text in it has several lines."""
    left, stack = SHORT, [value]
    while stack and left >= 0:
        one = stack.pop()
        if isinstance(one, Mapping):
            stack += [*one.keys(), *one.values()]
            left -= 2
        elif isinstance(one, list | tuple):
            stack += one
            left -= 2
        elif isinstance(one, str):
            left = -1 if "\n" in one else left - len(one) - 2
        else:
            left -= 4
    return left >= 0


def _text(label: str, text: str, *, folds: bool = False) -> Part:
    """Return a text, in the lines that its line feeds make."""
    lines = text.split("\n")
    hidden = sum(is_hidden(char) for line in lines if not line.isprintable() or not line.isascii() for char in line)
    return Part(label, tuple(map(exact, lines)), hidden, folds)
