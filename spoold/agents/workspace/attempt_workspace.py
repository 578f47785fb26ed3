"""One attempt's workspace: `open` gives a directory, `save` puts its work on the remote, `close` lets it go.

Law: `save` returns only after the remote has the work, or there is none. It may be called again, also after a signal.
A workspace whose process was killed is saved by the next one that needs its place, or by the retention; while the
latter is at it, an attempt waits, and never begins without what lies there. What its agent ended with is in its
record until that of the next attempt's workspace has it. Beside an attempt that lives, the next one begins in another
place, and those after it go on from the newest in which an agent began.

Touches: files, the clock, the environment.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from spoold.agents.sandbox import private_home
from spoold.agents.workspace import (
    acceptance,
    checkout,
    committing,
    lfs,
    only_copies,
    publishing,
    room,
    secret_scan,
    workspace_layout,
    workspace_retention,
)
from spoold.agents.workspace.git import (
    REMOTE_S,
    Git,
    GitFailed,
    RemoteAway,
    WorkspaceFailed,
    address,
    failure,
    links,
    said,
)
from spoold.agents.workspace.mirror import HEADS, Mirror
from spoold.agents.workspace.repository_config import WorkspaceConfig, repository
from spoold.agents.workspace.workspace_layout import Places, Record
from spoold.pictures.wording import visible
from spoold.protocol.errors import WrongValue
from spoold.rules.redaction.masking import Scanner
from spoold.system.remover import remove

Wall = Callable[[], float]
# How long (s) an attempt waits for one who saves or removes what lies in its place, and for an earlier attempt that
# lives there: its supervisor may be just ending it, within its grace, or it is frozen. How often (s) it looks.
TURN_S, LIVES_S, LOOK_S = 60.0, 15.0, 0.05


class Tended(RemoteAway):
    """Another process saves or removes what an earlier attempt left, for longer than an attempt waits."""


class RepositoryWorkspace:
    """The workspace of one attempt; not thread-safe. profile: the author of what is committed; places: where it lies.

    directory: where the agent works; home: a private folder for its settings and sessions, which the next attempt on
    this host has too; resumed: the reference that the work goes on from, '' for the base; returning: whether an
    earlier attempt of the task was at the same path, and left its home; done: what the agent of that attempt ended
    with, where only the push was missing, and has been made now. scanner: looks for secrets before a push, None for
    not at all.
    """

    def __init__(
        self,
        config: WorkspaceConfig,
        *,
        task: str,
        attempt: int,
        profile: str,
        environ: Mapping[str, str] = os.environ,
        wall: Wall = time.time,
        scanner: Scanner | None = None,
    ) -> None:
        self._scanner = scanner
        self.config, self.resumed, self.returning = config, "", False
        self.done: dict[str, Any] = {}
        self._done_at, self._commit, self._aside = "", "", ""
        self.places = Places(config.dir, environ)
        self._mirror = Mirror(self.places, config.repo)
        self._wall = wall
        self._held: int | None = None
        self._attended: int | None = None
        self._before: int | None = None  # holds what was moved aside, until this record has what it says
        self._unshown: int | None = None
        self._folder = self._first = self.places.workspace(task, environ.get("SPOOL_ROOT", ""))
        self._record = Record(
            task=task,
            attempt=attempt,
            profile=profile,
            config=config,
            spool=environ.get("SPOOL_ROOT", ""),
            secrets=() if scanner is None else tuple(sorted(scanner.names)),
            scans=None if scanner is None else scanner.open,
            began=wall(),
        )

    @classmethod
    def left_behind(
        cls, where: Places, folder: str, record: Record, wall: Wall = time.time, scanner: Scanner | None = None
    ) -> RepositoryWorkspace:
        """Return the workspace that lies in a folder, whose lock the caller holds. scanner: of one who knows secrets;
        else what the attempt itself looked for, but for those."""
        made = cls(record.config, task=record.task, attempt=record.attempt, profile=record.profile, environ={})
        made._scanner = scanner or (None if record.scans is None else Scanner({}, **record.scans))
        made.places, made._mirror = where, Mirror(where, record.config.repo)
        made._folder, made._record, made._wall = folder, record, wall
        return made

    def rescue(self) -> Record:
        """Save what a killed process left, and return the record of it. Errors: WorkspaceFailed, OSError."""
        if not self._record.saved:
            self.save(f"{self._record.task}: what attempt {self._record.attempt} left when it ended")
        self._note(ended=self._wall())
        return self._record

    @property
    def directory(self) -> str:
        """Where the agent works."""
        return checkout.tree_of(self._folder)

    @property
    def home(self) -> str:
        """A private folder beside it, for the agent's settings and sessions."""
        return checkout.home_of(self._folder)

    @property
    def start_of_work(self) -> str:
        """The commit of the earlier work that this goes on from, '' for the base."""
        return self._record.start if self.resumed else ""

    @property
    def borrowed(self) -> tuple[str, ...]:
        """What a sandbox must show read-only besides the directory: the objects of the mirror.

        A worktree needs all of the mirror, and to write there: a sandboxed agent works in a clone.
        """
        if self.config.kind != "clone":
            return ()
        mirrors = [self._mirror, *(Mirror(self.places, one) for one in self._record.submodules.values())]
        storages = (os.path.join(mirror.directory, "lfs") for mirror in mirrors)
        return (*(mirror.objects for mirror in mirrors), *filter(os.path.isdir, storages))

    @property
    def env(self) -> dict[str, str]:
        """The variables that the agent gets: under which name git commits, and that it asks nobody."""
        named = {}
        for role in ("AUTHOR", "COMMITTER"):
            named[f"GIT_{role}_NAME"] = self._record.profile
            named[f"GIT_{role}_EMAIL"] = address(self._record.profile)
        return {**named, "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true"}

    def open(self) -> str:
        """Make the workspace, and return its directory; its setup is still to be run.

        Errors: WorkspaceFailed, with what is wrong and the fix; RemoteAway also where a git was killed; OSError.
        Then it leaves nothing.
        """
        self.places.make()
        if self.config.quota_mb is not None:
            self._make_room(self.config.quota_mb)
        home = self._take_place()
        try:
            if self.config.kind == "none":
                os.mkdir(self.directory)
            else:
                self._fill()
            if self.resumed != self._done_at or self.config.resume != "work":
                self.done = {}  # another machine has gone on from there, or nobody is to
            # From here on this is what a later attempt finds, should this one be killed.
            self._note(worked=False, saved=self.config.kind == "none", words=dict(self.done))
            room.keep(os.path.join(self._folder, workspace_layout.RECORD))
        except GitFailed as failed:
            self._abandon()
            why = f"no workspace of {self.config.repo} can be made in {self._folder}: {failed}"
            raise (RemoteAway if failed.killed else WorkspaceFailed)(why) from failed
        except BaseException:
            self._abandon()
            raise
        self._bring(home)
        self._take_over()
        return self.directory

    def begin(self) -> None:
        """Note that an agent begins here: from now on this may be the only copy of its work. Errors: OSError."""
        if self.config.kind != "none":
            self._unshown = only_copies.hold(self.places, self._folder, self._record)
            self._note(worked=True)
            room.keep(os.path.join(self._folder, workspace_layout.RECORD))

    def keep_words(self, said: Mapping[str, Any]) -> None:
        """Keep what the agent ended with: should all that is missing fail now, a later attempt needs no agent. On a
        full disk a long text loses its beginning.

        Errors: OSError.
        """
        try:
            self._note(words=dict(said))
        except OSError as error:
            if not room.is_full(error):
                raise
            self._note(words={**said, "text": str(said.get("text", ""))[-room.TEXT_KEPT :]})
        if not said:
            room.keep(os.path.join(self._folder, workspace_layout.RECORD))

    def save(self, message: str) -> SavedWork:
        """Commit everything and push it to a reference of this attempt. message: of the commit.

        Errors: WorkspaceFailed where the remote does not take it, or must not have it; the work then stays here.
        RemoteAway also where a program of ours was killed: it is tried again, without the agent. OSError.
        """
        if self.config.kind == "none":
            return SavedWork("", "", "", "")
        try:
            return self._saved(message)
        except (GitFailed, WorkspaceFailed) as failed:
            cause = failed if isinstance(failed, GitFailed) else failed.__cause__
            if isinstance(cause, GitFailed) and cause.killed:
                text = f"the work in {self._folder} is not saved yet: a program that saves it was killed. {failed}"
                raise RemoteAway(text) from cause
            raise

    def _saved(self, message: str) -> SavedWork:
        record, repo = self._record, self.config.repo
        text = f"{message.strip() or record.task}\n\nSpool-Task: {record.task}\nSpool-Attempt: {record.attempt}\n"
        try:
            made = committing.commit_all(self._mirror, self._folder, record, text)
        except GitFailed as failed:
            why = f"the work in {self._folder} cannot be committed: {failed}"
            raise (room.no_room(self.places.top, why) if room.is_full(failed) else WorkspaceFailed(why)) from failed
        git = checkout.keeper(self._folder)
        leaks = self._leaks(git, made)
        lfs.push(git, repo, record.owner, list(made.lfs))
        more, beside, amiss = self._publish_more(git, made)
        amiss += leaks
        ref = ""
        if made.changed_files:
            own = (record.ref, record.commit)
            ref = publishing.publish(git, repo, made.commit, record.task, record.attempt, own)
        # Asked last: the work is on its own remote by then, whatever others say.
        amiss += [*made.left_out, *unknown(git, repo, record.owner, made.links, self._folder)]
        commit = made.commit if ref else ""
        self._commit = made.commit
        given = {"ref": ref, "commit": commit, "more_ref": more, "more": made.more}
        self._note(saved=True, **given, left_out=made.left_out, leaks=tuple(leaks))
        where = (repo, record.base, ref, made.commit, made.changed_files)
        return SavedWork(*where, made.left_out, more=more, beside=(*beside, *made.unseen), amiss=tuple(amiss))

    def _leaks(self, git: Git, made: committing.Committed) -> list[str]:
        """Return where the work holds what looks like a secret. Errors: WorkspaceFailed."""
        commits = [one for one in (made.commit if made.changed_files else "", made.more) if one]
        names = self._scanner.names if self._scanner is not None else frozenset[str]()
        if commits and (unknown := sorted({*self._record.secrets} - names)):
            raise WorkspaceFailed(secret_scan.unknown(unknown, self._record.profile, self._record.task, self._folder))
        if self._scanner is None:
            return []
        try:
            heads = self._mirror.git("for-each-ref", "--format=%(objectname)", HEADS).lines
            known = (self._record.base, self._record.start, *heads)
            secret_scan.refuse(git, commits, known, self._scanner, self.directory)
            found = (
                secret_scan.tokens(git, self._record.base, made.commit, self._scanner) if made.changed_files else []
            )
        except secret_scan.HoldsSecret:
            # What is saved next must not go on from there.
            back = [self._record.commit] if self._record.commit else []
            git.ask("update-ref", *([] if back else ["-d"]), "refs/heads/saved", *back)
            raise
        except GitFailed as failed:
            raise WorkspaceFailed(f"secrets cannot be looked for in {self._folder}: {failed}") from failed
        return found

    def _publish_more(self, git: Git, made: committing.Committed) -> tuple[str, tuple[str, ...], list[str]]:
        """Push what lies beside the work; returns its reference, what it is, and what of it should be in the work.

        Errors: WorkspaceFailed.
        """
        if not made.more:
            return "", (), []
        record, own = self._record, (self._record.more_ref, self._record.more)
        words = (self.config.repo, made.more, record.task, record.attempt, own, publishing.MORE)
        more = publishing.publish(git, *words)
        beside = {commit: f"{what}: {commit[:12]}, below {more}" for commit, what in made.beside.items()}
        amiss = [f"{beside[commit]}, which is not in the work" for commit in made.amiss]
        return more, tuple(beside.values()), amiss

    def content(self, name: str) -> bytes | str:
        """Return the content of a file of the last save, or in words why there is none. Errors: GitFailed."""
        if self.config.kind == "none":
            return acceptance.inside(self.directory, name)
        found = checkout.blob(checkout.keeper(self._folder), self._commit, name)
        if found is None and os.path.lexists(os.path.join(self.directory, name)):
            return "it is not in the work: git ignores it, or it could not be read"
        return "it is not there" if found is None else found

    def push_branch(self, name: str) -> None:
        """Push the work to a branch, which an earlier attempt may have made. Errors: WorkspaceFailed."""
        publishing.publish_branch(checkout.keeper(self._folder), self.config.repo, self._commit, name)

    def unsaved(self) -> dict[str, Any]:
        """Return where work of this task lies that the remote was not seen to have: folder, attempt, and push, a
        command that brings it there, if any does; {} for none. Errors: OSError."""
        record = workspace_layout.read_record(self._folder)
        if record is None or record.saved:
            return {}
        left = {"folder": self._folder, "attempt": record.attempt}
        if record.secrets:
            return left
        return {**left, "push": shlex.join(["spool", "workspace", "gc", "--dir", self.places.top])}

    def close(self) -> None:
        """Let the workspace go: it stays for `keep_s`, or until the remote has all of it. Errors: OSError."""
        if self._held is None:
            return
        self._note(ended=self._wall())
        room.let_go(os.path.join(self._folder, workspace_layout.RECORD))
        if self._unshown is not None:
            os.close(self._unshown)
            self._unshown = None
        self._let_go()

    def __enter__(self) -> RepositoryWorkspace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _fill(self) -> None:
        """Get the files, from the newest earlier attempt or from the base, and our own repository beside them."""
        record, config = self._record, self.config
        wanted = [f"{publishing.prefix(record.task)}*"] if config.resume == "work" else []
        named = config.base.startswith("refs/") and not config.base.startswith("refs/heads/")
        wanted += [config.base] if named else []
        with self._mirror.locked() as git:
            self._mirror.fetch(git, wanted)
            base = self._mirror.resolve(git, config.base)
            earlier_ref = None
            if config.resume == "work":
                rows = git("for-each-ref", "--format=%(objectname) %(refname)", publishing.prefix(record.task)).lines
                earlier = {name: commit for commit, _, name in (row.partition(" ") for row in rows)}
                earlier_ref = publishing.newest(earlier, record.task, record.attempt)
            self.resumed, start = earlier_ref or ("", base)
            branch = checkout.branch_of(record.task, record.attempt)
            owner = self._mirror.owned(git, base)
            lfs.fetch(git, config.repo, owner, start)
            if config.kind == "worktree":
                admin = checkout.worktree(git, self._folder, branch, start)
                self._record = record.model_copy(update={"admin": admin})
        publishing.check(self._mirror.git, config.repo, start, record.task, record.attempt)
        if config.kind == "clone":
            checkout.clone(self._mirror, self._folder, branch, start, record.profile)
        given = {}
        if config.submodules == "fetch":
            found = fetched(self.places, self._mirror.git, config.repo, owner, start)
            for path, (mirror, commit) in found.items():
                checkout.submodule(mirror, self._folder, path, commit, record.profile)
                given[path] = mirror.repo
        checkout.keep(self._mirror, self._folder, self._record)
        self._record = self._record.model_copy(
            update={"start": start, "base": base, "owner": owner, "submodules": given}
        )

    def _take_place(self) -> str | None:
        """Make this attempt's folder, with its lock; what an earlier attempt left there is saved, and moved aside.
        Returns where its home is now, if there is one."""
        held, home = self._set_aside(), None
        with self.places.arranging():
            if held is not None:
                home = self._move(held)
            number = 0
            while os.path.lexists(self._folder):
                number += 1
                self._folder = f"{self._first}+{number}"
            os.mkdir(self._folder, mode=0o700)
            self._held, self._attended = workspace_layout.take(self._folder), workspace_layout.attend(self._folder)
        return home

    def _make_room(self, quota_mb: int) -> None:
        """Bring what lies here below the quota, but for an attempt that only has to push: it is what makes room.

        Errors: NoRoom, WorkspaceFailed.
        """
        try:
            workspace_retention.make_room(self.places, quota_mb, self._wall(), self._saver())
        except room.NoRoom:
            if self.config.resume != "work" or not any(record.words for *_, record in self._mine()):
                raise

    def _mine(self) -> list[tuple[str, str, Record]]:
        return self.places.of_task(self._record.task, self._record.spool)

    def _let_go(self) -> None:
        """Let go of every lock that this attempt holds."""
        for held in (self._held, self._attended, self._before):
            if held is not None:
                os.close(held)
        self._held = self._attended = self._before = None

    def _bring(self, home: str | None) -> None:
        """Take the home of the attempt before, where there is one and its work goes on."""
        if home is not None and self.config.resume == "work" and os.path.isdir(home):
            private_home.bring(home, self.home)
            self.returning = True
        else:
            os.mkdir(self.home, mode=0o700)

    def _take_over(self) -> None:
        """Let this record alone say from now on what an agent ended with, not that of any attempt before."""
        if self._before is None:
            return
        try:
            self._silence(self._aside)
        finally:
            os.close(self._before)
            self._before = None
        for _, path, record in self._mine():
            if path == self._folder or not record.words or (held := workspace_layout.take(path)) is None:
                continue
            try:
                self._silence(path)
            finally:
                os.close(held)

    def _silence(self, folder: str) -> None:
        """Take what an agent ended with out of the record of a folder whose lock is held. Errors: OSError."""
        record = workspace_layout.read_record(folder)
        if record is not None and record.words:
            workspace_layout.write_record(folder, record.model_copy(update={"words": {}}))

    def _abandon(self) -> None:
        """Leave nothing of a workspace that could not be made: no agent has been in it."""
        remove(self._folder)
        only_copies.forget(self.places, self._folder)
        if self._aside:
            os.rename(self._aside, self._folder)
            self._follow(self._folder)
            only_copies.forget(self.places, self._aside)
        self._let_go()

    def _set_aside(self) -> int | None:
        """Choose this attempt's place, lock and save what lies there; None for nothing, and where attempts live.

        Errors: Tended, RemoteAway, NoRoom: this attempt would begin without that work, and do it again. OSError.
        """
        began, living = time.monotonic(), set[str]()
        while True:
            with self.places.arranging():  # else what is half made might just be removed
                self._folder = self.places.newest(self._record.task, self._record.spool, living)
                held, busy = (None, "") if self._folder in living else self._taken()
            if not busy:
                break
            lives, waited_s = workspace_layout.is_attended(busy), time.monotonic() - began
            if lives and waited_s > LIVES_S:
                living.add(self._folder)
                continue
            if not lives and waited_s > TURN_S:
                what = f"the work of {self._record.task} in {busy} for more than {TURN_S:g} s"
                raise Tended(
                    f"another process has been saving or removing {what}, and this attempt needs it. It is tried "
                    f"again later. If that process hangs, end it: `fuser {shlex.quote(f'{busy}/lock')}` names it."
                )
            time.sleep(LOOK_S)
        if held is None:
            return None
        record = workspace_layout.read_record(self._folder)
        if record is not None and not record.saved:
            try:
                record = self._saver()(self._folder, record)
            except (RemoteAway, room.NoRoom):
                os.close(held)
                raise
            except WorkspaceFailed:
                return held  # it stays, and is not removed before it could be saved
        if record is not None:
            self.done, self._done_at = record.words, record.ref
        return held

    def _taken(self) -> tuple[int | None, str]:
        """Lock what lies in this attempt's place; None where nothing does, or another process holds it. Returns
        besides the folder that this one holds; '' for none.

        What an attempt had moved aside that was killed before it made anything is put back: no agent has been there
        since, also where the retention removed what was half made. Under the lock of `arranging`. Errors: OSError.
        """
        held = workspace_layout.take(self._folder)
        there = held is not None or os.path.lexists(self._folder)
        if there and held is None:
            return None, self._folder
        if there and workspace_layout.read_record(self._folder) is not None:
            return held, ""
        asides = ((path, one) for place, path, one in self._mine() if place == self._folder != path)
        found = [(record.attempt, record.began, path) for path, record in asides]
        if not found:
            return held, ""
        if (other := workspace_layout.take(newest := max(found)[-1])) is not None:
            remove(self._folder)
            os.rename(newest, self._folder)
        if held is not None:
            os.close(held)
        if other is None:
            return None, newest
        self._follow(self._folder)
        only_copies.forget(self.places, newest)
        return other, ""

    def _saver(self) -> workspace_retention.Save:
        return _saver(self.places, self._wall, self._scanner)

    def _move(self, held: int) -> str:
        """Move what lies in this attempt's place aside; returns where its home is now."""
        record = workspace_layout.read_record(self._folder)
        aside, number = f"{self._folder}.{record.attempt if record else 0}", 0
        while os.path.lexists(aside if number == 0 else f"{aside}.{number}"):
            number += 1
        aside = aside if number == 0 else f"{aside}.{number}"
        os.rename(self._folder, aside)
        self._aside, self._before = aside, held
        self._follow(aside)
        return os.path.join(aside, "home")

    def _follow(self, folder: str) -> None:
        """Tell the mirror where a worktree is now, and people where the only copy of work is."""
        record = workspace_layout.read_record(folder)
        if record is not None:
            only_copies.tell(self.places, folder, record)
        if record is not None and record.admin:
            checkout.moved(Mirror(self.places, record.config.repo), folder)

    def _note(self, **said: Any) -> None:
        self._record = self._record.model_copy(update=said)
        workspace_layout.write_record(self._folder, self._record)
        only_copies.tell(self.places, self._folder, self._record)


