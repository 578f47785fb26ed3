"""What is masked in the output of attempts, besides the secrets that they were given.

Law: a pattern that cannot be used is refused when the worker starts, never when a task has printed something.
"""

from __future__ import annotations

import re

from pydantic import field_validator

from spoold.protocol.errors import WrongValue
from spoold.protocol.fields import Strict


class Redact(Strict):
    """patterns: regular expressions in the syntax of Python, each within a line. tokens: whether well-known shapes of
    tokens and private keys are masked.
    """

    patterns: tuple[str, ...] = ()
    tokens: bool = True

    @field_validator("patterns")
    @classmethod
    def _patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            try:
                empty = re.compile(pattern).search("")
            except re.error as error:
                raise WrongValue(
                    f"{pattern!r} is no regular expression: {error}", "use the syntax of Python, in '…'"
                ) from None
            if empty is not None:
                raise WrongValue(f"{pattern!r} also finds an empty text", "let it find at least one character")
        return value
