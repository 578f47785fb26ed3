"""The optional packages that a verb needs, told when they are missing.

Law: the sentence names what is missing, and the command that installs it for this very Python.
"""

from __future__ import annotations

import sys

from spoold.protocol.errors import SpoolError


def missing(verb: str, extra: str, error: ImportError) -> SpoolError:
    """Return the error of a verb whose extra is not installed. extra: a name in pyproject.toml."""
    name = f"spoold[{extra}]"
    return SpoolError(f"`{verb}` needs the extra {name}: {error}. Fix: {sys.executable} -m pip install '{name}'")
