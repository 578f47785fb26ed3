"""runner/seeking: checks which modules the interpreter that calls Python functions here can find.

Law: a separate process looks, so that the worker imports nothing of the user's. If that process fails, no module
counts as missing.

Touches: processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence

from spoold.runner.child import loader

PATIENCE_S = 30.0
_PYSEEK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pyseek.py")


def missing(modules: Collection[str], path: Sequence[str], env: Mapping[str, str]) -> set[str]:
    """Return the modules, by the first part of their names, that a call with this path and environment lacks."""
    tops = {module.partition(".")[0] for module in modules}
    command = [sys.executable, "-P", _PYSEEK, json.dumps([list(path), sorted(tops)])]
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
        found = json.loads(done.stdout.rstrip().rpartition(b"\n")[2])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return set()
    return tops.intersection(map(str, found)) if isinstance(found, list) else set()
