"""Real repositories for tests: a bare one that everybody pushes to, and what stands in it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spoold.agents.workspace.attempt_workspace import RepositoryWorkspace
from spoold.agents.workspace.repository_config import WorkspaceConfig

NAMED = {
    "GIT_AUTHOR_NAME": "ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


def git(*words: str, cwd: Path | str | None = None, check: bool = True) -> str:
    """Run git as a person does; returns what it printed."""
    done = subprocess.run(
        ["git", *words], cwd=cwd, env={**os.environ, **NAMED}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 or not check, f"git {' '.join(words)}: {done.stderr}"
    return done.stdout.strip()


class Remote:
    """A bare repository with a main branch of one commit, and a person's clone of it."""

    def __init__(self, top: Path, files: Mapping[str, str] | None = None) -> None:
        self.path = top / "remote.git"
        self.clone = top / "person"
        git("init", "-q", "--bare", "-b", "main", str(self.path))
        git("clone", "-q", str(self.path), str(self.clone))
        self.first = self.land(files or {"a.txt": "one\n"})

    @classmethod
    def at(cls, top: Path) -> Remote:
        """One that is there, without the person's clone."""
        made = cls.__new__(cls)
        made.path = top / "remote.git"
        return made

    def land(self, files: Mapping[str, str | None], branch: str = "main") -> str:
        """Commit files on a branch, as a person does, and push it; returns the commit. None removes a file."""
        git("fetch", "-q", cwd=self.clone)
        tip = git("rev-parse", "-q", "--verify", f"origin/{branch}", cwd=self.clone, check=False)
        git("checkout", "-q", "-B", branch, *([tip] if tip else []), cwd=self.clone)
        write(self.clone, files)
        git("add", "-A", cwd=self.clone)
        git("commit", "-q", "-m", f"change {', '.join(files)}", cwd=self.clone)
        git("push", "-q", "origin", branch, cwd=self.clone)
        return self.commit(branch)

    def refs(self, pattern: str = "refs/spool/") -> dict[str, str]:
        """The references of the remote with their commits."""
        rows = git("for-each-ref", "--format=%(refname) %(objectname)", pattern, cwd=self.path).splitlines()
        return dict(row.split(" ") for row in rows)

    def commit(self, name: str) -> str:
        return git("rev-parse", f"{name}^{{commit}}", cwd=self.path)

    def read(self, name: str, path: str) -> str | None:
        """What a file holds in a commit; None where it is not there."""
        done = subprocess.run(["git", "show", f"{name}:{path}"], cwd=self.path, capture_output=True, check=False)
        return done.stdout.decode() if done.returncode == 0 else None

    def files(self, name: str) -> list[str]:
        return git("ls-tree", "-r", "--name-only", name, cwd=self.path).splitlines()


def write(folder: Path | str, files: Mapping[str, str | None]) -> None:
    """Write files; None removes one."""
    for name, text in files.items():
        path = Path(folder) / name
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def workspace(
    remote: Remote, host: Path, task: str = "edit", attempt: int = 1, now: float = 1000.0, **config: Any
) -> RepositoryWorkspace:
    """A workspace of an attempt on a host, whose clock stands still."""
    said = WorkspaceConfig.model_validate({"repo": str(remote.path), "dir": str(host), **config})
    return RepositoryWorkspace(said, task=task, attempt=attempt, profile="coder", environ={}, wall=lambda: now)


def pushed(
    remote: Remote, host: Path, task: str, files: Mapping[str, str | None], attempt: int = 1, **config: Any
) -> str:
    """What an agent makes of files, from the tip of main; returns the reference."""
    with workspace(remote, host, task, attempt, **config) as made:
        write(made.open(), files)
        return made.save(f"edit of {task}").ref