def collect(
    where: Places,
    keep_s: float | None = None,
    repo: str | None = None,
    wall: Wall = time.time,
    scanner: Scanner | None = None,
) -> list[workspace_retention.Judged]:
    """Remove the workspaces that may go, and save what killed processes left. keep_s: in place of what each says;
    repo: only those of this repository; scanner: looks for secrets in what is saved, None for those that are known
    without any.

    Errors: OSError.
    """
    return workspace_retention.collect(where, wall(), _saver(where, wall, scanner), keep_s, repo)


def _saver(where: Places, wall: Wall, scanner: Scanner | None = None) -> workspace_retention.Save:
    def save(folder: str, record: Record) -> Record:
        return RepositoryWorkspace.left_behind(where, folder, record, wall, scanner).rescue()

    return save


# Submodules: their files, where a profile asks for them, and whether what the work names is on their remotes.


_FILE = ".gitmodules"
_NOT_THERE = ("not our ref", "couldn't find remote ref", "unadvertised object", "bad object")


def addresses(git: Git, repo: str, commit: str) -> dict[str, str]:
    """Return the address of each submodule of a commit, by its path. Errors: GitFailed."""
    done = git.ask("config", "--blob", f"{commit}:{_FILE}", "--null", "--list")
    if done.code:
        return {}
    found: dict[str, dict[str, str]] = {}
    for row in done.names:
        key, _, value = row.partition("\n")
        section, _, rest = key.partition(".")
        name, _, what = rest.rpartition(".")
        if section == "submodule":
            found.setdefault(name, {})[what] = value
    known = {}
    for one in found.values():
        if "path" in one and "url" in one and (address := _address(repo, one["url"])):
            known[one["path"].rstrip("/")] = address
    return known


