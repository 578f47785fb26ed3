"""What an adapter is: an errand becomes a command, and lines of output become events in one normal form.

Law: pure. An adapter is made anew for each attempt and may remember what it has read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

# "session": the session that was to be resumed is gone, torn, or cannot be read. The word "away" says
# that the model has not answered, for a fault of the network or of its server: nothing was paid.
Fault = Literal[
    "quota", "rate", "auth", "input", "context", "refusal", "transient", "permission", "budget", "session", "away"
]
Cost = Literal["reported", "estimated", "unknown"]
# Whether the usage events of one attempt are to be summed, or the last one says all: in a resumed session, also
# what earlier attempts used. Both count subagents.
Counting = Literal["sum", "last"]


@dataclass(frozen=True, slots=True)
class Errand:
    """What an agent shall do. prompt: its text, up to some MiB; workspace: where it works; home: an empty private
    folder for settings and sessions, kept with the workspace; session: the one to resume, '' for a new one;
    max_tokens: of one answer of the model; git: the git directory of a repository that is this attempt's own, in
    which the agent may commit, '' for none; trace: where it shall send its spans, '' for nowhere."""

    prompt: str
    workspace: str
    home: str
    model: str = ""
    session: str = ""
    max_turns: int | None = None
    args: Sequence[str] = ()
    command: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    max_tokens: int | None = None
    temperature: float | None = None
    git: str = ""
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Start:
    """How to start the program. stdin: what it reads, after which stdin is closed; files: to be written first, by
    absolute path; logs: files of the program in which it says what it hides in its output (retries), to be followed.
    """

    argv: tuple[str, ...]
    stdin: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    logs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost in USD. tokens_in is without what was cached. sure: these are all; else it used at least so
    much, and how much more is unknown."""

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost_usd: float = 0.0
    cost: Cost = "unknown"
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error, classed. until: when a quota or rate opens again (epoch, s), None where it was not said."""

    fault: Fault
    message: str
    until: float | None = None
    final: bool = True


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that was said; the fields that are set say which. text: the agent's words; tool: the name of a tool
    that it called; verb, said: a line of the protocol of `generic`; done: the agent says it ended. by: of a usage,
    the session whose it is; helper: the session of a subagent that was started, whose usage comes by itself; least:
    what was used at the least, by another count, since usage may be missing.
    """

    session: str = ""
    text: str = ""
    tool: str = ""
    usage: Usage | None = None
    trouble: Trouble | None = None
    verb: str = ""
    said: Mapping[str, object] | None = None
    done: bool = False
    by: str = ""
    helper: str = ""
    least: Usage | None = None


class Adapter(Protocol):
    """One agent's command line. Made anew for each attempt: `make()` of each module in `adapters` returns one.

    package: of npm, which brings the program; '' where nobody knows. takes: which of model, max_tokens and
    temperature it can be given; by_model: which of these only together with a model.

    asks_at: the host where its model is asked, by the provider that its model's name begins with, '' for any other;
    empty where nobody knows that. address: the variable that names another address, '' for none.
    """

    name: ClassVar[str]
    program: ClassVar[str]
    package: ClassVar[str]
    takes: ClassVar[tuple[str, ...]]
    by_model: ClassVar[tuple[str, ...]]
    asks_at: ClassVar[Mapping[str, str]]
    address: ClassVar[str]
    recorded: ClassVar[str]
    counting: ClassVar[Counting]
    resumes: ClassVar[bool]

    def start(self, errand: Errand) -> Start:
        """Return how to start it. A prompt that begins with '-' or has 1 MB must arrive whole."""
        ...

    def read(self, line: str, now: float) -> list[Event]:
        """Return what a line of its output says; [] for a line that says nothing. now: epoch, s. Errors: none."""
        ...

    def read_log(self, line: str, now: float) -> list[Event]:
        """Return what a line of one of its own logs (or of its stderr) says. Errors: none."""
        ...

    def ended(self, code: int, errors: str) -> Trouble | None:
        """Return what an exit code and the end of stderr say, where the output did not; None for a plain end."""
        ...
