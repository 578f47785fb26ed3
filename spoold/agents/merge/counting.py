"""How many tests there are, by what a line such as `pytest --collect-only -q` prints.

Law: the last number before "tests" or "items" counts; else a number that stands alone in the last line; else the
lines that name a test with `::`; else all lines that are not empty. It is what the work itself says: it stops a
mistake, and nobody who means harm.
"""

from __future__ import annotations

import re

_SAID = re.compile(r"\b(?:(no)|(\d+)(?:/\d+)?) (?:tests?|items?)\b")


def counted(output: str) -> int:
    """Return the number of tests in the output of a line that lists them."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    said = [found for line in lines if "::" not in line for found in _SAID.finditer(line)]
    if said:
        return int(said[-1][2] or 0)
    if lines and lines[-1].isdecimal():
        return int(lines[-1])
    return len([line for line in lines if "::" in line]) or len(lines)
