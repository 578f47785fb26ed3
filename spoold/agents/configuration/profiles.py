"""[agents.NAME] of a worker's file: a profile, which becomes the handler of the type NAME; so does [merge].

    [agents.coder]
    cli = "opencode"
    model = "anthropic/claude-sonnet-5"
    limit = "anthropic"
    instead = ["coder-b"]
    accept = ["make test"]

Law: what a profile does not allow, a task does not get: no repository, no model and no command of its own. Every
mistake is told when the worker starts, with file, key and fix.

Touches: files, threads, the environment.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PrivateAttr, field_validator, model_validator

from spoold.agents.adapters import known_agents
from spoold.agents.configuration import merge_settings as merging
from spoold.agents.process import confinement
from spoold.agents.process.confinement import unreached
from spoold.agents.sandbox.protected_files import git_directory, takes
from spoold.agents.workspace.git import Git, GitFailed, bare_or_updated
from spoold.agents.workspace.repository_config import WorkspaceConfig, is_among, pattern, repository
from spoold.agents.workspace.workspace_layout import Places
from spoold.protocol import agent_fields, codec
from spoold.protocol.errors import BadFile, WrongValue
from spoold.protocol.fields import Directory, Env, OptionalWord, Real, Seconds, SomeSeconds, Strict, Whole, Word
from spoold.protocol.lanes import as_word
from spoold.protocol.settings import TEMPERATURE_MAX, TOKENS_MAX
from spoold.rules.scheduling.fallback_types import fault_in

TABLE = "agents"
VARIABLE, REDACT = "SPOOL_AGENT_PROFILE", "SPOOL_AGENT_REDACT"
_NAMED = re.compile(r"\$(\$?)\{([A-Za-z_][A-Za-z0-9_]*)\}")
# Keys that are those of the handler.
_HANDLER = ("instead", "timeout", "max_timeout", "secrets", "cwd", "allow_cwd", "allow_env", "lost_share")
VALUE_MAX = 64 << 10
# What a type's settings may say, too, and an agent is given where it takes it.
VALUES = ("model", "max_tokens", "temperature")
Warns = Literal["all", "rest", "none"]
log = logging.getLogger("spoold")
# For how long (s) a start waits to know whether the repositories of its file are there.
FORESEE_S = 2.0


class Profile(Strict):
    """How an agent is started on this machine, and what its tasks may choose. Times in seconds.

    limit: the limit of spool.toml that a spent quota, or a rate, closes; instead: the types that take its tasks while
    that is closed, in order. start_timeout: until its first word;
    idle_timeout: the longest silence; accept_timeout: for each command that judges its work; ask_timeout: how long a
    question waits for a person, 0 for not at all. concurrent: how many run on this worker at once. accept,
    success_if, must_change: what its work must hold, beside what the task says. then: "merge" has accepted work
    merged, "branch" has it pushed to the branch spool/TASK, "command" then runs then_command, which is of this
    machine's owner. check: the command that tells whether it starts here, instead of `PROGRAM --version`.
    allow_accept, allow_models, allow_repos: what a task may choose. trace: what it tells of itself in spans comes
    into the result.
    """

    cli: str
    command: tuple[str, ...] = ()
    model: str = ""
    max_tokens: Whole | None = Field(default=None, ge=1, le=TOKENS_MAX)
    temperature: Real | None = Field(default=None, ge=0, le=TEMPERATURE_MAX)
    args: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    limit: OptionalWord = ""
    instead: tuple[Word, ...] = ()
    workspace: dict[str, Any] = {}
    sandbox: str | dict[str, Any] = "none"
    env: Env = {}
    secrets: tuple[str, ...] = ()
    cwd: Directory | None = None
    allow_cwd: tuple[Directory, ...] = ()
    allow_env: tuple[str, ...] = ()
    lost_share: str | None = None
    timeout: SomeSeconds | None = None
    max_timeout: SomeSeconds | None = None
    start_timeout: SomeSeconds | None = None
    idle_timeout: SomeSeconds = 900
    accept_timeout: SomeSeconds = 600
    ask_timeout: Seconds = 3600
    max_turns: Whole | None = Field(default=None, ge=1, le=100_000)
    concurrent: Whole | None = Field(default=None, ge=1, le=4096)
    accept: tuple[str | tuple[str, ...], ...] = ()
    success_if: dict[str, Any] = {}
    must_change: bool = False
    then: Literal["merge", "branch", "command"] | None = None
    then_command: tuple[str, ...] = ()
    allow_accept: bool = False
    allow_models: tuple[str, ...] = ()
    allow_repos: tuple[Annotated[str, AfterValidator(pattern)], ...] = ()
    trace: bool = False
    _place: str = PrivateAttr("")

    @field_validator("cli")
    @classmethod
    def _known(cls, value: str) -> str:
        known = known_agents.names()
        if value not in known:
            raise WrongValue(f"{value!r} is no agent that is known here", f"use one of {', '.join(known)}")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Profile:
        if bool(self.command) != (self.cli == known_agents.GENERIC):
            problem = "a generic agent has no command" if not self.command else f"{self.cli} brings its own command"
            raise WrongValue(
                problem, 'write cli = "generic" and command = ["prog", "arg"], or args for another agent'
            )
        if self.then and not self.workspace.get("repo") and not self.allow_repos:
            raise WrongValue(
                f'then = "{self.then}" has no repository', 'add workspace = {repo = "…"}, or allow_repos'
            )
        if (self.then == "command") != bool(self.then_command):
            problem = 'then = "command" has no then_command' if self.then == "command" else "then_command has no then"
            raise WrongValue(problem, 'write then = "command" and then_command = ["prog", "arg"]')
        given = {"accept": self.accept, "success_if": self.success_if, "model": self.model}
        agent_fields.check({"prompt": "x", **{name: value for name, value in given.items() if value}})
        return self

    @property
    def place(self) -> str:
        """Its place for people: its table, and the worker's file."""
        return self._place

    def found_at(self, place: str) -> Profile:
        """Return the same, as read from that place."""
        self._place = place
        return self

    @property
    def program(self) -> str:
        """The program that its command starts."""
        return self.command[0] if self.command else known_agents.make(self.cli).program


