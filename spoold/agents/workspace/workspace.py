"""One attempt's workspace: `open` gives a directory, `save` puts its work on the remote, `close` lets it go.

Law: `save` returns only after the remote has the work, or there is none. It may be called again, also after a signal.
A workspace whose process was killed is saved by the next one that needs its place, or by the retention.

Touches: files, the clock, the environment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any

from spoold.agents import homes
from spoold.agents.workspace import checkout, committing, places, publishing, retention, setting_up
from spoold.agents.workspace.config import WorkspaceConfig
from spoold.agents.workspace.git import GitFailed, address
from spoold.agents.workspace.mirror import Mirror, WorkspaceFailed
from spoold.agents.workspace.places import Places, Record
from spoold.agents.workspace.saved import Saved

# Runs a line for the shell in a directory; returns its exit code and the end of its output.
Shell = Callable[[str, str], tuple[int, str]]
Wall = Callable[[], float]


class Workspace:
    """The workspace of one attempt; not thread-safe. profile: the author of what is committed.

    directory: where the agent works; home: a private folder for its settings and sessions, which the next attempt on
    this host has too; resumed: the reference that the work goes on from, '' for the base; returning: whether an
    earlier attempt of the task was at the same path, and left its home.
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
    ) -> None:
        self.config, self.resumed, self.returning = config, "", False
        self._places = Places(config.dir, environ)
        self._mirror = Mirror(self._places, config.repo)
        self._wall = wall
        self._held: int | None = None
        self._folder = self._places.workspace(task, environ.get("SPOOL_ROOT", ""))
        self._record = Record(
            task=task,
            attempt=attempt,
            profile=profile,
            config=config,
            spool=environ.get("SPOOL_ROOT", ""),
            began=wall(),
        )

    @classmethod
    def left_behind(cls, where: Places, folder: str, record: Record, wall: Wall = time.time) -> Workspace:
        """Return the workspace that lies in a folder, whose lock the caller holds."""
        made = cls(record.config, task=record.task, attempt=record.attempt, profile=record.profile, environ={})
        made._places, made._mirror = where, Mirror(where, record.config.repo)
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
        return os.path.join(self._folder, "home")

    @property
    def borrowed(self) -> str:
        """What a sandbox must show read-only besides the directory: the objects of the mirror; '' for none.

        A worktree needs all of the mirror, and to write there: a sandboxed agent works in a clone.
        """
        return self._mirror.objects if self.config.kind == "clone" else ""

    @property
    def env(self) -> dict[str, str]:
        """The variables that the agent gets: under which name git commits, and that it asks nobody."""
        named = {}
        for role in ("AUTHOR", "COMMITTER"):
            named[f"GIT_{role}_NAME"] = self._record.profile
            named[f"GIT_{role}_EMAIL"] = address(self._record.profile)
        return {**named, "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true"}

    def open(self, shell: Shell = setting_up.run) -> str:
        """Make the workspace, run its setup, and return its directory. shell: runs the lines of `setup`.

        Errors: WorkspaceFailed, which says what is wrong and the fix; OSError.
        """
        self._places.make()
        collect(self._places, repo=self.config.repo, wall=self._wall)
        if self.config.quota_mb is not None:
            retention.make_room(self._places, self.config.quota_mb, self._wall(), _saver(self._places, self._wall))
        self._take_place()
        try:
            if self.config.kind == "none":
                os.mkdir(self.directory)
            else:
                self._fill()
            self._note(saved=self.config.kind == "none")
        except GitFailed as failed:
            raise WorkspaceFailed(
                f"no workspace of {self.config.repo} can be made in {self._folder}: {failed}"
            ) from failed
        for line in self.config.setup:
            code, end = shell(line, self.directory)
            if code:
                raise WorkspaceFailed(f"the setup of the workspace failed: `{line}` ended with {code}: {end}")
        return self.directory

    def save(self, message: str) -> Saved:
        """Commit everything and push it to a reference of this attempt. message: of the commit.

        Errors: WorkspaceFailed where the remote does not take it; the work then stays here. OSError.
        """
        record, repo = self._record, self.config.repo
        if self.config.kind == "none":
            return Saved("", "", "", "")
        text = f"{message.strip() or record.task}\n\nSpool-Task: {record.task}\nSpool-Attempt: {record.attempt}\n"
        try:
            made = committing.commit_all(self._mirror, self._folder, record, text)
        except GitFailed as failed:
            raise WorkspaceFailed(f"the work in {self._folder} cannot be committed: {failed}") from failed
        if not made.changed_files:
            self._note(saved=True, ref="", commit="", left_out=made.left_out)
            return Saved(repo, record.base, "", made.commit, (), made.left_out)
        git = checkout.keeper(self._folder)
        git = git.reading(os.path.join(checkout.commits_of(self._folder, record, self._mirror).shared, "objects"))
        own = (record.ref, record.commit)
        ref = publishing.publish(git, repo, made.commit, record.task, record.attempt, own)
        self._note(saved=True, ref=ref, commit=made.commit, left_out=made.left_out)
        return Saved(repo, record.base, ref, made.commit, made.changed_files, made.left_out)

    def close(self) -> None:
        """Let the workspace go: it stays for `keep_s`, or until the remote has all of it. Errors: OSError."""
        if self._held is None:
            return
        self._note(ended=self._wall())
        os.close(self._held)
        self._held = None

    def __enter__(self) -> Workspace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _fill(self) -> None:
        """Get the files, from the newest earlier attempt or from the base, and our own repository beside them."""
        record, config = self._record, self.config
        wanted = [f"{publishing.prefix(record.task)}*"] if config.resume == "work" else []
        wanted += [config.base] if config.base.startswith("refs/") else []
        with self._mirror.locked() as git:
            self._mirror.fetch(git, wanted)
            base = self._mirror.resolve(git, config.base)
            found = None
            if config.resume == "work":
                rows = git("for-each-ref", "--format=%(objectname) %(refname)", publishing.prefix(record.task)).lines
                earlier = {name: commit for commit, _, name in (row.partition(" ") for row in rows)}
                found = publishing.newest(earlier, record.task, record.attempt)
            self.resumed, start = found or ("", base)
            branch = checkout.branch_of(record.task, record.attempt)
            if config.kind == "worktree":
                admin = checkout.worktree(git, self._folder, branch, start)
                self._record = record.model_copy(update={"admin": admin})
        publishing.check(self._mirror.git, config.repo, start, record.task, record.attempt)
        if config.kind == "clone":
            checkout.clone(self._mirror, self._folder, branch, start, record.profile)
        checkout.keep(self._mirror, self._folder, self._record)
        self._record = self._record.model_copy(update={"start": start, "base": base})

    def _take_place(self) -> None:
        """Make this attempt's folder, with its lock; what an earlier attempt left there is saved, and moved aside."""
        held, home = self._set_aside(), None
        with self._places.arranging():
            if held is not None:
                home = self._move(held)
            number = 0
            while os.path.lexists(self._folder):
                number += 1
                self._folder = f"{self._folder.removesuffix(f'+{number - 1}')}+{number}"
            os.mkdir(self._folder, mode=0o700)
            self._held = places.take(self._folder)
        if home is not None and self.config.resume == "work" and os.path.isdir(home):
            homes.bring(home, self.home)
            self.returning = True
        else:
            os.mkdir(self.home, mode=0o700)

    def _set_aside(self) -> int | None:
        """Lock and save what lies in this attempt's place; None where nothing does, or a process still uses it."""
        if not os.path.isdir(self._folder) or (held := places.take(self._folder)) is None:
            return None
        record = places.read_record(self._folder)
        if record is not None and not record.saved:
            with suppress(WorkspaceFailed):  # it stays, and is not removed before it could be saved
                _saver(self._places, self._wall)(self._folder, record)
        return held

    def _move(self, held: int) -> str:
        """Move what lies in this attempt's place aside, and let it go; returns where its home is now."""
        record = places.read_record(self._folder)
        aside, number = f"{self._folder}.{record.attempt if record else 0}", 0
        while os.path.lexists(aside if number == 0 else f"{aside}.{number}"):
            number += 1
        aside = aside if number == 0 else f"{aside}.{number}"
        os.rename(self._folder, aside)
        os.close(held)
        if record is not None and record.admin:
            checkout.moved(Mirror(self._places, record.config.repo), aside)
        return os.path.join(aside, "home")

    def _note(self, **said: Any) -> None:
        self._record = self._record.model_copy(update=said)
        places.write_record(self._folder, self._record)


def collect(
    where: Places, keep_s: float | None = None, repo: str | None = None, wall: Wall = time.time
) -> list[retention.Judged]:
    """Remove the workspaces that may go, and save what killed processes left. keep_s: in place of what each says;
    repo: only those of this repository.

    Errors: OSError.
    """
    return retention.collect(where, wall(), _saver(where, wall), keep_s, repo)


def _saver(where: Places, wall: Wall) -> retention.Save:
    def save(folder: str, record: Record) -> Record:
        return Workspace.left_behind(where, folder, record, wall).rescue()

    return save
