"""What a lock covers: a path, a name such as `repo:main`, or a pattern over paths.

Law: a pattern has one spelling. What cannot be understood in one way is refused, with the fix, and never guessed.
"""

from __future__ import annotations

import unicodedata
from typing import Annotated

from pydantic import AfterValidator

from spoold.protocol.errors import WrongValue

PATTERN_MAX, PATTERNS_MAX = 500, 100
BELOW = "**"


def pattern(text: str) -> str:
    """The pattern in its one spelling: `./a//b/` is `a/b/**`. A leading `/` does not count. Errors: WrongValue."""
    if not text.strip() or len(text) > PATTERN_MAX:
        raise WrongValue("not a pattern", f"write a path, a name or a pattern of 1 to {PATTERN_MAX} characters")
    if any(not char.isprintable() for char in text):
        raise WrongValue(f"the pattern {text!r} holds a character that cannot be printed", "leave it out")
    if "\\" in text:
        raise WrongValue(f"the pattern {text!r} holds a backslash", "write / between folders")
    if text.startswith("!"):
        raise WrongValue(f"the pattern {text!r} excludes something", "name what is locked, and not what is not")
    if "{" in text or "}" in text:
        raise WrongValue(f"the pattern {text!r} holds a brace", "write one pattern for each alternative")
    parts = [part for part in unicodedata.normalize("NFC", text).split("/") if part not in ("", ".")]
    if ".." in parts:
        raise WrongValue(f"the pattern {text!r} goes up with '..'", "write the path without '..'")
    if text.endswith("/") or not parts:
        parts.append(BELOW)
    return "/".join(part for at, part in enumerate(parts) if part != BELOW or parts[at - 1 : at] != [BELOW])


Pattern = Annotated[str, AfterValidator(pattern)]
