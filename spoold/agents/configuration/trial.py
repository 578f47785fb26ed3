"""A profile, tried out: is its program there, does it start, and does its sandbox hold?

Each known agent is started with `--version`: it says which one it is, and asks no model, so that nothing is paid. A
generic agent is started with the words of `check`, if its profile has them. A worker does so by `python -m
spoold.agents check` when it starts.

Law: a verdict comes from a run, in the sandbox where the profile names one. Nothing is written but in a folder that
is removed afterwards, and nothing that was started is left. The check prints the version on stdout and ends with 0;
else with 1, and the last line of stderr says what is wrong and how to fix it.

Touches: files, the clock, the terminal.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from spoold.agents.adapters import known_agents
from spoold.agents.configuration.profiles import REDACT, VARIABLE, Foreseen, Profile, read_back
from spoold.agents.process import confinement
from spoold.agents.process.confinement import unreached
from spoold.agents.process.program import Program, adopt_orphans
from spoold.agents.sandbox.launch import entered, probe
from spoold.agents.sandbox.sandbox_mounts import needed
from spoold.agents.sandbox.sandbox_policy import NoSandbox, SandboxRun
from spoold.client.spool.capabilities import untested
from spoold.protocol.errors import BadFile
from spoold.system.remover import remove

Verdict = Literal[
    "ok",
    "untested",
    "no network",
    "not installed",
    "does not start",
    "sandbox refuses",
    "secret missing",
    "unreadable",
    "warned",
]
# With these a worker takes tasks of the profile.
STARTS: tuple[Verdict, ...] = ("ok", "untested")
WITHIN_S = 45.0
_LOOK_S, _KEPT = 0.2, 200
# Paths within a word, such as --config=/etc/agent.toml, or within a line for the shell.
_WITHIN = re.compile(r"(?<![^\s='\"(;|&<>])/[^\s'\";|&<>()]*")
# Programs that begin a command of a line for the shell.
_BEGINS = re.compile(r"(?:^|[;|&(\n])\s*(?:\w+=\S*\s+)*([\w.+-]+)")
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of a trial. path: of its program, '' for none; why: in words, '' where all is well; fix: for it.

    verdict: `untested` starts, but is older than what its output is known of. `no network` starts, and its sandbox
    has none though nobody has said so: each of its tasks would fail. `warned` starts, and something is foreseen that
    will fail its tasks, or the merges of their work.
    """

    agent: str
    cli: str
    version: str
    path: str
    verdict: Verdict
    why: str = ""
    fix: str = ""
    foreseen: tuple[Foreseen, ...] = ()

    def warned(self, foreseen: Sequence[Foreseen]) -> Tried:
        """Return the same, with what else is foreseen."""
        all_of_it = (*self.foreseen, *foreseen)
        warned = self.verdict in STARTS and any(one.sure for one in all_of_it)
        return replace(self, foreseen=all_of_it, verdict="warned" if warned else self.verdict)


def try_out(name: str, profile: Profile, environ: Mapping[str, str], within_s: float = WITHIN_S) -> Tried:
    """Try a profile out. environ: the variables of its attempts; within_s: how long its program may take.

    Errors: none.
    """
    env = {**environ, **profile.env}
    config = confinement.read(profile.sandbox, "the sandbox of the profile")
    path, missing = "", None
    if config.kind != "podman":  # the image brings the program
        path, missing = _find(profile, env)
    if missing is not None:
        return Tried(name, profile.cli, "", path, *missing)
    if not (judged := probe(config.asked())).ok:
        problem, _, fix = judged.words.partition("; fix: ")
        return Tried(name, profile.cli, "", path, "sandbox refuses", problem, fix or "see docs/guide/sandbox.md")
    words = profile.check or (() if profile.cli == "generic" else (profile.program, "--version"))
    if not words:
        return Tried(name, profile.cli, "", path, "ok")
    try:
        code, said, errors = _run(words, profile, config, env, within_s)
    except NoSandbox as refused:
        return Tried(name, profile.cli, "", path, "sandbox refuses", refused.problem, refused.fix)
    except OSError as error:
        code, said, errors = 126, [], [f"{words[0]}: {error.strerror or error}"]
    if code == 0:
        return _started(name, profile, _version(said), path, env)
    last = next((line.strip() for line in reversed([*said, *errors]) if line.strip()), "")
    ended = f"it did not end within {within_s:g} s" if code is None else f"exit code {code}"
    why = f"`{' '.join(words)}` does not start: {ended}{last and f': {last[:_KEPT]}'}"
    where = "" if config.kind == "none" else f" in the sandbox {config.kind}; what it needs there, list in `show`"
    return Tried(name, profile.cli, "", path, "does not start", why, f"run it by hand as the worker's user{where}")