def fetched(where: Places, git: Git, repo: str, base: str, start: str) -> dict[str, tuple[Mirror, str]]:
    """Return mirror and commit of each submodule of a commit, fetched. base: the commit whose addresses count.

    Errors: WorkspaceFailed, GitFailed, OSError.
    """
    known, found = addresses(git, repo, base), dict[str, tuple[Mirror, str]]()
    for path, commit in links(git("ls-tree", "-r", "-z", start).names).items():
        if path in known:
            mirror = Mirror(where, known[path])
            with mirror.locked() as inner:
                mirror.fetch(inner)
                found[path] = (mirror, mirror.resolve(inner, commit))
    return found


def unknown(git: Git, repo: str, base: str, changed: Mapping[str, str], folder: str) -> list[str]:
    """Return why submodules of the work cannot be cloned, as sentences. changed: path → commit of those that are not
    as in the base; folder: of the workspace. Errors: RemoteAway, GitFailed, OSError."""
    known = addresses(git, repo, base) if changed else {}
    told = []
    for path, commit in changed.items():
        if path not in known:
            why = f"a submodule that the base does not have, so nobody knows that {commit[:12]} exists"
            told.append(visible(f"{path}: {why}"))
        elif why := _missing(known[path], commit, os.path.join(folder, "asked.git")):
            told.append(visible(f"{path}: the submodule's commit {commit[:12]} is not in {known[path]}: {why}"))
    return told