def takes_value(profile: Profile) -> tuple[str, ...]:
    """Return which of VALUES its agent can be given; a generic one those that its command names."""
    if profile.cli != known_agents.GENERIC:
        return known_agents.make(profile.cli).takes
    words = " ".join((*profile.command, *profile.args))
    return tuple(name for name in VALUES if f"{{{name}}}" in words)


def expand(
    table: dict[str, Any], file: str, environ: Mapping[str, str] = os.environ, *, warns: Warns = "all"
) -> dict[str, Any]:
    """Return the table of a worker's file with a handler for each profile, and for merges. warns: of what is logged
    besides: `rest` leaves out what `spool doctor` finds by trials. Errors: BadFile."""
    if TABLE not in table and merging.TABLE not in table:
        return table
    profiles = table.get(TABLE, {})
    if not isinstance(profiles, dict):
        raise BadFile(file, TABLE, "is no table.", "write [agents.NAME], and its keys below.")
    handlers, read = dict(table.get("handlers") or {}), dict[str, Profile]()
    for name, said in profiles.items():
        key = f"{TABLE}.{name}"
        try:
            word = as_word(name)
        except WrongValue as wrong:
            raise BadFile(file, key, f"{wrong.problem}.", f"{wrong.mend}.") from None
        if word in {str(other).lower() for other in handlers}:
            raise BadFile(file, key, f"there is a handler {word}, too.", "give one of the two another name.")
        profile = _read(said, key, file, environ)
        walls = confinement.started(profile.sandbox, environ, _own_env(table), profile.env)
        profile = profile.model_copy(update={"sandbox": walls})
        read[word] = profile.found_at(f"[{key}] in {os.path.abspath(file)}")
        if (fault := fault_in(word, read[word].instead)) is not None:
            raise BadFile(file, f"{key}.instead", f"{fault.problem}.", f"{fault.mend}.")
        handlers[word] = _handler(word, read[word], table.get("redact"), environ)
        if notes := _notes(read[word], table, environ):
            handlers[word]["notes"] = notes
    for why in _unlike(read, handlers.keys()) if warns != "none" else ():
        log.warning("%s: %s", file, why)
    for why in _doubted(read, environ, warns):
        log.warning("%s", why)
    merger = _merger(table, handlers, file, environ) if merging.TABLE in table else {}
    handlers |= {merging.TABLE: merger} if merger else {}
    if warns == "all":
        _foresee(file, read, merger.get("about", {}))
    kept = {name: value for name, value in table.items() if name not in (TABLE, merging.TABLE)}
    return {**kept, "handlers": handlers}


