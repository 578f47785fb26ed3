"""What a tool is.

Law: its function gets arguments that fit their model, and returns the model of the answer; both models are the
schemas that a client sees. A tool that waits is `async`; every other one runs in a thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from spoold.faces.mcp.arguments import Arguments
from spoold.faces.mcp.session import Session


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
