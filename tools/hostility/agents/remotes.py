"""The repositories that hostile agents work on, and what stands in them afterwards.

Law: only git's own commands look into them. Nothing that an agent has pushed is checked out or run.

Touches: files, processes, the environment.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GIT_S = 300
FAILS = "BROKEN"
SETUP = b"# what a workspace needs: nothing\nexit 0\n"
FILES = {
    "README": b"a repository\n",
    "data.txt": b"one\ntwo\n",
    "setup.sh": SETUP,
    "accept.sh": SETUP,
    "folder/file": b"in a folder\n",
    ".gitignore": b"ignored/\n",
}
NAMED = {f"GIT_{role}_{what}": "owner" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(at: Path, *words: str, given: bytes = b"", check: bool = True) -> bytes:
    """Run git as the owner of a repository does, without the settings of this machine; returns what it printed."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    calm = ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]
    done = subprocess.run(
        [*calm, *words],
        cwd=at,
        env={**clean, **NAMED, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"},
        input=given,
        capture_output=True,
        timeout=GIT_S,
        check=False,
    )
    if check and done.returncode:
        raise AssertionError(f"git {' '.join(words)} in {at}: {done.stderr.decode(errors='replace')[-500:]}")
    return done.stdout


@dataclass(frozen=True, slots=True)
class Landing:
    """One update of main: what stood there before, and after."""

    before: str
    after: str


class Remote:
    """A bare repository with a branch main, whose updates are all noted. kind: plain, submodule or lfs."""

    def __init__(self, path: Path, kind: str) -> None:
        self.path = path
        path.mkdir(parents=True)
        git(path, "init", "-q", "--bare", "-b", "main", ".")
        git(path, "config", "core.logAllRefUpdates", "true")
        files, links = dict(FILES), {}
        if kind == "submodule":
            files[".gitmodules"] = f'[submodule "lib"]\npath = lib\nurl = {path}-lib\n'.encode()
            links["lib"] = "1" * 40
        if kind == "lfs":
            files |= self._large()
        rows = []
        for name, data in files.items():
            made = git(path, "hash-object", "-w", "--stdin", given=data).decode().strip()
            rows.append(f"100644 {made}\t{name}\n")
        rows += [f"160000 {commit}\t{name}\n" for name, commit in links.items()]
        tree = self._tree("".join(rows))
        self.first = git(path, "commit-tree", tree, "-m", "first").decode().strip()
        git(path, "update-ref", "refs/heads/main", self.first)

    def _large(self) -> dict[str, bytes]:
        """Put a file where a server of LFS has it, and return what git has of it."""
        data = b"large\n" * 1000
        name = hashlib.sha256(data).hexdigest()
        place = self.path / "lfs" / "objects" / name[:2] / name[2:4] / name
        place.parent.mkdir(parents=True)
        place.write_bytes(data)
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{name}\nsize {len(data)}\n"
        return {".gitattributes": b"*.lfs filter=lfs diff=lfs merge=lfs -text\n", "large.lfs": pointer.encode()}

    def _tree(self, rows: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            index = {**os.environ, "GIT_INDEX_FILE": f"{folder}/index", "GIT_CONFIG_NOSYSTEM": "1"}
            made = ""
            for words in (["update-index", "--add", "--index-info"], ["write-tree"]):
                done = subprocess.run(
                    ["git", *words], cwd=self.path, env=index, input=rows.encode(), capture_output=True, check=True
                )
                made = done.stdout.decode().strip()
            return made

    def references(self, task: str) -> dict[str, str]:
        """Return the references of a task, with what they name."""
        rows = git(self.path, "for-each-ref", "--format=%(refname) %(objectname)", f"refs/spool/{task}/").decode()
        return dict(row.split(" ") for row in rows.splitlines())

    def present(self, task: str) -> set[str]:
        """Return the names of all that can be reached from the references of a task, from branches, and in bundles;
        and of what LFS has."""
        rows = git(self.path, "rev-list", "--objects", "--branches", f"--glob=refs/spool/{task}").splitlines()
        found = {row[:40].decode() for row in rows}
        for row in rows:
            if b"bundle" in row[41:]:
                found |= self._bundled(row[:40].decode())
        return found | {path.name for path in (self.path / "lfs" / "objects").glob("*/*/*")}

    def _bundled(self, name: str) -> set[str]:
        """Return the names of all that is in a bundle; none for another file."""
        data = git(self.path, "cat-file", "blob", name, check=False)
        if not data.startswith(b"# v"):
            return set()
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "bundle").write_bytes(data)
            git(Path(folder), "init", "-q", "--bare", "in.git")
            alternates = Path(folder) / "in.git" / "objects" / "info" / "alternates"
            alternates.write_text(f"{self.path}/objects\n")
            heads = git(Path(folder) / "in.git", "bundle", "unbundle", "../bundle", check=False).decode().splitlines()
            names = [line.partition(" ")[0] for line in heads]
            rows = git(Path(folder) / "in.git", "rev-list", "--objects", *names) if names else b""
            return {row[:40].decode() for row in rows.splitlines()}

    def everything(self) -> Iterator[bytes]:
        """Return the content of all objects of it, whatever names them."""
        yield git(self.path, "cat-file", "--batch-all-objects", "--batch", "--buffer")
        for path in (self.path / "lfs" / "objects").glob("*/*/*"):
            yield path.read_bytes()

    def landings(self) -> list[Landing]:
        """Return every update of main, the oldest first."""
        log = self.path / "logs" / "refs" / "heads" / "main"
        rows = [line.split(b" ")[:2] for line in log.read_bytes().splitlines()] if log.exists() else []
        return [Landing(old.decode(), new.decode()) for old, new in rows if old.strip(b"0")]

    def goes_on(self, landing: Landing) -> bool:
        """Return whether nothing was lost by an update."""
        return self._is_ancestor(landing.before, landing.after)

    def has_in_main(self, commit: str) -> bool:
        """Return whether main holds a commit."""
        return self._is_ancestor(commit, "refs/heads/main")

    def _is_ancestor(self, before: str, after: str) -> bool:
        names = ("merge-base", "--is-ancestor", before, after)
        return subprocess.run(["git", *names], cwd=self.path, capture_output=True, check=False).returncode == 0

    def fails(self, commit: str) -> bool:
        """Return whether the tests of the merge fail for a commit: a file or a folder of that name is in it."""
        return git(self.path, "ls-tree", commit, "--", FAILS).startswith((b"100", b"040"))

    def holds(self, name: str) -> bool:
        """Return whether main has a file."""
        return bool(git(self.path, "ls-tree", "main", "--", name))


def owned(remote: Path, folder: Path, layout: str) -> list[Path]:
    """Make a repository of an owner in a folder, and return where he runs git. layout: plain, a clone; bare, a git
    directory `.bare` that a file `.git` names, with a worktree; apart, a clone whose git directory lies beside it;
    submodule, a clone with one."""
    if layout == "bare":
        folder.mkdir()
        git(folder, "clone", "-q", "--bare", str(remote), ".bare")
        (folder / ".git").write_text("gitdir: ./.bare\n")
        git(folder, "worktree", "add", "-q", "tree", "main")
        return [folder, folder / "tree"]
    if layout == "apart":
        folder.mkdir()
        git(folder, "clone", "-q", f"--separate-git-dir={folder}/data", str(remote), "tree")
        return [folder / "tree"]
    git(remote, "clone", "-q", ".", str(folder))
    if layout == "submodule":
        words = ("submodule", "--quiet", "add", str(remote), "libs/sub")
        git(folder, "-c", "protocol.file.allow=always", *words)
        git(folder, "commit", "-qm", "a submodule")
    return [folder]
