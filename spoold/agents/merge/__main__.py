"""`python -m spoold.agents.merge`: the handler of tasks of type merge.

[merge] of a worker's file starts it, or a handler that was written by hand:

    [handlers.merge]
    command = ["python3", "-m", "spoold.agents.merge", "--repo", "/srv/git/app.git", "--test", "make test"]

Law: it opens only repositories that its owner names, each by the address that is written there: a task is anybody's,
and the hooks and tests of a repository run here. It exits with 0 only when everything that was asked for is in the
branch. 65 says that some work was refused for what it holds, or all of it by a rule of the remote; 64 that the task
says nothing that can be merged, that its branch is not there, or that the handler names no repository; 75 that the
remote is away, that a program of ours was killed, or that this worker does not merge the repository, and another may;
126 that the sandbox is not to be had; 1 that it may go well later.

Touches: files, processes, the clock, the terminal, the environment.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from spoold.agents.configuration.merge_settings import TABLE, VARIABLE, MergeConfig, read, read_back, repos_of
from spoold.agents.configuration.redactor import scanning
from spoold.agents.merge import candidates, conflicts
from spoold.agents.merge.bisection import Bisection, Outcome, Rules
from spoold.agents.merge.branch import Branch, NoBranch, clear
from spoold.agents.merge.candidates import Candidate, Refused
from spoold.agents.merge.guards import Guards
from spoold.agents.merge.merge_request import MergeRequest
from spoold.agents.merge.testing import Bench, Run, Suite, Walled
from spoold.agents.process import confinement
from spoold.agents.process.ending import end_of_absence
from spoold.agents.process.interfaces import NoPlace
from spoold.agents.sandbox.launch import probe
from spoold.agents.workspace import publishing
from spoold.agents.workspace.git import GitFailed, RemoteAway
from spoold.agents.workspace.mirror import Mirror
from spoold.agents.workspace.repository_config import is_among, same
from spoold.agents.workspace.room import fault_of
from spoold.agents.workspace.workspace_layout import Places
from spoold.protocol import codec
from spoold.protocol.amount import some
from spoold.protocol.errors import BadFile, SpoolError

LATER, USAGE, DATA, AWAY, NOT_HERE = 1, 64, 65, 75, 126


def main(argv: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Merge what the task of this attempt says; returns the exit code."""
    options = _options(argv)
    try:
        config = _config(options, environ)
        if options.check:
            return _check(config)
        wanted = _known(read_task(environ["SPOOL_TASK_FILE"]), config.repos)
    except _NotHere as error:
        return _left(str(error), environ)
    except (BadFile, KeyError) as error:
        unset = "SPOOL_TASK_FILE is not set: this is a handler, and runs within a task."
        _complain(unset if isinstance(error, KeyError) else str(error))
        return USAGE
    try:
        outcome = merge(wanted, config, environ)
    except (SpoolError, OSError) as error:
        return _hindered(error, wanted, config, environ)
    _write(environ.get("SPOOL_RESULT_FILE"), outcome.as_output())
    if config.keep_refs and outcome.landed:
        _clear(wanted, config.keep_refs, config.dir, environ)
    for line in outcome.told():
        say(line)
    if outcome.whole:
        return 0
    _complain(outcome.summary())
    return LATER if outcome.waits else DATA


def _hindered(
    error: SpoolError | OSError, wanted: MergeRequest, config: MergeConfig, environ: Mapping[str, str]
) -> int:
    """Leave why an error ended a merge; returns the exit code."""
    if full := fault_of(error, Places(config.dir, environ).top):
        return _later(full, environ, "type")
    if isinstance(error, RemoteAway):
        return _absent(str(error), environ)
    why = f"nothing more has landed in {wanted.into}: {error}"
    if any(isinstance(one, GitFailed) and one.killed for one in (error, error.__cause__)):
        return _absent(f"a program of the merge was killed; {why}", environ)
    _write(environ.get("SPOOL_RESULT_FILE"), {"reasons": [why]})
    _complain(why)
    if isinstance(error, NoBranch):
        return USAGE
    return NOT_HERE if isinstance(error, NoPlace) else LATER


def _absent(why: str, environ: Mapping[str, str]) -> int:
    """Ask for a later try, at no charge: what is missing comes back by itself."""
    end = end_of_absence(why, _previous(environ))
    _write(environ.get("SPOOL_RESULT_FILE"), {"outcome": end.outcome, "reasons": list(end.reasons), **end.more})
    _complain(why)
    return AWAY


