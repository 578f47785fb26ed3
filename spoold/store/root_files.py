"""The two files at the root of a spool, from their bytes: the marker and the settings.

Law: the format and the claim strategy are checked first, since of a later format nothing else is known. A spool with
an unknown one is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.plain.basics import CLAIMS, Basics, Identity, basics, identity, says_nothing

if TYPE_CHECKING:
    from spoold.protocol.settings import Settings


def read_settings(data: bytes, file: str) -> tuple[Callable[[], Settings], Basics]:
    """A function that reads all settings, and the basics of them. Errors: BadFile that names the key."""
    if says_nothing(data):
        table: dict[str, Any] = {}
    else:
        from spoold.protocol.toml_file import toml_table  # its parser takes as long to load as a drop to write

        table = toml_table(data, file)

    def settings() -> Settings:
        found = codec.check_settings(table, file)
        if found.types:
            from spoold.rules.entry.naming import check_settings_names

            check_settings_names(found, file)
        return found

    basic = basics(table)
    if basic is not None:
        return settings, basic
    read = settings()
    return lambda: read, read.basics


def read_marker(data: bytes, file: str) -> Identity:
    """The marker, if this version knows its format and claim strategy. Errors: BadFile."""
    try:
        return _known_marker(codec.load_sent(data, file), file)
    except BadFile as error:
        if error.field in ("format", "claim"):
            raise  # intact, and of another version
        mend = (
            "put back a copy of it; or, while no node runs, write "
            f'{{"format": {layout.FORMAT_VERSION}, "spool_id": "NAME", "claim": "rename"}} into it, '
            f'with "lock" where {layout.LOCK} stands beside it.'
        )
        raise BadFile(file, error.field, error.problem, mend) from error


def _known_marker(found: dict[str, Any], file: str) -> Identity:
    # First of all, since of a later format nothing else is known.
    form, claim = found.get("format", layout.FORMAT_VERSION), found.get("claim", "rename")
    if form != layout.FORMAT_VERSION:
        problem = f"is {form!r}; this spoold knows format {layout.FORMAT_VERSION}."
        raise BadFile(file, "format", problem, "upgrade spoold on this machine.")
    if claim not in CLAIMS:
        problem = f"is {claim!r}; this spoold knows {' and '.join(map(repr, CLAIMS))}."
        mend = "upgrade spoold on this machine: nodes that claim in different ways do not exclude each other."
        raise BadFile(file, "claim", problem, mend)
    return identity(found) or codec.check_marker(found, file)
