"""A scenario file as commands and what they print; and back again, with what they print now.

Law: this room knows the form and nothing of spools. Whatever is not indented by four spaces is prose.

    $ command words          a command
    > a further line         its input
    anything else            what it prints
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

INDENT = "    "


@dataclass(slots=True)
class Command:
    """One command: the line of the file it is in (from 1), its text, its input lines, and what it should print."""

    line: int
    text: str
    given: list[str] = field(default_factory=list)
    prints: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Scenario:
    """A file: prose and commands in order."""

    path: Path
    parts: list[str | Command]

    @property
    def commands(self) -> list[Command]:
        """The commands alone."""
        return [part for part in self.parts if isinstance(part, Command)]

    def render(self) -> str:
        """The text of the file."""
        lines: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                lines.append(part)
                continue
            lines.append(f"{INDENT}$ {part.text}")
            lines += [f"{INDENT}> {line}".rstrip() for line in part.given]
            lines += [f"{INDENT}{line}" for line in part.prints]
        return "\n".join(lines) + "\n"


def read(path: Path) -> Scenario:
    """A scenario file. Errors: ValueError for input or output without a command, or a file without a title."""
    parts: list[str | Command] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        body = line.removeprefix(INDENT)
        if body == line:
            parts.append(line)
        elif body.startswith("$ "):
            parts.append(Command(number, body[2:]))
        elif not parts or not isinstance(parts[-1], Command):
            raise ValueError(f"{path.name}:{number}: no command stands before {body!r}")
        elif body == ">" or body.startswith("> "):
            parts[-1].given.append(body[2:])
        else:
            parts[-1].prints.append(body)
    if not parts or not str(parts[0]).startswith("# "):
        raise ValueError(f"{path.name}: a scenario begins with a title: # What it shows")
    return Scenario(path, parts)
