"""An agent that one seed decides: it does its blocks, says what it has left, and ends as it is told.

Law: the standard library alone, and nothing of spoold. It is started in its workspace, inside of its sandbox; what a
seed does is the same each time. It speaks the line protocol of agents that spoold does not know.

Touches: files, processes, the network, the environment.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.hostility.agents import history, inner, settings, torn, tree
from tools.hostility.agents.leaving import counts, left_in
from tools.hostility.agents.place import BLOCKS, SAVED, SCALES, STAGES, Place

__all__ = ["BLOCKS", "SCALES", "Plan", "command", "history", "inner", "main", "plan", "settings", "torn", "tree"]

MOST_BLOCKS = 6
BASES = ("plain",) * 6 + ("submodule", "lfs")
# How the repository of an owner is laid out, of which `cwd` names the top.
OWNED = ("plain", "plain", "bare", "apart", "submodule")
# What the base holds: it counts whatever is ignored.
BASE = (b"README", b"data.txt", b"setup.sh", b"accept.sh", b"folder/file", b".gitignore")
AGAIN = ("",) * 5 + ("retry", "retry", "base")
KILLED = ("",) * 8 + ("git", "saver", "merger")
BOOT = "import sys; sys.path.append({root!r}); from tools.hostility.agents.agent import main; main()"


@dataclass(frozen=True, slots=True)
class Plan:
    """What one seed does. blocks: in their order; again: "retry" where the first attempt fails, "base" where a task
    begins with its work; lines: whether setup and accept run scripts of the tree; then: "merge" or nothing; lfs:
    whether its host has git-lfs; base: what its repository holds, or with `cwd` how it is laid out; kill: what is
    killed, git, saver or merger."""

    blocks: tuple[str, ...]
    sandbox: bool
    kind: str
    lines: bool
    then: str
    again: str
    lfs: bool
    base: str
    kill: str

    @property
    def profile(self) -> str:
        """The name of its profile."""
        return "-".join(
            (
                "lfs" if self.lfs else "plain",
                "walled" if self.sandbox else "open",
                self.kind,
                "lines" if self.lines else "bare",
                self.then or "stop",
            )
        )

    @property
    def deeds(self) -> tuple[str, ...]:
        """Its blocks, as the tool prints them."""
        return self.blocks

    @property
    def end(self) -> str:
        """Where and how it is played, as the tool prints it."""
        words = (self.profile, self.base, self.again and f"again: {self.again}", self.kill and f"killed: {self.kill}")
        return ", ".join(filter(None, words))


def plan(seed: int, only: str = "") -> Plan:
    """Return what a seed does. only: the one block that it does."""
    chance = random.Random(f"agents {seed}")
    said: dict[str, Any] = {
        "sandbox": chance.random() < 0.6,
        "kind": chance.choice(("clone",) * 6 + ("worktree", "cwd", "none", "empty")),
        "lines": chance.random() < 0.3,
        "then": chance.choice(("", "", "merge")),
        "again": chance.choice(AGAIN),
        "lfs": chance.random() < 0.3,
        "base": chance.choice(BASES),
        "kill": chance.choice(KILLED),
    }
    first = BLOCKS[only] if only else BLOCKS[chance.choice(sorted(BLOCKS))]
    if said["kind"] not in first.kinds:
        said["kind"] = chance.choice(first.kinds)
    alone = {"sandbox": True, "kill": "", "again": "", "base": "plain", "kind": first.kinds[0]}
    wants = {**alone, **first.wants} if only else dict(first.wants)
    if only or chance.random() < 0.7:
        said |= wants
    fitting = [name for name, one in BLOCKS.items() if said["kind"] in one.kinds]
    more = chance.sample(sorted(fitting), chance.choice((0, 0, 1, 1, 2, 3, MOST_BLOCKS - 1)))
    chosen = {first.name, *(() if only else more)}
    blocks = sorted(chosen, key=lambda name: (STAGES.index(BLOCKS[name].stage), name))
    if said["kind"] not in SAVED:
        said |= {"then": "", "again": "", "kill": "", "base": "plain"}
    if said["kind"] == "cwd":
        said["base"] = first.wants.get("base", chance.choice(OWNED))
    if said["kind"] == "worktree" and any(BLOCKS[name].stage in ("make", "tear") for name in blocks):
        said["sandbox"] = False  # in a sandbox its git directory may only be read
    if said["kill"] == "merger":
        said["then"] = "merge"
    return Plan(tuple(blocks), **said)


def command(way: str) -> list[str]:
    """Return the command of an agent. way: the socket to which it says what it has left."""
    python = os.path.realpath(sys.executable)
    # Without a sandbox HOME is that of the worker's user, and no agent's to write.
    return [python, "-I", "-c", BOOT.format(root=str(Path(__file__).parents[3])), way, "{home}"]


def main() -> None:
    """Do what the prompt says."""
    way, home = sys.argv[1:]
    try:
        said = json.loads(sys.stdin.read().partition("\n")[0])
    except ValueError:  # it is asked to resolve a conflict
        _say("FAILED", reason="it resolves nothing", fault="refusal")
        return
    tell(way, {"task": said["task"], "event": "begun"})
    attempt = os.environ.get("SPOOL_ATTEMPT", "1")
    if said["role"] == "innocent":
        with open(f"innocent-{said['task']}.txt", "w", encoding="utf-8") as file:
            file.write(f"{said['task']}\n")
        _say("COMPLETED", text="done")
        return
    problems = _play(said, int(attempt), way, home)
    if said["again"] == "retry" and attempt == "1":
        _say("FAILED", reason="the first attempt fails, as it is to")
    else:
        _say("COMPLETED", text=f"left {problems}")


def tell(way: str, said: dict[str, Any]) -> None:
    """Say something to the pool's observer, and wait until it was heard. Errors: OSError."""
    with socket.socket(socket.AF_UNIX) as made:
        made.connect(way)
        made.sendall(json.dumps(said).encode() + b"\n")
        made.shutdown(socket.SHUT_WR)
        made.recv(1)


def _play(said: dict[str, Any], attempt: int, way: str, home: str) -> dict[str, str]:
    mine = plan(said["seed"], said["only"])
    words = {"home": home, **{name: said[name] for name in ("seed", "canary", "marks", "root", "port")}}
    chance = random.Random(f"{said['seed']}.{attempt}")
    place = Place(chance, SCALES[said["scale"]], kind=mine.kind, sandboxed=mine.sandbox, lfs=mine.lfs, **words)
    problems = {}
    for name in mine.blocks:
        place.block = name
        try:
            BLOCKS[name].do(place)
        except subprocess.CalledProcessError as error:
            problems[name] = f"{error.cmd[-4:]}: {(error.stderr or b'').decode(errors='replace')[-300:]}"
        except (OSError, subprocess.SubprocessError, IndexError, KeyError, ValueError) as error:
            problems[name] = repr(error)[:300]
    left: list[dict[str, Any]] = []
    with contextlib.suppress(OSError):
        left = [one.plain() for one in left_in(place.tree, place.ignored, place.known, BASE)]
    base = (*BASE, b"lib") if mine.base == "submodule" else BASE
    passed = {commit for commit, path in place.within.items() if not counts(path, place.ignored, base)}
    commits = {commit: names for commit, names in place.commits.items() if commit not in passed}
    made = {"commits": commits, "left": left, "problems": problems, "attempt": attempt}
    tell(way, {"task": said["task"], "event": "left", **made})
    return problems


def _say(verb: str, **said: str) -> None:
    os.write(1, f"\nSPOOL:{verb} {json.dumps(said)}\n".encode())
