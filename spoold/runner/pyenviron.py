"""runner/pyenviron: the environment variables of a process that serves one call after another.

Law: each call finds the variables as they were when the process began, and its own over them. It is read by `pyhost`
as a file, in the user's interpreter, and imports nothing of ours.

Touches: the environment.
"""

import os
from typing import Any


class Environment:
    """The environment as it was in the beginning, and in it what differs from call to call."""

    def __init__(self) -> None:
        self._base = {name: text for name, text in os.environ.items() if not name.startswith("SPOOL_")}
        self._own: dict[str, str] = {}
        self._left: dict[Any, Any] | None = None

    def set(self, own: dict[str, str]) -> None:
        """Undoes what the function before did to it; costs little where it did nothing."""
        if self._left is None or self._left != _raw():
            os.environ.clear()
            os.environ.update(self._base)
            self._own = {}
        for name in self._own.keys() - own.keys():
            del os.environ[name]
        for name, text in own.items():
            if self._own.get(name) != text:
                os.environ[name] = text
        self._own, self._left = own, _raw()


def _raw() -> dict[Any, Any]:
    """All variables; as they are kept inside, where that can be had, since decoding each takes longer than a call."""
    return dict(getattr(os.environ, "_data", os.environ))