def merge(wanted: MergeRequest, config: MergeConfig, environ: Mapping[str, str]) -> Outcome:
    """Land what can be landed, and return what became of each task. Errors: SpoolError, OSError."""
    where = Places(config.dir, environ)
    where.make()
    branch = Branch(Mirror(where, wanted.repo), wanted.into)
    merge_id = environ.get("SPOOL_TASK_ID", "")
    branch.fetch(tuple(f"{publishing.prefix(task)}*" for task in wanted.tasks))
    bench = Bench(where, branch.mirror, _suite(config), walls=_walls(config, environ))
    try:
        found = [_found(branch, wanted, task, environ) for task in dict.fromkeys(wanted.tasks)]
        helper = _helper(branch, wanted, merge_id, environ)
        rules = Rules(Guards(config, helper.allows, scanning(environ, tokens=True)), config.retest)
        lane = Bisection(branch, bench, helper, merge_id, say, rules)
        good = [one for one in found if isinstance(one, Candidate)]
        bad = [one for one in found if isinstance(one, Refused)]
        empty = [one for one in bad if wanted.may_be_empty and one.reason == "empty"]
        for one in empty:
            say(f"{one.task} changed nothing")
        return lane.run(good, [one for one in bad if one not in empty])
    finally:
        bench.close()


def _suite(config: MergeConfig) -> Suite:
    return Suite(config.test, config.setup, config.within, config.no_fewer_tests)


def _walls(config: MergeConfig, environ: Mapping[str, str]) -> Callable[[Sequence[str]], Run] | None:
    return partial(Walled, config.sandbox, environ) if config.confined else None


def _check(config: MergeConfig) -> int:
    """Try the sandbox out; returns the exit code."""
    verdict = probe(confinement.read(config.sandbox, TABLE).asked())
    if not verdict.ok:
        _complain(f"sandbox refuses: {verdict.words}")
    return 0 if verdict.ok else LATER


def _previous(environ: Mapping[str, str]) -> Any:
    """Return the record of the attempt before this one; None where there is none."""
    try:
        with open(environ.get("SPOOL_PREVIOUS_FILE") or "/nowhere", "rb") as file:
            return codec.load(file.read(), file.name)
    except (OSError, BadFile):
        return None


def _clear(wanted: MergeRequest, keep_s: float, directory: str | None, environ: Mapping[str, str]) -> None:
    """Remove references of work that landed long ago; what hinders that is said, and hinders nothing else."""
    try:
        gone = clear(Branch(Mirror(Places(directory, environ), wanted.repo), wanted.into), keep_s, time.time())
    except (SpoolError, OSError) as error:
        say(f"old references stay: {error}")
    else:
        for name in gone:
            say(f"removed {name}, which landed")


def read_task(path: str) -> MergeRequest:
    """Return the input of a task. Errors: BadFile."""
    try:
        with open(path, "rb") as file:
            task = codec.as_object(codec.load(file.read(), path), path)
    except OSError as error:
        raise BadFile(path, "", f"cannot be read: {error.strerror}.", "run this as a handler.") from error
    return codec.check(MergeRequest, codec.as_object(task.get("input"), f"{path}: input"), f"{path}: input")


