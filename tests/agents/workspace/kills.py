"""Ends a process as `kill -9` does, right before its Nth git command; run as a program, which has no threads to fork.

python -m tests.agents.workspace.kills FOLDER KIND
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from spoold.agents.workspace import committing
from spoold.agents.workspace.attempt_workspace import collect
from spoold.agents.workspace.git import Done, Git, GitFailed
from tests.agents.workspace.repos import Remote, git, workspace, write

KILLED = 137


def beside(program: str, request: Any, reads: tuple[str, ...], scratch: str) -> str:
    """The program in the cage, in this process."""
    with redirect_stdout(io.StringIO()) as said:
        code = import_module(program).serve(json.dumps(asdict(request)))
    if code:
        raise GitFailed(("save", "the workspace"), code, "it failed")
    return said.getvalue()


def killed_before(number: int, run: Callable[[], object]) -> bool:
    """Run it in a process of its own that ends before its git command of that number; whether it had so many."""
    pid = os.fork()
    if pid == 0:
        commands, real = 0, Git._once

        def once(self: Git, words: tuple[str, ...], given: str | int, within_s: float) -> Done:
            nonlocal commands
            commands += 1
            if commands == number:
                os._exit(KILLED)  # nothing is tidied up
            return real(self, words, given, within_s)

        Git._once = once  # type: ignore[method-assign]
        committing.caged = beside  # its commands count, too
        try:
            run()
        except BaseException:  # noqa: BLE001 - the parent reads it from stderr
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, KILLED), code
    return code == KILLED


def story(top: Path, kind: str, number: int) -> bool:
    """An attempt is killed, and the next one on this host goes on; whether it was killed."""
    shutil.copytree(top.parent / "made", top)
    remote, host, mark = Remote.at(top), top / "host", top / "mark"

    def first() -> None:
        with workspace(remote, host, kind=kind) as made:
            tree = made.open()
            write(tree, {"b.txt": "work\n"})
            git("add", "b.txt", cwd=tree)
            git("commit", "-q", "-m", "mine", cwd=tree)
            write(tree, {"c.txt": "more\n"})
            mark.touch()
            made.save("first")

    killed = killed_before(number, first)
    with workspace(remote, host, attempt=2, kind=kind) as made:
        tree = made.open()
        if mark.exists():
            assert {"b.txt", "c.txt"} <= set(os.listdir(tree)), f"command {number}: work is lost"
            assert remote.files("refs/spool/edit/1") == ["a.txt", "b.txt", "c.txt"]
        write(tree, {"d.txt": "end\n"})
        assert made.save("second").ref == "refs/spool/edit/2"
    assert remote.read("refs/spool/edit/2", "d.txt") == "end\n"
    judged = collect(made.places, keep_s=0)
    assert all(one.removed for one in judged), judged
    return killed


if __name__ == "__main__":
    folder, of = Path(sys.argv[1]), sys.argv[2]
    (folder / "made").mkdir()
    Remote(folder / "made")
    stories = 1
    while story(folder / str(stories), of, stories):
        stories += 1
    print(stories)
