"""What a save gave the remote.

Law: a reference is named only after the remote has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Saved:
    """What a save gave the remote. ref: the reference, '' where nothing was to be saved; commit: what it holds;
    base: the commit of the base that the work began with; changed_files: against where it left the base.

    no_change: nothing differs from the base, so there is no reference; more: the reference of what lies beside the
    work, and beside: what that is; left_out: what could not be saved. Such a workspace is kept until a person removes
    it. amiss: why the work is not all that was made. All of these are sentences.
    """

    repo: str
    base: str
    ref: str
    commit: str
    changed_files: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    more: str = ""
    beside: tuple[str, ...] = ()
    amiss: tuple[str, ...] = ()

    @property
    def no_change(self) -> bool:
        """Whether nothing differs from the base."""
        return not self.ref

    def as_output(self) -> dict[str, Any]:
        """Return what the result of the task says of it under `workspace`; the merge reads it there."""
        more = {"more": self.more, "beside": list(self.beside), "left_out": list(self.left_out)}
        said = {"repo": self.repo, "base": self.base, "ref": self.ref, "commit": self.commit, **more}
        return {name: value for name, value in said.items() if value or name not in more}
