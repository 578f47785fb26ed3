"""The worker's file of a pool of hostile agents: a profile for each way to be played, and the merges.

Law: pure. It says what an owner would say, by the documents.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from tools.hostility.agents.agent import command
from tools.hostility.agents.place import KINDS, SAVED
from tools.hostility.agents.remotes import FAILS

LINES = {name: f"test ! -e {name}.sh || sh ./{name}.sh" for name in ("setup", "accept")}
CONCURRENT = 2


def worker_file(
    host: str, way: str, owned: str, remotes: Sequence[str], merges: Mapping[str, str], timeout_s: int
) -> str:
    """Return the text of a worker's file. host: "lfs" or "plain"; way: the socket of the observer; owned: the folder
    of the owner's clones; merges: the interpreter of the merger, {} where it serves none."""
    tables = ['pass_env = ["GIT_CONFIG_SYSTEM", "SSH_AUTH_SOCK"]']
    for walled, kind, lines, then in product((True, False), KINDS, (True, False), ("", "merge")):
        if kind in SAVED or not then:
            name = "-".join(
                (host, "walled" if walled else "open", kind, "lines" if lines else "bare", then or "stop")
            )
            tables.append(_table(f"agents.{name}", _profile(way, owned, walled, kind, lines, then, timeout_s)))
    innocent = _profile(way, owned, False, "clone", False, "merge", timeout_s)
    tables.append(_table(f"agents.{host}-innocent", {**innocent, "concurrent": CONCURRENT}))
    if merges:
        words = [merges["python"], "-m", "spoold.agents.merge", "--test", f"test ! -e {FAILS}", "--within", "60"]
        words += [word for repo in remotes for word in ("--repo", repo)]
        tables.append(_table("handlers.merge", {"command": words, "timeout": timeout_s}))
    return "\n".join(tables)


def shown() -> Iterator[str]:
    """Return what a sandbox has to show, so that the agent can run."""
    yield str(Path(__file__).parent)
    for path in {os.path.realpath(sys.base_prefix), os.path.realpath(sys.executable)}:
        if not path.startswith("/usr"):
            yield path


def _profile(way: str, owned: str, walled: bool, kind: str, lines: bool, then: str, timeout_s: int) -> dict[str, Any]:
    kinds = {"clone": "clone", "worktree": "worktree", "empty": "none"}
    workspace: dict[str, Any] = {"kind": kinds[kind]} if kind in kinds else {}
    if kind == "empty":
        workspace["repo"] = ""
    if lines and kind in SAVED:
        workspace["setup"] = [LINES["setup"]]
    said: dict[str, Any] = {
        "cli": "generic",
        "command": command(way),
        "timeout": timeout_s,
        "sandbox": {"kind": "bwrap", "show": [*shown(), os.path.dirname(way)]} if walled else "none",
        "allow_repos": ["/*"],
    }
    said |= {"workspace": workspace} if workspace else {}
    said |= {"allow_cwd": [owned]} if kind == "cwd" else {}
    said |= {"accept": [LINES["accept"]]} if lines else {}
    return said | ({"then": then} if then else {})


def _table(name: str, said: Mapping[str, Any]) -> str:
    rows = [f"{key} = {_value(value)}" for key, value in said.items()]
    return "\n".join([f"[{name}]", *rows, ""])


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)
