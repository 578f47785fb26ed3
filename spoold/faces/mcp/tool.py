"""What a tool is, and the field types that several tools share, with the words that a model reads of them.

Law: its function gets arguments that fit their model, and returns the model of the answer; both models are the
schemas that a client sees. A tool that waits is `async`; every other one runs in a thread. A field is named as on the
wire. Times are in milliseconds, as clients have them; a wait is cut at WAIT_MOST_MS. An unknown field is an error,
never ignored: a misspelt timeout must not become the default.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from spoold.faces.mcp.session import Session
from spoold.protocol import codec
from spoold.protocol.errors import WrongValue
from spoold.protocol.fields import Env, Strict, TaskId
from spoold.protocol.lock_patterns import Pattern

# Field types that several tools share, with the words that a model reads of them.


# A client gives up on a call after 60 s, and some of them sooner.
WAIT_MOST_MS = 45_000
TIMEOUT_MS = 300_000
TIMEOUT_MOST_MS = 7 * 86_400_000
IDS_MOST = 1000
TAIL_LINES, TAIL_MOST = 50, 2000


class Arguments(Strict):
    """The arguments of a tool."""


def _listed_in(value: Any) -> Any:
    """Accept a list that a client has written as a string of JSON."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        return codec.value_of(value)
    return value


def _number_in(value: Any) -> Any:
    # Python takes true for 1; its writer meant something else.
    if isinstance(value, bool):
        raise WrongValue("not a number", "write a number")
    return value


# Bounds stand before these: behind them the schema that a client sees would not have them.
LISTED = BeforeValidator(_listed_in)
NUMBER = BeforeValidator(_number_in)

Id = Annotated[TaskId, Field(description="A task, by the whole id that a tool returned.")]
Ids = Annotated[
    tuple[TaskId, ...],
    Field(min_length=1, max_length=IDS_MOST, description="Tasks, by their whole ids."),
    LISTED,
]
SomeIds = Annotated[tuple[TaskId, ...], Field(max_length=IDS_MOST), LISTED]
Label = Annotated[str, Field(max_length=200, description="A name for people.")]
Reason = Annotated[str, Field(max_length=1000, description="Why; it goes into the journal.")]
Key = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        description="A name that you choose for this call. The same call with the same key makes no second task: "
        "it returns the id of the first. Use one wherever you may have to repeat a call.",
    ),
]
Timeout = Annotated[
    int, Field(ge=1, le=TIMEOUT_MOST_MS, description="The time for one attempt, in milliseconds."), NUMBER
]
Retries = Annotated[int, Field(ge=0, le=100, description="How often to try again when it fails."), NUMBER]
Wait = Annotated[
    int,
    Field(
        ge=0,
        le=TIMEOUT_MOST_MS,
        description=f"How long to wait, in milliseconds; at most {WAIT_MOST_MS:,} a call. Then call again.",
    ),
    NUMBER,
]
Cwd = Annotated[str, Field(max_length=4096, description="Where it starts: an absolute path on the worker's machine.")]
Variables = Annotated[Env, Field(description="Environment variables.")]
# A program takes 128 KiB in one argument on most machines.
Word = Annotated[str, Field(max_length=100_000)]
Command = Annotated[
    Word | tuple[Word, ...],
    Field(description='A command: a text for the shell, or a list of words, such as ["make", "test"].'),
]
Patterns = Annotated[
    tuple[Pattern, ...],
    Field(max_length=100, description="Paths, names, or patterns with *, ? and **; docs/ is all below it."),
    LISTED,
]
Text = Annotated[str, Field(min_length=1, max_length=200)]
Texts = Annotated[tuple[Text, ...], Field(max_length=20), LISTED]
Fraction = Annotated[float, Field(ge=0, le=1), NUMBER]


def seconds(milliseconds: int) -> float:
    """Return milliseconds as seconds."""
    return milliseconds / 1000


def bounded_s(milliseconds: int) -> float:
    """Return how long (s) a call waits that was told to wait so long."""
    return min(milliseconds, WAIT_MOST_MS) / 1000


class Answer(BaseModel):
    """What a tool answers, as structured content."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


# Of a call that waits: how much is done, of how much, and a sentence.
Notify = Callable[[float, float, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. call: gets the session, the arguments, and, where it waits, what to report progress with.

    The hints say whether it only reads, may destroy something, and may be repeated without another effect.
    """

    name: str
    title: str
    text: str
    arguments: type[Arguments]
    answer: type[Answer]
    call: Callable[..., Any]
    waits: bool = False
    reads: bool = False
    destroys: bool = False
    repeats: bool = False
    operators_only: bool = False

    @property
    def in_thread(self) -> bool:
        """Whether its function blocks, and so runs in a thread."""
        return not self.waits

    def run(self, session: Session, arguments: Arguments, notify: Notify) -> Any:
        """Call the function: an answer, or for a tool that waits what returns one when awaited."""
        return self.call(session, arguments, notify) if self.waits else self.call(session, arguments)