def _missing(address: str, commit: str, folder: str) -> str:
    """Return why a repository does not have a commit; '' where it has it. Errors: RemoteAway, OSError."""
    remove(folder)
    git = Git(folder)
    os.mkdir(folder, mode=0o700)
    try:
        git("init", "--quiet", "--bare", "--template=")
        words = ("fetch", "--quiet", "--depth=1", "--filter=tree:0", "--no-tags", "--no-write-fetch-head")
        git(*words, "--", address, commit, within_s=REMOTE_S)
    except GitFailed as failed:
        why = failure(failed, f"the repository {address} of a submodule cannot be asked: {said(failed)}")
        if isinstance(why, RemoteAway):
            raise why from failed  # nobody is at fault: the work is not judged by that
        absent = any(words in failed.errors for words in _NOT_THERE)
        return "push it there" if absent else f"it cannot be asked: {' '.join(failed.errors.split())[-200:]}"
    finally:
        remove(folder)
    return ""


def _address(repo: str, url: str) -> str:
    """Return the address of a submodule, which may be relative to that of the repository; '' for none."""
    if url.startswith(("./", "../")):
        url = _joined(repo, url)
    try:
        return repository(url)
    except WrongValue:
        return ""


def _joined(repo: str, url: str) -> str:
    scheme, mark, rest = repo.partition("://")
    if not mark:
        scheme, rest = "", repo
    host, between, path = rest.partition("/" if mark or repo.startswith("/") else ":")
    return f"{scheme}{mark}{host}{between}{os.path.normpath(os.path.join(path, url)).lstrip('./')}"


# What a save gave the remote.


@dataclass(frozen=True, slots=True)
class SavedWork:
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
