"""What an agent committed by itself, read from the git directory of its workspace as plain files.

Law: no git command runs there: its settings are the agent's, and may name programs. Names and hashes are read as
text; objects are read by a repository of ours, which checks each against its name. A link is not followed.

Touches: files.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from stat import S_ISLNK

from spoold.system.walking import walk

_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_READ_MAX = 4 << 20
_REFERENCES_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Commits:
    """The git directory of a workspace. own: where HEAD is; shared: where references and objects are (both are the
    same in a clone); borrows: the folder of objects that it borrows, '' where it has none from elsewhere."""

    own: str
    shared: str
    borrows: str = ""

    def trusted(self) -> bool:
        """Whether it still is the directory that we made, which borrows objects from where we said and nowhere else:
        another's objects would be published as this agent's work."""
        if not all(os.path.isdir(path) and not os.path.islink(path) for path in (self.own, self.shared)):
            return False
        objects = os.path.join(self.shared, "objects")
        if os.path.islink(objects):
            return False
        if any(_is_link(name, folder.fd) for folder in walk(objects) for name in folder.files):
            return False
        said = _text(os.path.join(objects, "info", "alternates"))
        return [line for line in said.splitlines() if line] == ([self.borrows] if self.borrows else [])

    def head(self) -> str | None:
        """Return the commit that is checked out; None where none is."""
        return self._resolved(_text(os.path.join(self.own, "HEAD")))

    def merging(self) -> list[str]:
        """Return the commits of a merge that was begun and not committed."""
        return [line for line in _text(os.path.join(self.own, "MERGE_HEAD")).split() if _HASH.fullmatch(line)]

    def branches(self) -> dict[str, str]:
        """Return the commit of each branch, and of the stash."""
        found = {name: one for name, one in self._packed().items() if name.startswith("refs/heads/")}
        top = os.path.join(self.shared, "refs", "heads")
        for folder in walk(top):
            for name in folder.files:
                path = os.path.join(folder.path, name)
                one = self._resolved(_text(os.path.join(top, path)))
                if one is not None and len(found) < _REFERENCES_MAX:
                    found[f"refs/heads/{path}"] = one
        stash = self._resolved(_text(os.path.join(self.shared, "refs", "stash")))
        return found if stash is None else {**found, "refs/stash": stash}

    def _resolved(self, text: str) -> str | None:
        text = text.strip()
        if _HASH.fullmatch(text):
            return text
        name = text.removeprefix("ref: ")
        if name == text or not name.startswith("refs/") or ".." in name:
            return None
        found = _text(os.path.join(self.shared, name)).strip()
        if _HASH.fullmatch(found):
            return found
        return self._packed().get(name)

    def _packed(self) -> dict[str, str]:
        found = {}
        for line in _text(os.path.join(self.shared, "packed-refs")).splitlines()[:_REFERENCES_MAX]:
            one, _, name = line.partition(" ")
            if _HASH.fullmatch(one):
                found[name] = one
        return found


def _is_link(name: str, above: int) -> bool:
    try:
        return S_ISLNK(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode)
    except OSError:
        return True  # it changes just now: as bad as a link


def _text(path: str) -> str:
    """Return what a small file holds; '' for a link, and for anything that cannot be read."""
    try:
        held = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(held, _READ_MAX).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(held)