def unseen(
    name: str,
    profile: Profile,
    environ: Mapping[str, str],
    folders: Sequence[str] = (),
    within_s: float = WITHIN_S,
) -> list[Foreseen]:
    """Return which paths of this machine its commands name and its sandbox does not show, by field.

    environ, within_s: as of `try_out`, which found that the program starts; folders: in which its agent may work.
    Errors: none.
    """
    config, named = confinement.read(profile.sandbox, "the sandbox of the profile"), _paths(profile, folders)
    variables = {**environ, **profile.env}
    if config.kind not in ("none", "podman"):
        named = dict([*named.items(), *_programs(profile, config, variables).items()][:_KEPT])
    if config.kind == "none" or not named:
        return []
    look = ("/bin/sh", "-c", 'for one do test -e "$one" && echo yes || echo no; done', "look", *named)
    try:
        code, said, _ = _run(look, profile, config, variables, within_s, beside=profile.program)
    except (NoSandbox, OSError):
        return []
    if code != 0 or len(said) != len(named):
        return []
    found = dict[str, list[str]]()
    for (path, field), there in zip(named.items(), said, strict=True):
        if there.strip() == "no":
            found.setdefault(field, []).append(path)
    return [_not_shown(name, profile, config, field, paths) for field, paths in found.items()]


def _not_shown(
    name: str, profile: Profile, config: confinement.SandboxConfig, field: str, paths: Sequence[str]
) -> Foreseen:
    fix = confinement.showing(profile.sandbox, paths)
    problem = f"{', '.join(paths)} is not shown in the sandbox {config.kind}"
    return Foreseen(f"agents.{name}.{field}", problem, fix)


def _paths(profile: Profile, folders: Sequence[str]) -> dict[str, str]:
    """Return the paths that the commands of a profile name and this machine has, each with the field that names it
    first. A program that begins a command is shown anyway, and so is the folder in which the agent works."""
    lines = dict[str, list[str]](command=[*profile.command[1:]], args=[*profile.args], **_lines(profile))
    lines["accept"] += [word for one in profile.accept if not isinstance(one, str) for word in one[1:]]
    own = tuple(f"{folder.rstrip('/')}/" for folder in folders)
    found = dict[str, str]()
    for field, words in lines.items():
        for path in (path for word in words for path in (word, *_WITHIN.findall(word))):
            if path.startswith("/") and not f"{path}/".startswith(own) and _is_there(path):
                found.setdefault(path, field)
    return dict(list(found.items())[:_KEPT])


def _programs(profile: Profile, config: confinement.SandboxConfig, env: Mapping[str, str]) -> dict[str, str]:
    """Return what the programs need that begin a line of a profile for the shell, each path with its field."""
    found = dict[str, str]()
    for field, lines in _lines(profile).items():
        for name in (name for line in lines for name in _BEGINS.findall(line)):
            found |= {path: found.get(path, field) for path in confinement.paths_of(name, config.show, env)}
    return found


def _lines(profile: Profile) -> dict[str, list[str]]:
    """Return the lines of a profile for the shell, by field."""
    setup = profile.workspace.get("setup") or ()
    return {
        "accept": [one for one in profile.accept if isinstance(one, str)],
        "workspace.setup": [setup] if isinstance(setup, str) else [str(one) for one in setup],
    }


def _is_there(path: str) -> bool:
    return "\0" not in path and os.path.exists(path)


def _started(name: str, profile: Profile, version: str, path: str, env: Mapping[str, str]) -> Tried:
    """Return what came of a profile whose program starts: can it ask its model, and is its output known?"""
    kept = unreached(profile.cli, profile.model, profile.sandbox, env)
    if kept is not None and kept.sure:
        return Tried(name, profile.cli, version, path, "no network", kept.problem, kept.fix)
    adapter, seen = known_agents.make(profile.cli), tuple[Foreseen, ...]()
    if kept is not None and kept.unlisted:
        seen = (Foreseen(f"agents.{name}.sandbox.hosts", kept.problem, kept.fix),)
    tried = Tried(name, profile.cli, version, path, "ok", foreseen=seen)
    if old := untested(profile.cli, version, adapter.recorded):
        return replace(tried, verdict="untested", why=old, fix=f"npm install -g {adapter.package}@latest")
    if kept is None or seen:
        return tried
    return replace(tried, why=kept.problem, fix=kept.fix)