def say(text: str) -> None:
    """Print a line of the log at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _complain(text: str) -> None:
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")


def _found(branch: Branch, wanted: MergeRequest, task: str, environ: Mapping[str, str]) -> Candidate | Refused:
    said = candidates.read_result(environ.get("SPOOL_DEPS_DIR"), task)
    return candidates.find(branch.mirror.git, wanted.repo, task, said)


def _helper(
    branch: Branch, wanted: MergeRequest, merge_id: str, environ: Mapping[str, str]
) -> conflicts.Agents | conflicts.Nobody:
    root = environ.get("SPOOL_ROOT")
    if not root or not merge_id:
        return conflicts.Nobody()
    from spoold.client.spool_client import SpoolClient

    def newest(task: str) -> Candidate | Refused:
        branch.fetch((f"{publishing.prefix(task)}*",))
        return candidates.find(branch.mirror.git, wanted.repo, task, {})

    return conflicts.Agents(SpoolClient(root), merge_id, wanted, newest, say)


def _config(options: argparse.Namespace, environ: Mapping[str, str]) -> MergeConfig:
    """Return what [merge] says, or the options of a handler that was written by hand. Errors: BadFile."""
    if environ.get(VARIABLE):
        return read_back(environ[VARIABLE])
    place = "the command of this handler"
    if not options.repo:
        problem, fix = "names no repository, so anybody could name one.", 'add "--repo", "/srv/git/app.git".'
        raise BadFile(place, "", problem, fix)
    said = {name: value for name, value in vars(options).items() if name != "check" and value is not None}
    try:
        return read({"repos" if name == "repo" else name: value for name, value in said.items()}, place)
    except BadFile as error:
        field = error.field.replace("repos", "repo", 1).replace("_", "-")
        raise BadFile(place, f"--{field}", error.problem, error.mend) from None


def _known(wanted: MergeRequest, allowed: Sequence[str]) -> MergeRequest:
    """Return the task with the address that its repository has here. Errors: BadFile."""
    for one in allowed:
        if same(one, wanted.repo):
            return wanted.model_copy(update={"repo": one})
    raise _NotHere(wanted.repo)


class _NotHere(Exception):
    """Its worker does not merge a repository, and another one may. Its text is the address."""


def _left(repo: str, environ: Mapping[str, str]) -> int:
    """Leave a merge to the workers that merge its repository; returns the exit code."""
    return _later(f"this worker does not merge {repo}{_mergers(repo, environ)}", environ, "task")


def _later(why: str, environ: Mapping[str, str], not_here: str) -> int:
    """Leave a merge for later, to other workers first; returns the exit code."""
    end = end_of_absence(why, _previous(environ))
    said = {"outcome": end.outcome, "reasons": [why], "not_here": not_here, **end.more}
    _write(environ.get("SPOOL_RESULT_FILE"), said)
    _complain(why)
    return AWAY


def _mergers(repo: str, environ: Mapping[str, str]) -> str:
    """Return who merges a repository now, as part of a sentence; '' where that is not known."""
    root = environ.get("SPOOL_ROOT")
    if not root:
        return ""
    from spoold.client.spool.capabilities import list_about
    from spoold.client.spool_client import SpoolClient
    from spoold.system.host import SystemHost

    try:
        store = SpoolClient(root).store
        found = {node: repos_of(about) for node, about in list_about(store, SystemHost(), store.clock, TABLE).items()}
    except (SpoolError, OSError):
        return ""
    able = [node for node, repos in found.items() if is_among(repo, repos)]
    if able:
        return f", and {some(able)} {'does' if len(able) == 1 else 'do'}"
    if any(not repos for repos in found.values()):  # handlers that were written by hand do not say
        return ""
    return f", and no live worker does: add it to repos in [{TABLE}] of a worker"


def _write(path: str | None, found: dict[str, Any]) -> None:
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(found, file)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m spoold.agents.merge", description="Merges the work of tasks.")
    more: dict[str, Any] = {"action": "append"}
    parser.add_argument("--repo", metavar="REPO", help="one that is merged here; needed; may be repeated", **more)
    parser.add_argument("--test", metavar="LINE", help="must pass; may be repeated", **more)
    parser.add_argument("--setup", metavar="LINE", help="runs before the tests", **more)
    parser.add_argument("--protect", metavar="PATTERN", help="paths whose change needs a person's yes", **more)
    parser.add_argument("--within", type=float, metavar="S", help="seconds for each of these lines")
    parser.add_argument("--dir", metavar="DIR", help="where mirrors lie; by default in the cache of this user")
    parser.add_argument("--keep-refs", type=float, metavar="S", help="remove landed references after S")
    parser.add_argument("--sandbox", metavar="KIND", help="where these lines run: none, bwrap or systemd")
    parser.add_argument("--max-files", type=int, metavar="N", help="the most files that work may change")
    parser.add_argument("--max-lines", type=int, metavar="N", help="the most lines that it may add and remove")
    parser.add_argument("--max-file-mb", type=float, metavar="N", help="the most MiB of a file that it changes")
    parser.add_argument("--no-fewer-tests", metavar="LINE", help="lists the tests, whose count may not fall")
    parser.add_argument(
        "--no-secrets", action="store_true", default=None, help="what looks like a secret does not land"
    )
    parser.add_argument("--retest", type=int, metavar="N", help="test what failed so often again")
    parser.add_argument("--check", action="store_true", help="only try the sandbox out")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
