"""runner/seeking: checks whether an interpreter can call Python functions here, and which modules it can find.

Law: a separate process looks, so that the worker imports nothing of the user's. If that process fails, no module
counts as missing.

Touches: processes, the environment.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence

from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.runner.child import loader
from spoold.runner.trying import tried

PATIENCE_S = 30.0
# `pyhost` needs what this version brought.
OLDEST = (3, 11)
_NUMBERS = re.compile(r"\d+\.\d+")
_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"
_PYSEEK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pyseek.py")


def useless(python: str) -> str | None:
    """Return why this program cannot call Python functions; None if it can."""
    good, said = tried([python, "-I", "-S", "-c", _VERSION], {**os.environ, **loader()}, PATIENCE_S)
    if not good:
        return f"is no Python that starts here: {said}"
    version = tuple(map(int, said.split("."))) if _NUMBERS.fullmatch(said) else ()
    if version < OLDEST:
        return f"is Python {said}" if version else "is no Python"
    return None


def missing(
    modules: Collection[str], path: Sequence[str], env: Mapping[str, str], python: str = sys.executable
) -> set[str]:
    """Return the modules, by the first part of their names, that a call with this path and environment lacks.
    python: the interpreter of calls."""
    tops = {module.partition(".")[0] for module in modules}
    command = [python, "-P", _PYSEEK, json.dumps([list(path), sorted(tops)])]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={**loader(), **env},
            timeout=PATIENCE_S,
            check=False,
        )
        found = codec.load(done.stdout.rstrip().rpartition(b"\n")[2], "its list of modules")
    except (BadFile, OSError, ValueError, subprocess.TimeoutExpired):
        return set()
    return tops.intersection(map(str, found)) if isinstance(found, list) else set()