def _find(profile: Profile, env: Mapping[str, str]) -> tuple[str, tuple[Verdict, str, str] | None]:
    """Return the path of a profile's program, and what is wrong with it as verdict, words and fix."""
    program, search = profile.program, env.get("PATH", os.defpath)
    if "/" in program and not program.startswith("/"):
        return program, None  # where that leads, each attempt says
    found = shutil.which(program, path=search)
    if found is not None:
        return found, None
    there = shutil.which(program, mode=os.F_OK, path=search)
    if there is not None:
        words = f"{there} may not be executed by this user"
        return there, ("unreadable", words, f"run: chmod a+rx {there}, and see that its folders may be entered")
    package = known_agents.make(profile.cli).package
    brings = f"install it (npm install -g {package})" if package else "install it"
    where = "" if "/" in program else ", which is nowhere in its PATH"
    fix = f"{brings}, or let the worker's PATH have its folder (env = {{PATH = …}} of the profile)"
    return "", ("not installed", f"it lacks the program {program}{where}", fix)


def _run(
    words: Sequence[str],
    profile: Profile,
    config: confinement.SandboxConfig,
    env: Mapping[str, str],
    within_s: float,
    beside: str = "",
) -> tuple[int | None, list[str], list[str]]:
    """Return exit code (None for one that had to be ended), stdout and stderr. beside: a program that is shown, too.

    Errors: OSError, NoSandbox.
    """
    adopt_orphans()  # what a program leaves behind is ended, too
    top = os.path.realpath(tempfile.mkdtemp(prefix="spoold-trial-"))
    try:
        for part in ("work", "home"):
            os.mkdir(f"{top}/{part}", mode=0o700)
        # As an attempt does it: a known agent has a private home, a generic one that of the worker's user.
        own = {} if profile.cli == "generic" or "HOME" in profile.env else {"HOME": f"{top}/home"}
        variables = {**env, **own, "PWD": f"{top}/work"}
        with _placed(words, config, variables, top, beside) as (argv, given):
            return _ran(Program(argv, f"{top}/work", given), within_s)
    finally:
        remove(top)


@contextmanager
def _placed(
    words: Sequence[str], config: confinement.SandboxConfig, env: Mapping[str, str], top: str, beside: str
) -> Iterator[tuple[Sequence[str], Mapping[str, str]]]:
    if config.kind == "none":
        yield words, env
        return
    programs = () if config.kind == "podman" else filter(None, (words[0], beside))
    shown = [path for one in programs for path in needed(one, env.get("PATH", os.defpath))]
    passed = {name: value for name, value in env.items() if not name.startswith(confinement.WAYS_IN)}
    scene = SandboxRun(f"{top}/work", f"{top}/home", passed, shown=(*config.show, *shown))
    with entered(config.asked(), scene) as inside:
        wrapped = inside.wrap(words)
        yield wrapped.argv, wrapped.env


def _ran(program: Program, within_s: float) -> tuple[int | None, list[str], list[str]]:
    give_up_at, said = time.monotonic() + within_s, list[str]()
    try:
        while not program.over:
            said = [*said, *(line for source, line in program.heard(_LOOK_S) if source == "out")][-_KEPT:]
            if time.monotonic() > give_up_at:
                return None, said, program.errors.splitlines()
        return program.code, said, program.errors.splitlines()
    finally:
        program.end()


def _version(said: Sequence[str]) -> str:
    """Return the version that was printed: the first number with a dot, else the last line."""
    found = next((match[0] for line in said if (match := _VERSION.search(line))), None)
    return found or next((line.strip()[:60] for line in reversed(said) if line.strip()), "")


# `python -m spoold.agents check`: the check of a profile's handler, which its worker runs when it starts.


def check(environ: Mapping[str, str]) -> int:
    """Try the profile in the environment out; returns the exit code."""
    try:
        name, profile = read_back(environ.get(VARIABLE, ""))
    except BadFile as error:
        sys.stderr.write(f"{error}\n")
        return 1
    adopt_orphans()
    tried = try_out(name, profile, {key: value for key, value in environ.items() if key not in (VARIABLE, REDACT)})
    if tried.verdict in STARTS:
        sys.stdout.write(f"{tried.version}\n")
        return 0
    sys.stderr.write(f"{tried.verdict}: {tried.why}; fix: {tried.fix}\n")
    return 1
