"""The repository that the agents work on: an application with features, and its tests.

Law: git is asked as a person would ask it, with nothing of the spool. Touches: the scratch folder, processes.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tools.demonstration.agents.mind import CHANGES, SUITE
from tools.demonstration.cluster import Trouble

GIT_S, SUITE_S = 30.0, 60.0
FILES = {
    "features/__init__.py": "",
    CHANGES: "# Changes\n\n- nothing yet\n",
    ".gitignore": "__pycache__/\n",
    "test_features.py": '''"""Each feature has its own number, and CHANGES.md has been merged well."""

import importlib
import pkgutil
import unittest

import features


class Features(unittest.TestCase):
    def test_each_feature_has_its_number(self) -> None:
        for found in pkgutil.iter_modules(features.__path__):
            value = importlib.import_module(f"features.{found.name}").value()
            self.assertEqual(value, int(found.name[1:]))

    def test_the_changes_have_no_marks_and_no_line_twice(self) -> None:
        lines = [line for line in open("CHANGES.md", encoding="utf-8").read().splitlines() if line]
        self.assertEqual(len(lines), len(set(lines)))
        self.assertFalse([line for line in lines if line[:7] in ("<<<<<<<", "=======", ">>>>>>>")])


if __name__ == "__main__":
    unittest.main()
''',
}
NAMED = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "ada"), ("EMAIL", "ada@example.org"))
}
# Tests of a commit need no content of git-lfs, and the clone's remote has none.
ENVIRONMENT = {**NAMED, "GIT_LFS_SKIP_SMUDGE": "1"}


class Repository:
    """A bare repository with a main branch of one commit. lib: the repository that it has as a submodule."""

    def __init__(
        self, scratch: Path, name: str = "app", files: Mapping[str, str] = FILES, lib: Repository | None = None
    ) -> None:
        self.name = name
        self.path = scratch / f"{name}.git"
        self._clone = scratch / name
        _git("init", "-q", "--bare", "-b", "main", str(self.path))
        _git("clone", "-q", str(self.path), str(self._clone))
        for file, text in files.items():
            path = self._clone / file
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        _git("checkout", "-q", "-B", "main", cwd=self._clone)
        if lib is not None:
            allowed = ("-c", "protocol.file.allow=always")
            _git(*allowed, "submodule", "--quiet", "add", str(lib.path), lib.name, cwd=self._clone)
            key = f"submodule.{lib.name}.url"
            _git("config", "--file", ".gitmodules", key, f"../{lib.path.name}", cwd=self._clone)
        _git("add", "-A", cwd=self._clone)
        _git("commit", "-q", "-m", "An application without features", cwd=self._clone)
        _git("push", "-q", "origin", "main", cwd=self._clone)

    def take(self, other: Path) -> None:
        """Take over all that another copy of it has by now."""
        _git("fetch", "-q", "--prune", str(other), "+refs/*:refs/*", cwd=self.path)

    def has(self, commit: str) -> bool:
        """Whether a commit is in main."""
        return bool(_git("branch", "--list", "main", "--contains", commit, cwd=self.path).strip())

    def first_parents(self) -> list[str]:
        """The commits of main, each that was once its tip, oldest first."""
        return _git("rev-list", "--first-parent", "--reverse", "main", cwd=self.path).split()

    def features(self, commit: str) -> list[str]:
        """The features of a commit."""
        names = _git("ls-tree", "--name-only", commit, "features/", cwd=self.path).split()
        return sorted(Path(name).stem for name in names if Path(name).stem != "__init__")

    def shown(self, path: str) -> str:
        """A file of main, '' where it has none."""
        there = _git("ls-tree", "--name-only", "main", path, cwd=self.path).strip()
        return _git("show", f"main:{path}", cwd=self.path) if there else ""

    def changes(self) -> list[str]:
        """The lines of CHANGES.md on main that tell of a feature."""
        return [line for line in self.shown(CHANGES).splitlines() if line.startswith("- f")]

    def made_by(self, name: str) -> list[str]:
        """The commits of main that made the file of a feature."""
        path = f"features/{name}.py"
        return _git("log", "--format=%H", "--diff-filter=A", "main", "--", path, cwd=self.path).split()

    def parents(self, commit: str) -> list[str]:
        """The parents of a commit."""
        return _git("rev-list", "--parents", "-n", "1", commit, cwd=self.path).split()[1:]

    def is_green(self, commit: str) -> bool:
        """Whether the tests of a commit pass, in a checkout of its own."""
        _git("fetch", "-q", "origin", cwd=self._clone)
        _git("checkout", "-q", "--detach", commit, cwd=self._clone)
        _git("clean", "-q", "-fdx", cwd=self._clone)
        done = _run(["sh", "-c", SUITE], self._clone, SUITE_S)
        return done.returncode == 0


def _git(*words: str, cwd: Path | None = None) -> str:
    done = _run(["git", *words], cwd, GIT_S)
    if done.returncode:
        raise Trouble(f"git {' '.join(words)} ended with status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def _run(words: list[str], cwd: Path | None, within_s: float) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            words,
            cwd=cwd,
            env={**os.environ, **ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=within_s,
        )
    except subprocess.TimeoutExpired:
        raise Trouble(f"`{' '.join(words)}` has not ended within {within_s:g} s") from None
