"""Commits everything that is in a workspace: what the program in the cage has packed comes into our own repository.

Law: a workspace is opened by the program in the cage alone. What that one leaves is read as data of a stranger: one
file of bounded size, and one pack of which git checks every object and every link before anything is named, but for
files that the base has. Nothing that this process keeps was ever writable where an agent's files are read.

Touches: files.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import Field

from spoold.agents.sandbox.bwrap import Cage, variables
from spoold.agents.workspace import lfs
from spoold.agents.workspace.checkout import besides, branch_of, commits_of, keeper, scratch_of, tree_of
from spoold.agents.workspace.git import LOCAL_S, TOO_LONG, Git, GitFailed, commit_of, run, said, sweep
from spoold.agents.workspace.looking import READ_BY_GIT, READ_MAX
from spoold.agents.workspace.mirror import HEADS, Mirror
from spoold.agents.workspace.pack_request import Request
from spoold.agents.workspace.push_check import Question
from spoold.agents.workspace.sanitize import may_be_read
from spoold.agents.workspace.workspace_layout import Record
from spoold.pictures.wording import visible
from spoold.protocol import codec, version
from spoold.protocol.amount import clip
from spoold.protocol.errors import BadFile, legible
from spoold.protocol.fields import Strict
from spoold.system.openat import Beneath

_PROGRAM, _PROVER = "spoold.agents.workspace.packer", "spoold.agents.workspace.push_check"
# Of what the program says (bytes); how many commits of the remote it is told not to pack again.
_SAID_MAX, _KNOWN_MAX = 4 << 20, 10_000
_NAMED = ("--format=%(refname) %(objectname)", f"--count={_KNOWN_MAX}")
# Of a line about what was left out (characters): a path has any length.
_LINE_MAX = 300
_PACK = re.compile(r"pack-[0-9a-f]{40,64}\.pack")
_HEADER = 12
# In our own repository: objects that git need not check.
_ODD = "odd-in-the-base"
_WORDS = ("save", "the workspace")
# Whether with the agent's own commits, and whether what git refuses of them is looked for: that takes long, and is
# not needed as long as git takes all of it.
_WAYS = ((True, False), (True, True), (False, True))
# Each way once, and again where something blocked, or killed the program: so often the same way.
_TRIES, _KILLED_TRIES = 9, 3

_Commit = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
_Nothing = Literal[""]


class Committed(Strict):
    """What was committed, as of `Made`; changed_files: against the base, in order."""

    commit: _Commit | _Nothing = ""
    more: _Commit | _Nothing = ""
    beside: dict[_Commit, str] = {}
    amiss: tuple[_Commit, ...] = ()
    left_out: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    links: dict[str, _Commit] = {}
    blocking: tuple[str, ...] = ()
    lfs: dict[Annotated[str, Field(pattern="^[0-9a-f]{64}$")], int] = {}
    changed_files: tuple[str, ...] = ()


def commit_all(mirror: Mirror, folder: str, record: Record, message: str) -> Committed:
    """Commit what the workspace holds now. Errors: GitFailed, OSError."""
    removed, why, ways, killed = list[str](), "", list(_WAYS), 0
    for _ in range(_TRIES):
        owns, sifts = ways[0]
        try:
            made = _taken(mirror, folder, record, message, owns=owns, sifts=sifts)
        except GitFailed as failed:
            killed += failed.killed
            if failed.killed and killed < _KILLED_TRIES:
                continue
            if len(ways) == 1:
                raise
            why = said(failed)
            ways = ways[-1:] if failed.code == TOO_LONG else ways[1:]
            continue
        if not made.blocking:
            break
        removed += _unblocked(tree_of(folder), made.blocking)
    else:
        raise GitFailed(("add", "--all"), 1, f"something goes on writing in it: {'; '.join(removed[-3:])}")
    told = [
        f"its own commits: {why}" if why and line.startswith("its own commits:") else line for line in made.left_out
    ]
    left_out = tuple(clip(visible(line), _LINE_MAX) for line in (*removed, *told))
    unseen = tuple(clip(visible(line), _LINE_MAX) for line in made.unseen)
    beside = {commit: visible(what) for commit, what in made.beside.items()}
    files = changed(keeper(folder), record.base, made.commit)
    return made.model_copy(update={"left_out": left_out, "unseen": unseen, "beside": beside, "changed_files": files})


def changed(git: Git, base: str, commit: str) -> tuple[str, ...]:
    """Return the files that differ between a commit and where it left the base. Errors: GitFailed."""
    fork = git.ask("merge-base", base, commit).out.split()
    names = git("diff-tree", "-r", "-z", "--name-only", "--no-renames", (fork or [base])[0], commit).names
    return tuple(map(legible, names))  # a result is text, and a name may be any bytes


def _taken(mirror: Mirror, folder: str, record: Record, message: str, *, owns: bool, sifts: bool) -> Committed:
    """Have the program in the cage pack it all, and take that into our own repository. Errors: GitFailed, OSError."""
    git, found, scratch = keeper(folder), commits_of(folder, record, mirror), scratch_of(folder)
    os.makedirs(scratch, exist_ok=True)
    mirrors = [mirror, *(Mirror(mirror.places, one) for one in record.submodules.values())]
    words = ("for-each-ref", "--format=%(objectname)", f"--count={_KNOWN_MAX}", HEADS)
    heads, *others = (there.git(*words).lines for there in mirrors)
    tagged = () if record.config.kind == "worktree" else mirror.git("for-each-ref", *_NAMED, "refs/tags/").lines
    request = Request(
        tree=tree_of(folder),
        own=found.own,
        shared=found.shared,
        borrows=found.borrows,
        scratch=scratch,
        objects=mirror.objects,
        start=record.start,
        base=record.base,
        last=commit_of(git, ["refs/heads/saved"]) or "",
        known=list(dict.fromkeys(heads)),
        author=record.profile,
        message=message,
        owns=owns,
        sifts=sifts,
        submodules={path: Mirror(mirror.places, one).objects for path, one in record.submodules.items()},
        elsewhere=[one for found in others for one in found],
        tags=dict(row.split(" ", 1) for row in tagged),
        branch=f"refs/heads/{branch_of(record.task, record.attempt)}" if record.config.kind == "worktree" else "",
        was=mirror.places.place(folder, record.task, record.spool) or folder,
    )
    caged(_PROGRAM, request, (tree_of(folder), *besides(folder), *(one.directory for one in mirrors)), scratch)
    out = os.path.join(scratch, "out")
    with lfs.opened(os.path.join(out, "made.json")) as file:
        data = file.read(_SAID_MAX + 1)
    try:
        made = codec.check(Committed, codec.load_object(data, "made.json", size=_SAID_MAX), "made.json")
    except BadFile as bad:
        raise GitFailed(_WORDS, 1, str(bad)) from bad
    if not made.blocking:
        if sifts:
            _note_odd(git, record.base)
        _take_in(git, out, [one for one in (made.commit, made.more) if one], sifts=sifts)
        for name in made.lfs:
            lfs.taken_in(os.path.join(out, "lfs", name), name, os.path.join(git.directory, "lfs"))
        git("update-ref", "refs/heads/saved", made.commit)
    return made


def lacking(mirror: Mirror, folder: str, record: Record) -> list[str]:
    """Return files of a workspace whose content the remote was not seen to have. Errors: GitFailed, OSError."""
    keeper_of, scratch = keeper(folder).directory, scratch_of(folder)
    os.makedirs(scratch, exist_ok=True)
    pushed = [one for one in (record.commit, record.more) if one]
    found, was = commits_of(folder, record, mirror), mirror.places.workspace(record.task, record.spool)
    others = {path: Mirror(mirror.places, one) for path, one in record.submodules.items()}
    asked = Question(
        tree=tree_of(folder),
        own=found.own,
        shared=found.shared,
        was=was,
        mirror=mirror.directory,
        keeper=keeper_of,
        pushed=pushed,
        submodules={path: one.objects for path, one in others.items()},
        scratch=scratch,
    )
    reads = (mirror.directory, keeper_of, *(one.directory for one in others.values()))
    said = caged(_PROVER, asked, (tree_of(folder), *besides(folder), *reads), scratch)
    try:
        return [str(path) for path in codec.load(said.encode(), "what was looked at")]
    except (BadFile, TypeError) as bad:
        raise GitFailed(_WORDS, 1, str(bad)) from bad


def caged(program: str, request: Request | Question, reads: tuple[str, ...], scratch: str) -> str:
    """Run a program of ours in its cage; returns what it printed. Errors: GitFailed, OSError."""
    python = os.path.realpath(sys.executable)
    package = os.path.dirname(os.path.dirname(os.path.realpath(version.__file__)))
    programs = (os.path.realpath(sys.base_prefix), python, package, *filter(None, [lfs.program()]))
    cage = Cage(reads, (scratch,), programs)
    env = {**variables(), "PYTHONPATH": os.path.dirname(package), "PYTHONDONTWRITEBYTECODE": "1"}
    argv = cage.around([python, "-S", "-s", "-P", "-m", program], env, scratch)
    done = run(_WORDS, argv, scratch, env, json.dumps(asdict(request)), LOCAL_S)
    if done.code:
        raise GitFailed(_WORDS, done.code, done.errors)
    return done.out


def _note_odd(git: Git, base: str) -> None:
    """Write a list of files of the base that git reads itself, and may refuse: the remote has them all the same.

    Errors: GitFailed, OSError.
    """
    rows = (row.partition("\t") for row in git("ls-tree", "-r", "-z", base).names)
    names = [about.split()[2] for about, _, name in rows if may_be_read(os.fsencode(os.path.basename(name)))]
    with open(os.path.join(git.directory, _ODD), "w", encoding="ascii") as file:
        file.write("".join(f"{one}\n" for one in names))


def _take_in(git: Git, out: str, wanted: list[str], *, sifts: bool) -> None:
    """Take in a pack whose writer is not trusted: every object, and every link to another, is checked. sifts:
    but for those that are noted as odd. Errors: GitFailed, OSError."""
    sweep(git.directory)
    for name in os.listdir(out):
        if _PACK.fullmatch(name):
            with lfs.opened(os.path.join(out, name)) as file:
                objects = int.from_bytes(file.read(_HEADER)[8:], "big")
                file.seek(0)
                if objects:
                    # Git starts in this folder, and takes no path with a blank in it.
                    strict = f"--strict=skiplist={_ODD}" if sifts else "--strict"
                    git("index-pack", "--stdin", strict, given=file.fileno())
    for one in wanted:
        if commit_of(git, [one]) != one:
            raise GitFailed(("index-pack", "--stdin"), 1, f"{one} is no commit of what was packed")


def _unblocked(tree: str, paths: Sequence[str]) -> list[str]:
    """Take away what git cannot read in the place of its files: what is no file is removed, and what is too large is
    renamed; returns what was done. Errors: OSError.
    """
    there = Beneath(tree)
    done = ((path, there.at(path, _out_of_the_way)) for path in paths if os.path.basename(path) in READ_BY_GIT)
    return [f"{path}: {said}" for path, said in done if said]


def _out_of_the_way(name: str, above: int | None) -> str:
    kind = os.stat(name, dir_fd=above, follow_symlinks=False).st_mode
    if stat.S_ISDIR(kind):
        return ""
    if not stat.S_ISREG(kind):
        os.unlink(name, dir_fd=above)
        return "it leads to no file, and git would have waited there; it was removed"
    for number in range(1, _TRIES):
        other = f"{name}.too-large" + f".{number}" * (number > 1)
        with suppress(FileExistsError):
            os.link(name, other, src_dir_fd=above, dst_dir_fd=above)
            os.unlink(name, dir_fd=above)
            now = os.path.basename(other)
            return f"git reads it whole, and it has more than {READ_MAX >> 20} MiB; its name is {now} now"
    return ""
