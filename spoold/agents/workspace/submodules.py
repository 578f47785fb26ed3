"""Submodules: their files, where a profile asks for them, and whether what the work names is on their remotes.

A commit says of a submodule no more than the name of a commit in another repository. Where that repository does not
have it, anyone who clones the work gets an error in place of the files.

Law: an address of a submodule counts only as the newest commit of people has it: none that an agent wrote is ever
asked, also where another task begins with its work. A repository that is away blames no work.

Touches: files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from spoold.agents.workspace.addresses import repository
from spoold.agents.workspace.git import REMOTE_S, Git, GitFailed, links
from spoold.agents.workspace.mirror import Mirror
from spoold.agents.workspace.places import Places
from spoold.agents.workspace.remote import RemoteAway, failure, said
from spoold.protocol.errors import WrongValue
from spoold.system.remover import remove

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
            told.append(f"{path}: a submodule that the base does not have, so nobody knows that {commit[:12]} exists")
        elif why := _missing(known[path], commit, os.path.join(folder, "asked.git")):
            told.append(f"{path}: the submodule's commit {commit[:12]} is not in {known[path]}: {why}")
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
