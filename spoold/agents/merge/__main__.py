"""`python -m spoold.agents.merge`: the handler of tasks of type merge.

    [handlers.merge]
    command = ["python3", "-m", "spoold.agents.merge", "--repo", "/srv/git/app.git", "--test", "make test"]

Law: it opens only repositories that its --repo names, each by the address that is written there: a task is anybody's,
and the hooks and tests of a repository run here. It exits with 0 only when everything that was asked for is in the
branch. 65 says that some work was refused for what it holds, 64 that the task says nothing that can be merged or that
the handler names no repository, 1 that it may go well later.

Touches: files, processes, the clock, the terminal, the environment.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from spoold.agents.merge import candidate, helping
from spoold.agents.merge.candidate import Candidate, Refused
from spoold.agents.merge.clearing import clear
from spoold.agents.merge.landing import Branch
from spoold.agents.merge.lane import Helper, Lane
from spoold.agents.merge.outcome import Outcome
from spoold.agents.merge.testing import Bench, Suite
from spoold.agents.merge.wanted import Wanted
from spoold.agents.workspace import publishing
from spoold.agents.workspace.addresses import repository, same
from spoold.agents.workspace.mirror import Mirror
from spoold.agents.workspace.places import Places
from spoold.protocol import codec
from spoold.protocol.errors import BadFile, SpoolError, WrongValue

LATER, USAGE, DATA = 1, 64, 65


def main(argv: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Merge what the task of this attempt says; returns the exit code."""
    options = _options(argv)
    try:
        allowed = _allowed(options.repo)
        wanted = _known(read_task(environ["SPOOL_TASK_FILE"]), allowed)
    except (BadFile, KeyError) as error:
        unset = "SPOOL_TASK_FILE is not set: this is a handler, and runs within a task."
        _complain(unset if isinstance(error, KeyError) else str(error))
        return USAGE
    try:
        outcome = merge(wanted, Suite(options.test, options.setup, options.within), options.dir, environ)
    except (SpoolError, OSError) as error:
        _complain(f"nothing more has landed in {wanted.into}: {error}")
        return LATER
    _write(environ.get("SPOOL_RESULT_FILE"), outcome.as_output())
    if options.keep_refs and outcome.landed:
        _clear(wanted, options.keep_refs, options.dir, environ)
    for line in outcome.told():
        say(line)
    if outcome.whole:
        return 0
    _complain(outcome.summary())
    return LATER if outcome.waits else DATA


def merge(wanted: Wanted, suite: Suite, directory: str | None, environ: Mapping[str, str]) -> Outcome:
    """Land what can be landed, and return what became of each task. Errors: SpoolError, OSError."""
    where = Places(directory, environ)
    where.make()
    branch = Branch(Mirror(where, wanted.repo), wanted.into)
    merge_id = environ.get("SPOOL_TASK_ID", "")
    branch.fetch(tuple(f"{publishing.prefix(task)}*" for task in wanted.tasks))
    bench = Bench(where, branch.mirror, suite)
    try:
        found = [_found(branch, wanted, task, environ) for task in dict.fromkeys(wanted.tasks)]
        lane = Lane(branch, bench, _helper(branch, wanted, merge_id, environ), merge_id, say)
        good = [one for one in found if isinstance(one, Candidate)]
        bad = [one for one in found if isinstance(one, Refused)]
        empty = [one for one in bad if wanted.may_be_empty and one.reason == "empty"]
        for one in empty:
            say(f"{one.task} changed nothing")
        return lane.run(good, [one for one in bad if one not in empty])
    finally:
        bench.close()


def _clear(wanted: Wanted, keep_s: float, directory: str | None, environ: Mapping[str, str]) -> None:
    """Remove references of work that landed long ago; what hinders that is said, and hinders nothing else."""
    try:
        gone = clear(Branch(Mirror(Places(directory, environ), wanted.repo), wanted.into), keep_s, time.time())
    except (SpoolError, OSError) as error:
        say(f"old references stay: {error}")
    else:
        for name in gone:
            say(f"removed {name}, which landed")


def read_task(path: str) -> Wanted:
    """Return the input of a task. Errors: BadFile."""
    try:
        with open(path, "rb") as file:
            task = codec.as_object(codec.load(file.read(), path), path)
    except OSError as error:
        raise BadFile(path, "", f"cannot be read: {error.strerror}.", "run this as a handler.") from error
    return codec.check(Wanted, codec.as_object(task.get("input"), f"{path}: input"), f"{path}: input")


def say(text: str) -> None:
    """Print a line of the log at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _complain(text: str) -> None:
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")


def _found(branch: Branch, wanted: Wanted, task: str, environ: Mapping[str, str]) -> Candidate | Refused:
    said = candidate.read_result(environ.get("SPOOL_DEPS_DIR"), task)
    return candidate.find(branch.mirror.git, wanted.repo, task, said)


def _helper(branch: Branch, wanted: Wanted, merge_id: str, environ: Mapping[str, str]) -> Helper:
    root = environ.get("SPOOL_ROOT")
    if not root or not merge_id:
        return helping.Nobody()
    from spoold.client.spool_client import SpoolClient

    def newest(task: str) -> Candidate | Refused:
        branch.fetch((f"{publishing.prefix(task)}*",))
        return candidate.find(branch.mirror.git, wanted.repo, task, {})

    return helping.Agents(SpoolClient(root), merge_id, wanted, newest, say)


def _allowed(said: Sequence[str]) -> list[str]:
    """Return the repositories that are merged here. Errors: BadFile."""
    if not said:
        problem, fix = "names no repository, so anybody could name one.", 'add "--repo", "/srv/git/app.git".'
        raise BadFile("the command of this handler", "", problem, fix)
    try:
        return [repository(one) for one in said]
    except WrongValue as wrong:
        raise BadFile("the command of this handler", "--repo", f"{wrong.problem}.", f"{wrong.mend}.") from None


def _known(wanted: Wanted, allowed: Sequence[str]) -> Wanted:
    """Return the task with the address that its repository has here. Errors: BadFile."""
    for one in allowed:
        if same(one, wanted.repo):
            return wanted.model_copy(update={"repo": one})
    raise BadFile(
        "the task", "input.repo", f"{wanted.repo} is not merged here.", "name it as --repo of this handler."
    )


def _write(path: str | None, found: dict[str, Any]) -> None:
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(found, file)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m spoold.agents.merge", description="Merges the work of tasks.")
    parser.add_argument("--test", action="append", default=[], metavar="LINE", help="must pass; may be repeated")
    parser.add_argument("--setup", action="append", default=[], metavar="LINE", help="runs before the tests")
    parser.add_argument("--within", type=float, default=3600.0, metavar="S", help="seconds for each of these lines")
    parser.add_argument("--dir", metavar="DIR", help="where mirrors lie; by default in the cache of this user")
    parser.add_argument("--keep-refs", type=float, default=0.0, metavar="S", help="remove landed references after S")
    parser.add_argument("--repo", action="append", default=[], metavar="REPO", help="one that is merged here; needed")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