def _merger(
    table: dict[str, Any], handlers: Collection[str], file: str, environ: Mapping[str, str]
) -> dict[str, Any]:
    """Return the handler of [merge]. handlers: the others. Errors: BadFile."""
    if merging.TABLE in {str(other).lower() for other in handlers}:
        problem = f"there is a handler {merging.TABLE}, too."
        raise BadFile(file, merging.TABLE, problem, "say all of it in [merge], and remove the handler.")
    values = _value(table[merging.TABLE], merging.TABLE, file, environ)
    secrets = values.get("secrets", ()) if isinstance(values, dict) else ()
    if isinstance(values, dict):
        walls = confinement.started(values.get("sandbox", "none"), environ, _own_env(table), _own_env(values))
        values = {**values, "sandbox": walls}
    return merging.handler(values, file, {REDACT: _redaction(secrets, table.get("redact"))})


def _foresee(file: str, read: Mapping[str, Profile], merger: Mapping[str, str]) -> None:
    """Log which repositories are not there, and which take no merges. merger: what is told of [merge]. Where a share
    does not answer, this goes on after FORESEE_S, and what is found is logged later: the worker's first beat must not
    wait for it."""

    def look() -> None:
        found = [one for name, profile in read.items() for one in of_workspace(name, profile.workspace)]
        repos = merging.repos_of(merger)
        for one in (*found, *of_repositories(repos), *of_branches(repos)):
            log.warning("%s: %s", file, one.words)

    thread = threading.Thread(target=look, name="foresee", daemon=True)
    thread.start()
    thread.join(FORESEE_S)


def _doubted(read: Mapping[str, Profile], environ: Mapping[str, str], warns: Warns) -> Iterator[str]:
    """Yield what may keep each agent from its model, and what its profile says in vain."""
    for name, one in read.items() if warns != "none" else ():
        kept = unreached(one.cli, one.model, one.sandbox, {**environ, **one.env}) if warns == "all" else None
        if kept is not None:
            yield f"the agent {name} cannot ask its model: {kept.words}"
        for value in set(_sets(one)) - set(takes_value(one)):
            given = f"the agent {name} ({one.cli}) cannot be given {value}"
            yield f"{given}, so what [agents.{name}] says of it does not count"


def _sets(profile: Profile) -> list[str]:
    return [value for value in VALUES if getattr(profile, value) not in ("", None)]


def _unlike(read: Mapping[str, Profile], handlers: Collection[str]) -> Iterator[str]:
    """Yield what an owner should know of the profiles that take the tasks of others."""
    for name, profile in read.items():
        place = f"[agents.{name}] instead"
        for other in profile.instead:
            there = read.get(other)
            if other not in handlers:
                yield f"{place}: nothing here runs {other}, so its tasks wait for another worker that does"
            elif there is not None and profile.allow_accept and not there.allow_accept:
                yield f"{place}: {other} lacks allow_accept, so tasks that name commands are not done there"
            elif there is not None and not _reaches(profile, there):
                yield f"{place}: {other} has another workspace.repo or other allow_repos, so work may not go on there"


def _reaches(profile: Profile, other: Profile) -> bool:
    """Whether another profile works in the repositories of this one."""
    repo, its = profile.workspace.get("repo"), other.workspace.get("repo")
    return repo == its and {*profile.allow_repos} <= {*other.allow_repos}


def _read(said: Any, key: str, file: str, environ: Mapping[str, str]) -> Profile:
    if not isinstance(said, dict):
        raise BadFile(file, key, "is no table.", f"write [{key}], and its keys below.")
    values = {name: _value(value, f"{key}.{name}", file, environ) for name, value in said.items()}
    try:
        profile = codec.check(Profile, values, file)
    except BadFile as error:
        field = ".".join(filter(None, (key, error.field)))
        raise BadFile(file, field, error.problem, error.mend) from None
    # A task may name the repository, but for an empty folder, which has none.
    named = {} if profile.workspace.get("kind") == "none" else {"repo": "/"}
    _check_part(key, "workspace", lambda: codec.check(WorkspaceConfig, {**named, **profile.workspace}, file))
    _check_part(key, "sandbox", lambda: confinement.read(profile.sandbox, file))
    return profile


def _check_part(key: str, part: str, check: Callable[[], object]) -> None:
    """Errors: BadFile, whose field is the whole key."""
    try:
        check()
    except BadFile as error:
        raise BadFile(
            error.file, ".".join(filter(None, (key, part, error.field))), error.problem, error.mend
        ) from None


