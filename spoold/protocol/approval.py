"""The question that a task puts to people before it starts, and what counts as an answer.

Law: an answer is any JSON value; where there are choices, it is one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import Field, model_validator

from spoold.protocol.errors import WrongValue
from spoold.protocol.fields import SomeSeconds, Strict

# What `on_expire` may say besides a choice.
REJECT: Final = "reject"
APPROVE: Final = "approve"
CHOICES_MAX = 50

Choice = Annotated[str, Field(min_length=1, max_length=200)]


class Approval(Strict):
    """Whom nobody has answered does not start. expires_s: seconds from when the leader asked, None for never.

    on_expire: the end of a question that nobody answered: `reject`, `approve`, or one of the choices.
    """

    ask: str = Field(min_length=1, max_length=2000)
    choices: tuple[Choice, ...] = Field(default=(), max_length=CHOICES_MAX)
    expires_s: SomeSeconds | None = None
    on_expire: str = REJECT

    @model_validator(mode="after")
    def _an_end_that_exists(self) -> Approval:
        if len(set(self.choices)) < len(self.choices):
            raise WrongValue("choices has a word twice", "name each choice once")
        if self.on_expire not in (REJECT, APPROVE, *self.choices):
            ends = ", ".join((REJECT, APPROVE, *self.choices))
            raise WrongValue(f"on_expire is {self.on_expire!r}, which is no end", f"make it one of {ends}")
        if self.on_expire != REJECT and self.expires_s is None:
            raise WrongValue("on_expire says how it ends, and nothing says when", "add expires_s, in seconds")
        return self

    @property
    def at_the_end(self) -> Any:
        """The answer that counts when nobody gave one; only where `on_expire` does not reject."""
        return self.on_expire if self.on_expire in self.choices else default_answer(self.choices)


def default_answer(choices: Sequence[str]) -> Any:
    """The answer of an approval that names none: the first choice, or true."""
    return choices[0] if choices else True


def may_answer(choices: Sequence[str], answer: Any) -> bool:
    """Whether this is an answer to a question with these choices; None stands for the default."""
    return answer is None or not choices or answer in choices
