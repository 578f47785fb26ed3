"""What the worker of an attempt masks, by the variables of its handler: for texts, and to look for it in work.

Law: both know the same secrets and patterns. What looks for tokens may be asked to do so in any case.

Touches: the environment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from spoold.agents.configuration.profiles import REDACT
from spoold.protocol import codec
from spoold.rules.redaction.masking import Mask, Scanner

Clean = Callable[[str], str]


def masking(environ: Mapping[str, str] = os.environ) -> Clean:
    """Return what masks a text as the worker does in an output. Errors: BadFile."""
    secrets, tokens, patterns = _said(environ)
    return Mask(secrets, tokens=tokens, patterns=patterns).text


def scanning(environ: Mapping[str, str] = os.environ, *, tokens: bool = False) -> Scanner:
    """Return what finds in work what the worker masks in an output. tokens: also where outputs may have tokens of
    known shapes. Errors: BadFile."""
    secrets, masked, patterns = _said(environ)
    return Scanner(secrets, tokens=tokens or masked, patterns=patterns)


def _said(environ: Mapping[str, str]) -> tuple[dict[str, str], bool, list[str]]:
    said: Any = codec.load_object(environ[REDACT].encode(), REDACT) if environ.get(REDACT) else {}
    secrets = {name: environ[name] for name in said.get("secrets", ()) if environ.get(name)}
    return secrets, said.get("tokens", True), said.get("patterns", [])
