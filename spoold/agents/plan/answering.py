"""The words of a planner as lines: tasks, and what is none.

Law: pure. Lines keep their numbers, so that a fault names the line that a person sees. Nothing is guessed: words
around the tasks are a fault. One code fence around all of it is none, since models write it unasked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from spoold.protocol import codec
from spoold.protocol.errors import BadFile

FENCE = "```"
SHOWN_MAX = 60
ALONE = "answer with the tasks alone, one {…} a line."


@dataclass(slots=True)
class Answer:
    """What a planner answered. texts: the lines that may be tasks, by number; objects: those of them that are JSON
    objects; faults: of the other lines.
    """

    texts: dict[int, bytes] = field(default_factory=dict)
    objects: dict[int, dict[str, Any]] = field(default_factory=dict)
    faults: list[BadFile] = field(default_factory=list)


def read(words: str, file: str) -> Answer:
    """Return the lines of an answer. file: its name in the faults."""
    found = Answer()
    for numbers, text in _runs(_without_fence(words.split("\n"))):
        if not text.startswith("{"):
            found.faults.append(_no_task(numbers, text, file))
            continue
        number = numbers[0]
        data, where = text.encode(errors="backslashreplace"), f"{file} line {number}"
        found.texts[number] = data
        try:
            value = codec.load_object(data, where)
            codec.sure(data, value, where)
            found.objects[number] = value
        except BadFile:
            continue  # the judge of the line names that fault
    if not found.texts:
        found.faults.append(BadFile(file, "", "holds no task.", ALONE))
    return found


def completed(answer: Answer, batch: str, place: Mapping[str, str]) -> None:
    """Fill in what a task may leave out: its batch, and for an agent the repository and the branch of the plan."""
    for number, task in answer.objects.items():
        task.setdefault("batch", batch)
        if place and "agent" in task:
            task.setdefault("workspace", dict(place))
        answer.texts[number] = codec.dump(task)


def _without_fence(lines: list[str]) -> list[str]:
    """Return the lines, with an empty one in place of each of the two fences around all of them."""
    solid = [index for index, line in enumerate(lines) if line.strip()]
    fenced = len(solid) > 1 and lines[solid[0]].lstrip().startswith(FENCE) and lines[solid[-1]].strip() == FENCE
    ends = {solid[0], solid[-1]} if fenced else set()
    return ["" if index in ends else line for index, line in enumerate(lines)]


def _runs(lines: list[str]) -> Iterator[tuple[list[int], str]]:
    """Yield each line that may be a task, and lines of words that follow each other together, with their numbers."""
    words: list[int] = []
    first = ""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.startswith("{"):
            first = first or text
            words.append(number)
            continue
        if words and text:
            yield words, first
            words, first = [], ""
        if text:
            yield [number], text
    if words:
        yield words, first


def _no_task(numbers: list[int], text: str, file: str) -> BadFile:
    where = f"line {numbers[0]}" if len(numbers) == 1 else f"lines {numbers[0]} to {numbers[-1]}"
    shown = text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 1]}…"
    if text.startswith("["):
        return BadFile(
            f"{file} {where}", "", f"begins a list: {shown!r}.", f"write no list around the tasks; {ALONE}"
        )
    return BadFile(f"{file} {where}", "", f"no task, but words: {shown!r}.", ALONE)