def _value(value: Any, key: str, file: str, environ: Mapping[str, str]) -> Any:
    """Return a value with variables and files in their place. Errors: BadFile."""
    if isinstance(value, str):
        return _NAMED.sub(lambda found: _variable(found, key, file, environ), value)
    if isinstance(value, dict):
        path = value.get("file")
        # A condition has a file, too, and that is a path in the workspace.
        if len(value) == 1 and isinstance(path, str) and path.startswith(("/", "~/")):
            return _content(os.path.expanduser(path), key, file)
        return {name: _value(inner, f"{key}.{name}", file, environ) for name, inner in value.items()}
    return [_value(one, key, file, environ) for one in value] if isinstance(value, list) else value


def _variable(found: re.Match[str], key: str, file: str, environ: Mapping[str, str]) -> str:
    if found[1]:
        return found[0][1:]
    if found[2] not in environ:
        problem = f"the worker's environment has no {found[2]}."
        raise BadFile(file, key, problem, f"set it before the worker starts, or write $${{{found[2]}}} for the text.")
    return environ[found[2]]


def _content(path: str, key: str, file: str) -> str:
    try:
        with open(path, encoding="utf-8") as opened:
            text = opened.read(VALUE_MAX + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadFile(file, key, f"{path} cannot be read: {why}.", "name a file that the worker may read.") from None
    if len(text) > VALUE_MAX:
        raise BadFile(file, key, f"{path} has more than {VALUE_MAX >> 10} KiB.", "name a shorter file.")
    return text.strip()


def _handler(name: str, profile: Profile, redact: Any, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the handler of a profile. redact: the table of the worker's file, which the worker checks."""
    said = profile.model_dump(mode="json", exclude_defaults=True)
    handler = {key: said.pop(key) for key in _HANDLER if key in said}
    program = profile.program
    about = {"agent": profile.cli, "model": profile.model, "recorded": known_agents.make(profile.cli).recorded}
    sets = _sets(profile)
    about |= {"takes": " ".join(takes_value(profile)), "sets": " ".join(sets), "limit": profile.limit}
    kept = unreached(profile.cli, profile.model, profile.sandbox, {**environ, **profile.env})
    about |= {"warning": kept.words} if kept is not None else {}
    kind = confinement.read(profile.sandbox, name).kind
    # A container brings the program. A relative path is one of each attempt.
    needed = ("/" not in program or program.startswith("/")) and kind != "podman"
    checked = profile.cli != known_agents.GENERIC or profile.check or kind != "none"
    # Without -P the folder in which the attempt starts would be searched for modules first.
    command = [sys.executable, "-P", "-m", "spoold.agents"]
    return {
        **handler,
        "command": command,
        "env": {
            **profile.env,
            VARIABLE: codec.dump({"name": name, "place": profile.place, **said}).decode(),
            REDACT: _redaction(profile.secrets, redact),
        },
        "about": {key: value for key, value in about.items() if value or key == "takes"},
        **({"needs": [program]} if needed else {}),
        **({"check": [*command, "check"]} if checked else {}),
        **({"max_concurrent": profile.concurrent} if profile.concurrent is not None else {}),
    }


def _notes(profile: Profile, table: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Return the folder in which attempts note work that is on no remote, by the variables that they will have; ''
    for a profile without a repository. table: of the worker's file, checked later."""
    said = profile.workspace
    if said.get("kind") == "none" or not (said.get("repo") or profile.allow_repos):
        return ""
    passed, own = table.get("pass_env"), _own_env(table)
    names = ("HOME", *(passed if isinstance(passed, list) else ()))
    given = {name: text for name, text in environ.items() if any(fnmatchcase(name, str(one)) for one in names)}
    return Places(said.get("dir"), {**given, **own, **profile.env}).unsaved


def _own_env(table: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the variables that a table says, which is checked later."""
    own = table.get("env")
    return {name: text for name, text in own.items() if isinstance(text, str)} if isinstance(own, dict) else {}


def _redaction(secrets: Any, redact: Any) -> str:
    """Return the value of the variable that says what is masked."""
    masks = redact if isinstance(redact, dict) else {}
    return codec.dump({**masks, "secrets": list(secrets) if isinstance(secrets, list | tuple) else []}).decode()


def read_back(text: str) -> tuple[str, Profile]:
    """Return the name and the profile that a handler finds in its environment. Errors: BadFile."""
    said = codec.load_object(text.encode(), VARIABLE)
    name, place = str(said.pop("name", "")), str(said.pop("place", ""))
    return name, codec.check(Profile, said, VARIABLE).found_at(place)


# What a worker's file says that will fail its agents' tasks, or the merges of their work, seen before any is run.


_LOOK_S, _BRANCHES = 20.0, 3
_BRANCH = "branch refs/heads/"


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What will not go well. field: of the worker's file; fix: for it; sure: no other worker can make it go well."""

    field: str
    problem: str
    fix: str
    sure: bool = True

    @property
    def words(self) -> str:
        """All as one sentence."""
        return f"{self.field}: {self.problem}; fix: {self.fix}"


def of_workspace(name: str, workspace: Mapping[str, Any]) -> list[Foreseen]:
    """Return what is wrong with the repository of a profile. Errors: WrongValue for an address that is none."""
    return list(_unusable(f"agents.{name}.workspace.repo", workspace.get("repo") or ""))


def of_repositories(repos: Sequence[str]) -> list[Foreseen]:
    """Return what is wrong with the repositories of [merge]."""
    return [one for repo in repos for one in _unusable("merge.repos", repo)]


def of_branches(repos: Sequence[str]) -> list[Foreseen]:
    """Return into which repositories of [merge] git takes no merge, since the branch is checked out there."""
    found = []
    for repo in repos:
        if branches := _checked_out(repo):
            told = ", ".join([*branches[:_BRANCHES], *(["…"] if len(branches) > _BRANCHES else [])])
            problem = f"{told} is checked out in {repo}, and git refuses merges into what is checked out"
            found.append(Foreseen("merge.repos", problem, bare_or_updated(repo)))
    return found


def of_merges(
    name: str, repo: str, here: Sequence[str], elsewhere: Mapping[str, Sequence[str]] | None
) -> list[Foreseen]:
    """Return that nothing merges the work of a profile with `then = "merge"`; [] where something does.

    repo: '' for any; here: of [merge] in the same file; elsewhere: by live worker what it merges, () where that is
    not known; None where there was no spool to ask.
    """
    others = (elsewhere or {}).values()
    if any(not repos or _has(repos, repo) for repos in others) or _has(here, repo):
        return []
    what = repo or "any repository"
    asked = "" if elsewhere is None else ", and no live worker merges it"
    said = f'"merge" submits merges, and [merge] of this file does not name {what}'
    problem = f"{said}{asked}: its work would not land"
    line = f'repos = ["{repo or "/srv/git/app.git"}"]'
    where = f"add {line} below [merge]" if not here else f'add "{repo}" to repos of [merge]'
    fix = f"{where} of this file, or of the file of a worker that is to merge"
    return [Foreseen(f"agents.{name}.then", problem, fix, sure=elsewhere is not None)]


def _has(repos: Sequence[str], repo: str) -> bool:
    return is_among(repo, repos) if repo else bool(repos)


def _unusable(field: str, said: str) -> Iterator[Foreseen]:
    repo = repository(said) if said else ""
    if not repo.startswith("/"):
        return
    there = [path for path in (repo, f"{repo}.git") if os.path.exists(path)]
    if not there:
        fix = "correct the path, mount what holds it, or make it with git init --bare"
        yield Foreseen(field, f"{repo} is not there", fix)
    elif not any(map(_is_repository, there)):
        yield Foreseen(field, f"{repo} is no git repository", "name one, or make it with git init --bare")


def _is_repository(path: str) -> bool:
    """Whether git opens a path. A file may be a bundle; and what cannot be looked into is not known to be none."""
    try:
        names = os.listdir(path)
    except OSError:
        return True
    return ".git" in names or takes(names)


def _checked_out(repo: str) -> list[str]:
    """Return the branches of a repository on a path that are checked out, where git takes no push into these."""
    path = next((one for one in (repo, f"{repo}.git") if repo.startswith("/") and os.path.isdir(one)), "")
    if not path:
        return []
    git = Git(git_directory(path) if os.path.lexists(f"{path}/.git") else path)
    try:
        rule = git.ask("config", "--get", "receive.denyCurrentBranch", within_s=_LOOK_S).out.strip().lower()
        if rule not in ("", "refuse", "true", "yes", "on", "1"):
            return []
        rows = git("worktree", "list", "--porcelain", "-z", within_s=_LOOK_S).names
    except GitFailed:
        return []
    return [row.removeprefix(_BRANCH) for row in rows if row.startswith(_BRANCH)]
