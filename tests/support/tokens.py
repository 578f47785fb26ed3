"""Where every task of a spool is, read straight off the tree, and what the laws say about it.

Law: this is the witness, so it shares the grammar of names with the code under test and nothing else.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from spoold.protocol import layout
from spoold.protocol.names import EndedName, TaskName, parse_archived, parse_ended, parse_returned, parse_task
from spoold.system.memory_filesystem import MemoryFileSystem


@dataclass(frozen=True, slots=True)
class Token:
    """A task file: its state as people say it, its path, the lane or worker it stands under, its name, its file."""

    state: str
    path: str
    branch: str
    name: TaskName | EndedName
    result: dict[str, Any] | None = None

    @property
    def id(self) -> str:
        """The id of the task."""
        return self.name.id


def tokens(fs: MemoryFileSystem) -> list[Token]:
    """Every task file there is."""
    files = fs.files()
    found = []
    for path in files:
        token = _token(path, files)
        if token is not None:
            found.append(token)
    return found


def _token(path: str, files: dict[str, bytes]) -> Token | None:
    state, _, rest = path.partition("/")
    branch, _, name = rest.rpartition("/")
    if state in ("waiting", "ready", "claimed") and branch:
        task = parse_task(name)
        return Token(state, path, branch, task) if task else None
    if state == "returned":
        returned = parse_returned(name)
        return Token(state, path, "", returned[0]) if returned else None
    if state in ("completed", "failed"):
        ended = parse_ended(name)
        return Token(state, path, "", ended, _result(files, ended)) if ended else None
    archived = parse_archived(name) if state == "archive" else None
    if archived is None or archived[1] == "result":
        return None
    return Token(archived[1], path, "archive", archived[0], _result(files, archived[0]))


def _result(files: dict[str, bytes], name: EndedName) -> dict[str, Any] | None:
    """The result of an attempt; on the way to the archive it goes before its task."""
    data = files.get(f"{layout.bucket(name.id)}/{name.archived('result')}", files.get(f"results/{name.encode()}"))
    value = None if data is None else json.loads(data)
    assert value is None or isinstance(value, dict)
    return value


def find(fs: MemoryFileSystem, task_id: str) -> Token:
    """The one token of a task. Errors: AssertionError when there is none, or more than one."""
    found = [token for token in tokens(fs) if token.id == task_id or token.id.startswith(f"{task_id}-")]
    assert len(found) == 1, f"{task_id} has {len(found)} tokens: {[t.path for t in found] or sorted(fs.files())}"
    return found[0]


class Witness:
    """Polling at the tree after every step: no task is ever doubled, lost, or ended without its result."""

    def __init__(self, fs: MemoryFileSystem) -> None:
        self._fs = fs
        self._seen: set[str] = set()
        self.twins_allowed = False
        self.losses_allowed = False

    def forget(self, task_id: str) -> None:
        """A person took the task away: it is not missed."""
        self._seen.discard(task_id.lower())

    def look(self, who: str) -> None:
        """Errors: AssertionError that says which law was broken, and after whose step."""
        now: dict[str, str] = {}
        for token in tokens(self._fs):
            key = token.id.lower()
            assert key not in now or self.twins_allowed, f"after {who}: two tokens, {now[key]} and {token.path}"
            now[key] = token.path
            if token.state in ("completed", "failed"):
                assert token.result is not None, f"after {who}: {token.path} has no result"
                said = (token.result["task_id"], token.result["attempt"])
                assert said == (token.id, token.name.attempt), f"after {who}: {token.path} has the result of {said}"
        lost = self._seen - now.keys()
        assert not lost or self.losses_allowed, f"after {who}: lost {sorted(lost)}"
        self._seen |= now.keys()
