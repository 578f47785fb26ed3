"""`python -m spoold.agents check`: the check of a profile's handler, which its worker runs when it starts.

Law: the version on stdout and 0; else 1, and the last line of stderr says what is wrong and how to fix it.

Touches: the terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from spoold.agents.profiles import REDACT, VARIABLE, read_back
from spoold.agents.program import adopt_orphans
from spoold.agents.trial import STARTS, try_out
from spoold.protocol.errors import BadFile


def check(environ: Mapping[str, str]) -> int:
    """Try the profile in the environment out; returns the exit code."""
    try:
        name, profile = read_back(environ.get(VARIABLE, ""))
    except BadFile as error:
        sys.stderr.write(f"{error}\n")
        return 1
    adopt_orphans()
    tried = try_out(name, profile, {key: value for key, value in environ.items() if key not in (VARIABLE, REDACT)})
    if tried.verdict in STARTS:
        sys.stdout.write(f"{tried.version}\n")
        return 0
    sys.stderr.write(f"{tried.verdict}: {tried.why}; fix: {tried.fix}\n")
    return 1
