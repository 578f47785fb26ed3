"""Runs a line for the shell in a checkout, in the sandbox of this merger.

Law: what a line sees is decided by the merger's owner alone, anew for each line, and never by what lies in the
checkout. Each checkout has a home of its own, so that no work meets what the tests of another one left.

Touches: files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from spoold.agents import confined
from spoold.agents.confined import Confined
from spoold.agents.merge.config import TABLE, VARIABLE
from spoold.agents.merge.shell import OUTPUT_MAX, TIMED_OUT
from spoold.agents.places import Opened
from spoold.agents.profiles import REDACT
from spoold.agents.turns import Scene, run_command


class Walled:
    """Runs lines in a sandbox. said: of the merger; borrowed: folders of objects that a checkout reads besides."""

    def __init__(self, said: str | Mapping[str, Any], environ: Mapping[str, str], borrowed: Sequence[str]) -> None:
        self._said, self._environ = said, environ
        config = confined.read(said, TABLE)
        self._config = config.model_copy(update={"show": (*config.show, *borrowed)})

    def __call__(self, line: str, directory: str, within_s: float | None = None) -> tuple[int, str]:
        """Run a line in a checkout, beside which nothing lies; as `shell.run` does. Errors: SpoolError, OSError."""
        place = os.path.dirname(directory)
        home = os.path.join(place, "home")
        os.makedirs(home, mode=0o700, exist_ok=True)
        environ = {**self._environ, "SPOOL_WORK_DIR": os.path.join(place, "work")}
        sandbox = Confined(self._config, environ)
        env = {name: value for name, value in environ.items() if name not in (VARIABLE, REDACT)}
        opened = Opened(directory, home)
        with sandbox.enter(opened):
            scene = Scene(sandbox, directory, home, env, lambda: False, lambda: None)
            ran = run_command(["/bin/sh", "-c", line], scene, within_s or float("inf"), aloud=True, most=OUTPUT_MAX)
        if ran.code is None:
            return TIMED_OUT, f"it has not ended within {within_s:g} s; {ran.output}"
        return ran.code, ran.output + (confined.hint(self._said, ran.output) if ran.code else "")
