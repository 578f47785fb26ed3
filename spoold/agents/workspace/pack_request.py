"""What the packer is asked, and what it answers.

Law: what comes back was written in a cage by a program that had read an agent's files: data of a stranger.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be saved. tree: the files; own, shared, borrows: the git directory, as of `Commits`; scratch: a
    folder of this program's own; objects: those that the remote has; start, base: commits with which the attempt
    began; last: of the last save, '' for none; known: commits that the remote has; owns: whether commits of the
    agent's own count; sifts: whether to leave out what git refuses, object by object; submodules: path of each that
    was fetched, and the objects that it borrows; elsewhere: commits that their remotes have; tags: what those are of
    the mirror, with which it began; branch: the only reference that is the agent's own, '' where all others are;
    was: where the folder of the workspace was when the agent worked."""

    tree: str
    own: str
    shared: str
    borrows: str
    scratch: str
    objects: str
    start: str
    base: str
    last: str
    known: list[str]
    author: str
    message: str
    owns: bool
    sifts: bool
    submodules: dict[str, str]
    elsewhere: list[str]
    tags: dict[str, str]
    branch: str
    was: str


@dataclass(slots=True)
class Made:
    """What was saved. commit: the work; more: the commit above all that lies beside it, '' for none; beside: each
    commit that does, and what it is; amiss: those of them whose changes are in no commit of the work; left_out: what
    is in neither; unseen: where more may be that only the agent could see; links: submodules that the work names
    otherwise than the base, path → commit; lfs: name and size of objects of git-lfs that are in out/lfs; blocking:
    paths at which git would wait for ever, or which it has no memory for: then nothing was saved.
    """

    commit: str = ""
    more: str = ""
    beside: dict[str, str] = field(default_factory=dict)
    amiss: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    lfs: dict[str, int] = field(default_factory=dict)
    blocking: list[str] = field(default_factory=list)
