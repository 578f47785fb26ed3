"""`spool config check`: whether spool.toml, or a file that is to take its place, and all changes are right.

Law: looks and never touches. Every fault is named at once, each with its file, its field and the fix. Changes are
judged over what is right in the file: a fault in one section hides nothing in another.
"""

from __future__ import annotations

from dataclasses import dataclass

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.settings import Settings
from spoold.protocol.toml_file import TOML_BYTES, toml_table
from spoold.protocol.validation_errors import faults_of
from spoold.rules.entry.references import UnknownName, unknown_names
from spoold.store import absence
from spoold.store.obstacles import obstacle
from spoold.store.regular import regular
from spoold.store.revisions import Revisions
from spoold.store.store import open_store
from spoold.system.clock import SystemClock
from spoold.system.filesystem import FileSystem
from spoold.system.posix import PosixFileSystem


@dataclass(frozen=True, slots=True)
class Checked:
    """A check. file: that was read; changes: those that count, None without a spool; warnings: what hides changes."""

    file: str
    faults: tuple[BadFile, ...]
    changes: int | None
    warnings: tuple[str, ...] = ()

    @property
    def wrong(self) -> bool:
        """Return whether anything has to be fixed."""
        return bool(self.faults or self.warnings)


def check(directory: str | None, data: bytes | None = None, file: str = "") -> Checked:
    """Check a spool's settings. data: of a file that is to take the place of spool.toml.

    directory: of the spool; None checks the file alone. Errors: Unavailable where there is no spool, OSError.
    """
    if directory is None:
        return Checked(file, tuple(_faults(data or b"", file)[1]), None)
    fs, own = PosixFileSystem(directory), f"{directory}/{layout.SETTINGS}"
    try:
        open_store(fs, SystemClock(), "cli-check", directory)
    except BadFile as error:
        if error.file != own:
            raise  # of the marker: this is no spool that can be checked
    file = own if data is None else file
    base, faults = _own(fs, own) if data is None else _faults(data, file)
    revisions = Revisions(fs, lambda: base)
    revisions.look()
    said = {f"{fault}" for fault in revisions.faults}
    # A limit whose section of the file is wrong is not known here, and may be right all the same.
    wrong = [fault for fault in revisions.faults if not (faults and isinstance(fault, UnknownName))]
    hidden = [warning for warning in revisions.warnings if warning not in said]
    hidden += filter(None, [obstacle(fs, layout.CHANGES)])
    return Checked(file, (*faults, *wrong), len(revisions.changes), tuple(hidden))


def _own(fs: FileSystem, file: str) -> tuple[Settings, list[BadFile]]:
    """Return the same for the spool's own file, which may be missing. Errors: OSError."""
    try:
        with regular(file):
            return _faults(absence.read(fs, layout.SETTINGS, TOML_BYTES + 1) or b"", file)
    except BadFile as error:
        return Settings(), [error]


def _faults(data: bytes, file: str) -> tuple[Settings, list[BadFile]]:
    """Return the settings that a file sets, as far as they are right, and all that is wrong with it."""
    try:
        table = toml_table(data, file)
    except BadFile as error:
        return Settings(), [error]
    faults = faults_of(Settings, table, file)
    wrong = {fault.field.partition(".")[0] for fault in faults}
    kept = {name: value for name, value in table.items() if name.partition(".")[0] not in wrong}
    settings = codec.check_settings(kept, file)
    return settings, faults or [*unknown_names(settings, file)]
