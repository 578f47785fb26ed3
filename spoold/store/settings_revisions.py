"""The settings that a node goes by: spool.toml, with the changes in settings/ merged over it by their numbers.

Law: the files in settings/ alone say which settings hold, so all nodes that see the same files use the same settings.
A wrong file counts as absent, is listed in `warnings`, and the others hold. No file is read twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from spoold.protocol import layout
from spoold.protocol.errors import BadFile, Unavailable, legible
from spoold.protocol.names import next_number
from spoold.store import existence
from spoold.store.existence import Unreadable, names_in, regular
from spoold.store.path_conflicts import barriers, named, obstacle
from spoold.system.errnos import concerns_one_file
from spoold.system.filesystem import FileSystem

if TYPE_CHECKING:
    from spoold.protocol.settings import Settings
    from spoold.protocol.settings_change import Change, ChangeName
    from spoold.store.contained_faults import Faults

# So many files count, the first ones; and so many bytes of each.
FILES_MAX, BYTES_MAX = 1000, 64 << 10
PASSED_OVER = "it is passed over: rename it, or move it away"
FOLD = f"Write what the changes say into {layout.SETTINGS}, remove them, and restart every node"


class Revisions:
    """One node's settings. revision: of the last change that they contain, '' for spool.toml alone.

    changes: those that it contains, in their order. faults: the wrong files in settings/, each with the fix.
    warnings: the same in sentences, and what else keeps a change from being seen.
    """

    def __init__(self, fs: FileSystem, base: Callable[[], Settings], faults: Faults | None = None) -> None:
        """faults: takes the faults of changes that spoold cannot handle; None: they are loud."""
        self._fs = fs
        self._faults = faults
        self._base = base
        self._current: Settings | None = None
        self._read: dict[ChangeName, Change | BadFile] = {}
        # What each change made of the settings before it, so that a new one costs one check, however many there are.
        self._made: dict[ChangeName, tuple[Settings, Change, Settings | BadFile]] = {}
        self._listed: list[ChangeName] = []
        self._given = 0
        self.revision = ""
        self.changes: tuple[tuple[ChangeName, Change], ...] = ()
        self.faults: list[BadFile] = []
        self.warnings: list[str] = []

    @property
    def base(self) -> Settings:
        """spool.toml alone, as it was when the spool was opened. Errors: BadFile."""
        return self._base()

    @property
    def current(self) -> Settings:
        """The settings as last looked up. Looks by itself until one look has succeeded: a client never looks again,
        and would go by spool.toml alone for as long as it lives. Errors: BadFile of spool.toml.
        """
        if self._current is None:
            with contextlib.suppress(OSError):
                self.look()
        return self._base() if self._current is None else self._current

    def look(self) -> None:
        """List settings/, and go by what is there from now on. Errors: OSError; then everything stays as it was."""
        from spoold.protocol.settings_change import parse_change
        from spoold.protocol.wrong_names import of_change

        blocked: set[str] = set()
        listed = names_in(self._fs, layout.CHANGES, blocked)
        if blocked:
            # The status lists a link in its place with all other links of the tree.
            self.warnings = [] if obstacle(self._fs, layout.CHANGES) else barriers(self._fs, blocked)
            self._current = self._current or self._base()
            return
        names = sorted(name for name in map(parse_change, listed) if name is not None)
        strange = ((layout.join(layout.CHANGES, legible(name)), of_change(name)) for name in sorted(listed))
        warnings = named([f"{path} {why}; {PASSED_OVER}" for path, why in strange if why], "files with a wrong name")
        if len(names) > FILES_MAX:
            first = layout.join(layout.CHANGES, names[FILES_MAX].encode())
            warnings.append(f"{first} and what follows it does not count, as more than {FILES_MAX:,} files. {FOLD}")
        counted = names[:FILES_MAX]
        read = {name: self._read.get(name) or self._load(name) for name in counted}
        self._read = {
            n: found for n, found in read.items() if found is not None and not isinstance(found, Unreadable)
        }
        self._listed = names
        self._merge([(name, found) for name, found in read.items() if found is not None])
        self.warnings = warnings + [f"{fault}" for fault in self.faults]

    def _merge(self, found: list[tuple[ChangeName, Change | BadFile]]) -> None:
        """Go by these changes, in this order; a wrong one counts as absent."""
        now, made = self._base(), self._made
        self._made, self.faults, changes = {}, [], []
        for name, change in found:
            if isinstance(change, BadFile):
                self.faults.append(change)
                continue
            before = made.get(name)
            same = before is not None and before[0] is now and before[1] is change
            after = before[2] if before is not None and same else self._after(now, name, change)
            self._made[name] = (now, change, after)
            if isinstance(after, BadFile):
                self.faults.append(after)
            else:
                now = after
                changes.append((name, change))
        self._current, self.changes = now, tuple(changes)
        self.revision = changes[-1][0].revision if changes else ""

    def _reading(self, path: str) -> AbstractContextManager[object]:
        return nullcontext() if self._faults is None else self._faults.reading("change of settings", path)

    def _load(self, name: ChangeName) -> Change | BadFile | None:
        """A change, or what is wrong with it; None where it has gone or may not be read just now. Errors: OSError."""
        from spoold.protocol.settings_change import load_change

        path = layout.join(layout.CHANGES, name.encode())
        try:
            with self._reading(path):
                with regular(path):
                    data = existence.read(self._fs, path, BYTES_MAX + 1)
                if data is not None and len(data) > BYTES_MAX:
                    raise BadFile(
                        path, "", f"is larger than {BYTES_MAX >> 10} KiB.", "no change needs so much: remove it."
                    )
                return None if data is None else load_change(data, path)
        except BadFile as error:
            return error
        except OSError as error:
            if not concerns_one_file(error):
                raise
            return Unreadable(
                path, "", f"cannot be read: {error.strerror}.", "let every node read it (chmod, chown)."
            )

    def _after(self, now: Settings, name: ChangeName, change: Change) -> Settings | BadFile:
        """The settings with the next change, or why it does not fit."""
        path = layout.join(layout.CHANGES, name.encode())
        try:
            with self._reading(path):
                return with_change(self._base(), now, change, path)
        except BadFile as error:
            return error

    def next_number(self) -> int:
        """A number above all that are there, and that was not given before. Errors: OSError, Unavailable; BadFile for
        a change that leaves no number for another.
        """
        self.look()
        if len(self._read) >= FILES_MAX:
            raise Unavailable(f"{layout.CHANGES}/ holds {FILES_MAX:,} changes, and no more count. {FOLD}.")
        self._given = next_number(layout.CHANGES, self._listed, self._given)
        return self._given


def with_change(base: Settings, now: Settings, change: Change, file: str) -> Settings:
    """The settings with a change, right as a whole. base: those of spool.toml alone. Errors: BadFile."""
    from spoold.protocol.settings_change import merged
    from spoold.rules.entry.references import check_settings_names

    after = merged(base, now, change, file)
    check_settings_names(after, file)
    return after
